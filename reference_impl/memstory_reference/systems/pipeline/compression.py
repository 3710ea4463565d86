"""Old sessions become one summary each; their memories are archived and never deleted (P-21 to P-26, PF-17)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.models import ChatRequest, Message
from memstory_reference.ports import BY_RULES, Purpose
from memstory_reference.systems.pipeline.chunk import ChunkType, CompressionReport, MemoryChunk, Write
from memstory_reference.systems.pipeline.parts import PipelineParts
from memstory_reference.systems.pipeline.settings import PipelineConfig
from memstory_reference.systems.pipeline.stores.pipeline_store import PipelineStore
from memstory_reference.systems.pipeline.summary import (
    PURPOSE,
    summary_by_rules,
    summary_prompt,
    usable_summary,
)

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
    config: PipelineConfig
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
        return await self.store.lane.run(self.store.sessions, user_id)

    async def _archive_sessions(self, user_id: str, sessions: Sequence[str]) -> list[tuple[str, str]]:
        """Put summaries in the place of sessions; return those with their summaries' ids, or raise what was wrong.

        A session that gives no summary does not hold up the others; a model that is down does.
        """
        told: list[tuple[Sequence[MemoryChunk], str]] = []
        problem: MemstoryError | None = None
        for session in sessions:
            originals = self._of_one_prompt(await self.store.lane.run(self.store.episodes, user_id, session))
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
            if await self.store.lane.run(self.store.archive, Write(memory=summary, vector=vector), originals):
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
