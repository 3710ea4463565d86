"""Steps on the tools of a memory: tool, tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from memstory.contract.target import Request, Target, ToolSchema, Tree
from memstory.language.matchers.json_schemas import faulty_schemas
from memstory.language.words.parts import NOTHING, free, keys, name_of
from memstory.language.words.word import Word, in_list, named
from memstory.results.recording import StepRecord


def _result(record: StepRecord) -> Tree:
    called = record.result or {}
    return called.get("result") if called.get("error") is None else called["error"]


def _refusal(record: StepRecord) -> Tree:
    """Return the text of a refusal; a tool refuses within its result."""
    is_within = record.error is None and isinstance(record.result, Mapping)
    return record.result.get("error") if is_within else record.error


def _announced(record: StepRecord) -> Mapping[str, Tree]:
    return {
        tool["name"]: {"description": tool.get("description"), "parameters": tool.get("parameters")}
        for tool in record.result or ()
    }


def _faulty(record: StepRecord, _announced: Sequence[ToolSchema]) -> Iterable[tuple[str, str, str]]:
    return [("tools", "schema", fault) for fault in faulty_schemas(record.result or ())]


STEPS: Final = (
    Word(
        name="tool",
        summary="call a tool, as any agent could",
        forms="its name, or {name, args, caller}",
        grammar=keys(
            "argument of tool",
            {
                "name": name_of("The tool."),
                "args": free("Its arguments, as they are."),
                "caller": name_of("Which agent calls."),
            },
            "name",
            type=["string", "object"],
            minLength=1,
        ),
        read=named("name", args={}),
        args="name, args, caller?",
        request=lambda args, scope: Request.of(
            Target.tool, args["name"], args.get("args") or {}, scope, args.get("caller")
        ),
        able={"tool": "lets any agent call its tools"},
        results={"result": _result},
        refusal=_refusal,
        names_results=True,
        in_session=True,
        example="""
- tool: {name: recall_topic, args: {topic: user.name}, caller: another-agent}
  expect: {result: {contains: Ana}}
- tool: {name: recall_topic, args: {topic: 5}}
  expect: {error: {icontains: topic}}
""",
    ),
    Word(
        name="tools",
        summary="the tools that are announced to a language model",
        grammar=NOTHING,
        request=lambda _args, _scope: Request.of(Target.tools),
        able={"tool.schema": "announces its tools with their schemas"},
        results={"tools": _announced},
        leads=in_list,
        faults=_faulty,
        has_user=False,
        example="""
- tools:
  expect: {tools: {contains_all: [recall_topic, save_topic]}}
""",
    ),
)
