"""Any MCP server that a `[targets.NAME]` table maps, over stdio or streamable HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from memstory.contract.clock import Clock
from memstory.contract.target import Capability, Environment, Scope, Target, TargetFactory, ToolCall, ToolSchema, Tree
from memstory.targets.mapping.able import capabilities_of
from memstory.targets.mapping.exchange import Exchange
from memstory.targets.mapping.mapped_target import MappedTarget, class_for
from memstory.targets.mapping.replies import Reply
from memstory.targets.mapping.table import Table
from memstory.targets.services.child_server import is_hosted
from memstory.targets.services.mcp_transport import AUTO, ONE_SERVER, McpTransport, OneServer, can_share


class McpTarget(MappedTarget):
    """What a table maps, and the server's own tools."""

    def __init__(self, table: Table, common: OneServer) -> None:
        self._transport = McpTransport(table)
        self._common = common
        super().__init__(Exchange(table, self._transport))

    async def open(self, env: Environment, clock: Clock) -> None:
        if self._common.is_wanted(env.options):
            self._transport.join(self._common)
        await super().open(env, clock)

    async def tools(self) -> Sequence[ToolSchema]:
        return await (await self._transport.any_session()).tools()

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        session = await self._transport.session_of(self.exchange.values(scope))
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
