"""The topics memory by the interface of all six: what it stores, and the bus on which its tools and agents meet."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused
from memstory.contract.models import ChatModel
from memstory.contract.target import (
    Hit,
    Item,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    ToolCall,
    ToolSchema,
    Tree,
    Turn,
)
from memstory_reference.bus import Bus, InProcessBus
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_choice
from memstory_reference.ports import Envelope, NewId
from memstory_reference.setting_rules import SQLITE
from memstory_reference.system_memory import ForgetResult, SystemMemory, engine_name, read_rows
from memstory_reference.systems.topics.agent import GeneratorAgent
from memstory_reference.systems.topics.engrams import EngramEntry, FoundEngram, TopicEntry, effective_score
from memstory_reference.systems.topics.inputs import RESERVED
from memstory_reference.systems.topics.memory_agent import MemoryAgent
from memstory_reference.systems.topics.memory_service import EPISODIC, TOPIC, MemoryService, NewEntry
from memstory_reference.systems.topics.result_texts import engrams_text
from memstory_reference.systems.topics.tools import topic_tools
from memstory_reference.systems.topics.topic_keys import lookup_key
from memstory_reference.text.secret_guard import left_out

DEFAULT_SESSION = "default"
KINDS = (TOPIC, EPISODIC)


class StoredTopics(SystemMemory):
    """What the topics memory stores, wherever its service is."""

    counted = ("topics", "episodic")

    def __init__(self, service: MemoryService, clock: Clock) -> None:
        self.service = service
        self._clock = clock
        self._answered: dict[Scope, str] = {}

    async def owners(self) -> Sequence[str]:
        return await self.service.owners()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        entries = [_new_entry(item, scope) for item in items]
        has_topics = any(item.key is not None for item in items)
        known = {entry.id for entry in await self.service.list_topics(scope.user)} if has_topics else set()
        ids = await self.service.write(scope.user, entries)
        return Receipt(
            items=[self._receipt(one, item, is_known=one in known) for one, item in zip(ids, items, strict=True)]
        )

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        entry = await self._entry(ref, scope)
        return _hit(entry) if entry else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [_found_hit(engram) for engram in await self._find(query, scope)]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        wanted = _checked_kinds(kinds)
        topics = await self.service.list_topics(scope.user) if TOPIC in wanted else []
        engrams = await self.service.list_engrams(scope.user, _where(scope)) if EPISODIC in wanted else []
        return [*map(_hit, topics), *map(_hit, engrams)][:limit]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        entry = await self._entry(ref, scope)
        is_known = entry is not None and await self.service.rewrite(
            scope.user, entry.id, item.text, item.metadata or None
        )
        if entry is None or not is_known:
            raise Refused(f"update: nothing is remembered under {ref.key or ref.id!r}")
        key = entry.topic if isinstance(entry, TopicEntry) else None
        return Receipt(items=[self._receipt(entry.id, replace(item, key=key), is_known=True)])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            return bool(await self.service.forget_all(scope.user, _where(scope), durable=ref.durable))
        entry = await self._entry(ref, scope)
        return entry is not None and await self.service.forget(scope.user, entry.id, durable=ref.durable)

    def full_text(self, hit: Hit) -> str:
        return f"{(hit.key or '').replace('.', ' ')} {hit.text}"

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        entry = await self._entry(ref, scope)
        return entry is not None and await self.service.reward(scope.user, entry.id, value)

    async def context(self, query: Query, scope: Scope) -> str:
        return engrams_text(await self._find(query, scope), self._clock.now().date())

    async def repeats(self, memory_id: str, scope: Scope) -> Sequence[Hit]:
        found = await self.service.find_repeats(scope.user, memory_id)
        return [*map(_hit, found.gone)] if found else []

    async def forget(self, memory_id: str, scope: Scope) -> ForgetResult:
        await self.settle()  # the turn that told it may be on its way into the memory
        found = await self.service.forget_repeats(scope.user, memory_id)
        await self._forget_talks(scope.user)
        if found is None:
            return ForgetResult(gone=())
        return ForgetResult(gone=[*map(_hit, found.gone)], mentions=[*map(_hit, found.mentions)])

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        await self.service.write(scope.user, read_rows(rows, _entry_of_row))
        return ()

    @abstractmethod
    async def _forget_talks(self, owner: str) -> None:
        """Take all that the owner said so far out of the sight of running talks."""

    async def _job_rate(self, scope: Scope, *, value: float) -> Tree:
        """Rate the latest answer of a session; False if its turn is not remembered."""
        if scope not in self._answered:
            raise InputError("rate: an answer is rated, and there is none yet")
        return await self.service.rate_turn(scope.user, self._answered[scope], value)

    async def _find(self, query: Query, scope: Scope) -> Sequence[FoundEngram]:
        self._check_query(query)
        if _checked_kinds(query.kinds or [EPISODIC]) != {EPISODIC}:
            raise InputError("only the kind 'episodic' is found by meaning; look a topic up by its exact key")
        return await self.service.search_episodic(
            scope.user, query.text, query.top_k, min_score=query.min_score, where=_where(scope, query.where)
        )

    async def _entry(self, ref: Ref, scope: Scope) -> TopicEntry | EngramEntry | None:
        entry: TopicEntry | EngramEntry | None
        if ref.id is not None:
            entry = await self.service.entry(scope.user, ref.id)
        elif ref.key is not None:
            entry = await self.service.topic_entry(scope.user, ref.key)
        else:
            raise InputError("name one memory, by id or by key")
        kinds = _checked_kinds([ref.kind] if ref.kind else [])
        return entry if entry and _hit(entry).kind in kinds else None

    def _receipt(self, entry_id: str, item: Item, *, is_known: bool) -> ReceiptItem:
        """Return what happened to an item; a topic that was known has a new value."""
        (text,) = self.service.settings.redact(item.text)
        return ReceiptItem(
            id=entry_id,
            text=text,
            outcome="updated" if is_known else "stored",
            reason=left_out(text),
            kind=EPISODIC if item.key is None else TOPIC,
            key=None if item.key is None else lookup_key(item.key),
        )


class TopicsMemory(StoredTopics):
    """The whole of it in this process: one bus, one service, its tools, the agent that talks, the one that remembers.

    `open` before anything else; `close` leaves all that was acknowledged on disk.
    """

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

    def __init__(
        self,
        service: MemoryService,
        *,
        chat: ChatModel,
        new_id: NewId,
        bus: Bus | None = None,
        engine: str = SQLITE,
    ) -> None:
        super().__init__(service, service.clock)
        self.bus: Bus = bus or InProcessBus()
        self._engine = engine
        self._new_id = new_id
        self._chat = chat
        # All tools share the one service: its turns are what keeps concurrent writes apart.
        self._tools = topic_tools(service, service.clock, service.settings, self.bus)
        self._memory_agent = MemoryAgent(service, self.bus)
        is_kept = self._has_turn if isinstance(self.bus, InProcessBus) else None
        self._agent = GeneratorAgent(chat=chat, bus=self.bus, new_id=new_id, settings=service.settings, is_kept=is_kept)

    @property
    def store_name(self) -> str:
        return engine_name(self._engine)

    async def open(self) -> None:
        """Start everything; return when every tool is announced."""
        await self._agent.start()
        await self._tools.start()
        await self._memory_agent.start()
        await self._agent.toolbox.ready([one.name for one in self._tools.specs])

    async def close(self) -> None:
        try:
            await self._agent.stop()
            await self.bus.settle()
            await self._tools.stop()
            await self._memory_agent.stop()
            await self.bus.settle()
        finally:
            await self.service.close()

    async def settle(self) -> None:
        await self.bus.settle()
        await self._memory_agent.settle()

    async def say(self, text: str, scope: Scope) -> Turn:
        query_id = self._new_id()
        turn = await self._agent.ask(
            text, owner=scope.user, session_id=scope.session or DEFAULT_SESSION, query_id=query_id
        )
        self._answered[scope] = query_id
        return turn

    async def tools(self) -> Sequence[ToolSchema]:
        # What is announced on the bus is only what a model sees: our own declarations say more.
        own = {one.name: one for one in self._tools.specs}
        return [own.get(one.name, one) for one in self._agent.toolbox.specs()]

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        return await self._agent.toolbox.call(
            name, args, owner=scope.user, session_id=scope.session, caller=caller or "OutsideAgent"
        )

    async def _has_turn(self, owner: str, query_id: str, _: str) -> bool:
        await self._memory_agent.settle()
        return bool(await self.service.list_engrams(owner, {"query_id": query_id}))

    async def _forget_talks(self, owner: str) -> None:
        self._agent.forget_windows(owner)

    async def _job_purge(self, scope: Scope, *, older_than_days: Tree = None) -> Tree:
        return {"deleted": await self.service.purge(scope.user, older_than_days)}

    async def _job_publish(
        self, scope: Scope, *, subject: Tree = "", payload: Tree = None, publisher: Tree = "OutsideAgent"
    ) -> Tree:
        envelope = Envelope(
            subject=subject,
            payload={} if payload is None else payload,
            publisher=str(publisher),
            owner=scope.user,
        )
        await self.bus.publish(envelope)

    async def _look_bus(self, _: Scope, *, since: int = 0) -> Tree:
        if not isinstance(self.bus, InProcessBus):
            raise NotSupported("inspect.bus", "what is on a server is not logged")
        return [asdict(message) for message in self.bus.log(since)]

    async def _look_feedback(self, scope: Scope) -> Tree:
        """Return the turns that were rated, with their rewards."""
        rated = [hit for hit in await self.list(scope, [EPISODIC]) if hit.metadata.get("reward") is not None]
        return [
            {"at": hit.created_at, "id": hit.id, "value": hit.metadata["reward"], "text": hit.text} for hit in rated
        ]

    async def _look_status(self, scope: Scope) -> Tree:
        """Return counts of this owner's memories, and of what the bus and the ingestion did; no content."""
        return {
            **await self.service.counts(scope.user),
            "unreadable": await self.service.unreadable(scope.user),
            **self._memory_agent.counts(),
            "messages": self.bus.published,
            "messages_refused": self.bus.refusals,
            "handler_failures": self.bus.failures,
            "tools": [one.name for one in await self.tools()],
            "embedder": self.service.embedder.model,
            "chat": self._chat.name,
        }


