"""Any MCP server that a `[targets.NAME]` table maps: one for a case, for a user or for all cases."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.errors import SetupError
from memstory.contract.target import Capability, Environment, Scope, Target, TargetFactory, ToolCall, ToolSchema, Tree
from memstory.targets.child_server import Launch, is_hosted
from memstory.targets.tables.reading import template_of
from memstory.targets.tables.replies import Reply
from memstory.targets.tables.table import STARTING, STARTING_NAMES, USER_NAMES, Call, Table, capabilities_of, names_user
from memstory.targets.tables.target import TableTarget, class_for
from memstory.targets.tables.templates import Values, Variables, render

if TYPE_CHECKING:
    from memstory.targets.tables.mcp_session import McpSession


_CALL_SECONDS: Final = 30.0
_START_SECONDS: Final = 60.0
ONE_SERVER: Final = "one_server"
"""The option, and the key of a table, by which all cases of a worker use one server."""

AUTO: Final = "auto"
"""Its value by which those cases do that can."""

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
        self._common: OneServer | None = None

    def join(self, common: OneServer) -> None:
        """Talk to a server that other cases use too."""
        self._common, self.shared = common, True

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
        """Return what the first server says about itself."""
        return next((session.about() for session in self._sessions.values()), {})

    async def call(self, call: Call, values: Values) -> Reply:
        """Call the tool that `call` names."""
        session = await self.session_of(values)
        return await session.call(str(render(call.spec["tool"], values)), render(call.spec.get("args"), values) or {})

    async def any_session(self) -> McpSession:
        """Return the first session, or one for nobody in particular: all of them have the same tools."""
        if self._common is not None:
            return await self._common.session()
        return next(iter(self._sessions.values()), None) or await self.session_of(_NOBODY)

    async def session_of(self, values: Values) -> McpSession:
        """Return the session with the server of the user, or of all."""
        if self._common is not None:
            return await self._common.session()
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
        from memstory.targets.tables.mcp_session import HttpStreams, McpSession, PipeStreams  # noqa: PLC0415

        settings = self._table.settings
        call_seconds = float(settings.get("call_seconds", _CALL_SECONDS))
        streams: HttpStreams | PipeStreams
        if "url" in settings:
            variables = Variables(self._table.where)
            headers = {
                name: variables.fill(f"headers.{name}", written, is_secret=True)
                for name, written in settings.get("headers", {}).items()
            }
            streams = HttpStreams(variables.fill("url", settings["url"]), headers, call_seconds)
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


class OneServer:
    """A server that all cases of a worker use; where it has ended, the next case starts it again."""

    def __init__(self, table: Table) -> None:
        self.folder = Path()
        self._table = table
        self._transport: McpTransport | None = None
        self._starting = asyncio.Lock()

    def is_wanted(self, options: Mapping[str, Tree]) -> bool:
        """Return whether cases with these options share a server; SetupError for a value that is not allowed."""
        return self.setting(options) is True

    def setting(self, options: Mapping[str, Tree]) -> Tree:
        """Return true, false or `AUTO`."""
        found = options.get(ONE_SERVER, self._table.settings.get(ONE_SERVER, False))
        if not isinstance(found, bool) and found != AUTO:
            raise SetupError(f"{self._table.name}: the option {ONE_SERVER} is true, false or auto, not {found!r}")
        if found and not can_share(self._table):
            said = f"{ONE_SERVER} cannot be {str(found).lower()}"
            raise SetupError(f"{self._table.where} starts a server for each user, so that {said}")
        return found

    async def session(self) -> McpSession:
        """Return the session with it."""
        async with self._starting:
            if self._transport is not None and (await self._transport.any_session()).has_failed:
                await self.close()
            if self._transport is None:
                transport = McpTransport(self._table)
                await transport.open({"workspace": str(self.folder / "one server"), "case": "all", "seed": 0})
                self._transport = transport
            return await self._transport.any_session()

    async def close(self) -> None:
        """End it."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()


def can_share(table: Table) -> bool:
    """Return whether several cases can use one server of this table: a command that is not a user's own."""
    return "command" in table.settings and not names_user(table)


class McpTarget(TableTarget):
    """What a table maps, and the server's own tools."""

    _transport: McpTransport

    def __init__(self, table: Table, common: OneServer) -> None:
        super().__init__(table, McpTransport(table))
        self._common = common

    async def open(self, env: Environment, clock: Clock) -> None:
        if self._common.is_wanted(env.options):
            self._transport.join(self._common)
        await super().open(env, clock)

    async def tools(self) -> Sequence[ToolSchema]:
        return await (await self._transport.any_session()).tools()

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        session = await self._transport.session_of(self.values(scope))
        reply = await session.call(name, args)
        if reply.problem is not None:
            return ToolCall(name=name, args=args, error=reply.problem)
        return ToolCall(name=name, args=args, result=_result(reply))


class McpFactory(TargetFactory):
    """Makes targets of one table; each starts its own server, or shares the worker's or the one at the table's url."""

    name: ClassVar[str] = "mcp"

    def __init__(self, table: Table) -> None:
        self._table = table
        self._target = class_for(table, McpTarget)
        self._common = OneServer(table)

    def shares(self, options: Mapping[str, Tree]) -> bool:
        return "url" in self._table.settings or self._common.is_wanted(options)

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        own: set[Capability] = {f"option.{ONE_SERVER}"} if can_share(self._table) else set()
        lost: set[Capability] = set()
        if "url" not in self._table.settings and not self._common.is_wanted(options):
            own |= {"restart", "crash"}
        elif "command" in self._table.settings:
            # A server that others use cannot be ended to see what it kept.
            lost |= {"persistent"}
        return (capabilities_of(self._table) | {"tool", "tool.schema"} | own) - lost - self._table.cannot

    def suited(self, options: Mapping[str, Tree], needs: frozenset[Capability]) -> Mapping[str, Tree]:
        if self._common.setting(options) != AUTO:
            return options
        shared = {**options, ONE_SERVER: True}
        lost = self.abilities(options) - self.abilities(shared)
        return shared if needs.isdisjoint(lost) else options

    async def start(self, folder: Path) -> None:
        """Start a server once and end it: what it downloads at its first start costs no case its time."""
        self._common.folder = folder
        if is_hosted():
            return
        if self._common.is_wanted({}):
            await self._common.session()
            return
        transport = McpTransport(self._table)
        try:
            await transport.open({"workspace": str(folder / "first start"), "case": "first", "seed": 0})
            await transport.any_session()
        finally:
            await transport.close()

    def target(self) -> Target:
        return self._target(self._table, self._common)

    async def stop(self) -> None:
        await self._common.close()


def _result(reply: Reply) -> Tree:
    """Return what a tool answered: the text as JSON where it is JSON, as it is where not."""
    try:
        return json.loads(reply.text)
    except ValueError:
        return reply.text or reply.data
