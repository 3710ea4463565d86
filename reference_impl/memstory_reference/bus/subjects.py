"""The subjects that agents and tools speak on, and how a subject is matched: tokens, `*` for one, `>` for the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memstory_reference.errors import InputError

TOOL_SCHEMA = "tool.schema"
TOOL_SCHEMA_WANTED = "tool.schema.wanted"
RESPONSE_GENERATION = "response.generation"
RESPONSE_FEEDBACK = "response.feedback"
"""How good an answer was: `query_id` of the answer, and `value` from -1 to 1."""
RESPONSES = "response.*"
"""What a memory is to write. A bus that is a server keeps it in the stream STREAM until it is written."""
STREAM = "memstory"
WRITER = "memory"
"""The part that takes from the stream, and the name that it has there."""
QUERY_RECEIVED = "query.received"

TOOL_REQUEST = "tool.request"
TOOL_RESULT = "tool.result"

MAX_SUBJECT_CHARACTERS = 255
# As NATS: printable ASCII; a dot splits tokens, and `*` and `>` are only wildcards as whole tokens.
_WORD = r"[!-)+\-/-=?-~]+"
_NAME = re.compile(_WORD)
_SUBJECT = re.compile(rf"{_WORD}(\.{_WORD})*")
_PATTERN = re.compile(rf"(({_WORD}|\*)\.)*({_WORD}|\*|>)")


def tool_request(tool: str) -> str:
    """Return the subject on which `tool` is called.

    >>> tool_request("save_topic")
    'tool.request.save_topic'
    """
    return f"{TOOL_REQUEST}.{tool}"


def tool_result(tool: str) -> str:
    """Return the subject on which `tool` answers.

    >>> tool_result("save_topic")
    'tool.result.save_topic'
    """
    return f"{TOOL_RESULT}.{tool}"


def call_request(part: str, act: str) -> str:
    """Return the subject on which a part of a system is asked to act.

    >>> call_request("memory", "forget")
    'memory.request.forget'
    """
    return f"{part}.request.{act}"


def call_result(part: str, act: str) -> str:
    """Return the subject on which a part tells the outcome.

    >>> call_result("memory", "forget")
    'memory.result.forget'
    """
    return f"{part}.result.{act}"


def inbox_of(name: str) -> str:
    """Return the start of the subjects on which a server answers the participant `name`.

    >>> inbox_of("memory")
    '_INBOX.memory'
    """
    return f"_INBOX.{name}"


def check_subject(subject: object) -> str:
    """Return `subject` if something may be published on it, else raise InputError."""
    return ".".join(_tokens(subject, "subject", _SUBJECT))


def check_pattern(pattern: object) -> tuple[str, ...]:
    """Return the tokens of a subscription's pattern, else raise InputError."""
    return tuple(_tokens(pattern, "pattern", _PATTERN, ", or '*' for one of them and '>' for all the rest"))


def check_queue(queue: str | None) -> str | None:
    """Return the name of a queue, None for none, else raise InputError."""
    return None if queue is None else ".".join(_tokens(queue, "queue", _NAME))


def matches(pattern: Sequence[str], subject: Sequence[str]) -> bool:
    """Say whether the tokens of a pattern match those of a subject.

    >>> matches(["tool", "*", "echo"], ["tool", "result", "echo"]), matches(["tool", ">"], ["tool"])
    (True, False)
    """
    if pattern and pattern[-1] == ">":
        head = pattern[:-1]
        return len(subject) > len(head) and matches(head, subject[: len(head)])
    return len(pattern) == len(subject) and all(
        wanted in ("*", found) for wanted, found in zip(pattern, subject, strict=True)
    )


def _tokens(text: object, what: str, shape: re.Pattern[str], more: str = "") -> list[str]:
    if not isinstance(text, str) or len(text) > MAX_SUBJECT_CHARACTERS or not shape.fullmatch(text):
        raise InputError(
            f"bus: {text!r:.80} is not a {what}; allowed: 1 to {MAX_SUBJECT_CHARACTERS} characters, such as "
            f"'tool.request.save_topic': dots between tokens of printable ASCII without spaces and wildcards{more}"
        )
    return text.split(".")
