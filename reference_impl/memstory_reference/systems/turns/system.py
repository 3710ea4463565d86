"""The turns system while it runs: one memory, and a conversation for each owner and session."""

from __future__ import annotations

from collections.abc import Sequence

from memstory.contract.clock import Clock
from memstory.contract.models import ChatModel, Message
from memstory.contract.values import ToolCall, ToolSchema
from memstory_reference.systems.turns.loop import TurnsAgent, TurnsAnswer
from memstory_reference.systems.turns.memory_tools import SPECS, TurnsTools
from memstory_reference.systems.turns.service import TurnsService

KEPT_CONVERSATIONS = 1_000


class TurnsSystem:
    """A memory with three tools and an agent that talks."""

    def __init__(self, *, memory: TurnsService, chat: ChatModel, clock: Clock) -> None:
        self.memory = memory
        self.chat = chat
        self._clock = clock
        self._conversations: dict[tuple[str, str], TurnsAgent] = {}

    async def close(self) -> None:
        """Release the memory."""
        await self.memory.close()

    async def say(self, text: str, *, owner: str, session: str) -> TurnsAnswer:
        """Take one turn of a conversation."""
        return await self._conversation(owner, session).process(text)

    async def window(self, owner: str, session: str) -> Sequence[Message]:
        """Return the turns that the next prompt of a conversation will hold, oldest first."""
        return await self._conversation(owner, session).window()

    def tools(self) -> Sequence[ToolSchema]:
        """Return the tools as a model sees them."""
        return SPECS

    async def call_tool(self, name: str, arguments: object, *, owner: str, session: str | None = None) -> ToolCall:
        """Call a tool for an owner; what is wrong with the call is the answer, in words."""
        return await TurnsTools(self.memory, owner, session).call(name, arguments)

    def not_stored(self, owner: str) -> int:
        """Count the finished turns of an owner that were not remembered."""
        return sum(one.not_stored for (whose, _), one in self._conversations.items() if whose == owner)

    def _conversation(self, owner: str, session: str) -> TurnsAgent:
        key = (owner, session)
        conversation = self._conversations.pop(key, None) or TurnsAgent(
            memory=self.memory, chat=self.chat, clock=self._clock, owner=owner, session=session
        )
        # The latest stands last; the one that was silent longest goes first.
        self._conversations[key] = conversation
        if len(self._conversations) > KEPT_CONVERSATIONS:
            del self._conversations[next(iter(self._conversations))]
        return conversation
