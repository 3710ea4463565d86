"""A bus inside one process, with the semantics of NATS: a delivery is a task, a request has one reply or none."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memstory.contract.errors import UnavailableError
from memstory.contract.values import Json
from memstory_reference.bus.deliveries import Deliveries, Replies, pack, unpack, wait_for_all
from memstory_reference.bus.subjects import check_pattern, check_queue, check_subject, matches
from memstory_reference.ports import Envelope, Handler, NoRespondersError


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
    queue: str | None
    called: int = 0
    deliveries: set[asyncio.Task[Exception | None]] = field(default_factory=set)

    async def unsubscribe(self) -> None:
        self.bus.remove(self)
        await self.settle()

    async def settle(self) -> None:
        await wait_for_all(self.deliveries)


_Group = tuple[_InProcessSubscription, ...]
"""Subscriptions of which one gets a message: a queue, or one that is in none."""


class InProcessBus:
    """Publish, subscribe and request among the tasks of one event loop.

    A handler that raises is logged and its subscription lives on.
    """

    def __init__(self, limits: BusLimits | None = None) -> None:
        self._limits = limits or BusLimits()
        self._subscriptions: list[_InProcessSubscription] = []
        self._by_subject: dict[str, tuple[_Group, ...]] = {}
        self._replies = Replies()
        self._deliveries = Deliveries()
        self._published = 0
        self._log: deque[tuple[int, Envelope, str]] = deque(maxlen=self._limits.logged_messages)

    @property
    def published(self) -> int:
        """How many messages were published so far."""
        return self._published

    @property
    def refusals(self) -> int:
        """How many deliveries ended with an error that the system raises on purpose."""
        return self._deliveries.refusals

    @property
    def failures(self) -> int:
        """How many deliveries ended with any other error."""
        return self._deliveries.failures

    async def publish(self, envelope: Envelope) -> None:
        self._publish(envelope)

    async def subscribe(
        self, pattern: str, handler: Handler, *, name: str, queue: str | None = None, durable: str | None = None
    ) -> _InProcessSubscription:
        # Durable is a queue and no more: what this process holds ends with it.
        shared = check_queue(durable or queue)
        subscription = _InProcessSubscription(
            bus=self, pattern=check_pattern(pattern), handler=handler, name=name, queue=shared
        )
        self._subscriptions.append(subscription)
        self._by_subject.clear()
        return subscription

    async def request(self, envelope: Envelope, reply_subject: str, *, timeout_seconds: float) -> Envelope:
        """Return the reply; NoRespondersError at once without a listener, TimeoutError without an answer."""
        with self._replies.await_reply(envelope, reply_subject) as reply:
            if not self._groups(check_subject(envelope.subject)):
                raise NoRespondersError(f"nobody listens on {envelope.subject}")
            self._publish(envelope)
            async with asyncio.timeout(timeout_seconds):
                return await reply

    async def settle(self) -> None:
        """Return when no delivery is being handled; called by a handler, it does not wait for that handler."""
        await self._deliveries.settle()

    def log(self, since: int = 0) -> Sequence[BusMessage]:
        """Return the remembered messages whose number is above `since`, oldest first."""
        return [self._message(*entry) for entry in self._log if entry[0] > since]

    def remove(self, subscription: _InProcessSubscription) -> None:
        """Deliver nothing more to `subscription`."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self._by_subject.clear()

    def _publish(self, envelope: Envelope) -> None:
        groups = self._groups(check_subject(envelope.subject))
        packed = pack(envelope.payload)
        if len(self._deliveries) + len(groups) > self._limits.deliveries:
            raise UnavailableError(f"bus: {len(self._deliveries)} deliveries are under way; nothing more is taken now")
        self._published += 1
        self._log.append((self._published, envelope, packed))
        reply = self._replies.waiting_for(envelope)
        if reply is not None:
            reply.set_result(replace(envelope, payload=unpack(packed)))
        for group in groups:
            self._deliver(self._next_of(group), replace(envelope, payload=unpack(packed)))

    def _next_of(self, group: _Group) -> _InProcessSubscription:
        if len(group) == 1:
            return group[0]
        # Each in its turn: the members of a queue share its work.
        chosen = min(group, key=lambda one: one.called)
        chosen.called = max(one.called for one in group) + 1
        return chosen

    def _groups(self, subject: str) -> tuple[_Group, ...]:
        known = self._by_subject.get(subject)
        if known is None:
            tokens = subject.split(".")
            known = _groups_of([one for one in self._subscriptions if matches(one.pattern, tokens)])
            # Subjects come from outside too: what is remembered of them is bounded.
            if len(self._by_subject) >= self._limits.logged_messages:
                self._by_subject.clear()
            self._by_subject[subject] = known
        return known

    def _deliver(self, subscription: _InProcessSubscription, envelope: Envelope) -> None:
        task = self._deliveries.start(subscription.name, subscription.handler, envelope)
        subscription.deliveries.add(task)
        task.add_done_callback(subscription.deliveries.discard)

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


def _groups_of(subscriptions: Sequence[_InProcessSubscription]) -> tuple[_Group, ...]:
    queues = {one.queue for one in subscriptions if one.queue is not None}
    alone = [(one,) for one in subscriptions if one.queue is None]
    return (*alone, *(tuple(one for one in subscriptions if one.queue == queue) for queue in sorted(queues)))
