"""What is logged beside memory: that a crisis was noticed, never what was said; and what people say of sessions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memstory_reference.errors import InputError
from memstory_reference.input_checks import short_repr
from memstory_reference.systems.layers.stores.log_store import LogKind


class ClassifierPath(StrEnum):
    """What noticed it: fixed words, or a language model."""

    KEYWORDS = "keywords"
    MODEL = "model"


class CrisisLevel(StrEnum):
    """How grave it is."""

    CONCERN = "concern"
    ACUTE = "acute"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrisisLogRecord:
    """One entry. `signals` are names of what was noticed; the user's words are in no field (SEC-11)."""

    id: str
    owner: str
    session: str
    at: datetime
    level: CrisisLevel
    classifier_path: ClassifierPath
    signals: Sequence[str] = ()


def _signals(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


CRISES = LogKind(
    table="crisis_log",
    make=CrisisLogRecord,
    own={"level": CrisisLevel, "classifier_path": ClassifierPath, "signals": _signals},
    is_typed=False,
)


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
