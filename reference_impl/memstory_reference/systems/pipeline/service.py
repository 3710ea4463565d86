"""The pipeline memory: ingest, recall, compress, assemble, for many users behind one set of operations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from memstory.contract.errors import MemstoryError
from memstory.contract.values import Json
from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    MAX_OWNER_CHARACTERS,
    checked_count,
    checked_owner,
    checked_text,
    checked_texts,
)
from memstory_reference.ports import Purpose
from memstory_reference.storage.checked_embedder import CheckedEmbedder
from memstory_reference.storage.sql_database import SqlDatabase
from memstory_reference.systems.pipeline.chunk import (
    ChunkReceipt,
    ChunkType,
    CompressionReport,
    MemoryChunk,
    RecallResult,
    Utterance,
    Vector,
    Write,
    content_hash,
)
from memstory_reference.systems.pipeline.compression import Compressor
from memstory_reference.systems.pipeline.ingest.chunking import Piece, pieces_of
from memstory_reference.systems.pipeline.ingest.importing import export_row, import_rows
from memstory_reference.systems.pipeline.ingest.planning import Planner, UserMemories
from memstory_reference.systems.pipeline.ingest.validation import (
    MAX_IDS,
    MAX_LISTED,
    MAX_TOKENS,
    checked_flag,
    checked_text_in,
    checked_type,
    checked_types,
    checked_utterances,
)
from memstory_reference.systems.pipeline.parts import PipelineParts
from memstory_reference.systems.pipeline.prompt_block import prompt_block
from memstory_reference.systems.pipeline.reading.cleaning import clean
from memstory_reference.systems.pipeline.reading.preference_keys import preference_key
from memstory_reference.systems.pipeline.recall import Recaller, RecallRequest
from memstory_reference.systems.pipeline.settings import PipelineSettings
from memstory_reference.systems.pipeline.stores.pipeline_store import PipelineStore, Plan
from memstory_reference.text.secret_guard import SecretAction

_log = logging.getLogger(__name__)


class PipelineService:
    """One memory for many users. Writers take turns; a write is acknowledged when the database has it."""

    def __init__(self, database: SqlDatabase, parts: PipelineParts, config: PipelineSettings) -> None:
        self._parts = parts = replace(parts, embedder=CheckedEmbedder(parts.embedder))
        self.config = self._config = config
        self._database = database
        self._embedder = parts.embedder
        self._store = PipelineStore(database)
        self._compressor = Compressor(store=self._store, parts=parts, config=config)
        self._recaller = Recaller(store=parts.around_searches(self._store), parts=parts, config=config)
        self._background: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def close(self) -> None:
        """Stop compressing and close the store; closing twice is harmless."""
        if self._is_closed:
            return
        self._is_closed = True
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        try:
            await self._database.aclose()
        finally:
            self._parts.tombstones.close()
            self._parts.release()

    async def settle(self) -> None:
        """Return when compression is done."""
        while self._background:
            await asyncio.gather(*self._background)

    async def ingest(
        self, text: str, user_id: str, session_id: str, memory_type_hint: ChunkType | str | None = None
    ) -> list[MemoryChunk]:
        """Take a text in; return the chunks that were kept, new or known (P-01)."""
        hint = None if memory_type_hint is None else checked_type(memory_type_hint, "memory_type_hint")
        utterance = Utterance(text=text, session_id=session_id, memory_type_hint=hint)
        (receipts,) = await self.ingest_all([utterance], user_id)
        return [receipt.memory for receipt in receipts if receipt.memory is not None]

    async def ingest_all(
        self, utterances: Sequence[Utterance], user_id: str, *, is_asked_for: bool = False
    ) -> list[list[ChunkReceipt]]:
        """Take texts in, one after the other in effect, in one transaction and with one embedding call.

        Returns what happened to each chunk of each text. Nothing is stored if anything is refused. What somebody asked
        to keep, `is_asked_for`, is kept at any importance.
        """
        user = checked_owner(user_id, "user_id")
        checked = checked_utterances(utterances, self._config.max_text_characters)
        if self._config.secrets != SecretAction.REFUSE:  # then each chunk is judged alone
            checked = [replace(one, text=self._config.admit(one.text)[0]) for one in checked]
        texts = await asyncio.to_thread(lambda: [pieces_of(one, self._config, self._parts.counter) for one in checked])
        pieces = list(chain.from_iterable(texts))
        if not pieces:
            return [[] for _ in texts]
        guard = self._parts.tombstones.guard(user, self._config.refusal)
        # What must not be kept is not embedded either: a vector would be sent to a server, and cached.
        vectors, fresh = await self._embed(user, [one for one in pieces if not guard(one.content)])

        def plan(known: UserMemories) -> Plan:
            planner = Planner(
                user_id=user,
                now=self._parts.clock.now(),
                vectors=vectors,
                new_id=self._parts.new_id,
                config=replace(self._config, store_threshold=0.0) if is_asked_for else self._config,
                detectors=self._parts.detectors,
                guard=guard,
            )
            return planner.plan(texts, known)

        receipts, writes = await self._store.run(
            PipelineStore.ingest, user, pieces, plan, fresh, self._config.cached_embeddings
        )
        self._compress_later(user, writes)
        return receipts

    async def recall(
        self,
        query: str,
        user_id: str,
        top_k: int = 5,
        token_budget: int = 2000,
        memory_types: Sequence[ChunkType | str] | None = None,
        *,
        session_id: str | None = None,
        include_compressed: bool = False,
        rerank: bool | None = None,
        by_score: bool = False,
    ) -> RecallResult:
        """Return what is remembered about `query`: preferences first, then the nearest that fit the budget.

        With a `session_id`, working memories of other sessions are left out; without, those that are a day old.
        `include_compressed` shows archived memories too. `rerank` of None is as configured.
        `by_score` ranks preferences among the others, at most `top_k` of all.
        """
        ask = RecallRequest(
            query=clean(checked_text_in(query, self._config.max_query_characters, "query", "max_query_characters")),
            user_id=checked_owner(user_id, "user_id"),
            top_k=checked_count(top_k, "top_k"),
            token_budget=checked_count(token_budget, "token_budget", high=MAX_TOKENS),
            kinds=checked_types(memory_types),
            session_id=None if session_id is None else checked_owner(session_id, "session_id"),
            include_compressed=checked_flag(include_compressed, "include_compressed"),
            rerank=self._config.reranker_enabled if rerank is None else checked_flag(rerank, "rerank"),
        )
        return await (self._recaller.search if checked_flag(by_score, "by_score") else self._recaller.recall)(ask)

    def assemble(self, result: RecallResult) -> str:
        """Return the block to set before a prompt; empty where nothing was recalled (P-27)."""
        return prompt_block(
            [one.memory for one in result.memories], episodic_date_prefix=self._config.episodic_date_prefix
        )

    async def compress(self, user_id: str, *, until_quiet: bool = False) -> CompressionReport:
        """Compress the oldest sessions if the user has more than the threshold; errors of the model are raised."""
        return await self._compressor.run(checked_owner(user_id, "user_id"), until_quiet=until_quiet)

    async def get(self, identifier: str, user_id: str) -> MemoryChunk | None:
        """Return one memory of a user."""
        user = checked_owner(user_id, "user_id")
        found = await self._store.run(PipelineStore.get, user, [checked_owner(identifier, "id")])
        return found[0] if found else None

    async def preference(self, key: str, user_id: str) -> MemoryChunk | None:
        """Return the procedural memory of a key."""
        return await self._store.run(PipelineStore.preference, checked_owner(user_id, "user_id"), _checked_key(key))

    async def history(self, key: str, user_id: str) -> list[MemoryChunk]:
        """Return what was said under a key of preferences: what holds first, then what it replaced, newest first."""
        return await self._store.run(PipelineStore.history, checked_owner(user_id, "user_id"), _checked_key(key))

    async def memories(
        self,
        user_id: str,
        memory_types: Sequence[ChunkType | str] | None = None,
        limit: int | None = None,
        *,
        include_replaced: bool = False,
    ) -> list[MemoryChunk]:
        """Return memories of all sorts, archived ones too, newest first; preferences that were replaced on demand."""
        if limit is not None:
            checked_count(limit, "limit", high=MAX_LISTED)
        user = checked_owner(user_id, "user_id")
        kinds = checked_types(memory_types)
        return await self._store.run(PipelineStore.recent, user, kinds, limit, include_replaced=include_replaced)

    async def update(self, identifier: str, text: str, user_id: str) -> MemoryChunk | None:
        """Replace what a memory says, None if the user has no such memory; a summary made of its old words goes."""
        user, identifier = checked_owner(user_id, "user_id"), checked_owner(identifier, "id")
        (content,) = self._config.admit(clean(checked_text_in(text, self._config.max_text_characters)))
        self._parts.tombstones.refuse(user, content)
        tokens = self._parts.counter.count(content)
        if not content or tokens > self._config.max_chunk_tokens:
            raise InputError(
                f"text: {tokens} tokens; one memory holds 1 to {self._config.max_chunk_tokens}. "
                "Delete the memory, or ingest the text as a new one"
            )
        (vector,) = await self._embedder.embed([content], Purpose.DOCUMENT)

        def reword(old: MemoryChunk) -> MemoryChunk:
            key = None if old.key is None else preference_key(content, content_hash(content))
            return replace(
                old,
                content=content,
                updated_at=self._parts.clock.now(),
                compressed=False,
                summary_id=None,
                key=key,
                replaced_by=old.replaced_by if key == old.key else None,
            )

        return await self._store.run(PipelineStore.change, user, identifier, reword, vector)

    async def delete(self, ids: Sequence[str], user_id: str, *, durable: bool = False) -> list[str]:
        """Forget memories, and the summaries that were made of them; return the ids that existed.

        `durable` is for good: no chunk that tells them again is kept.
        """
        user = checked_owner(user_id, "user_id")
        named = checked_texts(ids, "ids", MAX_IDS, MAX_OWNER_CHARACTERS)
        bury = partial(self._parts.tombstones.bury, user) if durable else None
        return await self._store.run(PipelineStore.delete, user, named, bury)

    async def forget(self, user_id: str) -> int:
        """Forget a user altogether; return how many memories that were."""
        user = checked_owner(user_id, "user_id")
        return await self._store.run(PipelineStore.forget, user)

    async def import_rows(self, rows: Sequence[Mapping[str, Json]], user_id: str) -> list[MemoryChunk]:
        """Write rows as they are, their importance and flags too; a trusted way in, past all weighing.

        What was forgotten for good is left out.
        """
        user = checked_owner(user_id, "user_id")
        ready = import_rows(rows, user, now=self._parts.clock.now(), new_id=self._parts.new_id, config=self._config)
        ready = [one for one in ready if not self._parts.tombstones.reason(user, one.memory.content)]
        texts = list(dict.fromkeys(one.memory.content for one in ready if one.vector is None))
        embedded: Sequence[Vector] = list(await self._embedder.embed(texts, Purpose.DOCUMENT)) if texts else []
        vectors = dict(zip(texts, embedded, strict=True))
        writes = [one.write(vectors.get(one.memory.content), self._embedder) for one in ready]
        return await self._store.run(PipelineStore.put, user, writes)

    async def export_rows(self, user_id: str) -> list[dict[str, Json]]:
        """Return all rows of a user, oldest first, as `import_rows` takes them."""
        return [export_row(memory) for memory in reversed(await self.memories(user_id, include_replaced=True))]

    async def owners(self) -> list[str]:
        """Return who has memories here."""
        return await self._store.run(PipelineStore.owners)

    async def reindex(self, user_id: str) -> int:
        """Read the user's vectors again and embed what has none that can be compared; return how many are found."""
        user = checked_owner(user_id, "user_id")
        broken = await self._store.run(PipelineStore.broken, user)
        texts = [content for _, _, content in broken]
        vectors = list(await self._embedder.embed(texts, Purpose.DOCUMENT)) if texts else []
        return await self._store.run(PipelineStore.mend, user, broken, vectors)

    def count_lost(self) -> int:
        """Return how many memories, of all users, cannot be read since the file was damaged."""
        return self._database.count_lost("memories", "preferences")

    async def status(self, user_id: str) -> dict[str, int]:
        """Return counts: rows by type, what is archived, uncompressed sessions, and what is found by its vector.

        `waiting` are sessions beyond the threshold: their summaries are late, and the next compression tries again.
        """
        user = checked_owner(user_id, "user_id")
        counts = await self._store.run(PipelineStore.count, user)
        waiting = max(0, counts["sessions"] - self._config.compression_threshold)
        # A write is found at once: nothing is ever pending.
        return {**counts, "waiting": waiting, "pending": 0}

    async def centroid_drift(self, user_id: str) -> float:
        """Return how far the centroid that is kept lies from the mean of the rows, at its worst number."""
        return await self._store.run(PipelineStore.drift, checked_owner(user_id, "user_id"))

    async def _embed(self, user: str, pieces: Sequence[Piece]) -> tuple[dict[str, Vector], dict[str, Vector]]:
        """Return the vector of each hash, and those that had to be computed: each distinct text once, in one call."""
        contents = {one.content_hash: one.content for one in pieces}
        vectors = await self._store.run(PipelineStore.embeddings, user, list(contents))
        missing = [one for one in contents if one not in vectors]
        if not missing:
            return vectors, {}
        computed = await self._embedder.embed([contents[one] for one in missing], Purpose.DOCUMENT)
        fresh: dict[str, Vector] = dict(zip(missing, computed, strict=True))
        return vectors | fresh, fresh

    def _compress_later(self, user: str, writes: Sequence[Write]) -> None:
        grown = any(one.is_new and one.memory.memory_type is ChunkType.EPISODIC for one in writes)
        if grown and self._config.auto_compress:
            task = asyncio.create_task(self._compress_now(user))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def _compress_now(self, user: str) -> None:
        try:
            await self._compressor.run(user)
        except MemstoryError as problem:
            # The text is stored; only the summary is late. It is tried again at the next ingestion.
            _log.warning("compression is put off: %s", problem)


def _checked_key(key: str) -> str:
    return checked_text(key, "key", MAX_OWNER_CHARACTERS)
