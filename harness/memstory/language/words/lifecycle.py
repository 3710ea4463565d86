"""Steps on the memory as a program (settle, restart, tamper, fault), and steps that hold others (parallel, crash …)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Literal, Required, TypeAlias, TypedDict, get_args

from memstory.contract.target import Capability, Request, Target, Tree
from memstory.language.reading import Reading, TreePath
from memstory.language.words.shapes import InnerStep, Name, Nothing, Rule
from memstory.language.words.word import Args, Word, needs_always, read_mapping

_Mode: TypeAlias = Annotated[Literal["down", "slow", "garbage", "ok"], "How it behaves; `ok` heals it."]
_Reply: TypeAlias = Literal[
    "cut", "fenced", "list", "strings", "refusal", "empty", "foreign", "busy", "broken", "timeout"
]
_VectorMode: TypeAlias = Annotated[
    Literal["down", "slow", "garbage", "nan", "ok"], "How it behaves; `nan` gives vectors of no numbers, `ok` heals it."
]
_ModelMode: TypeAlias = Annotated[
    Literal["down", "slow", "garbage", "ok", _Reply], "How it behaves or replies; `ok` heals it."
]


class _Fault(TypedDict, total=False):
    part: Annotated[Literal["embedder", "model", "store"], "Which part."]
    mode: Annotated[
        Literal["down", "slow", "garbage", "nan", "ok", _Reply], "How it behaves or replies; `ok` heals it."
    ]
    embedder: _VectorMode
    model: _ModelMode
    store: _Mode


class _Restart(TypedDict, total=False):
    embedder: Annotated[Literal["other"], "Open it with another embedding model than before."]


class _Upgrade(TypedDict, total=False):
    to: Annotated[Literal["older"], "Go back to the older release."]


class _Tamper(TypedDict, total=False):
    edit: Annotated[Mapping[str, str], "Each text in any file, and what is put in its place.", Rule(minProperties=1)]
    remove: Annotated[Name, "Files that vanish, such as '*.idx'."]
    cut: Annotated[Name, "Files that lose their second half."]


class _Crash(TypedDict, total=False):
    during: Annotated[InnerStep | list[InnerStep], "A step, or several.", Rule(minItems=1)]


_InnerSteps: TypeAlias = Annotated[list[InnerStep], "The inner steps.", Rule(minItems=1)]


class _OtherProcess(TypedDict, total=False):
    steps: Required[_InnerSteps]


class _Block(TypedDict, total=False):
    times: Required[Annotated[int, "How often.", Rule(minimum=1, maximum=1000)]]
    steps: Required[_InnerSteps]


_REPLIES: Final = frozenset(get_args(_Reply))


def _read_fault(reading: Reading, value: Mapping[str, Tree], path: TreePath) -> Args:
    if set(value) == {"part", "mode"}:
        part = "model" if value["mode"] in _REPLIES else "embedder" if value["mode"] == "nan" else value["part"]
        if value["part"] != part:
            reading.fault((*path, "mode"), f"only the {part} can: {{part: {part}, mode: {value['mode']}}}")
        return dict(value)
    if len(value) == 1 and "part" not in value and "mode" not in value:
        ((part, mode),) = value.items()
        return {"part": part, "mode": mode}
    reading.fault(path, "one fault a step: {part: embedder, mode: down}, or {embedder: down}")
    return {}


def _needs_of_fault(args: Mapping[str, Tree]) -> Sequence[Capability]:
    if args["mode"] == "ok":
        return []  # what heals comes after a fault
    if args["mode"] == "nan":
        return ["fault.nan"]
    return ["fault.replies" if args["mode"] in _REPLIES else f"fault.{args['part']}"]


def _times(_reading: Reading, value: Tree, _path: TreePath) -> Args:
    return {"times": int(value["times"])}


def _inner(key: str) -> Callable[[Tree], tuple[str, Tree] | None]:
    return lambda value: (key, value[key]) if isinstance(value, dict) and key in value else None


STEPS: Final = (
    Word(
        name="settle",
        summary="wait until all background work is done",
        argument=Nothing,
        request=lambda _args, _scope: Request.of(Target.settle),
        has_user=False,
        example="""
