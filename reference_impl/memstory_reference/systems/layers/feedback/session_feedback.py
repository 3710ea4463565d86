"""Where feedback goes: a protocol, and the backend that lives in memory only."""

from __future__ import annotations

from typing import Protocol

from memstory_reference.systems.layers.feedback.session_labels import SessionFeedbackRecord


class SessionFeedbackBackend(Protocol):
    """Append, look, delete; nothing that a prompt or a search could use."""

    async def aappend(self, record: SessionFeedbackRecord) -> None:
        """Add a record."""
        ...

    async def alist(self, owner: str) -> list[SessionFeedbackRecord]:
        """Return an owner's records, oldest first."""
        ...

    async def adelete_owner(self, owner: str) -> int:
        """Delete an owner's records; return how many there were."""
        ...

    async def aclose(self) -> None:
        """Release the backend."""
        ...


class InMemorySessionFeedback:
    """Feedback that ends with the process."""

    def __init__(self) -> None:
        self._records: list[SessionFeedbackRecord] = []

    async def aappend(self, record: SessionFeedbackRecord) -> None:
        self._records.append(record)

    async def alist(self, owner: str) -> list[SessionFeedbackRecord]:
        return sorted((one for one in self._records if one.owner == owner), key=lambda one: (one.at, one.id))

    async def adelete_owner(self, owner: str) -> int:
        kept = [one for one in self._records if one.owner != owner]
        gone, self._records = len(self._records) - len(kept), kept
        return gone

    async def aclose(self) -> None:
        self._records.clear()
