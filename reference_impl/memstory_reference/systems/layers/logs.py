"""What is kept beside memory, and never told in a prompt: crises that were noticed, and what people say of sessions."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from memstory.contract.errors import UnavailableError
from memstory_reference.systems.layers.identity import OwnerSession
from memstory_reference.systems.layers.log_entries import (
    ClassifierPath,
    CrisisLevel,
    CrisisLogRecord,
    SessionFeedbackRecord,
    checked_feedback,
)
from memstory_reference.systems.layers.policy.signals import CrisisNotice, crisis_notice
from memstory_reference.systems.layers.ports import LayersPorts

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Logs:
    """Writes both logs, each of which is in a file of its own."""

    ports: LayersPorts

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
        (words,) = self.ports.config.admit(words)
        record = SessionFeedbackRecord(
            id=self.ports.new_id(),
            owner=who.owner,
            session=who.session,
            at=self.ports.clock.now(),
            label=kind,
            source=origin,
            comment=words,
        )
        await self.ports.feedback.aappend(record)
        return record.id

    async def purge(self) -> int:
        """Delete crisis records older than their retention, as happens daily; return how many there were."""
        return await self.ports.crisis.apurge(
            self.ports.clock.now() - timedelta(days=self.ports.config.crisis_retention_days)
        )

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
            id=self.ports.new_id(),
            owner=who.owner,
            session=who.session,
            at=self.ports.clock.now(),
            level=noticed.level,
            classifier_path=path,
            signals=noticed.signals,
        )
        try:
            await self.ports.crisis.aappend(record)
        except UnavailableError as error:
            LOG.error("a crisis record could not be written: %s", error)  # noqa: TRY400  (the reason says all)
            trouble["crisis_log"] = str(error)
