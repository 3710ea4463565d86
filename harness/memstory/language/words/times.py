"""Steps of time: at, advance, wait."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from memstory.contract.target import Tree
from memstory.language.reading import Reading, TreePath
from memstory.language.words.shapes import Duration, Rule, Schema
from memstory.language.words.word import Args, Word, needs_always

_UNITS = {
    "weeks": ("w", 604_800_000_000),
    "days": ("d", 86_400_000_000),
    "hours": ("h", 3_600_000_000),
    "minutes": ("m", 60_000_000),
    "seconds": ("s", 1_000_000),
    "milliseconds": ("ms", 1_000),
    "microseconds": ("us", 1),
}
_MICROSECONDS = dict(_UNITS.values()) | {name: each for name, (_, each) in _UNITS.items()}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|ms|s|m|h|d|w)")
_LONGEST = 200 * 365 * _MICROSECONDS["d"]
LONGEST_WAIT: Final = 3 * _MICROSECONDS["s"]
"""How long a story may wait in all, in microseconds."""

_CLOCK = {"clock": "takes its time from the story's clock"}

DURATION: Schema = {
    "description": "A span of time: '30d', '1h 5m', '1us', or {days: 30}.",
    "title": "duration",
    "type": ["string", "object"],
    "pattern": r"^\s*([0-9]+(\.[0-9]+)?\s*(us|ms|s|m|h|d|w)\s*)+$",
    "examples": ["2w", "1h 5m", "500ms"],
    "units": ", ".join(f"{sign} ({name})" for name, (sign, _) in _UNITS.items()),
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {name: {"description": f"{name.capitalize()}.", "type": "number", "minimum": 0} for name in _UNITS},
}


def microseconds(value: Tree) -> int:
    """Return a duration (`1h 5m`, `{days: 2}`) in whole microseconds.

    >>> microseconds("1m 1us"), microseconds({"hours": 0.5})
    (60000001, 1800000000)
    """
    parts = value.items() if isinstance(value, dict) else ((unit, float(count)) for count, unit in _PART.findall(value))
    # A number may be beyond what can be counted with; any that is too long is as good as another.
    return sum(round(min(count * _MICROSECONDS[unit], 2 * _LONGEST)) for unit, count in parts)


def read_duration(reading: Reading, value: Tree, path: TreePath) -> int:
    """Return a duration in whole microseconds; more than 200 years are a fault."""
    span = microseconds(value)
    if span > _LONGEST:
        reading.fault(path, "a span of time is 200 years at most")
    return span


def read_moment(reading: Reading, value: str, path: TreePath) -> str | None:
    """Return a moment as ISO 8601 in UTC; a text without a time zone, or that is no moment, is a fault."""
    example = 'write it like "2026-05-31T10:00:00Z"'
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            reading.fault(path, f"the moment '{value:.40}' has no time zone; {example}")
            return None
        return moment.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        reading.fault(path, f"'{value:.40}' is not a moment; {example}")
        return None


def _read_wait(reading: Reading, value: Tree, path: TreePath) -> Args:
    span = microseconds(value)
    if not 0 < span <= LONGEST_WAIT:
        reading.fault(path, f"a story waits for {LONGEST_WAIT / 1e6:g} s at most, in real time where it must")
    return {"microseconds": span}


def _read_advance(reading: Reading, value: Tree, path: TreePath) -> Args:
    span = microseconds(value)
    if not 0 < span <= _LONGEST:
        reading.fault(path, "the clock can be advanced by 1us at least and 200 years at most")
    return {"microseconds": span}


STEPS: Final = (
    Word(
        name="at",
        summary="set the clock",
        forms='such as "2026-05-31T10:00:00Z"',
        argument=Annotated[str, Rule(title="moment")],
        read=lambda reading, value, path: {"moment": read_moment(reading, value, path)},
        capabilities=_CLOCK,
        not_inside=("parallel", "other_process"),
        has_user=False,
        example="""
- at: "2026-05-31T10:00:00Z"
""",
    ),
    Word(
        name="advance",
        summary="let time pass",
        forms="a span of time such as 30d, 1h 5m, 1us or {days: 30}",
        argument=Duration,
        read=_read_advance,
        capabilities=_CLOCK,
        not_inside=("parallel", "other_process"),
        has_user=False,
        example="""
- advance: 30d
- advance: {hours: 1, minutes: 5}
""",
    ),
    Word(
        name="wait",
        summary="wait for a moment: on the story's clock if the target uses it, otherwise in real time",
        forms="a span of time such as 1.2s; 3 s in a story at most",
        argument=Duration,
        read=_read_wait,
        not_inside=("parallel", "other_process"),
        has_user=False,
        needs=needs_always(),
        example="""
- add: {text: The oven is hot., ttl: 1s}
- wait: 1.2s
- list:
  expect: {hits: {empty: true}}
""",
    ),
)
