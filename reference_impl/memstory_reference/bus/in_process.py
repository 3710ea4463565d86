"""A bus inside one process, with the semantics of NATS: a delivery is a task, a request has one reply or none."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memstory_reference.bus.payloads import pack, unpack
from memstory_reference.bus.subjects import check_pattern, check_subject, matches
from memstory_reference.errors import InputError, MemorySystemError, UnavailableError
from memstory_reference.ports import Envelope, Handler, Json, NoRespondersError

_log = logging.getLogger(__name__)

_ReplyKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BusLimits:
    """How much a bus takes and remembers."""

    deliveries: int = 10_000
    logged_messages: int = 1_000
    logged_characters: int = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class BusMessage:
    """A published message in the log; `number` counts from 1. A long payload is replaced by its size."""

    number: int
    subject: str
    publisher: str
    owner: str
    request_id: str | None
    payload: Json


@dataclass(slots=True, kw_only=True, eq=False)
class _InProcessSubscription:
    bus: InProcessBus
    pattern: Sequence[str]
    handler: Handler
    name: str
    deliveries: set[asyncio.Task[None]] = field(default_factory=set)

    async def unsubscribe(self) -> None:
        self.bus.remove(self)
        others = self.deliveries - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)


class InProcessBus:
    """Publish, subscribe and request among the tasks of one event loop.

    A handler that raises is logged and its subscription lives on: what the system raises on purpose is counted in
    `refusals`, all else in `failures`.
    """

    def __init__(self, limits: BusLimits | None = None) -> None:
        self.refusals = 0
        self.failures = 0
        self._limits = limits or BusLimits()
        self._subscriptions: list[_InProcessSubscription] = []
        self._by_subject: dict[str, tuple[_InProcessSubscription, ...]] = {}
        self._waiting: dict[_ReplyKey, asyncio.Future[Envelope]] = {}
        self._deliveries: set[asyncio.Task[None]] = set()
        self._published = 0
        self._log: deque[tuple[int, Envelope, str]] = deque(maxlen=self._limits.logged_messages)

    @property
    def published(self) -> int:
        """How many messages were published so far."""
        return self._published

    async def publish(self, envelope: Envelope) -> None:
        self._publish(envelope)

    async def subscribe(self, pattern: str, handler: Handler, *, name: str) -> _InProcessSubscription:
        subscription = _InProcessSubscription(bus=self, pattern=check_pattern(pattern), handler=handler, name=name)
        self._subscriptions.append(subscription)
        self._by_subject.clear()
        return subscription

    async def request(self, envelope: Envelope, reply_subject: str, *, timeout_seconds: float) -> Envelope:
        """Publish and return the reply; NoRespondersError at once if nobody listens, TimeoutError if nobody answers."""
        if not envelope.request_id:
            raise InputError("bus: a request needs a request_id, or its reply could not be told from others")
        key = (check_subject(reply_subject), envelope.request_id, envelope.owner)
        if key in self._waiting:
            raise InputError(f"bus: request_id {envelope.request_id!r:.80} is already waiting on {reply_subject}")
        if not self._subscribers(check_subject(envelope.subject)):
            raise NoRespondersError(f"nobody listens on {envelope.subject}")
        reply: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._waiting[key] = reply
        try:
            self._publish(envelope)
            async with asyncio.timeout(timeout_seconds):
                return await reply
        finally:
            del self._waiting[key]

    async def settle(self) -> None:
        """Return when no delivery is being handled; called by a handler, it does not wait for that handler."""
        while others := self._deliveries - {asyncio.current_task()}:
            await asyncio.wait(others)

    def log(self, since: int = 0) -> Sequence[BusMessage]:
        """Return the remembered messages whose number is above `since`, oldest first."""
        return [self._message(*entry) for entry in self._log if entry[0] > since]

    def remove(self, subscription: _InProcessSubscription) -> None:
        """Deliver nothing more to `subscription`."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self._by_subject.clear()

    def _publish(self, envelope: Envelope) -> None:
        subscribers = self._subscribers(check_subject(envelope.subject))
        packed = pack(dict(envelope.payload) if hasattr(envelope.payload, "keys") else envelope.payload)
        if len(self._deliveries) + len(subscribers) > self._limits.deliveries:
            raise UnavailableError(f"bus: {len(self._deliveries)} deliveries are under way; nothing more is taken now")
        self._published += 1
        self._log.append((self._published, envelope, packed))
        self._answer(envelope, packed)
        for subscription in subscribers:
            self._deliver(subscription, replace(envelope, payload=unpack(packed)))

    def _subscribers(self, subject: str) -> tuple[_InProcessSubscription, ...]:
        known = self._by_subject.get(subject)
        if known is None:
            tokens = subject.split(".")
            known = tuple(one for one in self._subscriptions if matches(one.pattern, tokens))
            # Subjects come from outside too: what is remembered of them is bounded.
            if len(self._by_subject) >= self._limits.logged_messages:
                self._by_subject.clear()
            self._by_subject[subject] = known
        return known

    def _answer(self, envelope: Envelope, packed: str) -> None:
        if envelope.request_id is None:
            return
        waiting = self._waiting.get((envelope.subject, envelope.request_id, envelope.owner))
        if waiting is not None and not waiting.done():
            waiting.set_result(replace(envelope, payload=unpack(packed)))

    def _deliver(self, subscription: _InProcessSubscription, envelope: Envelope) -> None:
        task = asyncio.create_task(self._handle(subscription, envelope))
        for group in (self._deliveries, subscription.deliveries):
            group.add(task)
            task.add_done_callback(group.discard)

    async def _handle(self, subscription: _InProcessSubscription, envelope: Envelope) -> None:
        try:
            await subscription.handler(envelope)
        except MemorySystemError as error:
            self.refusals += 1
            _log.warning("%s refused a message on %s: %s", subscription.name, envelope.subject, error)
        except Exception:  # noqa: BLE001  (the rim of every handler: one bad message must not end a subscription)
            self.failures += 1
            _log.exception("%s failed on %s", subscription.name, envelope.subject)

    def _message(self, number: int, envelope: Envelope, packed: str) -> BusMessage:
        long = len(packed) > self._limits.logged_characters
        return BusMessage(
            number=number,
            subject=envelope.subject,
            publisher=envelope.publisher,
            owner=envelope.owner,
            request_id=envelope.request_id,
            payload={"characters_of_json": len(packed)} if long else unpack(packed),
        )
