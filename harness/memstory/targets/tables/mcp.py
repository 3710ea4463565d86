"""Any MCP server that a `[targets.NAME]` table maps: one for a case, for a user or for all cases."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar, Final

from memstory.contract.errors import SetupError
from memstory.contract.installation import install_command
from memstory.contract.target import Capability, Scope, ToolCall, ToolSchema, Tree
from memstory.targets.tables.replies import ServerReply
from memstory.targets.tables.servers import START_SECONDS, ServerFactory, SharedServer, launch_of
from memstory.targets.tables.table import USER_NAMES, Call, ToolTable, names_user
from memstory.targets.tables.target import TableTarget, class_for
from memstory.targets.tables.templates import Values, Variables, render

if TYPE_CHECKING:
    from memstory.targets.tables.mcp_session import McpSession


_CALL_SECONDS: Final = 30.0
_NOBODY: Final = {"user": "nobody", "user_hash": "nobody"}


class McpTransport:
    """Carries calls to the server of a table; to each user's own, if the table's command names the user."""

    def __init__(self, table: ToolTable, common: SharedServer[McpSession] | None = None) -> None:
        self.shared = "url" in table.settings
        self._table = table
        self._offered = common
        self._common: SharedServer[McpSession] | None = None
        self._is_personal = names_user(table)
        self._opening = asyncio.Lock()
        self._sessions: dict[str, McpSession] = {}
        self._values: Values = {}

    async def open(self, values: Values, options: Mapping[str, Tree]) -> None:
        """Start or reach the server, if all users have the same one."""
        self._values = values
        if self._offered is not None and self._offered.is_wanted(options):
            self._common, self.shared = self._offered, True
        if not self._is_personal:
            await self.session_of({})

    async def close(self) -> None:
        """End every session."""
        while self._sessions:
            _, session = self._sessions.popitem()
            await session.close()

    async def about(self) -> Mapping[str, str]:
        """Return what the first server says about itself."""
        return next((session.about() for session in self._sessions.values()), {})

    def describe(self, call: Call, values: Values) -> str:
        """Return the tool and its arguments."""
        args = render(call.spec.get("args"), values) or {}
        return f"{render(call.spec['tool'], values)} {json.dumps(args, ensure_ascii=False)}"

    async def call(self, call: Call, values: Values) -> ServerReply:
        """Call the tool that `call` names."""
        session = await self.session_of(values)
        return await session.call(str(render(call.spec["tool"], values)), render(call.spec.get("args"), values) or {})

    async def any_session(self) -> McpSession:
        """Return the first session, or one for nobody in particular: all of them have the same tools."""
        if self._common is not None:
            return await self._common.server()
        return next(iter(self._sessions.values()), None) or await self.session_of(_NOBODY)

    async def session_of(self, values: Values) -> McpSession:
        """Return the session with the server of the user, or of all."""
        if self._common is not None:
            return await self._common.server()
        own = {name: values[name] for name in sorted(USER_NAMES)} if self._is_personal else {}
        owner = str(own.get("user", ""))
        async with self._opening:
            if owner not in self._sessions:
                session = self._new_session({**self._values, **own})
                await session.open()
                self._sessions[owner] = session
        return self._sessions[owner]

    def _new_session(self, values: Values) -> McpSession:
        # The SDK takes a second to import: only where it was chosen.
        try:
            from memstory.targets.tables.mcp_session import HttpStreams, McpSession, PipeStreams  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise SetupError(
                f"an MCP server needs the package 'mcp', which is not installed: '{error.name}' is not here. "
                f"Install it with: {install_command('mcp')}"
            ) from error
        except ImportError as error:
            # Other packages, such as a server in the same environment, may ask for an older one.
            raise SetupError(
                f"an MCP server needs another version of the package 'mcp' than {version('mcp')}, which is installed: "
                f"{error}. Install it with: {install_command('mcp')}, in an environment without what asks for the other"
            ) from error

        settings = self._table.settings
        call_seconds = float(settings.get("call_seconds", _CALL_SECONDS))
        streams: HttpStreams | PipeStreams
        if "url" in settings:
            variables = Variables(self._table.where)
            headers = variables.headers(settings.get("headers", {}))
            streams = HttpStreams(variables.fill("url", settings["url"]), headers, call_seconds)
        else:
            streams = PipeStreams(launch_of(self._table, values))
        return McpSession(
            self._table.name,
            streams,
            start_seconds=float(settings.get("start_seconds", START_SECONDS)),
            call_seconds=call_seconds,
        )


class McpTarget(TableTarget):
    """What a table maps, and the server's own tools."""

    _transport: McpTransport

    def __init__(self, table: ToolTable, common: SharedServer[McpSession]) -> None:
        super().__init__(table, McpTransport(table, common))

    async def tools(self) -> Sequence[ToolSchema]:
        return await (await self._transport.any_session()).tools()

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        session = await self._transport.session_of(self.values(scope))
        reply = await session.call(name, args)
        if reply.problem is not None:
            return ToolCall(name=name, args=args, error=reply.problem)
        return ToolCall(name=name, args=args, result=_result(reply))


class McpFactory(ServerFactory["McpSession"]):
    """Makes targets of one table; each starts its own server, or shares the worker's or the one at the table's url."""

    name: ClassVar[str] = "mcp"

    def __init__(self, table: ToolTable) -> None:
        super().__init__(table, class_for(table, McpTarget), self._session)

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        return super().capabilities(options) | ({"tool", "tool.schema"} - self.table.cannot)

    async def _session(self, values: Values) -> McpSession:
        transport = McpTransport(self.table)
        await transport.open(values, {})
        return await transport.any_session()


def _result(reply: ServerReply) -> Tree:
    """Return what a tool answered: the text as JSON where it is JSON, as it is where not."""
    try:
        return json.loads(reply.text)
    except ValueError:
        return reply.text or reply.data
