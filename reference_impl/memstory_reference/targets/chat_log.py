"""What a system asked of its chat model, for `inspect: model`."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from memstory_reference.ports import ChatModel, Json, Message, Reply, ToolSpec

KEPT_CALLS = 1_000


class LoggedChat:
    """Counts the calls of `inner` and keeps the latest, each with what was asked and replied."""

    def __init__(self, inner: ChatModel) -> None:
        self.name = inner.name
        self._inner = inner
        self._calls = 0
        self._log: deque[dict[str, Json]] = deque(maxlen=KEPT_CALLS)

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        purpose: str = "chat",
        temperature: float | None = None,
        response_schema: Mapping[str, Json] | None = None,
    ) -> Reply:
        self._calls += 1
        entry: dict[str, Json] = {
            "call": self._calls,
            "purpose": purpose,
            "temperature": temperature,
            "messages": [asdict(message) for message in messages],
            "tools": [tool.name for tool in tools],
            "reply": None,
        }
        # Noted before the call: one that fails was made all the same.
        self._log.append(entry)
        reply = await self._inner.chat(
            messages, tools, purpose=purpose, temperature=temperature, response_schema=response_schema
        )
        entry["reply"] = asdict(reply)
        return reply

    def data(self, since: int = 0) -> dict[str, Json]:
        """Return `calls` and the `log` of the calls after call number `since`."""
        return {
            "calls": max(0, self._calls - max(since, 0)),
            "log": [entry for entry in self._log if entry["call"] > since],
        }
