"""What is kept beside memory and told in no prompt: crises that were noticed, and what people say of sessions.

Each log is append-only, never searched, and in a database of its own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Generic, TypeVar

from memstory.contract.clock import Clock
from memstory.contract.errors import UnavailableError
from memstory_reference.errors import InputError
from memstory_reference.input_checks import short_repr
from memstory_reference.ports import NewId
from memstory_reference.storage.sql_database import SqlDatabase
from memstory_reference.storage.table import Column, Table
from memstory_reference.systems.layers.identity import OwnerSession, iso_now
from memstory_reference.systems.layers.policy import CrisisLevel, CrisisNotice, crisis_notice
from memstory_reference.systems.layers.settings import LayersSettings
from memstory_reference.systems.layers.tables_store import moment_as_text

LOG = logging.getLogger(__name__)
MAX_COMMENT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """What every record says; `session` is a hash."""

    id: str
    owner: str
    session: str
    at: datetime


class ClassifierPath(StrEnum):
    """What noticed it: fixed words, or a language model."""

    KEYWORDS = "keywords"
    MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrisisLogRecord(LogRecord):
    """One crisis. `signals` are names of what was noticed; the user's words are in no field (SEC-11)."""

    level: CrisisLevel
    classifier_path: ClassifierPath
    signals: Sequence[str] = ()


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
class SessionFeedbackRecord(LogRecord):
    """One person's word on one session."""

    label: FeedbackLabel
    source: FeedbackSource
    comment: str = ""


R = TypeVar("R", bound=LogRecord)


def _comment(stored: str | bytes) -> str:
    # As bytes in files of earlier versions.
    comment = stored.decode("utf-8", "surrogatepass") if isinstance(stored, bytes) else json.loads(stored)
    if not isinstance(comment, str):
        raise TypeError(f"{type(comment).__name__} is no comment")
    return comment


_TEXT = Column("TEXT NOT NULL")


class LogKind(Table[R]):
    """The table of one kind of records."""

    @property
    def migrations(self) -> Mapping[int, str]:
        """Return what makes the table in Postgres, whose moments were no texts at first."""
        as_text = f'ALTER at TYPE text COLLATE "C" USING {moment_as_text("at")}'
        return {0: self.schema, 1: f"ALTER TABLE {self.name} {as_text};"}


def _log(name: str, kind: type[R], own: Mapping[str, Column]) -> LogKind[R]:
    """Return the table of a log, with the columns that are its own."""
    moment = Column("TEXT NOT NULL", datetime.fromisoformat, iso_now)
    return LogKind(
        name=name,
        kind=kind,
        columns={"id": Column("TEXT PRIMARY KEY"), "owner": _TEXT, "session": _TEXT, "at": moment, **own},
        indexes=f"CREATE INDEX IF NOT EXISTS by_owner ON {name} (owner, at);",
        called=f"record {{}} of {name}",
        advice="Restore a backup",
    )


CRISES = _log(
    "crisis_log",
    CrisisLogRecord,
    {
        "level": Column("TEXT NOT NULL", CrisisLevel, str),
        "classifier_path": Column("TEXT NOT NULL", ClassifierPath, str),
        "signals": Column(
            "TEXT NOT NULL", lambda text: tuple(json.loads(text)), lambda signals: json.dumps(list(signals))
        ),
    },
)
FEEDBACK = _log(
    "session_feedback",
    SessionFeedbackRecord,
    {
        "label": Column("TEXT NOT NULL", FeedbackLabel, str),
        "source": Column("TEXT NOT NULL", FeedbackSource, str),
        # Escaped, as no database takes every character that people send, be it half of one.
        "comment": Column("TEXT NOT NULL", _comment, json.dumps),
    },
)


