"""Steps on tools, jobs and insides of a memory: tool, tools, run, inspect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Required, TypedDict

from memstory.contract.target import Json, Request, Scope, Target, ToolSchema, Tree
from memstory.language.json_schemas import tool_faults
from memstory.language.reading import Reading, TreePath
from memstory.language.story import Expectation
from memstory.language.words.shapes import Name, Nothing
from memstory.language.words.word import Args, Word, in_list, read_named, whole_record
from memstory.results.recording import StepRecord


def _result(record: StepRecord) -> Tree:
    called = record.result or {}
    return called.get("result") if called.get("error") is None else called["error"]


def _refusal(record: StepRecord) -> Tree:
    """Return the error of the step, or else the one that the tool itself returned."""
    is_within = record.error is None and isinstance(record.result, Mapping)
    return record.result.get("error") if is_within else record.error


def _tools_by_name(record: StepRecord) -> Mapping[str, Tree]:
    return {
        tool["name"]: {"description": tool.get("description"), "parameters": tool.get("parameters")}
        for tool in record.result or ()
    }


def _tool_faults(record: StepRecord, _announced: Sequence[ToolSchema]) -> Iterable[tuple[str, str, str]]:
    return [("tools", "schema", fault) for fault in tool_faults(record.result or ())]


FILES = "files"
"""What `inspect` can name without asking the target: the files of the workspace."""


def _inspect_request(args: Mapping[str, Tree], scope: Scope) -> Request[Json]:
    since = {} if args.get("since") is None else {"since": args["since"]}
    return Request.of(Target.inspect, args["what"], {**(args.get("args") or {}), **since}, scope)


def _note_search_texts(reading: Reading, args: Args, expected: Expectation, path: TreePath) -> None:
    """Add the texts of `none_contain` to `args`, to be searched for: the contents of files are not recorded."""
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
        capabilities={"tool": "lets any agent call its tools"},
        results={"result": _result},
        refusal=_refusal,
        has_named_results=True,
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
        capabilities={"tool.schema": "announces its tools with their schemas"},
        results={"tools": _tools_by_name},
        path_in_record=in_list,
        faults=_tool_faults,
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
        capabilities={"job.": "a maintenance job"},
        needs=lambda args: [f"job.{args['job']}"],
        results={"result": whole_record},
        may_name_paths=True,
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
        request=_inspect_request,
        capabilities={"inspect.": "something that can be looked at"},
        needs=lambda args: [] if args["what"] == FILES else [f"inspect.{args['what']}"],
        results={"data": whole_record},
        check_expectation=_note_search_texts,
        has_user=False,
        may_name_paths=True,
        example="""
- inspect: embedder
  save: {calls: calls}
- inspect: {what: log, since: "${calls}"}
- inspect: files
  expect: {data: {none_contain: [my secret]}}
""",
    ),
)
