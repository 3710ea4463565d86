"""A turn in which a chat model uses the tools of a memory, which keeps what was said."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from memstory.contract.errors import UnavailableError
from memstory.contract.models import ChatModel, Message, ToolRequest
from memstory.contract.values import ToolCall, Turn
from memstory.models.conversation import NO_ANSWER, Talk, converse
from memstory_reference.errors import UNSTORED, InputError
from memstory_reference.text.sentences import tells_nothing
from memstory_reference.tooling.local_tools import LocalTools

LOG = logging.getLogger(__name__)

Store = Callable[[str | None, Sequence[ToolCall]], Awaitable[object]]
"""Stores what the user said, with the answer and the calls that led to it; None where no answer came."""


async def take_turn(
    chat: ChatModel,
    prompt: Sequence[Message],
    *,
    told: str,
    tools: LocalTools,
    calls: int,
    store: Store,
    is_apart: Callable[[ToolCall], bool],
) -> tuple[Turn, Talk]:
    """Return the answer, and how the model came to it; a model that fails raises, and what the user told is stored.

    A turn in which a call `is_apart` is not stored: what was to be forgotten is mostly named in it. Nor does one that
    cannot be stored cost the user the answer, whose notes say so.
    """

    async def use(request: ToolRequest) -> ToolCall:
        return await tools.call(request.name, request.arguments)

    async def keep(answer: str | None, used: Sequence[ToolCall]) -> list[str]:
        try:
            await store(answer, used)
        except (InputError, UnavailableError) as error:
            LOG.warning("a turn was not stored: %s", error)
            return [f"this turn was not stored: {str(error).removeprefix(UNSTORED)}"]
        return []

    async def keep_unanswered(used: Sequence[ToolCall]) -> bool | None:
        return None if tells_nothing(told) or any(map(is_apart, used)) else not await keep(None, used)

    talk = await converse(chat, prompt, tools=lambda: tools.specs, use=use, calls=calls, keep=keep_unanswered)
    answer = talk.reply.content.strip() or NO_ANSWER
    notes = [] if any(map(is_apart, talk.outcomes)) else await keep(answer, talk.outcomes)
    return Turn(answer=answer, tool_calls=talk.outcomes, notes=notes), talk
