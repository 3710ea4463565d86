"""What every bus does with a message, and the bus inside one process, with the semantics of NATS.

A payload is a JSON object of bounded size, of which every delivery gets a copy. Each delivery is a task: what a handler
raises ends nothing but that delivery. A request has one reply or none.
"""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.values import Json
from memstory_reference.bus.subjects import check_pattern, check_queue, check_subject, matches
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope, Handler, NoRespondersError

MAX_PAYLOAD_CHARACTERS = 8 << 20
"""An answer travels with the results of all its tool calls."""

MOST_DELIVERIES = 10_000
LOGGED_MESSAGES = 1_000
LOGGED_CHARACTERS = 16_384

_log = logging.getLogger(__name__)


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


Delivery = asyncio.Task[Exception | None]
"""What is being handled; the task returns what the handler raised."""


@dataclass(slots=True, kw_only=True, eq=False)
class Subscription(ABC):
    """A live subscription: who hears, and what of it is being handled."""

    name: str
    handler: Handler
    deliveries: set[Delivery] = field(default_factory=set)

    @abstractmethod
    async def unsubscribe(self) -> None:
        """Stop delivery; what is being handled is finished."""

    async def settle(self) -> None:
        """Return when what was delivered is handled; called by a handler, it does not wait for that handler.

        What waits on a server was not delivered.
        """
        await _wait_for_all(self.deliveries)


class Bus(ABC):
    """Publish and subscribe with the subjects of NATS: tokens split by dots, `*` for one, `>` for the rest.

    What was `published` here is counted; of what a handler raises, what the system raises on purpose is counted in
    `refusals`, all else in `failures`. The way that messages take is a subclass's.
    """

    def __init__(self, most_deliveries: int = MOST_DELIVERIES) -> None:
        self.published = self.refusals = self.failures = 0
        self._most_deliveries = most_deliveries
        self._deliveries: set[Delivery] = set()
        self._waiting: dict[tuple[str, str, str], asyncio.Future[Envelope]] = {}

    @abstractmethod
    async def publish(self, envelope: Envelope) -> None:
        """Deliver to every matching subscriber, each in a separate task; return at once."""

    @abstractmethod
    async def subscribe(
        self, pattern: str, handler: Handler, *, name: str, queue: str | None = None, durable: str | None = None
    ) -> Subscription:
        """Call `handler` for every matching envelope from now on; of the subscriptions of one `queue` one is called.

        A `durable` one is a queue that waits for who listens on it, where the bus outlives him: its messages come one
        after the other, each with a `request_id`, and again until the handler returns or refuses it.
        """

    @abstractmethod
    async def settle(self) -> None:
        """Return when no delivery is being handled."""

    async def request(self, envelope: Envelope, reply_subject: str, *, timeout_seconds: float) -> Envelope:
        """Return the reply; NoRespondersError at once if nobody listens, TimeoutError if nobody answers.

        A reply for another owner does not count. InputError for a request that no reply could be tied to.
        """
        if not envelope.request_id:
            raise InputError("bus: a request needs a request_id, or its reply could not be recognised")
        check_subject(envelope.subject)
        key = (check_subject(reply_subject), envelope.request_id, envelope.owner)
        if key in self._waiting:
            raise InputError(f"bus: request_id {envelope.request_id!r:.80} is already waiting on {reply_subject}")
        reply: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._waiting[key] = reply
        try:
            await self._ask(envelope, reply_subject, reply)
            async with asyncio.timeout(timeout_seconds):
                return await reply
        finally:
            del self._waiting[key]
            reply.cancel()

    @abstractmethod
    async def _ask(self, request: Envelope, reply_subject: str, reply: asyncio.Future[Envelope]) -> None:
        """Publish a request, and have what comes on `reply_subject` taken; NoRespondersError if nobody listens."""

    def _waiting_for(self, envelope: Envelope) -> asyncio.Future[Envelope] | None:
        """Return the request that an envelope answers, None if it answers none."""
        reply = self._waiting.get((envelope.subject, envelope.request_id or "", envelope.owner))
        return None if reply is None or reply.done() else reply

    def _deliver(self, subscription: Subscription, envelope: Envelope) -> Delivery:
        """Hand `envelope` to who hears, in a task; tasks begin in the order of calls."""
        task = asyncio.create_task(self._handle(subscription, envelope))
        for under_way in (self._deliveries, subscription.deliveries):
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        return task

    async def _handle(self, subscription: Subscription, envelope: Envelope) -> Exception | None:
        try:
            await subscription.handler(envelope)
        except MemstoryError as error:
            self._refuse(subscription.name, envelope.subject, error)
            return error
        except Exception as error:  # noqa: BLE001  (the rim of every handler: one bad message must not end a subscription)
            self.failures += 1
            _log.exception("%s failed on %s", subscription.name, envelope.subject)
            return error
        return None

    def _refuse(self, name: str, subject: str, error: MemstoryError) -> None:
        """Count and log a message that is not taken; the log does not hold its content."""
        self.refusals += 1
        _log.warning("%s refused a message on %s: %s", name, subject, error)

    async def _handle_all(self) -> None:
        """Return when nothing is being handled; called by a handler, it does not wait for that handler."""
        while self._deliveries - {asyncio.current_task()}:
            await _wait_for_all(self._deliveries)


async def _wait_for_all(tasks: set[Delivery]) -> None:
    """Return when all of `tasks` are done, except for the one that asks."""
    others = tasks - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)


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

    def __init__(self, most_deliveries: int = MOST_DELIVERIES) -> None:
        super().__init__(most_deliveries)
        self._subscriptions: list[_InProcessSubscription] = []
        self._by_subject: dict[str, tuple[_Group, ...]] = {}
        self._log: deque[tuple[int, Envelope, str]] = deque(maxlen=LOGGED_MESSAGES)

    async def publish(self, envelope: Envelope) -> None:
        groups = self._groups(check_subject(envelope.subject))
        packed = pack(envelope.payload)
        if len(self._deliveries) + len(groups) > self._most_deliveries:
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
            if len(self._by_subject) >= LOGGED_MESSAGES:
                self._by_subject.clear()
            self._by_subject[subject] = known
        return known

    def _message(self, number: int, envelope: Envelope, packed: str) -> BusMessage:
        long = len(packed) > LOGGED_CHARACTERS
        shown = replace(envelope, payload={"characters_of_json": len(packed)} if long else unpack(packed))
        return BusMessage(**asdict(shown), number=number)


def _groups_of(subscriptions: Sequence[_InProcessSubscription]) -> tuple[_Group, ...]:
    queues = {one.queue for one in subscriptions if one.queue is not None}
    alone = [(one,) for one in subscriptions if one.queue is None]
    return (*alone, *(tuple(one for one in subscriptions if one.queue == queue) for queue in sorted(queues)))
