"""A small agent over a small memory, so that the stand-in is driven as in life: calls, results, answer, next turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from memstory.contract.models import ChatRequest, Message, ToolRequest
from memstory.contract.values import ToolSchema
from memstory_reference.adapters.offline_chat import OfflineChat
from memstory_reference.ports import Embedder


def tool(name: str, description: str, required: Sequence[str], **parameters: str) -> ToolSchema:
    properties = {key: {"type": "string", "description": said} for key, said in parameters.items()}
    return ToolSchema(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties, "required": list(required)},
    )


SINGLE = (
    tool("save_topic", "Remember a preference or fact for good.", ["topic", "content"], topic="Key.", content="Value."),
    tool("recall_topic", "Look up a standing fact by its key.", ["topic"], topic="Key."),
    tool("save_memory", "Note something in the middle of a conversation.", ["content"], content="What to note."),
    tool("search_memory", "Search past sessions by meaning.", ["query"], query="Words."),
)
FORGETTING = (
    tool("forget_topic", "Forget what a topic holds.", ["topic"], topic="Key."),
    tool("forget_memory", "Forget a memory.", ["memory_id"], memory_id="Id."),
)
DUAL = (
    tool("memory_recall", "Retrieve from memory, by topic or by query.", [], topic="Key.", query="Words."),
    tool("memory_save", "Save a fact to memory.", ["topic", "content"], topic="Key.", content="Value."),
)
NOTES = (
    tool("add", "Add a memory.", ["content"], content="Text."),
    tool("search", "Search memories.", ["query"], query="Words."),
    tool("get", "Get a memory by id.", ["id"], id="Id."),
)
FOREIGN = (
    ToolSchema(
        name="search_memories",
        description="Search stored memories.",
        parameters={
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "memory_type": {"type": "string"},
                "limit": {"type": "integer"},
            },
            "required": ["query"],
        },
    ),
    ToolSchema(
        name="store_memory",
        description="Store a memory.",
        parameters={
            "type": "object",
            "properties": {
                "content": {"type": "string"},
                "memory_type": {"type": "string", "enum": ["fact", "preference"]},
                "metadata": {"type": "object"},
            },
            "required": ["content", "memory_type"],
        },
    ),
    tool("forget_memory", "Forget a memory.", ["memory_id"], memory_id="Id."),
)
TOOLSETS = {
    "single": SINGLE,
    "forgetting": SINGLE + FORGETTING,
    "dual": DUAL,
    "notes": NOTES,
    "foreign": FOREIGN,
    "none": (),
}

Call = tuple[str, dict[str, object]]


@dataclass(kw_only=True)
class Talk:
    """A conversation with the stand-in. `ingests`: each turn is kept as an engram, as a memory agent does."""

    tools: Sequence[ToolSchema]
    chat: OfflineChat
    ingests: bool = True
    topics: dict[str, str] = field(default_factory=dict)
    engrams: dict[str, str] = field(default_factory=dict)
    window: list[Message] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    down: bool = False
    keeps_first: bool = False  # as a log of runs does: what a topic holds is never replaced

    def new_session(self) -> None:
        self.window.clear()

    async def say(self, text: str) -> str:
        """Return the answer; `calls` are those of this turn."""
        self.calls = []
        messages = [Message(role="system", content="You are a helpful assistant."), *self.window]
        messages.append(Message(role="user", content=text))
        for _ in range(6):
            reply = await self.chat.chat(ChatRequest(messages, self.tools))
            if not reply.tool_requests:
                break
            messages.append(Message(role="assistant", content=reply.content, tool_requests=reply.tool_requests))
            messages += [
                Message(role="tool", content=self._answer(call), tool=call.name) for call in reply.tool_requests
            ]
        else:
            pytest.fail(f"no answer after six rounds of tools: {self.calls}")
        self.window += [Message(role="user", content=text), Message(role="assistant", content=reply.content)]
        if self.ingests:
            self.keep(f"Q: {text} A: {reply.content}")
        return reply.content

    def keep(self, text: str) -> None:
        self.engrams[f"e{len(self.engrams) + 1}"] = text

    def called(self, *names: str) -> list[dict[str, object]]:
        return [arguments for name, arguments in self.calls if name in names]

    @property
    def stored(self) -> str:
        """All that a later session can find."""
        return "\n".join([*self.topics.values(), *self.engrams.values()])

    def _answer(self, call: ToolRequest) -> str:
        arguments = dict(call.arguments)
        self.calls.append((call.name, arguments))
        if self.down:
            return "Memory unavailable: the embedder does not answer"
        if "memory_id" in arguments:
            return "forgotten" if self.engrams.pop(str(arguments["memory_id"]), None) else '{"success": false}'
        if call.name == "forget_topic":
            return "forgotten" if self.topics.pop(str(arguments["topic"]), None) else '{"success": false}'
        if "content" in arguments:
            return self._save(arguments)
        if arguments.get("topic"):
            value = self.topics.get(str(arguments["topic"]))
            return f"[Memory: {arguments['topic']}] {value}" if value is not None else "No memories found."
        return self._found()

    def _found(self) -> str:
        if any("forget" in one.name for one in self.tools):
            return json.dumps([{"id": one, "content": text} for one, text in self.engrams.items()])
        lines = [f"{at}. (relevance: 0.50) 2026-05-30 {text}" for at, text in enumerate(self.engrams.values(), start=1)]
        return "\n".join(["[Memory recall — 2026-05-31]", *lines]) if lines else "No memories found."

    def _save(self, arguments: dict[str, object]) -> str:
        if "topic" in arguments:
            if self.keeps_first and arguments["topic"] in self.topics:
                return "refused: this is not stored: it is there already"
            self.topics[str(arguments["topic"])] = str(arguments["content"])
            return f"Memory saved: {arguments['topic']}"
        self.keep(str(arguments["content"]))
        return "Memory saved."


TalkWith = Callable[..., Talk]


@pytest.fixture
def talk_with() -> TalkWith:
    """Return a function that starts a conversation: `talk_with("single", embedder=None, ingests=True)`."""

    def start(toolset: str = "single", *, embedder: Embedder | None = None, ingests: bool = True) -> Talk:
        return Talk(tools=TOOLSETS[toolset], chat=OfflineChat(embedder), ingests=ingests)

    return start


@pytest.fixture
def toolsets() -> dict[str, Sequence[ToolSchema]]:
    return dict(TOOLSETS)
