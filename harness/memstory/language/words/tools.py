"""Steps that reach into a memory, not through what it remembers: tool, tools, run, inspect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Required, TypedDict

from memstory.contract.target import Json, Request, Scope, Target, ToolSchema, Tree
from memstory.language.json_schemas import faulty_schemas
from memstory.language.reading import Reading, TreePath
from memstory.language.story import Expectation
from memstory.language.words.shapes import Name, Nothing
from memstory.language.words.word import Args, Word, in_list, read_named, whole_record
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


FILES = "files"
"""What the harness looks at itself: the workspace, without the target's help."""


def _inspection(args: Mapping[str, Tree], scope: Scope) -> Request[Json]:
    since = {} if args.get("since") is None else {"since": args["since"]}
    return Request.of(Target.inspect, args["what"], {**(args.get("args") or {}), **since}, scope)


def _look_for_texts(reading: Reading, args: Args, expected: Expectation, path: TreePath) -> None:
    """Note which texts `none_contain` is about: the contents of files are not recorded."""
    texts = [text for one in expected.matchers if one.name == "none_contain" for text in one.argument]
    if texts and args["what"] != FILES:
        reading.fault(
            (*path, "none_contain"), "'none_contain' speaks of files; it goes with {inspect: files}", at_key=True
        )
    elif texts:
        args["search_for"] = texts


class _Tool(TypedDict, total=False):
    name: Required[Annotated[Name, "The tool."]]
    args: Annotated[Mapping[str, Tree], "Its arguments, as they are."]
    caller: Annotated[Name, "Which agent calls."]


class _Run(TypedDict, total=False):
    job: Required[Annotated[Name, "compress, cleanup, purge, reindex, backup, …"]]
    args: Annotated[Mapping[str, Tree], "The job's arguments."]


class _Inspect(TypedDict, total=False):
    what: Required[Annotated[Name, "What to look at."]]
    since: Annotated[Tree, "Only what is newer than this: a number, or ${saved}."]
    args: Annotated[Mapping[str, Tree], "More arguments."]


STEPS: Final = (
    Word(
        name="tool",
        summary="call a tool, as any agent could",
        forms="its name, or {name, args, caller}",
        argument=Name | _Tool,
        read=read_named("name", args={}),
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
        argument=Nothing,
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
    Word(
        name="run",
        summary="run a maintenance job",
        forms="its name, or {job, args}",
        argument=Name | _Run,
        read=read_named("job", args={}),
        request=lambda args, scope: Request.of(Target.run, args["job"], args.get("args") or {}, scope),
        able={"job.": "a maintenance job"},
        needs=lambda args: [f"job.{args['job']}"],
        results={"result": whole_record},
        names_paths=True,
        example="""
- run: cleanup
- run: {job: compress, args: {older_than_days: 30}}
  expect: {result: {compressed: {ge: 1}}}
""",
    ),
    Word(
        name="inspect",
        summary="look inside the memory; `files` lists the workspace without asking the target",
        forms="embedder, model, bus, log, status, … or {what, since, args}",
        argument=Name | _Inspect,
        read=read_named("what"),
        request=_inspection,
        able={"inspect.": "something that can be looked at"},
        needs=lambda args: [] if args["what"] == FILES else [f"inspect.{args['what']}"],
        results={"data": whole_record},
        expecting=_look_for_texts,
        has_user=False,
        names_paths=True,
        example="""
- inspect: embedder
  save: {calls: calls}
- inspect: {what: log, since: "${calls}"}
- inspect: files
  expect: {data: {none_contain: [my secret]}}
""",
    ),
)
