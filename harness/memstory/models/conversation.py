"""The one loop in which a chat model asks for tools, reads what they answer, and answers; and its window."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

from memstory.contract.models import (
    ChatModel,
    ChatModelUnavailableError,
    ChatRequest,
    Message,
    PromptTooLongError,
    Reply,
    ToolRequest,
)
from memstory.contract.values import STAND_IN, ModelUse, ToolCall, ToolSchema

ROUNDS: Final = 6
"""Replies of a model that may ask for tools, in one turn."""

WINDOW_TURNS: Final = 10
NO_ANSWER: Final = "I have no answer to that."
UNANSWERED: Final = "(No answer came.)"
"""What a prompt has where a model failed: some servers refuse two messages of one speaker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """The model's last reply and the way to it; `messages` are those after the prompt, without the last reply."""

    reply: Reply
    messages: Sequence[Message]
    outcomes: Sequence[ToolCall]
    thoughts: Sequence[str]

    @property
    def answer(self) -> str:
        """Words in any case: a model that says nothing leaves the user with what the last tool said."""
        if self.reply.content.strip():
            return self.reply.content
        return (self.outcomes[-1].text if self.outcomes else "") or NO_ANSWER

    @property
    def thinking(self) -> str | None:
        """What the model thought in all replies, None if it showed nothing of that."""
        return "\n".join(self.thoughts) or None


async def converse(
    chat: ChatModel,
    prompt: Sequence[Message],
    *,
    tools: Callable[[], Sequence[ToolSchema]],
    use: Callable[[ToolRequest], Awaitable[ToolCall]],
    rounds: int = ROUNDS,
    calls: int | None = None,
    keep: Callable[[Sequence[ToolCall]], Awaitable[bool | None]],
) -> Talk:
    """Let `chat` use tools for at most `rounds` rounds; after the last it has to answer without them.

    Of each reply the first `calls` calls are made, None for all; the others are answered with an error that says so.
    Where the model fails, `keep` is given the calls until then and keeps what the user said: it returns whether it
    could, None where nothing was to be kept. The error says so.
    """
    messages, outcomes, thoughts = list[Message](), list[ToolCall](), list[str]()

    async def ask(offered: Sequence[ToolSchema]) -> Reply:
        try:
            reply = await ask_for_reply(chat, prompt, messages, offered)
        except ChatModelUnavailableError as error:
            is_kept = await keep(outcomes)
            if is_kept is None:
                raise
            # First, for the error may end with a command to type.
            raise type(error)(f"What you said is {'' if is_kept else 'not '}kept. {error}") from error
        thoughts.extend([reply.thinking] if reply.thinking else [])
        return reply

    for _ in range(rounds):
        reply = await ask(tools())
        if not reply.tool_requests:
            break
        messages.append(Message(role="assistant", content=reply.content, tool_requests=tuple(reply.tool_requests)))
        for place, request in enumerate(reply.tool_requests):
            outcome = await use(request) if calls is None or place < calls else _skip_call(request, calls)
            outcomes.append(outcome)
            messages.append(Message(role="tool", content=outcome.text, tool=outcome.name))
    else:
        thoughts.append(f"Stopped after {rounds} rounds of tool calls.")
        reply = await ask([])
    return Talk(reply=reply, messages=messages, outcomes=outcomes, thoughts=thoughts)


async def ask_for_reply(
    chat: ChatModel, prompt: Sequence[Message], talk: Sequence[Message] = (), tools: Sequence[ToolSchema] = ()
) -> Reply:
    """Return the reply to `prompt` and the `talk` after it, without the oldest turns where the model cannot read all.

    A turn begins with what the user said; the last one is what is asked now, and is never left out.
    """
    while True:
        try:
            return await chat.chat(ChatRequest([*prompt, *talk], tools))
        except PromptTooLongError:
            turns = [place for place, message in enumerate(prompt) if message.role == "user"]
            if len(turns) < 2:  # noqa: PLR2004  (there is no older one)
                raise
            prompt = [*prompt[: turns[0]], *prompt[turns[1] :]]


def _skip_call(request: ToolRequest, calls: int) -> ToolCall:
    error = f"not called: one reply may call {calls} tools (max_tool_calls); ask again for what is still needed"
    return ToolCall(name=request.name, args=request.arguments, error=error)


@dataclass(slots=True)
class Window:
    """The last turns of one session, each with its tool calls; turns of a session wait for each other."""

    turns: deque[Sequence[Message]]
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    def messages(self, characters: int | None = None) -> list[Message]:
        """Return the messages of the latest turns that fit whole into so many characters, None for all."""
        kept = list[Message]()
        for turn in reversed(self.turns):
            if characters is not None:
                characters -= sum(len(message.content) for message in turn)
                if characters < 0:
                    break
            kept[:0] = turn
        return kept


class Windows:
    """The windows of an agent by owner and session; of more than `sessions`, the one that rested longest is dropped."""

    def __init__(self, turns: int = WINDOW_TURNS, sessions: int | None = None) -> None:
        self._turns = turns
        self._sessions = sessions
        self._windows: OrderedDict[tuple[str, str | None], Window] = OrderedDict()

    def of(self, owner: str, session: str | None) -> Window:
        """Return the window of a session, a new one for a session that is not known."""
        window = self._windows.setdefault((owner, session), Window(deque(maxlen=self._turns)))
        self._windows.move_to_end((owner, session))
        while self._sessions is not None and len(self._windows) > self._sessions:
            self._windows.popitem(last=False)
        return window

    def forget(self, owner: str) -> None:
        """Empty all windows of `owner`: the model no longer sees what was said."""
        for (of, _), window in self._windows.items():
            if of == owner:
                window.turns.clear()


class CountedChat:
    """A chat model that is counted; `use` is what it was asked, None for a stand-in."""

    def __init__(self, inner: ChatModel) -> None:
        self.name = inner.name
        self.use: ModelUse | None = None if STAND_IN in inner.name.lower() else ModelUse()
        self._inner = inner

    async def chat(self, request: ChatRequest) -> Reply:
        """Return the reply of the model."""
        begun, reply = perf_counter(), None
        try:
            reply = await self._inner.chat(request)
            return reply
        finally:
            if self.use is not None:
                self.use += ModelUse.of(reply, perf_counter() - begun)
