"""What goes between the harness and a target in a process of its own: one JSON object a line, in both directions.

A request is `{id, op, args, now}`, a reply `{id, value}` or `{id, error}`, with what of its time was embedding; replies
come in any order.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

from memstory.codec import decode, encode
from memstory.errors import MemstoryError, NotSupported, Refused, SetupError, StoryError, TargetError
from memstory.running.failures import message_of, told
from memstory.target import Environment, Json, Target

LONGEST_LINE = 1 << 28
"""Bytes; a whole corpus goes over in one `add`."""

_CARRIED: Mapping[str, type[MemstoryError]] = {
    kind.__name__: kind for kind in (Refused, StoryError, SetupError, TargetError)
}


@cache
def hints_of(op: str) -> Mapping[str, Any]:
    """Return the types of the parameters of an operation of `Target`, and of what it returns, under `return`."""
    # `open` is apart: its clock does not cross.
    return {"env": Environment, "return": None} if op == "open" else get_type_hints(getattr(Target, op))


def encode_arguments(args: Mapping[str, Any]) -> Json:
    """Return the keyword arguments of an operation as JSON."""
    return {name: encode(value) for name, value in args.items()}


def decode_arguments(op: str, args: Json) -> dict[str, Any]:
    """Return keyword arguments for an operation, each of its declared type."""
    hints = hints_of(op)
    return {name: decode(hints[name], value) for name, value in args.items()}


def to_line(message: Json) -> bytes:
    """Return one line of JSON."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def error_to_json(error: BaseException) -> Json:
    """Return an error so that the other side can raise it again by its class."""
    return {
        "class": type(error).__name__,
        "message": error.message if isinstance(error, StoryError) else message_of(error),
        "told": told(error),
        "capability": error.capability if isinstance(error, NotSupported) else None,
        "detail": "".join(traceback.format_exception(error)),
    }


def error_from_json(data: Json) -> MemstoryError:
    """Return the error of the other side; one that memstory does not know is a TargetError that names its class."""
    if data["capability"] is not None:
        return NotSupported(data["capability"], data["message"])
    known = _CARRIED.get(data["class"])
    error = known(data["message"]) if known else TargetError(data["told"])
    error.add_note(f"In the target's process:\n{data['detail']}")
    return error
