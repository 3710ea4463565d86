"""Any MCP server that a `[targets.NAME]` table maps, over stdio or streamable HTTP."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from memstory.target import Capability, Scope, Target, TargetFactory, ToolCall, ToolSchema, Tree
from memstory.targets.mapping.able import USER_NAMES, capabilities_of, names_user
from memstory.targets.mapping.exchange import Exchange
from memstory.targets.mapping.mapped_target import MappedTarget, class_for
from memstory.targets.mapping.replies import Reply
from memstory.targets.mapping.table import STARTING, STARTING_NAMES, Call, Table
from memstory.targets.mapping.table_reading import template_of
from memstory.targets.mapping.templates import Values, render
from memstory.targets.services.child_server import Launch, is_hosted
from memstory.targets.services.variables import Variables

if TYPE_CHECKING:
    from memstory.targets.services.mcp_session import McpSession

_CALL_SECONDS: Final = 30.0
_START_SECONDS: Final = 60.0
_NOBODY: Final = {"user": "nobody", "user_hash": "nobody"}


class McpTransport:
    """Carries calls to the server of a table; to each user's own, if the table's command names the user."""

    def __init__(self, table: Table) -> None:
        self.shared = "url" in table.settings
        self._table = table
        self._is_personal = names_user(table)
        self._templates = {
            key: template_of(f"{table.where} '{key}'", table.settings[key], STARTING_NAMES)
            for key in STARTING
            if key in table.settings
        }
        self._opening = asyncio.Lock()
        self._sessions: dict[str, McpSession] = {}
        self._values: Values = {}

    async def open(self, values: Values) -> None:
        """Start or reach the server, if all users have the same one."""
        self._values = values
        if not self._is_personal:
            await self.session_of({})

    async def close(self) -> None:
        """End every session."""
        while self._sessions:
            _, session = self._sessions.popitem()
            await session.close()

    async def about(self) -> Mapping[str, str]:
        """Return what the first server says of itself."""
        return next((session.about() for session in self._sessions.values()), {})

    async def call(self, call: Call, values: Values) -> Reply:
        """Call the tool that `call` names."""
        session = await self.session_of(values)
        return await session.call(str(render(call.spec["tool"], values)), render(call.spec.get("args"), values) or {})

    async def any_session(self) -> McpSession:
        """Return the first session, or one for nobody in particular: all of them have the same tools."""
        return next(iter(self._sessions.values()), None) or await self.session_of(_NOBODY)

    async def session_of(self, values: Values) -> McpSession:
        """Return the session with the server of the user, or of all."""
        own = {name: values[name] for name in sorted(USER_NAMES)} if self._is_personal else {}
        owner = str(own.get("user", ""))
        async with self._opening:
            if owner not in self._sessions:
                session = self._new_session({**self._values, "python": sys.executable, **own})
                await session.open()
                self._sessions[owner] = session
        return self._sessions[owner]

    def _new_session(self, values: Values) -> McpSession:
        # The SDK takes a second to import: only where it was chosen.
        from memstory.targets.services.mcp_session import McpSession  # noqa: PLC0415
        from memstory.targets.services.mcp_streams import HttpStreams, PipeStreams  # noqa: PLC0415

        settings = self._table.settings
        call_seconds = float(settings.get("call_seconds", _CALL_SECONDS))
        streams: HttpStreams | PipeStreams
        if self.shared:
            variables = Variables(self._table.where)
            headers = {
                name: variables.filled(f"headers.{name}", written, is_secret=True)
                for name, written in settings.get("headers", {}).items()
            }
            streams = HttpStreams(variables.filled("url", settings["url"]), headers, call_seconds)
        else:
            streams = PipeStreams(self._launch(values))
        return McpSession(
            self._table.name,
            streams,
            start_seconds=float(settings.get("start_seconds", _START_SECONDS)),
            call_seconds=call_seconds,
        )

    def _launch(self, values: Values) -> Launch:
        command, env, cwd = (render(self._templates.get(key), values) for key in STARTING)
        return Launch(command=command, env=env or {}, cwd=Path(cwd or values["workspace"]))


class McpTarget(MappedTarget):
    """What a table maps, and the server's own tools."""

    def __init__(self, table: Table) -> None:
        self._transport = McpTransport(table)
        super().__init__(Exchange(table, self._transport))

    async def tools(self) -> Sequence[ToolSchema]:
        return await (await self._transport.any_session()).tools()

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        session = await self._transport.session_of(self.exchange.values(scope))
        reply = await session.call(name, args)
        if reply.problem is not None:
            return ToolCall(name=name, args=args, error=reply.problem)
        return ToolCall(name=name, args=args, result=_result(reply))


class McpFactory(TargetFactory):
    """Makes targets of one table; each starts a server of its own, or shares the one at the table's url."""

    name: ClassVar[str] = "mcp"

    def __init__(self, table: Table) -> None:
        self._table = table
        self._target = class_for(table, McpTarget)
        self.shares_server = "url" in table.settings

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        own = {"restart", "crash"} if "command" in self._table.settings else set()
        return (capabilities_of(self._table) | {"tool", "tool.schema"} | own) - self._table.cannot

    async def start(self, folder: Path) -> None:
        """Start a server once and end it: what it downloads at its first start costs no case its time."""
        if is_hosted():
            return
        transport = McpTransport(self._table)
        try:
            await transport.open({"workspace": str(folder / "first start"), "case": "first", "seed": 0})
            await transport.any_session()
        finally:
            await transport.close()

    def target(self) -> Target:
        return self._target(self._table)


def _result(reply: Reply) -> Tree:
    """Return what a tool answered: the text as JSON where it is JSON, as it is where not."""
    try:
        return json.loads(reply.text)
    except ValueError:
        return reply.text or reply.data
