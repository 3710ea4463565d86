"""Steps of a conversation: say, new_session, end_session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Final, Required, TypedDict

from memstory.contract.target import Request, Target, ToolSchema, Tree
from memstory.language.json_schemas import call_faults
from memstory.language.matchers.expectable import View, context_tokens
from memstory.language.matchers.talk import answer_and_memory
from memstory.language.reading import Reading, TreePath
from memstory.language.words.memories import read_text_or_mapping
from memstory.language.words.shapes import Name, Vector
from memstory.language.words.word import Args, Word, needs_always
from memstory.results.recording import StepRecord


def _part_of_turn(name: str, default: Tree) -> View:
    return lambda record: (record.result or {}).get(name, default)


def _call_faults(record: StepRecord, announced: Sequence[ToolSchema]) -> Iterable[tuple[str, str, str]]:
    if not isinstance(record.result, Mapping):
        return ()
    called = record.result.get("tool_calls") or ()
    return [("tool_calls", "schema", fault) for fault in call_faults(called, announced)]


def _read_text(key: str, default: str | None = None) -> Callable[[Reading, Tree, TreePath], Args]:
    def read(_reading: Reading, value: Tree, _path: TreePath) -> Args:
        word = default if value is None else value
        return {} if word is None else {key: word}

    return read


class _Say(TypedDict, total=False):
    text: Required[Annotated[str, "What the user says."]]
    vector: Vector


STEPS: Final = (
    Word(
        name="say",
        summary="one conversational turn",
        forms="the text, or a mapping",
        argument=str | _Say,
        read=read_text_or_mapping,
        request=lambda args, scope: Request.of(Target.say, args["text"], scope),
        capabilities={"chat": "takes conversational turns", "chat.tools": "reports the tool calls of a turn"},
        needs_to_judge={"tool_calls": needs_always("chat.tools"), "honest": needs_always("search")},
        results={
            "answer": _part_of_turn("answer", ""),
            "tool_calls": _part_of_turn("tool_calls", []),
            "honest": answer_and_memory,
            "context_tokens": context_tokens,
        },
        faults=_call_faults,
        has_named_results=True,
        in_session=True,
        settles=True,
        example="""
- say: What language do I prefer?
  expect:
    tool_calls: [{recall_topic: {topic: user.language_preference}}]
    answer: {contains: Elixir}
""",
    ),
    Word(
        name="new_session",
        summary="continue in a new session",
        forms="nothing, or its name",
        argument=Name | None,
        read=_read_text("name"),
        example="""
- new_session:
- new_session: evening
""",
    ),
    Word(
        name="end_session",
        summary="end the session",
        forms="nothing, or the reason",
        argument=Name | None,
        read=_read_text("reason", "explicit"),
        request=lambda args, scope: Request.of(Target.end_session, scope, args.get("reason") or "explicit"),
        capabilities={"session": "takes the end of a session"},
        in_session=True,
        example="""
- end_session:
- end_session: idle
""",
    ),
)
