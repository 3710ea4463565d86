"""Steps on the memory as a program, and around other steps: settle, restart, tamper, fault, and the blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memstory.contract.target import Request, Target, Tree
from memstory.language.reading import Reading, TreePath
from memstory.language.words.word import (
    NOTHING,
    STEP,
    Args,
    Schema,
    Word,
    choice,
    count,
    free_mapping,
    list_of,
    mapping_of,
    name_of,
    needs_always,
    read_nothing,
)

_PARTS = ("embedder", "model", "store")
_TEXTS: Schema = {"minProperties": 1, "additionalProperties": {"type": "string"}}
_MODE = choice("How it behaves; `ok` heals it.", "down", "slow", "garbage", "ok")


def _read_fault(reading: Reading, value: Mapping[str, Tree], path: TreePath) -> Args:
    if set(value) == {"part", "mode"}:
        return dict(value)
    if len(value) == 1 and "part" not in value and "mode" not in value:
        ((part, mode),) = value.items()
        return {"part": part, "mode": mode}
    reading.fault(path, "one fault a step: {part: embedder, mode: down}, or {embedder: down}")
    return {}


_BLOCK = mapping_of(
    "key of a block of steps",
    {"times": count("How often.", minimum=1, maximum=1000), "steps": list_of("The inner steps.", STEP, minItems=1)},
    "times",
    "steps",
    type="object",
)


def _times(_reading: Reading, value: Tree, _path: TreePath) -> Args:
    return {"times": int(value["times"])}


def _steps(value: Tree) -> tuple[str, Tree]:
    return "steps", value["steps"]


def _during(value: Tree) -> tuple[str, Tree] | None:
    return ("during", value["during"]) if isinstance(value, dict) and "during" in value else None


STEPS: Final = (
    Word(
        name="settle",
        summary="wait until all background work is done",
        grammar=NOTHING,
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
        grammar=mapping_of(
            "argument of restart",
            {"embedder": choice("Open it with another embedding model than before.", "other")},
            type=["object", "null", "boolean"],
        ),
        read=lambda reading, value, path: {
            **read_nothing(reading, value, path),
            **(value if isinstance(value, dict) else {}),
        },
        args="embedder",
        able={
            "restart": "can be closed and opened again",
            "restart.embedder": "can be opened again with another embedding model",
        },
        needs=lambda args: ["restart", *(["restart.embedder", "persistent"] if args else [])],
        barred_in=("parallel", "other_process"),
        has_user=False,
        example="""
- restart:
- restart: {embedder: other}
  expect: {refusal: allowed}
""",
    ),
    Word(
        name="tamper",
        summary="change the memory's files from outside, while it is closed; then reopen it",
        forms="{edit: {text: other text}}, {remove: file name or pattern} or {cut: file name or pattern}",
        grammar=mapping_of(
            "argument of tamper",
            {
                "edit": free_mapping("Each text in any file, and what is put in its place.", **_TEXTS),
                "remove": name_of("Files that vanish, such as '*.idx'."),
                "cut": name_of("Files that lose their second half."),
            },
            type="object",
            minProperties=1,
            maxProperties=1,
        ),
        read=lambda _reading, value, _path: dict(value),
        args="edit, remove or cut",
        needs=needs_always("restart", "persistent"),
        barred_in=("parallel", "other_process"),
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
        grammar=mapping_of(
            "fault",
            {"part": choice("Which part.", *_PARTS), "mode": _MODE, **dict.fromkeys(_PARTS, _MODE)},
            type="object",
            minProperties=1,
        ),
        read=_read_fault,
        args="part, mode",
        request=lambda args, _scope: Request.of(Target.fault, args["part"], args["mode"]),
        able={"fault.": "a part that can be made to fail"},
        needs=lambda args: [f"fault.{args['part']}"],
        barred_in=("parallel", "other_process"),
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
        grammar=_BLOCK,
        read=_times,
        args="times",
        inner=_steps,
        barred_in=("parallel", "crash"),
        counts=True,
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
        grammar=_BLOCK,
        read=_times,
        args="times",
        inner=_steps,
        barred_in=("crash",),
        counts=True,
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
        grammar=mapping_of(
            "argument of crash",
            {"during": {**list_of("A step, or several.", STEP, minItems=1), **STEP, "type": ["object", "array"]}},
            type=["object", "null", "boolean"],
        ),
        inner=_during,
        able={"crash": "can be killed and opened again"},
        barred_in=("parallel", "crash", "other_process"),
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
        grammar=mapping_of(
            "argument of other_process",
            {"steps": list_of("The inner steps.", STEP, minItems=1)},
            "steps",
            type="object",
        ),
        inner=_steps,
        able={"other_process": "can be open in several processes at once"},
        barred_in=("crash", "other_process"),
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
