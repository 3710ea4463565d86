"""The topics memory by the interface of all six."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import Hit, Item, Query, Receipt, Ref, Scope, ToolCall, ToolSchema, Tree, Turn
from memstory_reference.bus import InProcessBus
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope
from memstory_reference.setting_rules import SQLITE
from memstory_reference.system_memory import CorrectingInWords, ForgetResult, engine_name, read_rows
from memstory_reference.systems.topics.engrams import EngramEntry, FoundEngram, TopicEntry
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.result_texts import engrams_text
from memstory_reference.systems.topics.system import TopicsSystem
from memstory_reference.systems.topics.values import (
    EPISODIC,
    TOPIC,
    checked_kinds,
    engram_of,
    entry_of_row,
    fact_of,
    found_hit,
    is_topic,
    kind_of,
    listed_hit,
    stored_item,
    updated_item,
    where_of,
)

DEFAULT_SESSION = "default"


class TopicsMemory(CorrectingInWords):
    """An open topics system."""

    operations = frozenset(
        {
            "add.metadata",
            *("add", "add.key", "add.key.apart", "add.verbatim", "add.exact"),
            *("get.key", "get.id", "list", "update", "feedback"),
            *("delete", "delete.reports_missing", "delete.scope", "delete.about", "delete.durable", "update.about"),
            "delete.erases",
            "identifiers.spellings",
            *("search", "search.scores", "search.min_score", "search.where", "search.explain", "context"),
            *("chat", "chat.tools", "chat.window", "tool", "tool.schema", "async_ingest"),
            *("scope.session", "scope.session_all", "rank.reward"),
        }
    )
    counted = ("topics", "episodic")

    def __init__(self, system: TopicsSystem, clock: Clock, engine: str = SQLITE) -> None:
        self._engine = engine
        self._system = system
        self._clock = clock
        self._answered: dict[Scope, str] = {}

    @property
    def store_name(self) -> str:
        return engine_name(self._engine)

    async def close(self) -> None:
        await self._system.close()

    async def owners(self) -> Sequence[str]:
        return await self._service.owners()

    async def settle(self) -> None:
        await self._system.settle()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        kept = [replace(item, text=self._service.config.redact(item.text)[0]) for item in items]
        facts = [fact_of(item) for item in items if is_topic(item)]
        engrams = [engram_of(item, scope) for item in items if not is_topic(item)]
        known = {entry.id for entry in await self._service.list_topics(scope.user)} if facts else set()
        topic_ids, engram_ids = map(iter, await self._service.write(scope.user, facts=facts, engrams=engrams))
        ids = [next(topic_ids if is_topic(item) else engram_ids) for item in items]
        return Receipt(
            items=[stored_item(one, item, is_known=one in known) for one, item in zip(ids, kept, strict=True)]
        )

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        entry = await self._entry(ref, scope)
        return listed_hit(entry) if entry else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [found_hit(engram) for engram in await self._find(query, scope)]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        wanted = checked_kinds(kinds)
        topics = await self._service.list_topics(scope.user) if TOPIC in wanted else []
        engrams = await self._service.list_engrams(scope.user, where_of(scope)) if EPISODIC in wanted else []
        return [*map(listed_hit, topics), *map(listed_hit, engrams)][:limit]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        entry = await self._entry(ref, scope)
        is_known = entry is not None and await self._service.rewrite(
            scope.user, entry.id, item.text, item.metadata or None
        )
        if entry is None or not is_known:
            raise Refused(f"update: nothing is remembered under {ref.key or ref.id!r}")
        kept = replace(item, text=self._service.config.redact(item.text)[0])
        return Receipt(items=[updated_item(entry, kept)])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            return bool(await self._service.forget_all(scope.user, where_of(scope), durable=ref.durable))
        entry = await self._entry(ref, scope)
        return entry is not None and await self._service.forget(scope.user, entry.id, durable=ref.durable)

    async def ids_about(self, things: Sequence[str], scope: Scope) -> Sequence[str]:
        return await self._service.about(scope.user, things)

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        entry = await self._entry(ref, scope)
        return entry is not None and await self._service.reward(scope.user, entry.id, value)

    async def context(self, query: Query, scope: Scope) -> str:
        return engrams_text(await self._find(query, scope), self._clock.now().date())

    async def repeats(self, memory_id: str, scope: Scope) -> Sequence[Hit]:
        found = await self._service.find_repeats(scope.user, memory_id)
        entries = [found.entry, *found.topics, *found.engrams] if found else []
        return [listed_hit(one) for one in {one.id: one for one in entries}.values()]

    async def forget(self, memory_id: str, scope: Scope) -> ForgetResult:
        found = await self._system.forget(scope.user, memory_id)
        if found is None:
            return ForgetResult(gone=())
        gone = {one.id: one for one in (found.entry, *found.topics, *found.engrams)}
        return ForgetResult(gone=[*map(listed_hit, gone.values())], mentions=[*map(listed_hit, found.mentions)])

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        read = read_rows(rows, entry_of_row)
        facts = [one for is_fact, one in read if is_fact]
        await self._service.write(scope.user, facts=facts, engrams=[one for is_fact, one in read if not is_fact])
        return ()

    async def say(self, text: str, scope: Scope) -> Turn:
        answer = await self._system.say(text, owner=scope.user, session_id=scope.session or DEFAULT_SESSION)
        self._answered[scope] = answer.query_id
        return Turn(answer=answer.answer, thinking=answer.thinking, tool_calls=answer.tool_calls, notes=answer.notes)

    async def tools(self) -> Sequence[ToolSchema]:
        return list(self._system.tools())

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        return await self._system.call_tool(
            name, args, caller=caller or "OutsideAgent", owner=scope.user, session_id=scope.session
        )

    async def _job_rate(self, scope: Scope, *, value: float) -> Tree:
        """Rate the latest answer of a session; False if its turn is not remembered."""
        if scope not in self._answered:
            raise InputError("rate: an answer is rated, and there is none yet")
        return await self._service.rate_turn(scope.user, self._answered[scope], value)

    async def _job_purge(self, scope: Scope, *, older_than_days: Tree = None) -> Tree:
        return {"deleted": await self._service.purge(scope.user, older_than_days)}

    async def _job_publish(
        self, scope: Scope, *, subject: Tree = "", payload: Tree = None, publisher: Tree = "OutsideAgent"
    ) -> Tree:
        envelope = Envelope(
            subject=subject,
            payload={} if payload is None else payload,
            publisher=str(publisher),
            owner=scope.user,
        )
        await self._system.bus.publish(envelope)

    async def _look_bus(self, _: Scope, *, since: int = 0) -> Tree:
        bus = self._system.bus
        if not isinstance(bus, InProcessBus):
            raise NotSupported("inspect.bus", "what is on a server is not logged")
        return [asdict(message) for message in bus.log(since)]

    async def _look_feedback(self, scope: Scope) -> Tree:
        """Return the turns that were rated, with their rewards."""
        rated = [hit for hit in await self.list(scope, [EPISODIC]) if hit.metadata.get("reward") is not None]
        return [
            {"at": hit.created_at, "id": hit.id, "value": hit.metadata["reward"], "text": hit.text} for hit in rated
        ]

    async def _look_status(self, scope: Scope) -> Tree:
        return await self._system.status(scope.user)

    async def _find(self, query: Query, scope: Scope) -> Sequence[FoundEngram]:
        self._check_query(query)
        if checked_kinds(query.kinds or [EPISODIC]) != {EPISODIC}:
            raise InputError("only the kind 'episodic' is found by meaning; look a topic up by its exact key")
        return await self._service.search_episodic(
            scope.user, query.text, query.top_k, min_score=query.min_score, where=where_of(scope, query.where)
        )

    async def _entry(self, ref: Ref, scope: Scope) -> TopicEntry | EngramEntry | None:
        entry: TopicEntry | EngramEntry | None
        if ref.id is not None:
            entry = await self._service.entry(scope.user, ref.id)
        elif ref.key is not None:
            entry = await self._service.topic_entry(scope.user, ref.key)
        else:
            raise InputError("name one memory, by id or by key")
        kinds = checked_kinds([ref.kind] if ref.kind else [])
        return entry if entry and kind_of(entry) in kinds else None

    @property
    def _service(self) -> MemoryService:
        return self._system.service
