"""What both buses do with a message: pack its payload, hand it to handlers, and tie a reply to its request.

A payload is a JSON object of bounded size, of which every delivery gets a copy. Each delivery is a task: what a handler
raises ends nothing but that delivery.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from memstory.contract.errors import MemstoryError
from memstory.contract.values import Json
from memstory_reference.bus.subjects import check_subject
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope, Handler

MAX_PAYLOAD_CHARACTERS = 8 << 20
"""An answer travels with the results of all its tool calls."""


def pack(payload: object) -> str:
    """Return `payload` as JSON text, or raise InputError if it is not a JSON object of text keys or is too large."""
    if not isinstance(payload, Mapping):
        raise InputError(f"bus: a payload is a JSON object, not {type(payload).__name__}")
    try:
        packed = json.dumps(dict(payload), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"bus: the payload is not JSON: {error}") from error
    if len(packed) > MAX_PAYLOAD_CHARACTERS:
        raise InputError(f"bus: the payload has {len(packed)} characters of JSON; at most {MAX_PAYLOAD_CHARACTERS}")
    return packed


def unpack(packed: str) -> dict[str, Json]:
    """Return a fresh copy of what was packed.

    >>> unpack(pack({"answer": 42}))
    {'answer': 42}
    """
    payload: dict[str, Json] = json.loads(packed)
    return payload


_log = logging.getLogger(__name__)


class Deliveries:
    """The deliveries of one bus. What the system raises on purpose is counted in `refusals`, all else in `failures`."""

    def __init__(self) -> None:
        self.refusals = 0
        self.failures = 0
        self._tasks: set[asyncio.Task[Exception | None]] = set()

    def __len__(self) -> int:
        """Return how many deliveries are under way."""
        return len(self._tasks)

    def start(self, name: str, handler: Handler, envelope: Envelope) -> asyncio.Task[Exception | None]:
        """Hand `envelope` to the handler of the subscription `name`, in a task; tasks begin in the order of calls.

        The task returns what the handler raised.
        """
        task = asyncio.create_task(self._handle(name, handler, envelope))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settle(self) -> None:
        """Return when no delivery is under way; called by a handler, it does not wait for that handler."""
        while self._tasks - {asyncio.current_task()}:
            await wait_for_all(self._tasks)

    def refuse(self, name: str, subject: str, error: MemstoryError) -> None:
        """Count and log a message that is not taken; the log does not hold its content."""
        self.refusals += 1
        _log.warning("%s refused a message on %s: %s", name, subject, error)

    async def _handle(self, name: str, handler: Handler, envelope: Envelope) -> Exception | None:
        try:
            await handler(envelope)
        except MemstoryError as error:
            self.refuse(name, envelope.subject, error)
            return error
        except Exception as error:  # noqa: BLE001  (the rim of every handler: one bad message must not end a subscription)
            self.failures += 1
            _log.exception("%s failed on %s", name, envelope.subject)
            return error
        return None


async def wait_for_all(tasks: Collection[asyncio.Task[Exception | None]]) -> None:
    """Return when all of `tasks` are done, except for the one that asks."""
    others = set(tasks) - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)


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
