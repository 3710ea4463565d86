"""The arguments of each step, as an author may write them, to the one form that `vocabulary.STEPS` names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from memstory.language.reading import Reading
from memstory.language.references import REFERENCE, unmarked
from memstory.language.text import TreePath
from memstory.target import Json

Args = dict[str, Json]

_MICROSECONDS = {
    "us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000,
    "w": 604_800_000_000,
    "microseconds": 1, "milliseconds": 1_000, "seconds": 1_000_000, "minutes": 60_000_000, "hours": 3_600_000_000,
    "days": 86_400_000_000, "weeks": 604_800_000_000,
}  # fmt: skip
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|ms|s|m|h|d|w)")
_LONGEST = 200 * 365 * _MICROSECONDS["d"]


def normalised(reading: Reading, op: str, value: Json, path: TreePath) -> Args:
    """Return the arguments of a step in their one form; vectors go to `reading`."""
    return _READERS[op](reading, value, path)


def microseconds(value: Json) -> int:
    """Return a duration (`1h 5m`, `{days: 2}`) in whole microseconds.

    >>> microseconds("1m 1us"), microseconds({"hours": 0.5})
    (60000001, 1800000000)
    """
    parts = value.items() if isinstance(value, dict) else ((unit, float(count)) for count, unit in _PART.findall(value))
    return sum(round(count * _MICROSECONDS[unit]) for unit, count in parts)


def _said(reading: Reading, value: Json, path: TreePath) -> Args:
    return _without_vector(reading, value if isinstance(value, dict) else {"text": value}, "text", path)


def _without_vector(reading: Reading, value: Args, text: str, path: TreePath) -> Args:
    if "vector" in value:
        reading.vector(unmarked(value[text]), value["vector"], (*path, "vector"))
    return {name: inner for name, inner in value.items() if name != "vector"}


def _added(reading: Reading, value: Json, path: TreePath) -> Args:
    listed = (
        [(inner, (*path, index)) for index, inner in enumerate(value)] if isinstance(value, list) else [(value, path)]
    )
    items = [_said(reading, item, place) for item, place in listed]
    return {"items": [{name: inner for name, inner in item.items() if name != "save"} for item in items]}


def _queried(reading: Reading, value: Json, path: TreePath) -> Args:
    args = _without_vector(reading, value if isinstance(value, dict) else {"query": value}, "query", path)
    return _with_kinds(args)


def _with_kinds(args: Args) -> Args:
    if isinstance(args.get("kinds"), str):
        return {**args, "kinds": [args["kinds"]]}
    return args


def _listed(_reading: Reading, value: Json, _path: TreePath) -> Args:
    if value is None:
        return {}
    return _with_kinds(dict(value) if isinstance(value, dict) else {"kinds": value})


def _referred(reading: Reading, value: Json, path: TreePath) -> Args:
    if isinstance(value, str):
        # A whole ${saved} is an id that the backend gave; any other text is a key that the caller chose.
        return {"id" if REFERENCE.fullmatch(value) else "key": value}
    args = dict(value)
    if args.pop("all", False):
        if "id" in args or "key" in args:
            reading.fault(path, "'all' forgets everything; leave out 'id' and 'key', or leave out 'all'")
        return args
    if ("id" in args) == ("key" in args):
        found = "both are given" if "id" in args else "neither is"
        reading.fault(path, f"a memory is named by 'id' or by 'key', but {found}")
    return args


def _updated(reading: Reading, value: Json, path: TreePath) -> Args:
    return _without_vector(reading, _referred(reading, value, path), "text", path)


def _named(key: str, other: str = "args") -> Callable[[Reading, Json, TreePath], Args]:
    def read(_reading: Reading, value: Json, _path: TreePath) -> Args:
        return {other: {}, **(value if isinstance(value, dict) else {key: value})}

    return read


def _inspected(_reading: Reading, value: Json, _path: TreePath) -> Args:
    return dict(value) if isinstance(value, dict) else {"what": value}


def _worded(key: str, default: str | None = None) -> Callable[[Reading, Json, TreePath], Args]:
    def read(_reading: Reading, value: Json, _path: TreePath) -> Args:
        word = default if value is None else value
        return {} if word is None else {key: word}

    return read


def _nothing(reading: Reading, value: Json, path: TreePath) -> Args:
    if value is False:
        reading.fault(path, "'false' says nothing here; leave the step out, or leave its value empty")
    return {}


def _moment(reading: Reading, value: str, path: TreePath) -> Args:
    example = 'write it like "2026-05-31T10:00:00Z"'
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            reading.fault(path, f"the moment '{value:.40}' has no time zone; {example}")
            return {}
        return {"moment": moment.astimezone(UTC).isoformat()}
    except (ValueError, OverflowError):
        reading.fault(path, f"'{value:.40}' is no moment; {example}")
        return {}


def _advanced(reading: Reading, value: Json, path: TreePath) -> Args:
    span = microseconds(value)
    if not 0 < span <= _LONGEST:
        reading.fault(path, "the clock can be advanced by 1us at least and 200 years at most")
    return {"microseconds": span}


def _faulted(reading: Reading, value: Mapping[str, Json], path: TreePath) -> Args:
    if set(value) == {"part", "mode"}:
        return dict(value)
    if len(value) == 1 and "part" not in value and "mode" not in value:
        ((part, mode),) = value.items()
        return {"part": part, "mode": mode}
    reading.fault(path, "one fault a step: {part: embedder, mode: down}, or {embedder: down}")
    return {}


def _times(_reading: Reading, value: Mapping[str, Json], _path: TreePath) -> Args:
    return {"times": int(value["times"])}


_READERS: Mapping[str, Callable[[Reading, Json, TreePath], Args]] = {
    "say": _said,
    "add": _added,
    "get": _referred,
    "search": _queried,
    "list": _listed,
    "update": _updated,
    "delete": _referred,
    "feedback": _referred,
    "context": _queried,
    "tool": _named("name"),
    "tools": _nothing,
    "run": _named("job"),
    "inspect": _inspected,
    "new_session": _worded("name"),
    "end_session": _worded("reason", "explicit"),
    "settle": _nothing,
    "at": _moment,
    "advance": _advanced,
    "restart": _nothing,
    "crash": _nothing,
    "fault": _faulted,
    "parallel": _times,
    "repeat": _times,
}
