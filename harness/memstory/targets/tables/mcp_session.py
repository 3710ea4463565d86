"""What an MCP session reads from and writes to: our own server by its pipes, or one elsewhere by HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any, Final, Protocol, TypeAlias

import anyio
import httpx2
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from httpx2 import HTTPError
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from memstory.contract.errors import TargetError
from memstory.contract.target import ToolSchema, Tree
from memstory.targets.child_server import ChildServer, Launch
from memstory.targets.tables.replies import ServerReply

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
                await self._server.close()
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


_BROKEN: Final = frozenset({mcp_types.CONNECTION_CLOSED, mcp_types.REQUEST_TIMEOUT})
_HANDSHAKE: Final = "legacy"
"""`initialize`, which every server knows; the newer `server/discover` ends servers with an SDK of 2025."""

_LEAVE_SECONDS: Final = 5.0
_FAILURES: Final = (MCPError, ValidationError, RuntimeError, OSError, HTTPError, ExceptionGroup)
"""What the SDK raises for a server that does not answer, or answers what is not MCP."""


class McpSession:
    """One connection to one server; `name` begins every message."""

    has_failed: bool
    """Whether a call got no answer: others should not count on this server."""

    def __init__(self, name: str, streams: Streams, *, start_seconds: float, call_seconds: float) -> None:
        self.has_failed = False
        self._name = name
        self._streams = streams
        self._start_seconds = start_seconds
        self._call_seconds = call_seconds
        self._client: asyncio.Future[Client] | None = None
        self._leave = asyncio.Event()
        self._living: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect; TargetError if the server does not answer in time."""
        self._client = asyncio.get_running_loop().create_future()
        self._living = asyncio.create_task(self._live(self._client))
        either: set[asyncio.Future[Any]] = {self._client, self._living}
        try:
            # Not `await self._client`: to give up waiting would cancel what is waited for.
            done, _ = await asyncio.wait(either, timeout=self._start_seconds, return_when=asyncio.FIRST_COMPLETED)
            if self._living in done:
                await self._living
        except BaseException:
            await self.close()
            raise
        if not done:
            words = self._ending()
            await self.close()
            late = f"did not come up within {self._start_seconds:g} s; 'start_seconds' can give it longer"
            raise TargetError(f"{self._name}: the server {late}{words}")

    async def close(self) -> None:
        """Disconnect; our own server is ended."""
        if self._living is None or self._client is None:
            return
        self._leave.set()
        if self._client.done():
            await asyncio.wait([self._living], timeout=_LEAVE_SECONDS)
        # What hangs in the handshake, or does not leave by itself, is made to; its server is ended all the same.
        self._living.cancel()
        await asyncio.wait([self._living])

    async def tools(self) -> Sequence[ToolSchema]:
        """Return all tools of the server."""
        found: list[ToolSchema] = []
        cursor: str | None = None
        try:
            while True:
                page = await self._connect().list_tools(cursor=cursor)
                found += [
                    ToolSchema(name=one.name, description=one.description or "", parameters=one.input_schema)
                    for one in page.tools
                ]
                cursor = page.next_cursor
                if cursor is None:
                    return found
        except _FAILURES as error:
            raise TargetError(f"{self._name}: its tools cannot be listed: {_message(error)}{self._ending()}") from error

    async def call(self, tool: str, args: Mapping[str, Tree]) -> ServerReply:
        """Return what the tool answers; an error that the server tells is the reply's problem.

        Raises:
            TargetError: no answer, or none that is MCP.
        """
        try:
            answer = await self._connect().call_tool(tool, dict(args), read_timeout_seconds=self._call_seconds)
        except MCPError as error:
            if error.code in _BROKEN:
                self.has_failed = True
                raise TargetError(f"{self._name}: '{tool}' got no answer: {error.message}{self._ending()}") from error
            return ServerReply(text="", problem=error.message)
        except _FAILURES as error:
            raise TargetError(f"{self._name}: '{tool}' answered what is not MCP: {_message(error)}") from error
        text = "\n".join(part.text for part in answer.content if isinstance(part, mcp_types.TextContent))
        if answer.is_error:
            return ServerReply(text="", problem=text or "the tool failed without a word")
        return ServerReply(text=text, data=answer.structured_content)

    def about(self) -> Mapping[str, str]:
        """Return the server's name and version, and how much it printed where only messages belong."""
        info = self._connect().server_info
        said = {"server": f"{info.name} {info.version}"} if info is not None else {}
        noise = self._streams.noise
        return {**said, **({"noise on stdout": f"{noise} lines"} if noise else {})}

    async def _live(self, client: asyncio.Future[Client]) -> None:
        info = mcp_types.Implementation(name="memstory", version=version("memstory"))
        try:
            async with Client(self._streams.transport(), client_info=info, mode=_HANDSHAKE) as connected:
                client.set_result(connected)
                await self._leave.wait()
        except _FAILURES as error:
            # Once it was up, whatever broke was told by the call that it broke.
            if not client.done():
                raise TargetError(
                    f"{self._name}: the server did not come up: {_message(error)}{self._ending()}"
                ) from error

    def _connect(self) -> Client:
        if self._client is None or not self._client.done() or self._living is None or self._living.done():
            raise TargetError(f"{self._name}: the server is not connected{self._ending()}")
        return self._client.result()

    def _ending(self) -> str:
        words = self._streams.last_words()
        return f"; {words}" if words else ""


def _message(error: BaseException) -> str:
    """Return what an error says; of a group, what its parts say."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(map(_message, error.exceptions)))
    if isinstance(error, MCPError):
        return error.message
    return f"{type(error).__name__}: {error}".removesuffix(": ")
