"""The layers memory as a target of the harness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from memstory.contract.errors import NotSupported
from memstory.contract.target import (
    Environment,
    Hit,
    Item,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    Tree,
    Turn,
)
from memstory_reference.adapters.embedding.idle_embedder import IdleEmbedder
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES
from memstory_reference.composition.layers import open_layers
from memstory_reference.errors import InputError
from memstory_reference.systems.layers.recall.prompting import memory_block
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, Standing
from memstory_reference.systems.layers.service import LayersService
from memstory_reference.systems.layers.turns.session_end import EndReason, parse_reason
from memstory_reference.targets.environment_ports import EnvironmentPorts, MakeEmbedder, environment_ports
from memstory_reference.targets.in_words import CorrectingInWords
from memstory_reference.targets.layers.desk import EXTRACTOR, LayersJobs
from memstory_reference.targets.layers.formulas import formula
from memstory_reference.targets.layers.options import OPTIONS, layers_options
from memstory_reference.targets.layers.store_faults import faulty_layers_store
from memstory_reference.targets.layers.values import content_of_item, hit_of, layers_of, receipt_item
from memstory_reference.targets.seeded_ids import counted_ids
from memstory_reference.targets.shared_postgres import CasesPostgres, PostgresFactory

FOLDER = "layers"


class NullEmbedder(IdleEmbedder):
    """The embedder of incognito: the log above it shows that it is never asked."""

    profile = NO_PREFIXES

    def __init__(self) -> None:
        super().__init__("none")


class LayersTarget(CorrectingInWords, LayersJobs):
    """One open layers memory, in the case's workspace or in Postgres unless it is incognito."""

    operations = frozenset(
        {
            *("add", "add.verbatim", "add.batch_atomic", "add.infer", "get.id", "list", "update"),
            *("delete", "delete.reports_missing", "delete.scope", "context"),
            *("delete.about", "delete.durable", "update.about", "identifiers.spellings"),
            *("search", "search.scores", "search.lexical", "search.hybrid", "search.explain"),
            *("chat", "chat.window", "session", "async_ingest", "incognito", "unicode_lexical"),
            *("dedup", "supersede", "hold_buffer", "audit_separate"),
        }
    )
    options = OPTIONS

    def __init__(self, make_embedder: MakeEmbedder, postgres: CasesPostgres) -> None:
        super().__init__(make_embedder)
        self._postgres = postgres

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        self._options = layers_options(env)
        if self._options.mode.is_durable:
            return environment_ports(env, self._make_embedder, after_reply=EXTRACTOR)
        ids = counted_ids(env.seed)
        return environment_ports(env, lambda *_: NullEmbedder(), new_id=ids, after_reply=EXTRACTOR, compares=False)

    async def _open_system(self, workspace: Path) -> LayersService:
        return await open_layers(
            workspace / FOLDER,
            embedder=self._ports.embedder if self._options.mode.is_durable else None,
            model=self._ports.chat if self._has_model else None,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._options.config,
            mode=self._options.mode,
            place=await self._postgres.place(workspace) if self._options.is_in_postgres else None,
            wrap=lambda store: faulty_layers_store(store, self._ports.switches["store"]),
        )

    async def about(self) -> Mapping[str, str]:
        embedder = {} if self._options.mode.is_durable else {"embedder": "none"}
        return {**await super().about(), **embedder, "mode": str(self._options.mode)}

    def _store_name(self) -> str:
        if not self._options.mode.is_durable:
            return "memory only"
        return f"postgres ({self._postgres.name})" if self._options.is_in_postgres else "sqlite"

    async def _lost(self) -> int:
        return await self._system.records.lost()

    async def settle(self) -> None:
        with self._in_harness_words():
            await self._system.settle()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        with self._in_harness_words():
            who = await self._who(scope)
            if any(item.key is not None for item in items):
                raise NotSupported("add.key")
            contents = [content_of_item(item) for item in items]
            done = await self._system.records.remember(who.owner, who.session, contents)
        return Receipt(items=[receipt_item(item, one) for item, one in zip(items, done, strict=True)])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        with self._in_harness_words():
            found = await self._system.records.get((await self._who(scope)).owner, _id(ref))
        return hit_of(found) if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._check_query(query)
        layers = layers_of(query.kinds)
        with self._in_harness_words():
            limit = self._options.config.top_k if query.top_k is None else query.top_k
            found = await self._system.records.search((await self._who(scope)).owner, query.text, layers, limit)
        return [hit_of(one.record, one) for one in found]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        layers = layers_of(kinds)
        with self._in_harness_words():
            found = await self._system.records.listed((await self._who(scope)).owner, layers, limit=limit)
        return [hit_of(one) for one in found]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        with self._in_harness_words():
            who, content = await self._who(scope), content_of_item(item)
            edited = await self._system.records.edit(who.owner, _id(ref), content)
        return Receipt(items=[ReceiptItem(id=edited.id, text=item.text, outcome="updated", kind=str(edited.layer))])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        with self._in_harness_words():
            who = await self._who(scope)
            if ref == Ref():
                return any((await self._system.forget_owner(who.owner)).values())
            ids = [_id(ref)] if ref != Ref(durable=True) else [one.id for one in await self._every(who.owner)]
            return bool((await self._system.forget_records(who.owner, ids, durable=ref.durable)).records)

    async def _every(self, owner: str) -> Sequence[MemoryRecord]:
        return await self._system.records.listed(owner, tuple(Layer), tuple(Standing))

    async def _ids_about(self, things: Sequence[str], scope: Scope) -> Sequence[str]:
        with self._in_harness_words():
            found = await self._system.records.about((await self._who(scope)).owner, things)
        return [one.id for one in found]

    async def context(self, query: Query, scope: Scope) -> str:
        with self._in_harness_words():
            memory = await self._system.load_memory_for_turn(query.text, await self._who(scope))
        return memory_block(memory)

    async def say(self, text: str, scope: Scope) -> Turn:
        with self._in_harness_words():
            answer = await self._system.turn(text, await self._who(scope))
        return Turn(answer=answer.answer, context=answer.context)

    async def end_session(self, scope: Scope, reason: str) -> None:
        with self._in_harness_words():
            who, why = await self._who(scope), parse_reason(reason)
            if why is EndReason.SHUTDOWN:
                await self._system.end_all(why)
            elif why is EndReason.VOICE:
                await self._system.finalise_voice([], who)
            else:
                await self._system.end_session(who, why)

    async def inspect(self, what: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        # A session that the steps before were in: only they name it by themselves.
        session = args.get("session", scope.session)
        rest = {name: value for name, value in args.items() if name != "session"}
        return await super().inspect(what, rest, replace(scope, session=session))

    def _formula(self, args: Mapping[str, Tree]) -> Tree:
        return formula(args, self._options.config)

    @contextmanager
    def _in_harness_words(self) -> Iterator[None]:
        with super()._in_harness_words():
            yield
            # The memory goes on without a model that failed, and no story may be judged by that.
            if self._ports.chat.failures:
                raise self._ports.chat.failures[0]


class LayersFactory(PostgresFactory):
    """The layers memory: facts, sessions and rules, extracted after each turn and settled when a session ends."""

    name = "layers"
    spec = "memstory_reference.targets.layers.target:LayersFactory"
    target_class = LayersTarget


def _id(ref: Ref) -> str:
    if ref.key is not None and ref.id is None:
        raise NotSupported("get.key")
    if not ref.id:
        raise InputError("a record of the layers is named by its id")
    return ref.id
