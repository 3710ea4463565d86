"""A bus inside one process, with the semantics of NATS: a delivery is a task, a request has one reply or none."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from memstory.contract.errors import UnavailableError
from memstory_reference.bus.deliveries import Bus, BusLimits, Subscription, pack, unpack
from memstory_reference.bus.subjects import check_pattern, check_queue, check_subject, matches
from memstory_reference.ports import Envelope, Handler, NoRespondersError


@dataclass(frozen=True, slots=True, kw_only=True)
class BusMessage(Envelope):
    """A published message in the log; `number` counts from 1. A long payload is replaced by its size."""

    number: int


@dataclass(slots=True, kw_only=True, eq=False)
class _InProcessSubscription(Subscription):
    bus: InProcessBus
    pattern: Sequence[str]
    queue: str | None
    called: int = 0

    async def unsubscribe(self) -> None:
        self.bus.remove(self)
        await self.settle()


_Group = tuple[_InProcessSubscription, ...]
"""Subscriptions of which one gets a message: a queue, or one that is in none."""


class InProcessBus(Bus):
    """Publish, subscribe and request among the tasks of one event loop.

    A handler that raises is logged and its subscription lives on.
    """

    def __init__(self, limits: BusLimits | None = None) -> None:
        super().__init__(limits)
        self._subscriptions: list[_InProcessSubscription] = []
        self._by_subject: dict[str, tuple[_Group, ...]] = {}
        self._log: deque[tuple[int, Envelope, str]] = deque(maxlen=self._limits.logged_messages)

    async def publish(self, envelope: Envelope) -> None:
        groups = self._groups(check_subject(envelope.subject))
        packed = pack(envelope.payload)
        if len(self._deliveries) + len(groups) > self._limits.deliveries:
            raise UnavailableError(f"bus: {len(self._deliveries)} deliveries are under way; nothing more is taken now")
        self.published += 1
        self._log.append((self.published, envelope, packed))
        if reply := self._waiting_for(envelope):
            reply.set_result(replace(envelope, payload=unpack(packed)))
        for group in groups:
            self._deliver(self._next_of(group), replace(envelope, payload=unpack(packed)))

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

    async def settle(self) -> None:
        await self._handle_all()

    def log(self, since: int = 0) -> Sequence[BusMessage]:
        """Return the remembered messages whose number is above `since`, oldest first."""
        return [self._message(*entry) for entry in self._log if entry[0] > since]

    def remove(self, subscription: _InProcessSubscription) -> None:
        """Deliver nothing more to `subscription`."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self._by_subject.clear()

    async def _ask(self, request: Envelope, *_: object) -> None:
        if not self._groups(request.subject):
            raise NoRespondersError(f"nobody listens on {request.subject}")
        await self.publish(request)

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

    def _message(self, number: int, envelope: Envelope, packed: str) -> BusMessage:
        long = len(packed) > self._limits.logged_characters
        shown = replace(envelope, payload={"characters_of_json": len(packed)} if long else unpack(packed))
        return BusMessage(**asdict(shown), number=number)


def _groups_of(subscriptions: Sequence[_InProcessSubscription]) -> tuple[_Group, ...]:
    queues = {one.queue for one in subscriptions if one.queue is not None}
    alone = [(one,) for one in subscriptions if one.queue is None]
    return (*alone, *(tuple(one for one in subscriptions if one.queue == queue) for queue in sorted(queues)))
