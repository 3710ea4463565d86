"""Old sessions become one summary each; their memories are archived and never deleted (P-21 to P-26, PF-17)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.models import ChatRequest, Message
from memstory_reference.ports import BY_RULES, Purpose
from memstory_reference.systems.pipeline.chunk import ChunkType, CompressionReport, MemoryChunk, Vector, Write
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
class _SessionSummary:
    """A session and its summary."""

    session: str
    originals: Sequence[MemoryChunk]
    summary: str


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
        told, problem = await self._tell(user_id, sessions)
        done: list[tuple[str, str]] = []
        if told:
            vectors = await self.parts.embedder.embed([one.summary for one in told], Purpose.DOCUMENT)
            for one, vector in zip(told, vectors, strict=True):
                new = self._summary(user_id, one, vector)
                # False if a memory was changed or forgotten meanwhile: its old words must not come back.
                if await self.store.lane.run(self.store.archive, new, one.originals):
                    done.append((one.session, new.memory.id))
        if problem is not None:
            raise problem
        return done

    async def _tell(self, user_id: str, sessions: Sequence[str]) -> tuple[list[_SessionSummary], MemstoryError | None]:
        """Return the summaries of the sessions, and what was wrong if one failed.

        A session that gives no summary does not hold up the others; a model that is down does.
        """
        told: list[_SessionSummary] = []
        problem: MemstoryError | None = None
        for session in sessions:
            originals = self._of_one_prompt(await self.store.lane.run(self.store.episodes, user_id, session))
            if not originals:
                continue
            try:
                summary = await self._summarise(session, [memory.content for memory in originals])
            except NoSummaryError as error:
                problem = error
            except MemstoryError as error:
                return told, error
            else:
                told.append(_SessionSummary(session=session, originals=originals, summary=summary))
        return told, problem

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

    def _summary(self, user_id: str, told: _SessionSummary, vector: Vector) -> Write:
        now = self.parts.clock.now()
        weight = max(LEAST_IMPORTANCE, *(memory.importance for memory in told.originals))
        memory = MemoryChunk(
            id=self.parts.new_id(),
            user_id=user_id,
            session_id=told.session,
            memory_type=ChunkType.SEMANTIC,
            content=told.summary,
            importance=weight,
            created_at=now,
            updated_at=now,
            role="system",
            source="compression",
            source_session_id=told.session,
            compression_source=True,
        )
        return Write(memory=memory, vector=vector)
