"""The bus that a command meets others on."""

from __future__ import annotations

from dataclasses import dataclass

from memstory_reference.adapters.random_ids import random_id
from memstory_reference.bus.calls import Caller
from memstory_reference.composition.extras import open_bus
from memstory_reference.ports import Envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefBus:
    """A connection for each request: between two typed lines nothing runs that could answer the server's pings."""

    address: str
    name: str

    async def request(self, envelope: Envelope, reply_subject: str, *, timeout_seconds: float) -> Envelope:
        """Publish and return the reply, as a bus does."""
        async with open_bus(self.address, self.name) as bus:
            return await bus.request(envelope, reply_subject, timeout_seconds=timeout_seconds)


def caller_from_terminal(address: str, part: str, start_by: str) -> Caller:
    """Return who calls a part for a person at the terminal."""
    bus = BriefBus(address=address, name="chat")
    return Caller(bus=bus, part=part, new_id=random_id, name="chat", start_by=start_by)
