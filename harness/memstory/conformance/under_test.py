"""The target that a class of tests is about: started once, opened by each test in a fresh environment."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, ClassVar
from unittest import SkipTest

from memstory.conformance.samples import claim
from memstory.contract.clock import StoryClock
from memstory.contract.target import (
    Capability,
    Connection,
    Environment,
    Item,
    Request,
    Scope,
    Target,
    TargetFactory,
    Tree,
)
from memstory.running.stage import Stage, open_stage


class UnderTest:
    """What each class of tests has: `factory` and `kind` are explained in `TargetContract`."""

    factory: ClassVar[Callable[[], TargetFactory]]
    kind: ClassVar[str | None] = None
    options: ClassVar[Mapping[str, Tree]] = {}
    model_rules: ClassVar[Sequence[Mapping[str, Tree]]] = ()

    _runner: ClassVar[asyncio.Runner]
    _made: ClassVar[TargetFactory]
    _folder: ClassVar[Path]
    _able: ClassVar[frozenset[str]]
    _number: ClassVar[count[int]]

    @classmethod
    def setup_class(cls) -> None:
        """Start the factory once, as a worker does."""
        cls._runner = asyncio.Runner()
        cls._folder = Path(tempfile.mkdtemp(prefix="memstory-conformance-"))
        cls._made = cls.factory()
        cls._able = cls._made.capabilities(cls.options)
        cls._number = count()
        cls._runner.run(cls._made.start(cls._folder))

    @classmethod
    def teardown_class(cls) -> None:
        """Stop the factory and remove what it left."""
        cls._runner.run(cls._made.stop())
        cls._runner.close()
        shutil.rmtree(cls._folder, ignore_errors=True)

    def _environment(self, **given: Any) -> Environment:
        workspace = self._folder / f"case-{next(self._number)}"
        workspace.mkdir()
        return Environment(
            workspace=str(workspace), owner="conformance", options=self.options, model_rules=self.model_rules, **given
        )

    @asynccontextmanager
    async def _opened(self, env: Environment | None = None) -> AsyncIterator[Target]:
        """Give a target, open in `env` or in a fresh environment."""
        target = self._made.target()
        await target.open(env or self._environment(), StoryClock())
        try:
            yield target
        finally:
            await target.close()

    @asynccontextmanager
    async def _staged(self, *, hosted: bool = False) -> AsyncIterator[Stage]:
        """Give an open memory with its clock, which can be closed and opened again; a hosted one can be killed."""
        stage = open_stage(self._environment(), self._made, hosted=hosted)
        stage.has_clock = "clock" in self._able
        await stage.open()
        try:
            yield stage
        finally:
            await stage.close()

    async def _remember(self, memory: Connection, scope: Scope, *texts: str, **given: Any) -> list[str | None]:
        """Add `texts`, each with what is given, and return their ids."""
        items = [Item(text=text, kind=self.kind, **given) for text in texts]
        receipt = await memory.perform(Request.of(Target.add, items, scope))
        await memory.perform(Request.of(Target.settle))
        claim(len(receipt.items) >= len(texts), f"{len(texts)} texts were added, the receipt has {receipt.items}")
        return [item.id for item in receipt.items]


Check = Callable[[Any], Coroutine[Any, Any, None]]


def shows(*words: Capability, given: Sequence[Capability] = ()) -> Callable[[Check], Callable[[Any], None]]:
    """Make a test of what a target does: it fails where one of `words` is declared and is not true.

    It is skipped where one of them, or of what it needs beside them, is not declared. A word that ends with a dot is a
    family, of which one is enough.
    """

    def made(check: Check) -> Callable[[Any], None]:
        @wraps(check)
        def test(self: UnderTest) -> None:
            needed = (*words, *given)
            missing = [named(word) for word in needed if not any(declares(one, word) for one in self._able)]
            if missing:
                said = f"not declared: {', '.join(missing)}; a run's report counts the stories that each would unlock"
                raise SkipTest(said)
            self._runner.run(check(self))

        test.shows = words  # type: ignore[attr-defined]
        return test

    return made


def declares(capability: Capability, word: str) -> bool:
    """Return whether `capability` is the word, or of the family that ends with a dot."""
    return capability.startswith(word) if word.endswith(".") else capability == word


def named(word: str) -> str:
    """Return the word as a message has it: a family is `job.…`."""
    return f"{word}…" if word.endswith(".") else word
