"""The target that a class of tests is about: started once, opened by each test; what the tests tell it and ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import wraps
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final, cast
from unittest import SkipTest

from memstory.contract.target import (
    Capability,
    Connection,
    Environment,
    Hit,
    Item,
    Query,
    Ref,
    Request,
    Scope,
    Target,
    TargetFactory,
    Tree,
)
from memstory.running.stage import Stage, open_stage

ANN: Final = Scope(user="conformance-ann", session="session-1")
BOB: Final = Scope(user="conformance-bob", session="session-1")
HARBOUR: Final = "The harbour office opens at seven on weekdays."
VIOLIN: Final = "Mirela keeps her violin in the blue cupboard."
CHESS: Final = "The chess club meets in the old post office."
NEARBY: Final = "The office at the harbour is busy."
REPLACED: Final = "The harbour office now opens at nine."
SMALL_TALK: Final = "Okay, thanks."
EXACT: Final = "  The caf\u00e9, or cafe\u0301, lists:\n\n\t* flour  500 g\n\t* soft\u00adhyphen, zero\u200bwidth\n"
TEXTS: Final = (EXACT, NEARBY, SMALL_TALK, CHESS, VIOLIN, HARBOUR)
"""Every text that is added; where a prompt shows several, the last that was added is the first of these."""


def claim(holds: bool, otherwise: str) -> None:  # noqa: FBT001  (it is what the claim is about)
    """Raise an AssertionError that says `otherwise` unless something holds."""
    # Not `assert`: this is not a test file, so pytest would not show the compared values.
    if not holds:
        raise AssertionError(otherwise)


def anywhere(scope: Scope) -> Scope:
    """Return all sessions of a user."""
    return Scope(user=scope.user)


async def search(memory: Connection, text: str, scope: Scope) -> Sequence[Hit]:
    """Return what a search in all sessions finds, with room for all that a test adds."""
    return await memory.perform(Request.of(Target.search, Query(text=text, top_k=5), anywhere(scope)))


async def finds(memory: Connection, text: str, scope: Scope = ANN) -> bool:
    """Return whether a search for `text` finds it."""
    return has(await search(memory, text, scope), text)


def has(hits: Sequence[Hit], text: str) -> bool:
    """Return whether `text` is among the hits, as it is."""
    return any(hit.text == text for hit in hits)


def named(id_: str | None) -> Ref:
    """Return what names the memory that an `add` gave this id.

    Without an id it would name all that a user has, and the test would be about something else.
    """
    claim(id_ is not None, "'add' gives no id, so that no memory can be named by one")
    return Ref(id=id_)


def texts_of(hits: Sequence[Hit]) -> Sequence[str]:
    """Return what the hits say."""
    return [hit.text for hit in hits]


class _Operations:
    """The operations of a target whose answers are looked at, and which may live in another process."""

    def __init__(self, connection: Connection) -> None:
        self.perform = connection.perform

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        operation = getattr(Target, name)
        return lambda *args, **more: self.perform(Request.of(operation, *args, **more))


class TargetTests:
    """What each class of tests has: `factory` and `kind` are explained in `TargetContract`."""

    factory: ClassVar[Callable[[], TargetFactory]]
    kind: ClassVar[str | None] = None
    options: ClassVar[Mapping[str, Tree]] = {}
    model_rules: ClassVar[Sequence[Mapping[str, Tree]]] = ()

    _left: ClassVar[ExitStack]
    _runner: ClassVar[asyncio.Runner]
    _factory: ClassVar[TargetFactory]
    _folder: ClassVar[Path]
    _words: ClassVar[frozenset[str]]
    _number: ClassVar[count[int]]

    @classmethod
    def setup_class(cls) -> None:
        """Start the factory once, as a worker does."""
        with ExitStack() as left:
            cls._runner = left.enter_context(asyncio.Runner())
            cls._folder = Path(
                left.enter_context(TemporaryDirectory(prefix="memstory-conformance-", ignore_cleanup_errors=True))
            )
            cls._factory = cls.factory()
            cls._words = cls._factory.capabilities(cls.options)
            cls._number = count()
            cls._runner.run(cls._factory.start(cls._folder))
            cls._left = left.pop_all()

    @classmethod
    def teardown_class(cls) -> None:
        """Stop the factory and remove what it left."""
        with cls._left:
            cls._runner.run(cls._factory.stop())

    def _environment(self, **given: Any) -> Environment:
        workspace = self._folder / f"case-{next(self._number)}"
        workspace.mkdir()
        return Environment(
            workspace=str(workspace), owner="conformance", options=self.options, model_rules=self.model_rules, **given
        )

    @asynccontextmanager
    async def _open_target(self, env: Environment | None = None) -> AsyncIterator[Target]:
        """Give a target, open in `env` or in a fresh environment; in a process of its own if it needs one."""
        async with self._open_stage(env) as stage:
            yield cast("Target", _Operations(stage.target))

    @asynccontextmanager
    async def _open_stage(self, env: Environment | None = None, *, hosted: bool = False) -> AsyncIterator[Stage]:
        """Give an open memory with its clock, which can be closed and opened again; a hosted one can be killed."""
        stage = open_stage(env or self._environment(), self._factory, hosted=hosted)
        stage.has_clock = "clock" in self._words
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

    def test_for(check: Check) -> Callable[[Any], None]:
        @wraps(check)
        def test(self: TargetTests) -> None:
            needed = (*words, *given)
            missing = [label(word) for word in needed if not any(declares(one, word) for one in self._words)]
            if missing:
                said = f"not declared: {', '.join(missing)}; a run's report counts the stories that each would unlock"
                raise SkipTest(said)
            _run_to_its_end(self._runner, check(self))

        test.shows, test.given = words, given  # type: ignore[attr-defined]
        return test

    return test_for


def _run_to_its_end(runner: asyncio.Runner, work: Coroutine[Any, Any, None]) -> None:
    """Run it; where a probe's alarm rings in its middle, it closes what it has open before the error goes on."""
    running: asyncio.Task[None] | None = None

    async def run() -> None:
        nonlocal running
        running = asyncio.current_task()
        await work

    try:
        runner.run(run())
    finally:
        if running is not None and not running.done():
            running.cancel()
            with suppress(asyncio.CancelledError):
                runner.get_loop().run_until_complete(running)


def declares(capability: Capability, word: str) -> bool:
    """Return whether `capability` is the word, or of the family that ends with a dot."""
    return capability.startswith(word) if word.endswith(".") else capability == word


def label(word: str) -> str:
    """Return the word as a message has it: a family is `job.…`."""
    return f"{word}…" if word.endswith(".") else word
