"""What a target declares: words that exist, operations that it has, and the words that only stories can show."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from unittest import SkipTest

from memstory.conformance.target_tests import (
    ANN,
    HARBOUR,
    REPLACED,
    TargetTests,
    anywhere,
    claim,
    declares,
    label,
    named,
    shows,
)
from memstory.contract.codec import encode
from memstory.contract.errors import NotSupported, Refused, StoryError
from memstory.contract.target import OPERATIONS, OPERATORS, Capability, Item, Query, Ref, Target
from memstory.language.capabilities import is_known
from memstory.language.json_schemas import tool_faults
from memstory.language.words import WORDS
from memstory.targets.discovery import load_spec

_TRUST = "its worth is the place of a hit among others, which only stories of conflicting texts judge"
_RANK = "a rank is worth something among many texts, which stories and retrieval tasks have"
_CHAT = "only a story can say what a conversation must lead to"
_OWN = "the target decides when and for which texts it happens, so that its stories show it"

ELSEWHERE: Final[Mapping[Capability, str]] = {
    "add.batch_atomic": "which item of a list cannot be stored differs between targets; stories break a part meanwhile",
    "add.by_model": "stories make the model fail (`fault: {model: …}`) and look at what is stored",
    "add.import": "the form of an export is the target's own; its stories export and import",
    "add.infer": "what is worth keeping is the target's decision; its stories and `model_rules` show it",
    "add.key.apart": "it promises less: `memstory explore` then expects no search to find what has a key",
    "add.role": _TRUST,
    "add.source": _TRUST,
    "add.turns": "it spares the reader of a dataset a prefix in each turn; retrieval tasks on conversations show it",
    "async_ingest": "it is a hint about when work is done, not a promise: `settle` is awaited in any case",
    "audit_separate": _OWN,
    "chat": _CHAT,
    "chat.tools": _CHAT,
    "chat.window": _CHAT,
    "compression": _OWN,
    "expiry": _OWN,
    "expiry.read_filter": _OWN,
    "fault.": "the harness itself refuses a story whose fault did not land (`fault_counts`)",
    "fault.nan": "stories give such vectors, and look for what was there before",
    "fault.replies": "stories script a reply and spoil it; what may not happen is a loss in silence",
    "hold_buffer": _OWN,
    "identifiers.scripts": "what an identifier is, the target decides; stories of the tag `identifiers` show it",
    "identifiers.spellings": "what an identifier is, the target decides; stories of the tag `identifiers` show it",
    "importance": _OWN,
    "incognito": "it is an option of the target, with which its stories look for traces (`inspect: files`)",
    "integrity": "stories change the files behind its back (`tamper`)",
    "job.": "the arguments and the effect of a job are the target's own; its stories show them",
    "llm.scripted": "the prompts that rules must fit are the target's own; a call that fits none ends a story as error",
    "option.": "the values and the effect of an option are the target's own; its stories show them",
    "preloaded": "only who filled a memory before can ask it: `retrieval: {preloaded: true}` does, and changes nothing",
    "rank.newest": _RANK,
    "rank.quality": _RANK,
    "rank.reward": _RANK,
    "rank.unstuffed": _RANK,
    "scope.names": "the harness adds it where no other case writes to the same memory (`shares_server`)",
    "search.archived": _OWN,
    "search.hybrid": _RANK,
    "search.lexical": _RANK,
    **dict.fromkeys(
        sorted({*OPERATORS.values(), "search.where.any"}),
        "stories of the tag `conditions` show it, with values near the bound",
    ),
    "session": "what the end of a session does is the target's own; its stories show it",
    "supersede": _OWN,
    "unicode_lexical": _RANK,
    "upgrade": "it takes an older release beside the installed one; `memstory run faults/upgrade.yaml` has both",
}


class Offers(TargetTests):
    """Tests of `context`, `feedback`, `tool`, `tools` and `inspect`."""

    @shows("context", given=["add"])
    async def test_the_context_has_what_was_added(self) -> None:
        """Where it is asked about just that."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR)
            context = await target.context(Query(text=HARBOUR), anywhere(ANN))
        claim(HARBOUR in context, f"'context' does not hold: with one memory, the context for its text is {context!r}")

    @shows("feedback", given=["add"])
    async def test_a_known_memory_can_be_rated(self) -> None:
        """And an unknown one cannot."""
        async with self._open_target() as target:
            ids = await self._remember(target, ANN, HARBOUR)
            claim(await target.feedback(named(ids[0]), 1.0, anywhere(ANN)), "a rating of a known id must return True")
            unknown = await target.feedback(Ref(id="no-such-id"), 1.0, anywhere(ANN))
            claim(not unknown, "a rating of an unknown id must return False")

    @shows("tool")
    async def test_an_unknown_tool_is_an_error_in_the_result(self) -> None:
        """As an agent gets it that errs."""
        async with self._open_target() as target:
            called = await target.tool("no_such_tool", {}, ANN)
        claim(bool(called.error), f"a call of an unknown tool has no error: {called!r:.200}")

    @shows("tool.schema")
    async def test_the_tools_are_announced_with_their_schemas(self) -> None:
        """At least one, each with a JSON Schema."""
        async with self._open_target() as target:
            announced = await target.tools()
        claim(bool(announced), "'tool.schema' does not hold: no tool is announced")
        faults = [*tool_faults(encode(announced))]
        claim(not faults, "; ".join(faults))

    @shows("inspect.")
    async def test_what_can_be_looked_at_answers(self) -> None:
        """Or says which arguments it has to be given."""
        missing = []
        async with self._open_target() as target:
            for word in sorted(one for one in self._words if declares(one, "inspect.")):
                try:
                    await target.inspect(word.partition(".")[2], {}, anywhere(ANN))
                except (Refused, StoryError):
                    continue
                except NotSupported:
                    missing.append(word)
        claim(not missing, f"declared, but not supported: {', '.join(missing)}")


