"""What an MCP session reads from and writes to: our own server by its pipes, or one elsewhere by HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol, TypeAlias

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from memstory.targets.services.child_server import ChildServer, Launch

_LONGEST_NOISE: Final = 200

Incoming: TypeAlias = "SessionMessage | Exception"
Pair: TypeAlias = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


class Streams(Protocol):
    """Where a session's messages come from and go to; `noise` counts the lines that were none."""

    noise: int

    def transport(self) -> AbstractAsyncContextManager[Pair]:
        """Connect for as long as the context is open."""
        ...

    def last_words(self) -> str:
        """Return what the server last printed, if that can be known."""
        ...


class PipeStreams:
    """Our own server. Lines on its standard output that are not messages are counted, and harm nothing."""

    def __init__(self, launch: Launch) -> None:
        self.noise = 0
        self._last_noise = ""
        self._server = ChildServer(launch)

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Pair]:
        """Start the server, and end it when the context is left."""
        to_session, incoming = anyio.create_memory_object_stream[Incoming](0)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        busy: list[asyncio.Task[None]] = []
        try:
            await self._server.start()
            busy.append(asyncio.create_task(self._read(to_session)))
            busy.append(asyncio.create_task(self._write(from_session, to_session)))
            yield incoming, outgoing
        finally:
            for task in busy:
                task.cancel()
            try:
                await self._server.stop()
            finally:
                for stream in (to_session, incoming, outgoing, from_session):
                    stream.close()

    def last_words(self) -> str:
        """Return how the server ended, what it printed on standard error, and its last line that was no message."""
        said = self._server.last_words()
        if not self.noise:
            return said
        noise = f"lines on its standard output that are not messages: {self.noise}, the last: {self._last_noise}"
        return f"{noise}; {said}" if said else noise

    async def _read(self, to_session: MemoryObjectSendStream[Incoming]) -> None:
        # The end of the stream tells the session that the server has gone.
        with to_session, contextlib.suppress(ConnectionError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while line := await self._server.reader.readline():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    if words := line.decode("utf-8", "replace").strip():
                        self.noise += 1
                        self._last_noise = words[:_LONGEST_NOISE]
                    continue
                await to_session.send(SessionMessage(message))
            await self._server.settle()

    async def _write(
        self, from_session: MemoryObjectReceiveStream[SessionMessage], to_session: MemoryObjectSendStream[Incoming]
    ) -> None:
        try:
            async for sent in from_session:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._server.writer.write(f"{line}\n".encode())
                await self._server.writer.drain()
        except ConnectionError:
            # Nobody reads: without this, a call would wait for an answer that cannot come.
            to_session.close()


class HttpStreams:
    """A server elsewhere, by streamable HTTP."""

    def __init__(self, url: str, headers: Mapping[str, str], seconds: float) -> None:
        self.noise = 0
        self._url = url
        self._headers = dict(headers)
        self._seconds = seconds

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Pair]:
        """Connect, and end the session when the context is left."""
        async with (
            httpx2.AsyncClient(headers=self._headers, timeout=self._seconds) as client,
            streamable_http_client(self._url, http_client=client) as streams,
        ):
            yield streams  # type: ignore[misc]  # the SDK types them by protocols that these streams fulfil

    def last_words(self) -> str:
        """Return where it was asked: what it prints stays with it."""
        return f"it was asked at {self._url}"
