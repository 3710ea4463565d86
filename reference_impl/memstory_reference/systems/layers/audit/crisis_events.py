"""What the crisis log holds: that something was noticed, when and how, never what was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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
