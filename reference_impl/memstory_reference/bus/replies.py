"""Requests that wait for their reply: known by subject, request id and owner."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from memstory_reference.bus.subjects import check_subject
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope


class Replies:
    """The requests of one bus that are not answered yet. A reply for another owner does not count."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str, str], asyncio.Future[Envelope]] = {}

    @contextmanager
    def await_reply(self, request: Envelope, reply_subject: str) -> Iterator[asyncio.Future[Envelope]]:
        """Await the reply to `request`; InputError for a request that no reply could be tied to."""
        if not request.request_id:
            raise InputError("bus: a request needs a request_id, or its reply could not be recognised")
        check_subject(request.subject)
        key = (check_subject(reply_subject), request.request_id, request.owner)
        if key in self._waiting:
            raise InputError(f"bus: request_id {request.request_id!r:.80} is already waiting on {reply_subject}")
        reply: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._waiting[key] = reply
        try:
            yield reply
        finally:
            del self._waiting[key]

    def waiting_for(self, envelope: Envelope) -> asyncio.Future[Envelope] | None:
        """Return the request that `envelope` answers, None if it answers none."""
        if envelope.request_id is None:
            return None
        reply = self._waiting.get((envelope.subject, envelope.request_id, envelope.owner))
        return None if reply is None or reply.done() else reply

    def subjects(self) -> set[str]:
        """Return the subjects on which replies are awaited."""
        return {subject for subject, _, _ in self._waiting}