def _checked_kinds(kinds: Iterable[str]) -> frozenset[str]:
    """Return the kinds that are meant, all for none; an unknown one is refused."""
    return frozenset(checked_choice(kind, "kind", KINDS) for kind in kinds) or frozenset(KINDS)


def _new_entry(item: Item, scope: Scope) -> NewEntry:
    """Return a standing fact for an item with a key, else an engram, of the scope's session unless it names its own."""
    if item.kind is not None:
        _checked_kinds([item.kind])
    if (item.key is None) == (item.kind == TOPIC) and item.kind is not None:
        raise InputError("a topic has a key, an engram has none")
    return NewEntry(item.text, item.key, {**({} if item.key else _where(scope)), **item.metadata})


def _entry_of_row(row: Mapping[str, Tree]) -> NewEntry:
    """Return the fact or the engram of an exported row; ids and ratings are new."""
    if row.get("key") is not None:
        return NewEntry(row["text"], str(row["key"]))
    attached = {name: value for name, value in (row.get("metadata") or {}).items() if name not in RESERVED}
    moment = {} if row.get("created_at") is None else {"timestamp_utc": row["created_at"]}
    return NewEntry(row["text"], metadata={**attached, **moment})


def _where(scope: Scope, where: Mapping[str, Tree] | None = None) -> dict[str, Tree]:
    """Return the filter of a scope: one session's engrams, where the scope names a session."""
    return {**(where or {}), **({"session_id": scope.session} if scope.session else {})}


def _hit(entry: TopicEntry | EngramEntry) -> Hit:
    """Return an entry that was looked up or listed; it has no score."""
    if isinstance(entry, TopicEntry):
        return Hit(id=entry.id, text=entry.content, kind=TOPIC, key=entry.topic, created_at=entry.timestamp_utc)
    return Hit(id=entry.id, text=entry.content, kind=EPISODIC, created_at=entry.time or None, metadata=entry.metadata)


def _found_hit(found: FoundEngram) -> Hit:
    """Return an engram that was found by meaning; `explain` says how it came to its place."""
    explain = {
        "similarity": found.score,
        "reward": found.metadata.get("reward", 0.0),
        "is_recall": found.metadata.get("is_recall", False),
        "rank_score": effective_score(found),
    }
    return replace(_hit(found), score=found.score, explain=explain)
