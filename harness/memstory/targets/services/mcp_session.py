"""One MCP session by the official SDK, over stdio or streamable HTTP; import it only where MCP was chosen.

The SDK's cancel scopes must be left in the task that entered them, so a session runs in its own task,
separate from the tasks that open, call and close it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import mcp_types
from httpx2 import HTTPError
from mcp import Client, MCPError
from pydantic import ValidationError

from memstory.contract.errors import TargetError
from memstory.contract.target import ToolSchema, Tree
from memstory.targets.mapping.replies import Reply
from memstory.targets.services.mcp_streams import Streams

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
            words = self._words()
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
                page = await self._connected().list_tools(cursor=cursor)
                found += [
                    ToolSchema(name=one.name, description=one.description or "", parameters=one.input_schema)
                    for one in page.tools
                ]
                cursor = page.next_cursor
                if cursor is None:
                    return found
        except _FAILURES as error:
            raise TargetError(f"{self._name}: its tools cannot be listed: {_said(error)}{self._words()}") from error

    async def call(self, tool: str, args: Mapping[str, Tree]) -> Reply:
        """Return what the tool answers; an error that the server tells is the reply's problem.

        Raises:
            TargetError: no answer, or none that is MCP.
        """
        try:
            answer = await self._connected().call_tool(tool, dict(args), read_timeout_seconds=self._call_seconds)
        except MCPError as error:
            if error.code in _BROKEN:
                self.has_failed = True
                raise TargetError(f"{self._name}: '{tool}' got no answer: {error.message}{self._words()}") from error
            return Reply(text="", problem=error.message)
        except _FAILURES as error:
            raise TargetError(f"{self._name}: '{tool}' answered what is not MCP: {_said(error)}") from error
        text = "\n".join(part.text for part in answer.content if isinstance(part, mcp_types.TextContent))
        if answer.is_error:
            return Reply(text="", problem=text or "the tool failed without a word")
        return Reply(text=text, data=answer.structured_content)

    def about(self) -> Mapping[str, str]:
        """Return the server's name and version, and how much it printed where only messages belong."""
        info = self._connected().server_info
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
                raise TargetError(f"{self._name}: the server did not come up: {_said(error)}{self._words()}") from error

    def _connected(self) -> Client:
        if self._client is None or not self._client.done() or self._living is None or self._living.done():
            raise TargetError(f"{self._name}: the server is not connected{self._words()}")
        return self._client.result()

    def _words(self) -> str:
        words = self._streams.last_words()
        return f"; {words}" if words else ""


def _said(error: BaseException) -> str:
    """Return what an error says; of a group, what its parts say."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(map(_said, error.exceptions)))
    if isinstance(error, MCPError):
        return error.message
    return f"{type(error).__name__}: {error}".removesuffix(": ")
