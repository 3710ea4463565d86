"""The bus over a NATS server: what one process publishes reaches the subscribers of all.

Delivery is at most once, as NATS has it: what is published while nobody listens is gone. A request says so at once.
What a memory is to write is the exception: it is in a stream of JetStream's, and delivered until it is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count

from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription
from nats.js import errors as js_errors
from nats.js.api import ConsumerConfig, DiscardPolicy, Header, RetentionPolicy, StorageType, StreamConfig

from memstory.contract.errors import MemstoryError, SetupError, UnavailableError
from memstory.contract.values import Json
from memstory_reference.adapters.servers.nats_connection import ANSWER_SECONDS, START_BY, Connection
from memstory_reference.bus.bus import MOST_DELIVERIES, Bus, Subscription, pack
from memstory_reference.bus.subjects import RESPONSES, STREAM, check_pattern, check_queue, check_subject, matches
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope, Handler, NoRespondersError

NAME = "replies"
FORMAT = 1
NO_RESPONDERS = "503"
POLL_SECONDS = 0.001
CAUGHT_UP_SECONDS = 5.0
MOST_SILENCES = 6
HOLD_SECONDS = 120.0
"""How long the server waits for an acknowledgement before it gives a message again."""

MOST_PAUSE_SECONDS = 30
ATTEMPTS = 5
"""How often a message is given that breaks its handler; one whose store or model is down is given until it is taken."""


@dataclass(slots=True, kw_only=True, eq=False)
class _NatsSubscription(Subscription):
    bus: NatsBus
    inner: NatsSubscription = field(init=False)
    durable: str | None = None
    is_held_up: bool = False
    """Whether the latest message from the stream waits for a store or a model that is down."""
    latest: int | None = None
    """The place in the stream of the message that was taken last."""

    async def unsubscribe(self) -> None:
        """Stop delivery; what has reached this process is handled first."""
        await self.bus.leave(self)
        await self.settle()


class NatsBus(Bus):
    """A bus for many processes. A handler that raises is logged, and its subscription lives on.

    While `most_deliveries` are under way nothing more is handed out: the client holds what arrives, then drops it
    and logs that.
    """

    def __init__(self, connection: Connection, most_deliveries: int = MOST_DELIVERIES) -> None:
        super().__init__(most_deliveries)
        self.connection = connection
        self._client: Client = connection.client
        self._stream = NatsStream(connection)
        self._room = asyncio.Semaphore(most_deliveries)
        self._subscriptions: list[_NatsSubscription] = []
        self._inbox_subscriptions: list[NatsSubscription] = []
        self._heard: set[str] = set()
        self._inbox = self._client.new_inbox()
        self._marks: dict[str, asyncio.Future[None]] = {}
        self._asked: dict[str, asyncio.Future[Envelope]] = {}
        self._numbers = count()
        connection.when_back.append(self._hear_again)

    async def start(self) -> None:
        """Hear what the server says to us alone."""
        self._inbox_subscriptions.append(await self._client.subscribe(f"{self._inbox}.*", cb=self._to_us))

    async def publish(self, envelope: Envelope) -> None:
        await self._send(envelope)

    async def subscribe(
        self, pattern: str, handler: Handler, *, name: str, queue: str | None = None, durable: str | None = None
    ) -> _NatsSubscription:
        """Do as any bus does; SetupError for a `durable` one on a server without JetStream."""
        subject, group = ".".join(check_pattern(pattern)), check_queue(queue) or ""
        subscription = _NatsSubscription(bus=self, name=name, handler=handler, durable=check_queue(durable))

        async def deliver(message: Msg) -> None:
            await self._take(subscription, message)

        if durable:
            await self._consume(subscription, durable)
        else:
            with self.connection.usable():
                subscription.inner = await self._client.subscribe(subject, queue=group, cb=deliver)
        self._subscriptions.append(subscription)
        # From here on the subscription is in force.
        await self._caught_up()
        return subscription

    async def settle(self) -> None:
        """Return when nothing that has reached the server by now is being handled here."""
        while True:
            published = self.published
            await self._caught_up()
            while any(one.inner.pending_msgs for one in self._subscriptions):  # noqa: ASYNC110  (nats-py has no event)
                await asyncio.sleep(POLL_SECONDS)
            await self._handle_all()
            for one in self._subscriptions:
                await self._settle_stream(one)
            # A handler may have published, and what it published may come back to us: once more.
            if published == self.published:
                return

    async def close(self) -> None:
        """Take nothing more, finish what is being handled, send what is written, and leave the server."""
        for subscription in list(self._subscriptions):
            await subscription.unsubscribe()
        await self._handle_all()
        await self._caught_up()
        for heard in self._inbox_subscriptions:
            # Where no server is, nats-py (2.16) would close without them, and they would listen forever.
            with contextlib.suppress(errors.Error):
                await heard.unsubscribe()
        await self.connection.close()

    async def leave(self, subscription: _NatsSubscription) -> None:
        """Take what the server has sent, and let it send no more."""
        if subscription not in self._subscriptions:
            return
        self._subscriptions.remove(subscription)
        try:
            await subscription.inner.drain()  # type: ignore[no-untyped-call]
        except errors.Error:
            # No connection: there is nobody who could send more.
            if not self._client.is_closed:
                await subscription.inner.unsubscribe()

    async def _ask(self, request: Envelope, reply_subject: str, reply: asyncio.Future[Envelope]) -> None:
        inbox = f"{self._inbox}.{next(self._numbers)}"
        self._asked[inbox] = reply
        reply.add_done_callback(lambda _: self._asked.pop(inbox))
        if reply_subject not in self._heard:
            with self.connection.usable():
                self._inbox_subscriptions.append(await self._client.subscribe(reply_subject, cb=self._on_reply))
            self._heard.add(reply_subject)
        await self._send(request, inbox)

    async def _send(self, envelope: Envelope, inbox: str = "") -> None:
        subject, data = check_subject(envelope.subject), to_bytes(envelope)
        if len(data) > self._client.max_payload:
            raise InputError(
                f"bus: a message of {len(data)} bytes on {subject}; the server at {self.connection.place} takes "
                f"{self._client.max_payload}. Send less, or raise max_payload in the server's configuration"
            )
        if not inbox and matches(RESPONSES.split("."), subject.split(".")):
            await self._stream.publish(envelope, data)
        else:
            with self.connection.usable():
                await self._client.publish(subject, data, reply=inbox)
        self.published += 1

    async def _caught_up(self) -> None:
        """Return when the server has all that was sent, and this process all that the server has; or none is there.

        A message to ourselves shows it: nats-py's own `flush` overtakes what was published just before (2.16).
        """
        inbox = f"{self._inbox}.{next(self._numbers)}"
        mark = self._marks[inbox] = asyncio.get_running_loop().create_future()
        try:
            with contextlib.suppress(UnavailableError, TimeoutError), self.connection.usable():
                await self._client.publish(inbox)
                async with asyncio.timeout(CAUGHT_UP_SECONDS):
                    await mark
        finally:
            del self._marks[inbox]

    async def _on_reply(self, message: Msg) -> None:
        envelope = self._read(NAME, message)
        if envelope is not None and (reply := self._waiting_for(envelope)):
            reply.set_result(envelope)

    async def _to_us(self, message: Msg) -> None:
        """Take what comes to the inbox: our own mark, or the server's word that nobody listens."""
        mark = self._marks.get(message.subject)
        if mark is not None and not mark.done():
            mark.set_result(None)
        reply = self._asked.get(message.subject)
        if reply is not None and not reply.done() and _is_unheard(message):
            reply.set_exception(NoRespondersError("nobody listens on the subject of the request"))

    async def _take(self, subscription: _NatsSubscription, message: Msg) -> None:
        if message.subject.startswith(f"{self._inbox}."):
            # A listener on everything may get the server's message instead of the inbox.
            await self._to_us(message)
            return
        envelope = self._read(subscription.name, message)
        if envelope is None:
            return
        await self._room.acquire()
        self._deliver(subscription, envelope).add_done_callback(lambda _: self._room.release())

    async def _consume(self, subscription: _NatsSubscription, durable: str) -> None:
        """Hear the stream, as its only listener."""

        async def deliver(message: Msg) -> None:
            envelope, error = self._read(subscription.name, message), None
            place = message.metadata.sequence.stream
            # What the server did not hear us acknowledge comes again.
            if envelope is not None and place != subscription.latest:
                error = await self._deliver(subscription, _identified(envelope, message))
            is_done = await _acknowledge(message, error)
            subscription.is_held_up, subscription.latest = not is_done, place if is_done else None

        subscription.inner = await self._stream.consume(durable, deliver)

    async def _settle_stream(self, subscription: _NatsSubscription) -> None:
        """Return when all is taken, or waits for a store that is down, which may be long; or no server is there.

        Raises:
            UnavailableError: the server is there, and its stream is silent however often it is asked.
        """
        silences = 0
        while subscription.durable and not subscription.is_held_up and self._client.is_connected:
            try:
                if await self._stream.is_done():
                    return
            except UnavailableError:
                # A server whose disk is busy is slow to say so, and has not settled.
                silences += 1
                if silences == MOST_SILENCES and self._client.is_connected:
                    raise
            await asyncio.sleep(POLL_SECONDS)

    async def _hear_again(self) -> None:
        """Hear the stream of a server that was away, which may be another one now."""
        for one in self._subscriptions:
            if one.durable:
                await one.inner.unsubscribe()
                await self._consume(one, one.durable)

    def _read(self, name: str, message: Msg) -> Envelope | None:
        try:
            return from_bytes(check_subject(message.subject), message.data)
        except InputError as error:
            self._refuse(name, message.subject, error)
            return None