_BY_SPEC = ("crash", "other_process")


class Declarations(TargetTests):
    """Tests of what is said, not of what is remembered."""

    def test_capabilities_are_words_that_stories_use(self) -> None:
        """A misspelled capability would leave stories unsupported."""
        unknown = sorted(word for word in self._words if not is_known(word))
        claim(not unknown, f"capabilities() has words that no story can ask for: {', '.join(unknown)}")

    def test_factory_can_be_made_by_its_spec(self) -> None:
        """`crash`, `other_process` and `--isolate` make the target in another process, by `spec`."""
        spec, wanting = self._factory.spec, [word for word in _BY_SPEC if word in self._words]
        if spec is None and not wanting:
            raise SkipTest("no 'spec': stories that need another process, and --isolate, are not for it")
        said = " and ".join(f"'{word}'" for word in wanting)
        claim(spec is not None, f"declared: {said}, but the factory has no 'spec' by which another process makes it")
        made = type(load_spec(str(spec)))
        claim(made is type(self._factory), f"'spec' names {made.__name__}, not {type(self._factory).__name__}")

    def test_what_is_declared_is_what_is_overridden(self) -> None:
        """In both directions: a capability without a method, and a method that no story can reach."""
        kind = type(self._factory.target())
        for method, words in _methods():
            declared = any(declares(one, word) for word in words for one in self._words)
            overridden = getattr(kind, method) is not getattr(Target, method)
            said = " or ".join(f"'{label(word)}'" for word in words)
            claim(overridden or not declared, f"{said} is declared, but {kind.__name__} does not override '{method}'")
            claim(declared or not overridden, f"{kind.__name__} overrides '{method}', but {said} is not declared")

    @shows()
    async def test_undeclared_operations_are_not_supported(self) -> None:
        """A target must say what it cannot do, not return nothing."""
        async with self._open_target() as target:
            for words, call in _calls(target).items():
                if not self._words.intersection(words.split()):
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
        async with self._open_target() as target:
            for word, query in conditions.items():
                if word not in self._words:
                    await _is_not_supported(word, partial(target.search, query, anywhere(ANN)))

    @shows()
    async def test_a_target_says_what_it_is(self) -> None:
        """As texts, for they go into the report."""
        async with self._open_target() as target:
            about = await target.about()
        claim(all(isinstance(part, str) for pair in about.items() for part in pair), f"about() gives {about!r}")


def _methods() -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the operations of a target, each with the capabilities or families (`job.`) that declare it.

    `add.key` only says more about `add`.
    """
    for method in OPERATIONS & WORDS.keys():
        able = WORDS[method].capabilities
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
