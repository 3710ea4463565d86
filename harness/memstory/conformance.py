"""What every target promises, as tests that the author of an adapter runs on it.

In a test file of your own, with a factory that needs no argument:

    from memstory.conformance import TargetContract

    class TestMine(TargetContract):
        factory = MyFactory

Tests of what the target does not declare are skipped, and say so.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar
from unittest import SkipTest

from memstory.clock import StoryClock
from memstory.errors import NotSupported, Refused
from memstory.language.capabilities import is_known
from memstory.language.words import WORDS
from memstory.requests import REQUESTS
from memstory.target import Environment, Hit, Item, Query, Ref, Scope, Target, TargetFactory, Tree
from memstory.targets.discovery import load_spec

ANN = Scope(user="conformance.ann", session="session-1")
BOB = Scope(user="conformance.bob", session="session-1")
HARBOUR = "The harbour office opens at seven on weekdays."
VIOLIN = "Mirela keeps her violin in the blue cupboard."
CHESS = "The chess club meets in the old post office."
REPLACED = "The harbour office now opens at nine."


class TargetContract:
    """Tests of one target; set `factory`, and `kind` if the backend requires one for every item.

    `options` go into the environment. Where a language model decides what of a text is kept, `model_rules` must make it
    keep each text as it is.
    """

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

    def test_capabilities_are_words_that_stories_use(self) -> None:
        """A misspelled capability would leave stories unsupported."""
        unknown = sorted(word for word in self._able if not is_known(word))
        _claim(not unknown, f"capabilities() has words that no story can ask for: {', '.join(unknown)}")

    def test_factory_can_be_made_by_its_spec(self) -> None:
        """`crash` and `--isolate` make the target in another process, by `spec`."""
        spec = self._made.spec
        if spec is None and "crash" not in self._able:
            raise SkipTest("no 'spec': stories that crash the target, and --isolate, are not for it")
        _claim(spec is not None, "'crash' is declared, but the factory has no 'spec' by which another process makes it")
        made = type(load_spec(str(spec)))
        _claim(made is type(self._made), f"'spec' names {made.__name__}, not {type(self._made).__name__}")

    def test_what_is_declared_is_what_is_overridden(self) -> None:
        """In both directions: a capability without a method, and a method that no story can reach."""
        kind = type(self._made.target())
        for method, words in _methods():
            declared = any(_declares(one, word) for word in words for one in self._able)
            overridden = getattr(kind, method) is not getattr(Target, method)
            said = " or ".join(f"'{word}…'" if word.endswith(".") else f"'{word}'" for word in words)
            _claim(overridden or not declared, f"{said} is declared, but {kind.__name__} does not override '{method}'")
            _claim(declared or not overridden, f"{kind.__name__} overrides '{method}', but {said} is not declared")

    def test_undeclared_operations_are_not_supported(self) -> None:
        """A target must say what it cannot do, not return nothing."""

        async def check(target: Target) -> None:
            for words, call in _calls(target).items():
                if not self._able.intersection(words.split()):
                    await _is_not_supported(words, call)

        self._with_target(check)

    def test_undeclared_conditions_of_a_search_are_not_ignored(self) -> None:
        """A search that ignores a condition finds too much and looks like a good one."""
        self._needs("search")
        conditions = {
            "search.min_score": Query(text=HARBOUR, min_score=0.5),
            "search.budget": Query(text=HARBOUR, token_budget=9),
            "search.as_of": Query(text=HARBOUR, as_of="2026-01-01T00:00:00+00:00"),
            "search.where": Query(text=HARBOUR, where={"topic": "x"}),
        }

        async def check(target: Target) -> None:
            for word, query in conditions.items():
                if word not in self._able:
                    await _is_not_supported(word, partial(target.search, query, _anywhere(ANN)))

        self._with_target(check)

    def test_an_added_text_is_found(self) -> None:
        """With the id of its receipt, if there are ids."""
        self._needs("add", "search")

        async def check(target: Target) -> None:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            hits = await _search(target, HARBOUR, ANN)
            _claim(_has(hits, HARBOUR), f"'{HARBOUR}' was added, a search for it finds {_texts(hits)}")
            found = next(hit for hit in hits if hit.text == HARBOUR)
            _claim(
                None in (found.id, ids[0]) or found.id == ids[0], f"the receipt says {ids[0]!r}, the hit {found.id!r}"
            )
            if "search.scores" in self._able:
                scores = [hit.score for hit in hits]
                numbers = [score for score in scores if score is not None and isfinite(score)]
                _claim(len(numbers) == len(scores), f"'search.scores' is declared, the scores are {scores}")
                _claim(numbers == sorted(numbers, reverse=True), f"higher is better and best is first: {scores}")

        self._with_target(check)

    def test_a_memory_is_looked_up_by_its_id(self) -> None:
        """And an unknown id is None."""
        self._needs("add", "get.id")

        async def check(target: Target) -> None:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            found = await target.get(Ref(id=ids[1]), _anywhere(ANN))
            _claim(found is not None and found.text == VIOLIN, f"get by the id of '{VIOLIN}' gives {found}")
            unknown = await target.get(Ref(id="no-such-id"), _anywhere(ANN))
            _claim(unknown is None, f"get by an unknown id gives {unknown}")

        self._with_target(check)

    def test_everything_that_was_added_is_listed(self) -> None:
        """Once each."""
        self._needs("add", "list")

        async def check(target: Target) -> None:
            await self._remember(target, ANN, HARBOUR, VIOLIN, CHESS)
            texts = sorted(hit.text for hit in await target.list(_anywhere(ANN)))
            _claim(texts == sorted([HARBOUR, VIOLIN, CHESS]), f"three memories were added, listed are {texts}")

        self._with_target(check)

    def test_an_update_replaces_the_text(self) -> None:
        """Of this memory alone; an unknown one is refused."""
        self._needs("add", "update", "search")

        async def check(target: Target) -> None:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            await target.update(Ref(id=ids[0]), Item(text=REPLACED, kind=self.kind), _anywhere(ANN))
            await target.settle()
            hits = [*await _search(target, REPLACED, ANN), *await _search(target, VIOLIN, ANN)]
            _claim(_has(hits, REPLACED) and _has(hits, VIOLIN), f"after an update a search finds {_texts(hits)}")
            _claim(not _has(hits, HARBOUR), "the text from before the update is still found")
            try:
                await target.update(Ref(id="no-such-id"), Item(text=REPLACED, kind=self.kind), _anywhere(ANN))
            except Refused:
                return
            raise AssertionError("an update of an unknown id must be Refused")

        self._with_target(check)

    def test_a_deleted_memory_is_gone(self) -> None:
        """And the next one stays."""
        self._needs("add", "delete", "search")

        async def check(target: Target) -> None:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            _claim(await target.delete(Ref(id=ids[0]), _anywhere(ANN)), "delete of a known id must return True")
            await target.settle()
            hits = [*await _search(target, HARBOUR, ANN), *await _search(target, VIOLIN, ANN)]
            _claim(not _has(hits, HARBOUR), "a deleted memory is still found")
            _claim(_has(hits, VIOLIN), "a memory that was not deleted is gone")
            if "delete.reports_missing" in self._able:
                _claim(not await target.delete(Ref(id="no-such-id"), _anywhere(ANN)), "an unknown id must return False")

        self._with_target(check)

    def test_users_are_apart(self) -> None:
        """In every operation that reads, and in those that delete."""
        self._needs("add", "search", "scope.user")

        async def check(target: Target) -> None:
            ids = await self._remember(target, ANN, HARBOUR)
            await self._remember(target, BOB, VIOLIN)
            _claim(not _has(await _search(target, HARBOUR, BOB), HARBOUR), "a search finds another user's memory")
            if "list" in self._able:
                _claim(not _has(await target.list(_anywhere(BOB)), HARBOUR), "a list shows another user's memory")
            if "get.id" in self._able:
                _claim(await target.get(Ref(id=ids[0]), _anywhere(BOB)) is None, "get gives another user's memory")
            if "delete.scope" in self._able:
                await target.delete(Ref(), _anywhere(BOB))
                await target.settle()
                _claim(not await _search(target, VIOLIN, BOB), "'delete.scope' left memories of the user")
            _claim(
                _has(await _search(target, HARBOUR, ANN), HARBOUR), "another user's deletion took this user's memory"
            )

        self._with_target(check)

    def test_sessions_are_apart_where_asked_to(self) -> None:
        """And together where not."""
        self._needs("add", "search", "scope.session")

        async def check(target: Target) -> None:
            await self._remember(target, ANN, HARBOUR)
            other = Scope(user=ANN.user, session="session-2")
            hits = await target.search(Query(text=HARBOUR, top_k=5), other)
            _claim(not _has(hits, HARBOUR), "a search within one session finds what was said in another")
            _claim(_has(await _search(target, HARBOUR, ANN), HARBOUR), "a search without a session must see them all")

        self._with_target(check)

    def test_what_was_acknowledged_outlives_a_restart(self) -> None:
        """By a new target that knows nothing of the first."""
        self._needs("add", "search", "restart", "persistent")
        env = self._environment()

        async def check() -> None:
            async with self._opened(env) as target:
                ids = await self._remember(target, ANN, HARBOUR)
            async with self._opened(env) as target:
                _claim(_has(await _search(target, HARBOUR, ANN), HARBOUR), "after a restart the memory is not found")
                more = await self._remember(target, ANN, VIOLIN)
                _claim(
                    None in (ids[0], more[0]) or ids[0] != more[0], f"after a restart the id {ids[0]!r} is given again"
                )
                hits = [*await _search(target, HARBOUR, ANN), *await _search(target, VIOLIN, ANN)]
                _claim(
                    _has(hits, HARBOUR) and _has(hits, VIOLIN), f"after a restart and an add there is {_texts(hits)}"
                )

        self._runner.run(check())

    def test_every_environment_is_a_memory_of_its_own(self) -> None:
        """Two that are open at once share nothing, although their users have the same name."""
        self._needs("add", "search")

        async def check() -> None:
            async with self._opened(self._environment()) as one, self._opened(self._environment()) as other:
                await self._remember(one, ANN, HARBOUR)
                _claim(not await _search(other, HARBOUR, ANN), "a fresh workspace already holds memories")

        self._runner.run(check())

    def test_a_target_says_what_it_is(self) -> None:
        """As texts, for they go into the report."""

        async def check(target: Target) -> None:
            about = await target.about()
            _claim(all(isinstance(part, str) for pair in about.items() for part in pair), f"about() gives {about!r}")

        self._with_target(check)

    def _needs(self, *words: str) -> None:
        missing = [word for word in words if word not in self._able]
        if missing:
            said = f"not declared: {', '.join(missing)}; a run's report counts the stories that each would unlock"
            raise SkipTest(said)

    def _environment(self) -> Environment:
        workspace = self._folder / f"case-{next(self._number)}"
        workspace.mkdir()
        return Environment(
            workspace=str(workspace), owner="conformance", options=self.options, model_rules=self.model_rules
        )

    @asynccontextmanager
    async def _opened(self, env: Environment) -> AsyncIterator[Target]:
        target = self._made.target()
        await target.open(env, StoryClock())
        try:
            yield target
        finally:
            await target.close()

    def _with_target(self, check: Callable[[Target], Coroutine[Any, Any, None]]) -> None:
        async def run() -> None:
            async with self._opened(self._environment()) as target:
                await check(target)

        self._runner.run(run())

    async def _remember(self, target: Target, scope: Scope, *texts: str) -> list[str | None]:
        """Add `texts` and return their ids."""
        receipt = await target.add([Item(text=text, kind=self.kind) for text in texts], scope)
        await target.settle()
        _claim(len(receipt.items) >= len(texts), f"{len(texts)} texts were added, the receipt has {receipt.items}")
        return [item.id for item in receipt.items]


def _methods() -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the operations of a target, each with the capabilities or families (`job.`) that declare it.

    `add.key` only says more about `add`.
    """
    for method in REQUESTS.keys() & WORDS.keys():
        able = WORDS[method].able
        words = [name for name in able if not any(name.startswith(f"{other}.") for other in able)]
        if words:
            yield method, words


