"""The tools of the topics memory in their own process: the memory is another's, reached over the bus."""

from __future__ import annotations

from memstory.contract.clock import Clock
from memstory_reference.bus.calls import Caller
from memstory_reference.input_checks import DEFAULT_LIMITS
from memstory_reference.ports import Bus, NewId
from memstory_reference.systems.topics.processes.memory_process import PART as MEMORY
from memstory_reference.systems.topics.processes.memory_process import START_BY, RemoteMemory
from memstory_reference.systems.topics.toolset.topic_tools import Toolset, topic_tools
from memstory_reference.tooling.tools import ToolServer

PART = "tools"
OF_THE_TIME = 0.8
"""The share of a tool's time that the memory has, so that the tool can still say that it was silent."""


class ToolsPart:
    """Serves the tools; several processes may, and one of them answers each call."""

    def __init__(
        self,
        bus: Bus,
        *,
        toolset: Toolset,
        clock: Clock,
        new_id: NewId,
        tool_timeout_seconds: float,
        result_characters: int = DEFAULT_LIMITS.max_result_characters,
    ) -> None:
        caller = Caller(
            bus=bus,
            part=MEMORY,
            new_id=new_id,
            name=PART,
            start_by=START_BY,
            timeout_seconds=OF_THE_TIME * tool_timeout_seconds,
        )
        self._servers = [
            ToolServer(tool, bus, result_characters) for tool in topic_tools(RemoteMemory(caller), clock, toolset)
        ]

    async def start(self) -> None:
        """Serve and announce every tool."""
        for server in self._servers:
            await server.start()

    async def stop(self) -> None:
        """Withdraw the tools; what they are doing is finished."""
        for server in self._servers:
            await server.stop()

    async def come_back(self) -> None:
        """Announce the tools again: who asked for them meanwhile was not heard."""
        for server in self._servers:
            await server.announce()