- settle:
""",
    ),
    Word(
        name="restart",
        summary="close and reopen; a memory that refuses a changed embedding model is reopened with the old one",
        forms="nothing, or {embedder: other}",
        argument=_Restart | None | bool,
        read=read_mapping,
        capabilities={
            "restart": "can be closed and opened again",
            "restart.embedder": "can be opened again with another embedding model",
        },
        # What a memory that keeps nothing has after it was opened again, nobody asks.
        needs=lambda args: ["restart", "persistent", *(["restart.embedder"] if args else [])],
        not_inside=("parallel", "other_process"),
        has_user=False,
        example="""
- restart:
- restart: {embedder: other}
  expect: {refusal: allowed}
""",
    ),
    Word(
        name="upgrade",
        summary="close what an older release has written, from the first step on, and open it with today's",
        forms="nothing, or {to: older} to go back; a release that refuses what a newer one wrote is closed again",
        argument=_Upgrade | None | bool,
        read=read_mapping,
        capabilities={"upgrade": "can be opened with an older release first"},
        needs=needs_always("upgrade", "restart", "persistent"),
        not_inside=("parallel", "other_process"),
        has_user=False,
        example="""
- add: The ferry leaves at nine.
- upgrade:
- search: when does the ferry leave
  expect: {hits: {first: {text: {contains: nine}}}}
""",
    ),
    Word(
        name="tamper",
        summary="change the memory's files from outside, while it is closed; then reopen it",
        forms="{edit: {text: other text}}, {remove: file name or pattern} or {cut: file name or pattern}",
        argument=Annotated[_Tamper, Rule(minProperties=1, maxProperties=1)],
        read=read_mapping,
        needs=needs_always("restart", "persistent"),
        not_inside=("parallel", "other_process"),
        has_user=False,
        example="""
- add: The ferry leaves at nine.
- tamper: {edit: {nine: five}}
  expect: {error: true}
""",
    ),
    Word(
        name="fault",
        summary="make a component fail from now on",
        forms="{part: embedder, mode: down}, or {embedder: down}",
        argument=Annotated[_Fault, Rule(title="fault", minProperties=1)],
        read=_read_fault,
        request=lambda args, _scope: Request.of(Target.fault, args["part"], args["mode"]),
        capabilities={
            "fault.": "a part that can be made to fail",
            "fault.nan": "goes on where its embedder gives vectors of no numbers",
            "fault.replies": "goes on where the replies of its language model are spoiled",
        },
        needs=_needs_of_fault,
        not_inside=("parallel", "other_process"),
        has_user=False,
        example="""
- fault: {embedder: down}
- search: when does the ferry leave
  expect: {error: true}
- fault: {embedder: ok}
""",
    ),
    Word(
        name="parallel",
        summary="run the inner steps several times concurrently, with ${i} from 0",
        forms="{times, steps}",
        argument=_Block,
        read=_times,
        inner_steps=_inner("steps"),
        not_inside=("parallel", "crash"),
        is_loop=True,
        has_user=False,
        example="""
- parallel:
    times: 10
    steps:
      - add: Note ${i} of this user.
        as: user-${i}
""",
    ),
    Word(
        name="repeat",
        summary="run the inner steps several times, with ${i} from 0",
        forms="{times, steps}",
        argument=_Block,
        read=_times,
        inner_steps=_inner("steps"),
        not_inside=("crash",),
        is_loop=True,
        has_user=False,
        example="""
- repeat:
    times: 3
    steps:
      - add: Entry ${i} of the diary.
- search: entry
  expect:
    eventually: 5s
    hits: {count: 3}
""",
    ),
    Word(
        name="crash",
        summary="kill and reopen; the `during` steps are in flight when it happens",
        forms="nothing, or {during: a step, or several}",
        argument=_Crash | None | bool,
        inner_steps=_inner("during"),
        capabilities={"crash": "can be killed and opened again"},
        needs=needs_always("crash", "persistent"),
        not_inside=("parallel", "crash", "other_process"),
        has_user=False,
        example="""
- crash:
- crash:
    during:
      add: The ferry leaves at nine.
""",
    ),
    Word(
        name="other_process",
        summary="do the inner steps in a second process that has the same memory open, from its first steps to the end",
        forms="{steps}",
        argument=_OtherProcess,
        inner_steps=_inner("steps"),
        capabilities={"other_process": "can be open in several processes at once"},
        not_inside=("crash", "other_process"),
        has_user=False,
        example="""
- add: The ferry leaves at nine.
- other_process:
    steps:
      - search: when does the ferry leave
        expect: {hits: {first: {text: {contains: nine}}}}
""",
    ),
)