def _declares(capability: str, word: str) -> bool:
    return capability.startswith(word) if word.endswith(".") else capability == word


def _calls(target: Target) -> Mapping[str, Callable[[], Coroutine[Any, Any, Any]]]:
    """Return a call for each operation, under the capabilities one of which has to be declared for it."""
    return {
        "add": lambda: target.add([Item(text=HARBOUR)], ANN),
        "get.id": lambda: target.get(Ref(id="x"), ANN),
        "get.key": lambda: target.get(Ref(key="x"), ANN),
        "search": lambda: target.search(Query(text=HARBOUR), ANN),
        "list": lambda: target.list(ANN),
        "update": lambda: target.update(Ref(id="x"), Item(text=REPLACED), ANN),
        "delete": lambda: target.delete(Ref(id="x"), ANN),
        "update.about": lambda: target.update_about(["x"], Item(text=REPLACED), ANN),
        "delete.about": lambda: target.delete_about(["x"], ANN),
        "feedback": lambda: target.feedback(Ref(id="x"), 1.0, ANN),
        "context": lambda: target.context(Query(text=HARBOUR), ANN),
        "chat": lambda: target.say(HARBOUR, ANN),
        "tool": lambda: target.tool("x", {}, ANN),
        "tool.schema": lambda: target.tools(),  # noqa: PLW0108  (all alike)
        "session": lambda: target.end_session(ANN, "explicit"),
        "job.no_such_job": lambda: target.run("no_such_job", {}, ANN),
        "inspect.no_such_part": lambda: target.inspect("no_such_part", {}, ANN),
        "fault.no_such_part": lambda: target.fault("no_such_part", "down"),
    }


async def _is_not_supported(what: str, call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    try:
        found = await call()
    except NotSupported:
        return
    raise AssertionError(f"'{what}' is not declared and must raise NotSupported; it returned {found!r:.200}")


def _claim(holds: bool, otherwise: str) -> None:  # noqa: FBT001  (it is what the claim is about)
    # Not `assert`: this module is not a test file, so pytest would not show the compared values.
    if not holds:
        raise AssertionError(otherwise)


async def _search(target: Target, text: str, scope: Scope) -> Sequence[Hit]:
    return await target.search(Query(text=text, top_k=5), _anywhere(scope))


def _anywhere(scope: Scope) -> Scope:
    return Scope(user=scope.user)


def _has(hits: Sequence[Hit], text: str) -> bool:
    return any(hit.text == text for hit in hits)


def _texts(hits: Sequence[Hit]) -> Sequence[str]:
    return [hit.text for hit in hits]
