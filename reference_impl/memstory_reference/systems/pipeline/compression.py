"""Old sessions become one summary each; their memories are archived and never deleted (P-21 to P-26, PF-17)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.models import ChatRequest, Message
from memstory_reference.ports import BY_RULES, Purpose
from memstory_reference.systems.pipeline.chunk import ChunkType, CompressionReport, MemoryChunk, Write
from memstory_reference.systems.pipeline.parts import PipelineParts
from memstory_reference.systems.pipeline.pipeline_store import PipelineStore
from memstory_reference.systems.pipeline.reading import clean, has_entity, has_number
from memstory_reference.systems.pipeline.settings import PipelineSettings
from memstory_reference.text.chunks import prose, split_chunks
from memstory_reference.text.sentences import sentences
from memstory_reference.text.words import STOP_WORDS, extract_keywords, plain_words, stem, stems

PURPOSE = "summarise"
SENTENCES = 3
_ENDS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f")
_CLOSING = "\"'*_`)]}\u201d\u2019\u00bb \n"

_PROMPT = """\
Summarize the following conversation into 2-3 sentences capturing key facts,
decisions, and topics discussed. Be specific and preserve names, numbers, and
technical details. Do not include pleasantries.
Conversation:
{session_content}"""


def summary_prompt(contents: Sequence[str]) -> str:
    """Return the prompt for the contents of one session, in their order; braces in them stay braces (PF-20)."""
    return _PROMPT.replace("{session_content}", "\n".join(contents))


def usable_summary(reply: str, contents: Sequence[str], *, max_tokens: int, count: Callable[[str], int]) -> str:
    """Return a model's reply cleaned and cut to the size of a chunk; empty where it is no summary of `contents`.

    A summary hides what it sums up. One that breaks off, or has no word of it, as a refusal has none, must not.
    """
    text = clean(reply)
    is_whole = text.rstrip(_CLOSING).endswith(_ENDS)
    return _cut(text, max_tokens, count) if is_whole and _telling(text) & _telling(" ".join(contents)) else ""


def _telling(text: str) -> set[str]:
    """Return the stems of the words that carry meaning; of a text that has none, of all its words."""
    return {stem(word) for word in plain_words(text) if word not in STOP_WORDS} or set(stems(text))


def summary_by_rules(contents: Sequence[str], *, max_tokens: int, count: Callable[[str], int]) -> str:
    """Return the sentences that carry most, in their order: frequent words, names and numbers weigh.

    >>> from memstory_reference.text.words import count_tokens
    >>> summary_by_rules(["Hi there!", "Ilse moves to Graz on 3 May."], max_tokens=20, count=count_tokens)
    'Hi there! Ilse moves to Graz on 3 May.'
    """
    told = [one for content in contents for one in sentences(prose(content))] or list(contents)
    told = list(dict.fromkeys(told))
    words = [{keyword.text for keyword in extract_keywords(sentence)} for sentence in told]
    frequency = Counter(word for found in words for word in found)
    weights = [_weight(sentence, found, frequency) for sentence, found in zip(told, words, strict=True)]
    best = sorted(range(len(told)), key=lambda number: (-weights[number], number))[:SENTENCES]
    chosen = " ".join(told[number] for number in sorted(best))
    return _cut(clean(chosen), max_tokens, count)


def _cut(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    return split_chunks(text, max_tokens=max_tokens, min_tokens=max_tokens, count=count)[0]


def _weight(sentence: str, words: set[str], frequency: Counter[str]) -> float:
    shared = sum(frequency[word] for word in words) / len(words) if words else 0.0
    return shared + 2.0 * has_number(sentence) + 2.0 * has_entity(sentence)


TEMPERATURE = 0.1
LEAST_IMPORTANCE = 0.3
AT_ONCE = 16
"""Summaries that are embedded in one call and held in memory together."""


class NoSummaryError(UnavailableError):
    """A model that answered, and whose answer holds no summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressor:
    """Compresses one user's sessions at a time. Without a chat model, summaries are made by rules."""

    store: PipelineStore
    parts: PipelineParts
    config: PipelineSettings
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def _by(self) -> str:
        return self.parts.chat.name if self.parts.chat else BY_RULES

    async def run(self, user_id: str, *, until_quiet: bool = False) -> CompressionReport:
        """Compress the oldest sessions if there are more than the threshold; `until_quiet`, for as long as there are.

        A session whose summary fails stays as it was, and the error is raised once those before it are archived.
        """
        async with self.turn:
            sessions = at_first = await self._sessions(user_id)
            done: list[tuple[str, str]] = []
            while len(sessions) > self.config.compression_threshold:
                oldest, before = sessions[: self.config.sessions_a_pass], len(done)
                for start in range(0, len(oldest), AT_ONCE):
                    done += await self._archive_sessions(user_id, oldest[start : start + AT_ONCE])
                if not until_quiet or len(done) == before:
                    break
                sessions = await self._sessions(user_id)
        return CompressionReport(
            triggered=len(at_first) > self.config.compression_threshold,
            sessions=len(at_first),
            compressed=tuple(session for session, _ in done),
            summaries=tuple(summary for _, summary in done),
            by=self._by,
        )

    async def _sessions(self, user_id: str) -> list[str]:
        return await self.store.run(PipelineStore.sessions, user_id)

    async def _archive_sessions(self, user_id: str, sessions: Sequence[str]) -> list[tuple[str, str]]:
        """Put summaries in the place of sessions; return those with their summaries' ids, or raise what was wrong.

        A session that gives no summary does not hold up the others; a model that is down does.
        """
        told: list[tuple[Sequence[MemoryChunk], str]] = []
        problem: MemstoryError | None = None
        for session in sessions:
            originals = self._of_one_prompt(await self.store.run(PipelineStore.episodes, user_id, session))
            try:
                if originals:
                    told.append((originals, await self._summarise(session, [one.content for one in originals])))
            except MemstoryError as error:
                problem = error
                if not isinstance(error, NoSummaryError):
                    break
        done: list[tuple[str, str]] = []
        texts = [summary for _, summary in told]
        vectors = await self.parts.embedder.embed(texts, Purpose.DOCUMENT) if told else ()
        for (originals, text), vector in zip(told, vectors, strict=True):
            summary = self._summary(originals, text)
            # False if a memory was changed or forgotten meanwhile: its old words must not come back.
            if await self.store.run(PipelineStore.archive, Write(memory=summary, vector=vector), originals):
                done.append((summary.session_id, summary.id))
        if problem is not None:
            raise problem
        return done

    def _of_one_prompt(self, originals: Sequence[MemoryChunk]) -> Sequence[MemoryChunk]:
        """Return the first memories, as many as one prompt holds; the others wait for the next pass."""
        left = self.config.max_prompt_characters
        for place, memory in enumerate(originals):
            left -= len(memory.content) + 1
            if left < 0:
                return originals[: max(1, place)]
        return originals

    async def _summarise(self, session: str, contents: Sequence[str]) -> str:
        count, most = self.parts.counter.count, self.config.max_chunk_tokens
        if self.parts.chat is None:
            summary = await asyncio.to_thread(summary_by_rules, contents, max_tokens=most, count=count)
        else:
            longest = self.config.max_prompt_characters
            prompt = [Message(role="user", content=summary_prompt([one[:longest] for one in contents]))]
            reply = await self.parts.chat.chat(ChatRequest(prompt, purpose=PURPOSE, temperature=TEMPERATURE))
            summary = usable_summary(reply.content, contents, max_tokens=most, count=count)
        if not summary:
            raise NoSummaryError(
                f"session {session!r}: {self._by} gave no summary of it. "
                "Nothing was marked; the next compression tries again"
            )
        return summary

    def _summary(self, originals: Sequence[MemoryChunk], text: str) -> MemoryChunk:
        now, first = self.parts.clock.now(), originals[0]
        return MemoryChunk(
            id=self.parts.new_id(),
            user_id=first.user_id,
            session_id=first.session_id,
            memory_type=ChunkType.SEMANTIC,
            content=text,
            importance=max(LEAST_IMPORTANCE, *(one.importance for one in originals)),
            created_at=now,
            updated_at=now,
            role="system",
            source="compression",
            source_session_id=first.session_id,
            compression_source=True,
        )
