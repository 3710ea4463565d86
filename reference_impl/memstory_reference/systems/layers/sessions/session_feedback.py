"""What people say of a session: a label, where it came from, and perhaps a comment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memstory_reference.errors import InputError
from memstory_reference.input_checks import short_repr
from memstory_reference.systems.layers.stores.logs import LogKind

MAX_COMMENT = 2_000


class FeedbackLabel(StrEnum):
    """How the session was."""

    HELPFUL = "helpful"
    NEUTRAL = "neutral"
    UNHELPFUL = "unhelpful"
    HARMFUL = "harmful"


class FeedbackSource(StrEnum):
    """Who gave it, or by which way."""

    TEXT = "text"
    WEB = "web"
    VOICE = "voice"
    REVIEWER = "reviewer"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFeedbackRecord:
    """One person's word on one session; `session` is a hash."""

    id: str
    owner: str
    session: str
    at: datetime
    label: FeedbackLabel
    source: FeedbackSource
    comment: str = ""


def checked_feedback(label: object, source: object, comment: object) -> tuple[FeedbackLabel, FeedbackSource, str]:
    """Return the three as values; InputError names what is allowed."""
    if not isinstance(label, str) or label not in set(FeedbackLabel):
        raise InputError(f"feedback: label is {short_repr(label)}; allowed: {', '.join(FeedbackLabel)}")
    if not isinstance(source, str) or source not in set(FeedbackSource):
        raise InputError(f"feedback: source is {short_repr(source)}; allowed: {', '.join(FeedbackSource)}")
    if not isinstance(comment, str):
        raise InputError(f"feedback: the comment must be text, not {type(comment).__name__}")
    if len(comment) > MAX_COMMENT:
        raise InputError(f"feedback: the comment has {len(comment)} characters; allowed: {MAX_COMMENT}")
    return FeedbackLabel(label), FeedbackSource(source), comment


FEEDBACK = LogKind(
    table="session_feedback",
    make=SessionFeedbackRecord,
    own={"label": FeedbackLabel, "source": FeedbackSource, "comment": str},
    is_typed=True,
)
