"""The stand-in itself: reads a conversation, calls tools, answers. No language model is behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memstory_reference.adapters.offline_chat import answers, plans
from memstory_reference.adapters.offline_chat.conversation import Conversation, read_conversation
from memstory_reference.adapters.offline_chat.questions import Question
from memstory_reference.adapters.offline_chat.tool_results import Outcome
from memstory_reference.ports import (
    ChatModelUnavailableError,
    Embedder,
    EmbedderUnavailableError,
    Json,
    Message,
    Purpose,
    Reply,
    ToolSpec,
)


class OfflineChat:
    """A chat model of rules: the same conversation always gets the same reply, and no story is known to it.

    With an embedder it also finds answers that share no word with their question.
    """

    name = "offline rules (deterministic stand-in)"

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        purpose: str = "chat",
        temperature: float | None = None,
        response_schema: Mapping[str, Json] | None = None,
    ) -> Reply:
        """Return tool requests, or an answer made of what the tools gave; raise if JSON of a schema is wanted."""
        if response_schema is not None:
            message = (
                f"{self.name} holds conversations and cannot write the structured text asked for ({purpose}). "
                "Script it with 'model:' rules, or choose a language model such as 'ollama:gemma3:4b'."
            )
            raise ChatModelUnavailableError(message)
        talk = read_conversation(messages, tools)
        requests = plans.next_calls(talk, answered=await self._is_answered(talk))
        if requests:
            return Reply(content="", tool_requests=requests)
        return Reply(content=plans.closing(talk, await self._answer(talk)))

    async def _is_answered(self, talk: Conversation) -> bool:
        return talk.reading.question is not None and bool(await self._answer(talk, window=False))

    async def _answer(self, talk: Conversation, *, window: bool = True) -> str:
        """Return the answer to the question that was asked, or an empty text."""
        question = talk.reading.question
        if question is None:
            return ""
        for result in talk.results:
            if result.outcome is Outcome.KEPT:
                return answers.of_topic(result.topic or question.keys[0], result.value)
        found = answers.candidates(
            (finding for result in talk.results for finding in result.findings), talk.earlier if window else ()
        )
        chosen = answers.best(question, found, await self._nearness(question, [one.text for one in found]))
        return answers.quoted(chosen) if chosen else ""

    async def _nearness(self, question: Question, texts: Sequence[str]) -> Mapping[str, float]:
        """Return the cosine of the question and each text; nothing without an embedder, or while it is down."""
        if self._embedder is None or not texts:
            return {}
        try:
            asked = await self._embedder.embed([question.query], Purpose.QUERY)
            said = await self._embedder.embed(texts, Purpose.DOCUMENT)
        except EmbedderUnavailableError:
            # The words alone still decide; the memory itself reports that its embedder is down.
            return {}
        return {text: float(near) for text, near in zip(texts, said @ asked[0], strict=True)}
