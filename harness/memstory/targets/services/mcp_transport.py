"""The way to an MCP server that a table names: started or reached, one for a case, for a user or for all cases."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.targets.mapping.able import USER_NAMES, names_user
from memstory.targets.mapping.replies import Reply
from memstory.targets.mapping.table import STARTING, STARTING_NAMES, Call, Table
from memstory.targets.mapping.table_reading import template_of
from memstory.targets.mapping.templates import Values, render
from memstory.targets.services.child_server import Launch
from memstory.targets.services.variables import Variables

if TYPE_CHECKING:
    from memstory.targets.services.mcp_session import McpSession

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
        from memstory.targets.services.mcp_session import McpSession  # noqa: PLC0415
        from memstory.targets.services.mcp_streams import HttpStreams, PipeStreams  # noqa: PLC0415

        settings = self._table.settings
        call_seconds = float(settings.get("call_seconds", _CALL_SECONDS))
        streams: HttpStreams | PipeStreams
        if "url" in settings:
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
