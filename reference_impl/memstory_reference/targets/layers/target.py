"""The layers memory as a target of the harness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from memstory.errors import NotSupported, StoryError
from memstory.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Json,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    Target,
    Turn,
)
from memstory_reference.composition.layers import open_layers
from memstory_reference.errors import InputError, MemorySystemError
from memstory_reference.systems.layers.identity import resolve_owner_id
from memstory_reference.systems.layers.recall.prompting import memory_block
from memstory_reference.systems.layers.service import LayersService, Who
from memstory_reference.systems.layers.stores.store import LayersStore
from memstory_reference.systems.layers.turns.session_end import EndReason, parse_reason
from memstory_reference.targets.environment_ports import EnvironmentPorts, MakeEmbedder
from memstory_reference.targets.layers.desk import JOBS, LOOKS, look, run_job
from memstory_reference.targets.layers.formulas import formula
from memstory_reference.targets.layers.layers_ports import EXTRACTOR, OPTIONS, chosen, layers_ports
from memstory_reference.targets.layers.shared_postgres import CasesPostgres
from memstory_reference.targets.layers.store_faults import FaultyLayersStore
from memstory_reference.targets.layers.values import content_of_item, hit_of, layers_of, receipt_item
from memstory_reference.targets.shared_embedders import EmbeddingFactory
from memstory_reference.targets.system_target import SystemTarget

BY_RULES = "rules (deterministic stand-in)"
FOLDER = "layers"
INSPECTED = ("embedder", "formula", "identity", "log", "model", *LOOKS)

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *(
            "add",
            "add.verbatim",
            "add.batch_atomic",
            "add.infer",
            "get.id",
            "list",
            "update",
            "delete",
            "delete.reports_missing",
        ),
        *("delete.scope", "search", "search.scores", "search.lexical", "search.hybrid", "search.explain", "context"),
        *("chat", "chat.window", "session", "restart", "crash", "clock", "persistent", "async_ingest", "incognito"),
        *("scope.user", "scope.required", "unicode_lexical", "dedup", "supersede", "hold_buffer", "audit_separate"),
        *("embedder.fixed", "llm.scripted", "fault.embedder", "fault.model", "fault.store"),
        *(f"inspect.{what}" for what in INSPECTED),
        *(f"job.{job}" for job in (*JOBS, EXTRACTOR)),
        *(f"option.{name}" for name in OPTIONS),
    }
)


class LayersTarget(SystemTarget):
    """One open layers memory, in the case's workspace or in Postgres unless it is incognito."""

    _service: LayersService

    def __init__(self, make_embedder: MakeEmbedder, postgres: CasesPostgres) -> None:
        super().__init__(make_embedder)
        self._postgres = postgres
        self._model_failures: Sequence[MemorySystemError] = ()

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        self._choice = chosen(env)
        environment = layers_ports(env, self._choice, self._make_embedder)
        self._model_failures = environment.model_failures
        return environment.ports

    async def _open_system(self, workspace: Path) -> None:
        self._service = await open_layers(
            workspace / FOLDER,
            embedder=self._ports.embedder if self._choice.mode.is_durable else None,
            model=self._ports.chat if self._choice.has_model else None,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._choice.config,
            mode=self._choice.mode,
            place=await self._postgres.place(workspace) if self._choice.is_in_postgres else None,
            wrap=self._with_faults,
        )

    async def close(self) -> None:
        self._log.detach()
        await self._service.close()

    async def about(self) -> Mapping[str, str]:
        durable = self._choice.mode.is_durable
        return {
            "embedder": self._ports.embedder.model if durable else "none",
            "chat": self._ports.chat.name if self._choice.has_model else BY_RULES,
            "store": self._store_name() if durable else "memory only",
            "mode": str(self._choice.mode),
        }

    def _store_name(self) -> str:
        return f"postgres ({self._postgres.name})" if self._choice.is_in_postgres else "sqlite"

    async def settle(self) -> None:
        with self._in_harness_words():
            await self._service.settle()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        with self._in_harness_words():
            who = await self._who(scope)
            contents = [content_of_item(item) for item in items]
            done = await self._service.records.remember(who.owner, who.session, contents)
        return Receipt(items=[receipt_item(item, one) for item, one in zip(items, done, strict=True)])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        with self._in_harness_words():
            found = await self._service.records.get((await self._who(scope)).owner, _id(ref))
        return hit_of(found) if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        if query.min_score is not None or query.where or query.token_budget is not None:
            raise NotSupported("search.min_score" if query.min_score is not None else "search.where")
        if query.options:
            raise StoryError(f"search: layers have no option {next(iter(query.options))!r} for a search")
        layers = layers_of(query.kinds)
        with self._in_harness_words():
            found = await self._service.records.search((await self._who(scope)).owner, query.text, layers)
        return [hit_of(one.record, one) for one in found[: query.top_k or self._choice.config.top_k]]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        layers = layers_of(kinds)
        with self._in_harness_words():
            found = await self._service.records.listed((await self._who(scope)).owner, layers, limit=limit)
        return [hit_of(one) for one in found]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        with self._in_harness_words():
            who, content = await self._who(scope), content_of_item(item)
            edited = await self._service.records.edit(who.owner, _id(ref), content)
        return Receipt(items=[ReceiptItem(id=edited.id, text=item.text, outcome="updated", kind=str(edited.layer))])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        with self._in_harness_words():
            who = await self._who(scope)
            if ref == Ref():
                return any((await self._service.forget_owner(who.owner)).values())
            return bool(await self._service.records.delete(who.owner, [_id(ref)]))

    async def context(self, query: Query, scope: Scope) -> str:
        with self._in_harness_words():
            memory = await self._service.load_memory_for_turn(query.text, await self._who(scope))
        return memory_block(memory)

    async def say(self, text: str, scope: Scope) -> Turn:
        with self._in_harness_words():
            answer = await self._service.turn(text, await self._who(scope))
        return Turn(answer=answer.answer, context=answer.context)

    async def end_session(self, scope: Scope, reason: str) -> None:
        with self._in_harness_words():
            who, why = await self._who(scope), parse_reason(reason)
            if why is EndReason.SHUTDOWN:
                await self._service.end_all(why)
            elif why is EndReason.VOICE:
                await self._service.finalise_voice([], who)
            else:
                await self._service.end_session(who, why)

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        if job == EXTRACTOR:
            # No part that every memory has: the model's calls after the reply alone.
            self._ports.set_fault(EXTRACTOR, str(args.get("mode")))
            return None
        if job not in JOBS:
            raise NotSupported(f"job.{job}")
        with self._in_harness_words():
            return await run_job(self._service, job, args, await self._who(scope))

    async def inspect(self, what: str, args: Mapping[str, Json], scope: Scope) -> Json:
        since = int(args.get("since") or 0)
        match what:
            case "embedder":
                return self._ports.embedder.data(since)
            case "model":
                return self._ports.chat.data(since)
            case "log":
                return self._log.data(since)
            case "formula":
                return formula(args, self._choice.config)
            case _ if what in INSPECTED:
                with self._in_harness_words():
                    return await self._inspect_owner(what, args, scope)
            case _:
                raise NotSupported(f"inspect.{what}")

    async def _inspect_owner(self, what: str, args: Mapping[str, Json], scope: Scope) -> Json:
        if what == "identity" and args:
            return {"owner": resolve_owner_id(args, b"a key of the story")}
        # A session that the steps before were in: only they name it by themselves.
        session = args.get("session", scope.session)
        who = await self._who(Scope(user=scope.user, session=session))
        if what == "identity":
            return {"owner": who.owner, "session": who.session, "user_id": scope.user}
        return await look(self._service, what, args, who)

    async def _who(self, scope: Scope) -> Who:
        name = scope.user.removeprefix(self._env.owner).removeprefix(".")
        user = None if name in self._choice.anonymous else scope.user
        return await self._service.who(user, scope.session)

    def _with_faults(self, store: LayersStore) -> LayersStore:
        faulty = FaultyLayersStore(store)
        self._ports.switches["store"] = faulty
        return faulty

    @contextmanager
    def _in_harness_words(self) -> Iterator[None]:
        with super()._in_harness_words():
            yield
            if self._model_failures:
                raise self._model_failures[0]


class LayersFactory(EmbeddingFactory):
    """Shares the loaded embedding model and the server of Postgres among the cases of one worker."""

    name: ClassVar[str] = "layers"
    spec: ClassVar[str | None] = "memstory_reference.targets.layers.target:LayersFactory"

    def __init__(self) -> None:
        super().__init__()
        self._postgres = CasesPostgres()

    async def start(self, folder: Path) -> None:
        self._postgres.belong_to(folder)

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        return CAPABILITIES

    def target(self) -> Target:
        return LayersTarget(self._embedders.make, self._postgres)

    async def stop(self) -> None:
        await self._postgres.stop()
        await super().stop()


def _id(ref: Ref) -> str:
    if ref.key is not None and ref.id is None:
        raise NotSupported("get.key")
    if not ref.id:
        raise InputError("a record of the layers is named by its id")
    return ref.id
