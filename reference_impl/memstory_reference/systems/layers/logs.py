"""What is kept beside memory and told in no prompt: crises that were noticed, and what people say of sessions.

Each log is append-only, never searched, and in a database of its own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Generic, TypeVar

from memstory.contract.clock import Clock
from memstory.contract.errors import UnavailableError
from memstory_reference.errors import InputError
from memstory_reference.input_checks import short_repr
from memstory_reference.ports import NewId
from memstory_reference.storage.sql_database import SqlDatabase, SqlRow
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKind(Generic[R]):
    """One kind of records: its table, what makes a record of its fields, and how the columns that are its own are read.

    The last column may be a text that a person typed: then it holds any character, even half of one.
    """

    table: str
    make: Callable[..., R]
    own: Mapping[str, Callable[[str], object]]
    is_typed: bool

    @property
    def schema(self) -> str:
        """Return what makes the table."""
        texts = ", ".join(f"{name} TEXT NOT NULL" for name in ("owner", "session", "at", *self.own))
        return (
            f"CREATE TABLE IF NOT EXISTS {self.table} (id TEXT PRIMARY KEY, {texts});"
            f"CREATE INDEX IF NOT EXISTS by_owner ON {self.table} (owner, at);"
        )

    @property
    def migrations(self) -> Mapping[int, str]:
        """Return what makes the table in Postgres, whose moments were no texts at first."""
        as_text = f'ALTER at TYPE text COLLATE "C" USING {moment_as_text("at")}'
        return {0: self.schema, 1: f"ALTER TABLE {self.table} {as_text};"}

    def row(self, record: R) -> list[str]:
        """Return a record as the values of its columns: texts, and names of things as JSON."""
        *own, last = (getattr(record, name) for name in self.own)
        # Escaped, as no database takes every character that people send.
        last = json.dumps(last if self.is_typed else list(last))
        return [record.id, record.owner, record.session, iso_now(record.at), *map(str, own), last]

    def record(self, row: SqlRow) -> R:
        """Return the record of a row; ValueError or TypeError for one that memstory has not written so."""
        identifier, owner, session, at, *own, last = row
        if self.is_typed:
            # As bytes in files of earlier versions.
            last = last.decode("utf-8", "surrogatepass") if isinstance(last, bytes) else json.loads(last)
        values = {name: read(value) for (name, read), value in zip(self.own.items(), (*own, last), strict=True)}
        return self.make(id=identifier, owner=owner, session=session, at=datetime.fromisoformat(at), **values)


CRISES = LogKind(
    table="crisis_log",
    make=CrisisLogRecord,
    own={"level": CrisisLevel, "classifier_path": ClassifierPath, "signals": lambda text: tuple(json.loads(text))},
    is_typed=False,
)
FEEDBACK = LogKind(
    table="session_feedback",
    make=SessionFeedbackRecord,
    own={"label": FeedbackLabel, "source": FeedbackSource, "comment": str},
    is_typed=True,
)


class Log(Generic[R]):
    """Append, look, delete."""

    def __init__(self, database: SqlDatabase, kind: LogKind[R]) -> None:
        self._db = database
        self._kind = kind

    async def aappend(self, record: R) -> None:
        """Add a record; one of an id that is there changes nothing."""
        row = self._kind.row(record)
        sql = f"INSERT INTO {self._kind.table} VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608
        await self._db.lane.run(self._db.execute, sql, row)

    async def alist(self, owner: str | None) -> list[R]:
        """Return an owner's records, oldest first; None asks for everybody's. Damaged ones are left out."""
        condition, values = ("", ()) if owner is None else ("WHERE owner = ?", (owner,))
        columns = ", ".join(("id", "owner", "session", "at", *self._kind.own))
        sql = f"SELECT {columns} FROM {self._kind.table} {condition} ORDER BY at, id"  # noqa: S608  (our own names)
        rows = await self._db.lane.run(self._db.rows, sql, values)
        return [record for row in rows if (record := self._whole(row)) is not None]

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
        gone = self._db.execute(f"DELETE FROM {self._kind.table} WHERE {condition}", (value,)).rowcount  # noqa: S608
        self._db.forget_log()
        return gone

    def _whole(self, row: SqlRow) -> R | None:
        try:
            return self._kind.record(row)
        except (ValueError, AttributeError, TypeError) as error:
            self._db.leave_out(f"record {row['id']} of {self._kind.table}", error, "Restore a backup")
            return None


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
