"""Deleting engrams that are older than the retention: at the start, then every hour of the injected clock."""

from __future__ import annotations

import logging
from datetime import timedelta

from memstory.contract.clock import Clock
from memstory.contract.errors import MemstoryError
from memstory_reference.storage.recurring import Recurring
from memstory_reference.systems.topics.memory_service import MemoryService

EVERY = timedelta(hours=1)

_log = logging.getLogger(__name__)


class Retention:
    """Purges every owner's engrams in the background; does nothing where the settings name no retention."""

    def __init__(self, service: MemoryService, clock: Clock) -> None:
        self._service = service
        self._recurring = Recurring("deleting engrams beyond the retention", self._purge, clock)
        self.stop, self.settle = self._recurring.stop, self._recurring.settle
        self.purged = 0

    async def start(self) -> None:
        """Purge now, and from now on every hour."""
        if self._service.config.retention_days is None:
            return
        await self._purge()
        await self._recurring.start(EVERY)

    async def _purge(self) -> None:
        try:
            self.purged += await self._service.purge_all()
        except MemstoryError as error:
            _log.warning("engrams beyond the retention could not be deleted: %s", error)
