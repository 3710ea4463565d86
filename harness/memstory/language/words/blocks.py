"""Steps around steps: parallel, repeat, crash, other_process."""

from __future__ import annotations

from typing import Final

from memstory.contract.target import Tree
from memstory.language.reading import Reading, TreePath
from memstory.language.words.parts import STEP, count, keys, listing
from memstory.language.words.word import Args, Word

_BLOCK = keys(
    "key of a block of steps",
    {"times": count("How often.", minimum=1, maximum=1000), "steps": listing("The inner steps.", STEP, minItems=1)},
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
        grammar=keys(
            "argument of crash",
            {"during": {**listing("A step, or several.", STEP, minItems=1), **STEP, "type": ["object", "array"]}},
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
        grammar=keys(
            "argument of other_process",
            {"steps": listing("The inner steps.", STEP, minItems=1)},
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
