"""The memories that other processes serve over a bus, as a conversation at the terminal meets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memstory.contract.values import Tree
from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.commands.terminal_bus import caller_from_terminal
from memstory_reference.commands.watched_chat import show_calls
from memstory_reference.system_memory import SystemMemory
from memstory_reference.systems.layers import process as layers
from memstory_reference.systems.topics.processes import agent_process as agent
from memstory_reference.systems.topics.processes import memory_process as memory

Show = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSystem:
    """`connect` takes the bus's address and who shows tool calls; `missing` says of a status which parts do not run."""

    connect: Callable[[str, Show], SystemMemory]
    missing: Callable[[Mapping[str, Tree]], Sequence[str]] = lambda _: ()


def _topics(address: str, show: Show) -> SystemMemory:
    remote = agent.RemoteTopics(
        agent=caller_from_terminal(address, agent.PART, agent.START_BY),
        memory=caller_from_terminal(address, memory.PART, memory.START_BY),
        show_calls=lambda outcomes: show_calls(outcomes, show),
    )
    return agent.RemoteTopicsMemory(remote, SystemClock())


def _missing_topics(status: Mapping[str, Tree]) -> list[str]:
    parts = {"topics": (memory.PART, memory.START_BY), "chat": (agent.PART, agent.START_BY)}
    return [f"no process serves {part}. Start one: {how}" for name, (part, how) in parts.items() if name not in status]


def _layers(address: str, _: Show) -> SystemMemory:
    return layers.RemoteLayersMemory(caller_from_terminal(address, layers.PART, layers.START_BY))


REMOTE: Final[Mapping[str, RemoteSystem]] = {
    "topics": RemoteSystem(connect=_topics, missing=_missing_topics),
    "layers": RemoteSystem(connect=_layers),
}
