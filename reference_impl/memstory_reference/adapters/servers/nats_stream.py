"""The stream in which a NATS server keeps what a memory is to write until that is written: JetStream."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from hashlib import blake2b

from nats import errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription
from nats.js import errors as js_errors
from nats.js.api import ConsumerConfig, DiscardPolicy, Header, RetentionPolicy, StorageType, StreamConfig

from memstory.contract.errors import MemstoryError, SetupError, UnavailableError
from memstory_reference.adapters.servers.nats_connection import START_BY, Connection
from memstory_reference.bus.subjects import RESPONSES, STREAM
from memstory_reference.ports import Envelope

ANSWER_SECONDS = 5.0
HOLD_SECONDS = 120.0
"""How long the server waits for an acknowledgement before it gives a message again."""

MOST_PAUSE_SECONDS = 30
ATTEMPTS = 5
"""How often a message is given that breaks its handler; one whose store or model is down is given until it is taken."""

Deliver = Callable[[Msg], Awaitable[None]]


class NatsStream:
    """The one stream of this project on a server. A message leaves it once it is acknowledged."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._jetstream = connection.client.jetstream(timeout=ANSWER_SECONDS)

    async def publish(self, envelope: Envelope, data: bytes) -> None:
        """Return when the server has the message on disk; UnavailableError if it is not known to have it."""
        known = {Header.MSG_ID.value: _mark(envelope)} if envelope.request_id else None
        with self._usable():
            try:
                await self._jetstream.publish(envelope.subject, data, headers=known)
            except js_errors.NoStreamResponseError as error:
                raise UnavailableError(
                    f"no memory has served on the bus at {self._connection.place} yet. Start one: "
                    "memstory-reference serve memory"
                ) from error

    async def consume(self, durable: str, deliver: Deliver) -> NatsSubscription:
        """Have `deliver` called with one message after the other, those first that were given and not acknowledged.

        Raises:
            SetupError: the server has no JetStream, or does not let this user have it.
        """
        await self._make()
        with self._usable():
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
        with self._usable():
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
        try:
            await self._jetstream.add_stream(config)
        except js_errors.ServiceUnavailableError as error:
            raise SetupError(
                f"the NATS server at {place} has no JetStream, which keeps turns until the memory has written them. "
                f"Start it with a folder: {START_BY}"
            ) from error
        except errors.TimeoutError as error:
            raise SetupError(
                f"the NATS server at {place} does not let this user have the JetStream stream '{STREAM}', or is silent;"
                " 'memstory-reference serve config' prints a configuration that does"
            ) from error
        except js_errors.APIError as error:
            raise SetupError(
                f"the NATS server at {place} does not make the stream '{STREAM}': {error.description}"
            ) from error
        except errors.Error as error:
            raise self._connection.loss() from error

    @contextlib.contextmanager
    def _usable(self) -> Iterator[None]:
        place = self._connection.place
        with self._connection.usable():
            try:
                yield
            except errors.TimeoutError as error:
                raise UnavailableError(
                    f"the bus at {place} has not said within {ANSWER_SECONDS:g} seconds that it keeps a message"
                ) from error
            except js_errors.APIError as error:
                raise UnavailableError(f"the stream of the bus at {place}: {error.description}") from error


def identified(envelope: Envelope, message: Msg) -> Envelope:
    """Return `envelope` with its own id, or else with one by its place in the stream: the same each time it comes."""
    if envelope.request_id:
        return envelope
    place = message.metadata
    return replace(envelope, request_id=f"{STREAM} {place.sequence.stream} {place.timestamp.isoformat()}")


async def acknowledge(message: Msg, error: Exception | None) -> bool:
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
