"""Old sessions become one summary each; their memories are archived and never deleted (P-21 to P-26, PF-17)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memstory.contract.clock import Clock
from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.models import ChatModel, ChatRequest, Message
from memstory_reference.ports import BY_RULES, Embedder, NewId, Purpose
from memstory_reference.storage.lane import SerialThread
from memstory_reference.systems.pipeline.chunk import ChunkType, CompressionReport, MemoryChunk
from memstory_reference.systems.pipeline.ingest.chunking import content_hash
from memstory_reference.systems.pipeline.ingest.planning import Insertion, Vector
from memstory_reference.systems.pipeline.settings import PipelineConfig
from memstory_reference.systems.pipeline.stores.archive_store import ArchiveStore
from memstory_reference.systems.pipeline.summary import (
    PURPOSE,
    summary_by_rules,
    summary_prompt,
    usable_summary,
)
from memstory_reference.text.tokens import TokenCounter

TEMPERATURE = 0.1
LEAST_IMPORTANCE = 0.3
AT_ONCE = 16
"""Summaries that are embedded in one call and held in memory together."""

OnProgress = Callable[[int, int], None]
"""Called with the sessions compressed so far, and those that were to be compressed when it began."""


class NoSummaryError(UnavailableError):
    """A model that answered, and whose answer holds no summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SessionSummary:
    """A session and its summary."""

    session: str
    originals: Sequence[tuple[MemoryChunk, str]]
    summary: str


class Compressor:
    """Compresses one user's sessions at a time. Without a `chat` model, summaries are made by rules."""

    def __init__(
        self,
        *,
        archive: ArchiveStore,
        lane: SerialThread,
        embedder: Embedder,
        chat: ChatModel | None,
        clock: Clock,
        new_id: NewId,
        config: PipelineConfig,
        counter: TokenCounter,
    ) -> None:
        self._archive = archive
        self._lane = lane
        self._embedder = embedder
        self._chat = chat
        self._clock = clock
        self._new_id = new_id
        self._config = config
        self._counter = counter
        self._turn = asyncio.Lock()

    async def is_due(self, user_id: str) -> bool:
        """Say whether the user has more uncompressed sessions than the threshold."""
        return len(await self._lane.run(self._archive.sessions, user_id)) > self._config.compression_threshold

    async def run(
        self, user_id: str, *, until_quiet: bool = False, on_progress: OnProgress | None = None
    ) -> CompressionReport:
        """Compress the oldest sessions if there are more than the threshold; `until_quiet`, for as long as there are.

        A session whose summary fails stays as it was, and the error is raised once those before it are archived.
        """
        async with self._turn:
            return await self._run(user_id, until_quiet=until_quiet, on_progress=on_progress)

    async def _run(self, user_id: str, *, until_quiet: bool, on_progress: OnProgress | None) -> CompressionReport:
        sessions = at_first = await self._lane.run(self._archive.sessions, user_id)
        compressed: list[str] = []
        summaries: list[str] = []
        wanted = self._sessions_due(len(sessions), until_quiet=until_quiet)
        while len(sessions) > self._config.compression_threshold:
            oldest = sessions[: self._config.sessions_a_pass]
            before = len(compressed)
            for start in range(0, len(oldest), AT_ONCE):
                for session, summary in await self._archive_sessions(user_id, oldest[start : start + AT_ONCE]):
                    compressed.append(session)
                    summaries.append(summary)
                if on_progress:
                    on_progress(len(compressed), wanted)
            if not until_quiet or len(compressed) == before:
                break
            sessions = await self._lane.run(self._archive.sessions, user_id)
        return CompressionReport(
            triggered=len(at_first) > self._config.compression_threshold,
            sessions=len(at_first),
            compressed=tuple(compressed),
            summaries=tuple(summaries),
            by=self._chat.name if self._chat else BY_RULES,
        )

    def _sessions_due(self, sessions: int, *, until_quiet: bool) -> int:
        over, size = sessions - self._config.compression_threshold, self._config.sessions_a_pass
        if over <= 0:
            return 0
        return min(sessions, -(-over // size) * size if until_quiet else size)

    async def _archive_sessions(self, user_id: str, sessions: Sequence[str]) -> list[tuple[str, str]]:
        told, problem = await self._tell(user_id, sessions)
        done: list[tuple[str, str]] = []
        if told:
            vectors = await self._embedder.embed([one.summary for one in told], Purpose.DOCUMENT)
            for one, vector in zip(told, vectors, strict=True):
                insertion = self._insertion(user_id, one, vector)
                # False if a memory was changed or forgotten meanwhile: its old words must not come back.
                if await self._lane.run(self._archive.archive, insertion, one.originals):
                    done.append((one.session, insertion.memory.id))
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
            originals = self._of_one_prompt(await self._lane.run(self._archive.episodes, user_id, session))
            if not originals:
                continue
            try:
                summary = await self._summarise(session, [memory.content for memory, _ in originals])
            except NoSummaryError as error:
                problem = error
            except MemstoryError as error:
                return told, error
            else:
                told.append(_SessionSummary(session=session, originals=originals, summary=summary))
        return told, problem

    def _of_one_prompt(self, originals: Sequence[tuple[MemoryChunk, str]]) -> Sequence[tuple[MemoryChunk, str]]:
        """Return the first memories, as many as one prompt holds; the others wait for the next pass."""
        left = self._config.max_prompt_characters
        for place, (memory, _) in enumerate(originals):
            left -= len(memory.content) + 1
            if left < 0:
                return originals[: max(1, place)]
        return originals

    async def _summarise(self, session: str, contents: Sequence[str]) -> str:
        count, most = self._counter.count, self._config.max_chunk_tokens
        if self._chat is None:
            summary = await asyncio.to_thread(summary_by_rules, contents, max_tokens=most, count=count)
        else:
            longest = self._config.max_prompt_characters
            prompt = [Message(role="user", content=summary_prompt([one[:longest] for one in contents]))]
            reply = await self._chat.chat(ChatRequest(prompt, purpose=PURPOSE, temperature=TEMPERATURE))
            summary = usable_summary(reply.content, contents, max_tokens=most, count=count)
        if not summary:
            by = self._chat.name if self._chat else BY_RULES
            raise NoSummaryError(
                f"session {session!r}: {by} gave no summary of it. Nothing was marked; the next compression tries again"
            )
        return summary

    def _insertion(self, user_id: str, told: _SessionSummary, vector: Vector) -> Insertion:
        now = self._clock.now()
        weight = max(LEAST_IMPORTANCE, *(memory.importance for memory, _ in told.originals))
        memory = MemoryChunk(
            id=self._new_id(),
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
        return Insertion(memory=memory, content_hash=content_hash(told.summary), vector=vector)
