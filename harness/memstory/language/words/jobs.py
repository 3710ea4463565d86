"""Steps that run a job of the memory, or look inside it: run, inspect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memstory.contract.target import Json, Request, Scope, Target, Tree
from memstory.language.reading import Reading, TreePath
from memstory.language.story import Expectation
from memstory.language.words.parts import free, keys, name_of
from memstory.language.words.word import Args, Word, named, whole

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


STEPS: Final = (
    Word(
        name="run",
        summary="run a maintenance job",
        forms="its name, or {job, args}",
        grammar=keys(
            "argument of run",
            {"job": name_of("compress, cleanup, purge, reindex, backup, …"), "args": free("The job's arguments.")},
            "job",
            type=["string", "object"],
            minLength=1,
        ),
        read=named("job", args={}),
        args="job, args",
        request=lambda args, scope: Request.of(Target.run, args["job"], args.get("args") or {}, scope),
        able={"job.": "a maintenance job"},
        needs=lambda args: [f"job.{args['job']}"],
        results={"result": whole},
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
        grammar=keys(
            "argument of inspect",
            {
                "what": name_of("What to look at."),
                "since": {"description": "Only what is newer than this: a number, or ${saved}."},
                "args": free("More arguments."),
            },
            "what",
            type=["string", "object"],
            minLength=1,
        ),
        read=named("what"),
        args="what, since?, args; for files: search_for (texts that no file may hold)",
        request=_inspection,
        able={"inspect.": "something that can be looked at"},
        needs=lambda args: [] if args["what"] == FILES else [f"inspect.{args['what']}"],
        results={"data": whole},
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
