"""Messages between the harness and a target in its own process: one JSON object per line, in both directions.

A request is `{id, op, now, args}` (to open: `{id, op, now, env}`), a reply `{id, value}` or `{id, error}`,
with the target's `usage` and, at the end, the tasks that it `left`; replies come in any order.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping

from memstory.contract.errors import MemstoryError, NotSupported, Refused, SetupError, StoryError, TargetError
from memstory.contract.target import Tree
from memstory.running.endings import describe_error, message_of

LONGEST_LINE = 1 << 28
"""Bytes; a whole corpus goes over in one `add`."""

LOADED = 10_000
"""So many items go over at once where any number is loaded."""

_CARRIED: Mapping[str, type[MemstoryError]] = {
    kind.__name__: kind for kind in (Refused, StoryError, SetupError, TargetError)
}


def to_line(message: Tree) -> bytes:
    """Return one line of JSON."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def error_to_json(error: BaseException) -> Tree:
    """Return an error so that the other side can raise it again by its class."""
    return {
        "class": type(error).__name__,
        "message": error.message if isinstance(error, StoryError) else message_of(error),
        "told": describe_error(error),
        "capability": error.capability if isinstance(error, NotSupported) else None,
        "detail": "".join(traceback.format_exception(error)),
    }


def error_from_json(data: Tree) -> MemstoryError:
    """Return the error of the other side; one that memstory does not know is a TargetError that names its class."""
    if data["capability"] is not None:
        return NotSupported(data["capability"], data["message"])
    known = _CARRIED.get(data["class"])
    error = known(data["message"]) if known else TargetError(data["told"])
    error.add_note(f"In the target's process:\n{data['detail']}")
    return error