class Log(Generic[R]):
    """Append, look, delete."""

    def __init__(self, database: SqlDatabase, kind: LogKind[R]) -> None:
        self._db = database
        self._kind = kind

    async def aappend(self, record: R) -> None:
        """Add a record; one of an id that is there changes nothing."""
        await self._db.lane.run(self._kind.add, self._db, self._kind.values(record))

    async def alist(self, owner: str | None) -> list[R]:
        """Return an owner's records, oldest first; None asks for everybody's. Damaged ones are left out."""
        condition, values = ("", ()) if owner is None else ("WHERE owner = ?", (owner,))
        sql = f"SELECT {self._kind.read_columns} FROM {self._kind.name} {condition} ORDER BY at, id"  # noqa: S608
        return list(self._kind.whole(self._db, await self._db.lane.run(self._db.rows, sql, values)))

    async def apurge(self, before: datetime) -> int:
        """Delete everybody's records from before this moment; return how many there were."""
        return await self._db.lane.run(self._delete, "at < ?", iso_now(before))

    async def adelete_owner(self, owner: str) -> int:
        """Delete an owner's records; return how many there were."""
        return await self._db.lane.run(self._delete, "owner = ?", owner)

    async def aclose(self) -> None:
        """Release the log; closing twice is harmless."""
        await self._db.aclose()

    def _delete(self, condition: str, value: str) -> int:
        gone = self._db.execute(f"DELETE FROM {self._kind.name} WHERE {condition}", (value,)).rowcount  # noqa: S608
        self._db.forget_log()
        return gone


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """Both logs, and what is written to them when."""

    crisis: Log[CrisisLogRecord]
    feedback: Log[SessionFeedbackRecord]
    clock: Clock
    new_id: NewId
    config: LayersSettings

    async def notice(self, said: str, who: OwnerSession, trouble: dict[str, str]) -> None:
        """Log what the words of a turn tell of a crisis; what fails is told in `trouble`."""
        if noticed := crisis_notice(said):
            await self._append(who, noticed, ClassifierPath.KEYWORDS, trouble)

    async def notice_more(self, said: str, who: OwnerSession, risk: CrisisNotice) -> None:
        """Log a risk that a model hears, unless the words alone were logged as one as grave."""
        known = crisis_notice(said)
        if known is None or (known.level is CrisisLevel.CONCERN and risk.level is CrisisLevel.ACUTE):
            await self._append(who, risk, ClassifierPath.MODEL, {})

    async def give_feedback(
        self, who: OwnerSession, label: object, source: object = "text", comment: object = ""
    ) -> str:
        """Keep what somebody thought of a session; return the record's id."""
        kind, origin, words = checked_feedback(label, source, comment)
        (words,) = self.config.admit(words)
        record = SessionFeedbackRecord(
            id=self.new_id(),
            owner=who.owner,
            session=who.session,
            at=self.clock.now(),
            label=kind,
            source=origin,
            comment=words,
        )
        await self.feedback.aappend(record)
        return record.id

    async def purge(self) -> int:
        """Delete crisis records older than their retention, as happens daily; return how many there were."""
        return await self.crisis.apurge(self.clock.now() - timedelta(days=self.config.crisis_retention_days))

    async def try_to_purge(self) -> None:
        """Do so, or say in the log that it could not be done."""
        try:
            await self.purge()
        except UnavailableError as error:
            LOG.warning("the crisis log was not purged: %s", type(error).__name__)

    async def _append(
        self, who: OwnerSession, noticed: CrisisNotice, path: ClassifierPath, trouble: dict[str, str]
    ) -> None:
        record = CrisisLogRecord(
            id=self.new_id(),
            owner=who.owner,
            session=who.session,
            at=self.clock.now(),
            level=noticed.level,
            classifier_path=path,
            signals=noticed.signals,
        )
        try:
            await self.crisis.aappend(record)
        except UnavailableError as error:
            LOG.error("a crisis record could not be written: %s", error)  # noqa: TRY400  (the reason says all)
            trouble["crisis_log"] = str(error)
