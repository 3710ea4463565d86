"""What a target says of itself: its words are known, its methods are declared, and the rest says that it is not."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from unittest import SkipTest

from memstory.conformance.samples import ANN, HARBOUR, REPLACED, anywhere, claim
from memstory.conformance.under_test import UnderTest, declares, named, shows
from memstory.contract.errors import NotSupported
from memstory.contract.target import OPERATIONS, Item, Query, Ref, Target
from memstory.language.capabilities import is_known
from memstory.language.words import WORDS
from memstory.targets.discovery import load_spec

_BY_SPEC = ("crash", "other_process")


class Declarations(UnderTest):
    """Tests of what is said, not of what is remembered."""

    def test_capabilities_are_words_that_stories_use(self) -> None:
        """A misspelled capability would leave stories unsupported."""
        unknown = sorted(word for word in self._able if not is_known(word))
        claim(not unknown, f"capabilities() has words that no story can ask for: {', '.join(unknown)}")

    def test_factory_can_be_made_by_its_spec(self) -> None:
        """`crash`, `other_process` and `--isolate` make the target in another process, by `spec`."""
        spec, wanting = self._made.spec, [word for word in _BY_SPEC if word in self._able]
        if spec is None and not wanting:
            raise SkipTest("no 'spec': stories that need another process, and --isolate, are not for it")
        said = " and ".join(f"'{word}'" for word in wanting)
        claim(spec is not None, f"declared: {said}, but the factory has no 'spec' by which another process makes it")
        made = type(load_spec(str(spec)))
        claim(made is type(self._made), f"'spec' names {made.__name__}, not {type(self._made).__name__}")

    def test_what_is_declared_is_what_is_overridden(self) -> None:
        """In both directions: a capability without a method, and a method that no story can reach."""
        kind = type(self._made.target())
        for method, words in _methods():
            declared = any(declares(one, word) for word in words for one in self._able)
            overridden = getattr(kind, method) is not getattr(Target, method)
            said = " or ".join(f"'{named(word)}'" for word in words)
            claim(overridden or not declared, f"{said} is declared, but {kind.__name__} does not override '{method}'")
            claim(declared or not overridden, f"{kind.__name__} overrides '{method}', but {said} is not declared")

    @shows()
    async def test_undeclared_operations_are_not_supported(self) -> None:
        """A target must say what it cannot do, not return nothing."""
        async with self._opened() as target:
            for words, call in _calls(target).items():
                if not self._able.intersection(words.split()):
                    await _is_not_supported(words, call)

    @shows(given=["search"])
    async def test_undeclared_conditions_of_a_search_are_not_ignored(self) -> None:
        """A search that ignores a condition finds too much and looks like a good one."""
        conditions = {
            "search.min_score": Query(text=HARBOUR, min_score=0.5),
            "search.budget": Query(text=HARBOUR, token_budget=9),
            "search.as_of": Query(text=HARBOUR, as_of="2026-01-01T00:00:00+00:00"),
            "search.where": Query(text=HARBOUR, where={"topic": "x"}),
        }
        async with self._opened() as target:
            for word, query in conditions.items():
                if word not in self._able:
                    await _is_not_supported(word, partial(target.search, query, anywhere(ANN)))

    @shows()
    async def test_a_target_says_what_it_is(self) -> None:
        """As texts, for they go into the report."""
        async with self._opened() as target:
            about = await target.about()
        claim(all(isinstance(part, str) for pair in about.items() for part in pair), f"about() gives {about!r}")


def _methods() -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the operations of a target, each with the capabilities or families (`job.`) that declare it.

    `add.key` only says more about `add`.
    """
    for method in OPERATIONS & WORDS.keys():
        able = WORDS[method].able
        words = [name for name in able if not any(name.startswith(f"{other}.") for other in able)]
        if words:
            yield method, words


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