class NatsStream:
    """The one stream of this project on a server. A message leaves it once it is acknowledged."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._jetstream = connection.client.jetstream(timeout=ANSWER_SECONDS)

    async def publish(self, envelope: Envelope, data: bytes) -> None:
        """Return when the server has the message on disk; UnavailableError if it is not known to have it."""
        known = {Header.MSG_ID.value: _mark(envelope)} if envelope.request_id else None
        with self._connection.usable():
            try:
                await self._jetstream.publish(envelope.subject, data, headers=known)
            except js_errors.NoStreamResponseError as error:
                raise UnavailableError(
                    f"no memory has served on the bus at {self._connection.place} yet. Start one: "
                    "memstory-reference serve memory"
                ) from error

    async def consume(self, durable: str, deliver: Callable[[Msg], Awaitable[None]]) -> NatsSubscription:
        """Have `deliver` called with one message after the other, those first that were given and not acknowledged.

        Raises:
            SetupError: the server has no JetStream, or does not let this user have it.
        """
        await self._make()
        with self._connection.usable():
            # Made anew: what a process that died had in its hands comes at once, not when the server has waited.
            with contextlib.suppress(js_errors.NotFoundError):
                await self._jetstream.delete_consumer(STREAM, durable)
            config = ConsumerConfig(name=durable, durable_name=durable, ack_wait=HOLD_SECONDS, max_ack_pending=1)
            return await self._jetstream.subscribe(
                RESPONSES, stream=STREAM, durable=durable, cb=deliver, manual_ack=True, config=config
            )

    async def is_done(self) -> bool:
        """Say whether everything in the stream is acknowledged."""
        # The stream, not the consumer: that one does not count yet what was stored a moment ago.
        with self._connection.usable():
            info = await self._jetstream.stream_info(STREAM)
        return not info.state.messages

    async def _make(self) -> None:
        config = StreamConfig(
            name=STREAM,
            subjects=[RESPONSES],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.FILE,
            # A full stream takes nothing more, and says so: what was acknowledged is not dropped for what is new.
            discard=DiscardPolicy.NEW,
        )
        place = self._connection.place
        with self._connection.usable():
            try:
                await self._jetstream.add_stream(config)
            except js_errors.ServiceUnavailableError as error:
                raise SetupError(
                    f"the NATS server at {place} has no JetStream, which keeps turns until the memory has written "
                    f"them. Start it with a folder: {START_BY}"
                ) from error
            except errors.TimeoutError as error:
                raise SetupError(
                    f"the NATS server at {place} does not let this user have the JetStream stream '{STREAM}', or is "
                    "silent; 'memstory-reference serve config' prints a configuration that does"
                ) from error
            except js_errors.APIError as error:
                raise SetupError(
                    f"the NATS server at {place} does not make the stream '{STREAM}': {error.description}"
                ) from error


def _identified(envelope: Envelope, message: Msg) -> Envelope:
    """Return `envelope` with its own id, or else with one by its place in the stream: the same each time it comes."""
    if envelope.request_id:
        return envelope
    place = message.metadata
    return replace(envelope, request_id=f"{STREAM} {place.sequence.stream} {place.timestamp.isoformat()}")


async def _acknowledge(message: Msg, error: Exception | None) -> bool:
    """Tell the server what became of a message; return whether it is done with."""
    attempts = message.metadata.num_delivered
    is_refused = isinstance(error, MemstoryError) and not isinstance(error, UnavailableError)
    is_done = error is None or is_refused or (not isinstance(error, UnavailableError) and attempts >= ATTEMPTS)
    # Where the server is not there to hear it, it gives the message again, and the memory knows that it has it.
    with contextlib.suppress(errors.Error):
        if is_done:
            await message.ack_sync(timeout=ANSWER_SECONDS)
        else:
            await message.nak(delay=min(attempts, MOST_PAUSE_SECONDS))
    return is_done


def _mark(envelope: Envelope) -> str:
    # An owner may hold any letters, a header may not; and the id of one owner's message is not another's.
    told = json.dumps([envelope.owner, envelope.request_id])
    return blake2b(told.encode(), digest_size=16).hexdigest()


def _is_unheard(message: Msg) -> bool:
    return not message.data and (message.headers or {}).get("Status") == NO_RESPONDERS


def to_bytes(envelope: Envelope) -> bytes:
    """Return all of `envelope` but its subject, which the server carries; InputError if it is not a JSON object.

    Nothing stands in headers: an owner may hold any letters.
    """
    head = json.dumps(
        {
            "format": FORMAT,
            "publisher": envelope.publisher,
            "owner": envelope.owner,
            "request_id": envelope.request_id,
        }
    )
    # Half a surrogate pair is JSON, if no text: it arrives as it was sent, as it does inside one process.
    return f'{head[:-1]}, "payload": {pack(envelope.payload)}}}'.encode("utf-8", "surrogatepass")


def from_bytes(subject: str, data: bytes) -> Envelope:
    """Return the envelope that arrived on `subject`; InputError if no bus of ours wrote it."""
    try:
        message: Json = json.loads(data.decode("utf-8", "surrogatepass"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"bus: {len(data)} bytes that are not JSON ({type(error).__name__})") from error
    if not isinstance(message, dict) or message.get("format") != FORMAT:
        raise InputError(f"bus: no envelope of format {FORMAT}")
    publisher, owner, request_id = (message.get(key) for key in ("publisher", "owner", "request_id"))
    payload = message.get("payload")
    if not isinstance(publisher, str) or not isinstance(owner, str) or not isinstance(payload, dict):
        raise InputError("bus: an envelope has 'publisher' and 'owner', both text, and 'payload', an object")
    if request_id is not None and not isinstance(request_id, str):
        raise InputError("bus: request_id is text or null")
    return Envelope(subject=subject, payload=payload, publisher=publisher, owner=owner, request_id=request_id)


async def open_nats_bus(address: str, name: str, most_deliveries: int = MOST_DELIVERIES) -> NatsBus:
    """Return a bus on the NATS server at `address`; `name` is what the server's monitoring shows.

    Raises:
        InputError: this is not an address.
        SetupError: no server answers there, or it does not take us.
    """
    connection = Connection(address, name)
    await connection.open()
    bus = NatsBus(connection, most_deliveries)
    await bus.start()
    return bus
