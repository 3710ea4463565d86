"""What the crisis log holds: that something was noticed, when and how, never what was said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memstory_reference.systems.layers.stores.logs import LogKind


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
