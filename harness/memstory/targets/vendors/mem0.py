"""Mem0 with a vector store: it stores texts as they are, or, with a language model, what that makes of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused, SetupError, install_command
from memstory.contract.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Json,
    ModelUse,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    Tree,
)
from memstory.models.counted_model import CountedModel
from memstory.targets.adapter import refuse_keys, refuse_undeclared, unknown_refusal
from memstory.targets.embedders import BlockingEmbedder, Embedders, vector_length
from memstory.targets.one_thread import OneThread
from memstory.targets.vendors.chroma import is_refusal
from memstory.targets.vendors.model_inside import NO_KEY, counted_model
from memstory.targets.vendors.postgres import OPTION, PostgresFactory, PostgresServers, PostgresTarget

_CAPABILITIES: Final[frozenset[Capability]] = frozenset(
    {
        *("add", "add.metadata", "get.id", "list", "update"),
        *("search", "search.scores", "search.explain", "search.min_score", "search.where"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("restart", "crash", "persistent", "scope.user", "scope.session", "scope.session_all"),
        *("embedder.fixed", "option.embedder", "option.llm", "option.llm_url", "option.ollama_host"),
        *("llm.scripted", "option.vector_store", f"option.{OPTION}"),
    }
)
PGVECTOR: Final = "pgvector"
STORES: Final[Mapping[str, str]] = {
    "qdrant": "qdrant-client",
    "chroma": "chromadb",
    "faiss": "faiss-cpu",
    PGVECTOR: "psycopg",
}
"""The vector stores that `vector_store` names, each with its distribution; all but pgvector keep files."""

_KIND: Final = "memstory_kind"
# `get_all` returns 20 by default.
_EVERYTHING: Final = 1_000_000


class _Embedding:
    """The chosen embedder as Mem0 calls one; the vectors of a whole list of items are made ahead, at once."""

    def __init__(self, embedder: BlockingEmbedder) -> None:
        self._embedder = embedder
        self.ahead: Mapping[str, Sequence[float]] = {}

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Return one vector."""
        return list(self.ahead[text]) if text in self.ahead else self.embed_batch([text], memory_action)[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        """Return one vector a text."""
        vectors = self._embedder.embed(texts, "query" if memory_action == "search" else "document")
        return [list(vector) for vector in vectors]


class Mem0Target(PostgresTarget):
    """A Mem0 memory in the workspace, one collection for all users as Mem0 has it; a session is a run of Mem0's."""

    capabilities = _CAPABILITIES
    _memory: Any
    _embedding: _Embedding
    _llm: str | None
    _store: str
    _model: CountedModel | None = None

    def __init__(self, embedders: Embedders, servers: PostgresServers) -> None:
        super().__init__(embedders, servers)
        self._thread = OneThread("mem0")

    async def open(self, env: Environment, clock: Clock) -> None:
        self._model = counted_model(env)
        if self._model is not None:
            own = {"llm": f"openai:{self._model.name}", "llm_url": self._model.url}
            env = replace(env, options={**env.options, **own})
        llm = env.options.get("llm")
        self._llm = None if llm is None else str(llm)
        self.choose_embedder(env)
        self._embedding = _Embedding(BlockingEmbedder(self.embedder))
        self._store = _store(env.options)
        length = await vector_length(self.embedder, env)
        place = (
            await self._database(env) if self._store == PGVECTOR else {"path": str(Path(env.workspace) / self._store)}
        )
        self._memory = await self._thread.run(_open, _configuration(env, self._store, length, place))
        # Mem0 takes embedders by the name of a provider alone; what it made of that name is never called.
        self._memory.embedding_model = self._embedding

    async def _database(self, env: Environment) -> dict[str, Tree]:
        """Return where Mem0's tables are: in a schema of the workspace, which has its own name on the server."""
        missing = [name for name in ("psycopg", "psycopg_pool") if find_spec(name) is None]
        if missing:
            raise SetupError(
                f"vector_store={PGVECTOR} needs the package '{missing[0]}', which is not installed. "
                f"Install it with: {install_command('mem0-pgvector')}"
            )
        return {"connection_string": await self.schema_address(env)}

    async def close(self) -> None:
        await self._thread.run(self._close)
        self._thread.close()
        if self._model is not None:
            self._model.close()

    @property
    def model_use(self) -> ModelUse | None:
        return None if self._model is None else self._model.use

    async def about(self) -> Mapping[str, str]:
        vectors = STORES[self._store]
        store = f"mem0ai {version('mem0ai')}, {vectors} {version(vectors)}"
        return {
            "embedder": self.embedder.model,
            "store": store,
            **({"server": self.server} if self.server else {}),
            "infer": self._model.label if self._model else self._llm or "off",
        }

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        refuse_keys(items)
        texts = [item.text for item in items]
        if self._llm is None:
            vectors = await self.embedder.embed(texts, "document")
            self._embedding.ahead = dict(zip(texts, vectors, strict=True))
        try:
            return Receipt(items=await self._thread.run(self._add, items, scope))
        finally:
            # That the model gave no answer comes first, whatever Mem0 makes of that.
            if self._model is not None:
                self._model.check()

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        if ref.id is None:
            raise NotSupported("get.key")
        found = await self._thread.run(self._memory.get, ref.id)
        hit = _hit(found) if found is not None else None
        return hit if hit is not None and ref.kind in (None, hit.kind) else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, _CAPABILITIES)
        asked = {"top_k": query.top_k, "threshold": query.min_score}
        given = {name: value for name, value in asked.items() if value is not None}
        return await self._thread.run(self._search, query.text, _filters(scope, query.kinds, query.where), given)

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return await self._thread.run(self._list, _filters(scope, kinds, {}), limit)

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        known = await self.get(ref, scope)
        if known is None or known.id is None:
            raise unknown_refusal(ref)
        with _refusals():
            await self._thread.run(self._memory.update, known.id, item.text, dict(item.metadata) or None)
        return Receipt(items=[ReceiptItem(id=known.id, text=item.text, outcome="updated", kind=item.kind)])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            return await self._thread.run(self._delete_all, scope, [ref.kind] if ref.kind is not None else [])
        known = await self.get(ref, scope)
        if known is not None:
            await self._thread.run(self._memory.delete, known.id)
        return known is not None

    async def inspect(self, what: str, args: Mapping[str, Json], scope: Scope) -> Json:
        if what != "model" or (self._model is None and self._llm is not None):
            raise NotSupported(f"inspect.{what}", "only a model of OpenAI's protocol can be looked at")
        if self._model is None:
            return {"calls": 0, "log": []}
        since = args.get("since", 0)
        return self._model.data(since if isinstance(since, int) else 0)

    def _add(self, items: Sequence[Item], scope: Scope) -> Sequence[ReceiptItem]:
        # What a language model is given at once it takes for one conversation.
        alike = [[*group] for _, group in groupby(items, _metadata)] if self._llm is None else [[one] for one in items]
        return [receipt for group in alike for receipt in self._add_group(group, scope)]

    def _add_group(self, items: Sequence[Item], scope: Scope) -> Sequence[ReceiptItem]:
        """Add texts with the same metadata in one call: Mem0 takes several messages, but one metadata for all."""
        messages = [{"role": "user", "content": item.text} for item in items]
        asked = self._model.use if self._model else ModelUse()
        with _refusals(ValueError):
            found = self._memory.add(
                messages, **_ids(scope), metadata=_metadata(items[0]) or None, infer=self._llm is not None
            )["results"]
        kept = [ReceiptItem(id=one["id"], text=one["memory"], kind=items[0].kind) for one in found]
        # A language model may find nothing in a text that is worth keeping.
        said = self._model.said(asked) if self._model else None
        dropped = ReceiptItem(id=None, text="", outcome="dropped", reason=said, kind=items[0].kind)
        return kept or [replace(dropped, text=item.text) for item in items]

    def _search(self, text: str, filters: dict[str, Tree], given: dict[str, Any]) -> Sequence[Hit]:
        with _refusals(ValueError):
            found = self._memory.search(text, filters=filters, explain=True, **given)
        return [_hit(one) for one in found["results"]]

    def _list(self, filters: dict[str, Tree], limit: int | None) -> Sequence[Hit]:
        with _refusals(ValueError):
            found = self._memory.get_all(filters=filters, top_k=_EVERYTHING if limit is None else limit)
        return [_hit(one) for one in found["results"]]

    def _delete_all(self, scope: Scope, kinds: Sequence[str]) -> bool:
        # Mem0 does not say whether there was anything to delete, and knows no kinds.
        found = self._list(_filters(scope, kinds, {}), None)
        if not kinds:
            self._memory.delete_all(**_ids(scope))
        for hit in found if kinds else ():
            self._memory.delete(hit.id)
        return bool(found)

    def _close(self) -> None:
        self._memory.close()
        # Mem0's own `close` leaves open what it speaks to: Qdrant, which locks its folder, Postgres, and the model.
        if self._store == "qdrant":
            self._memory.vector_store.client.close()
        if self._store == PGVECTOR:
            # The second store, of entities, is made by the first search.
            for store in filter(None, (self._memory.vector_store, self._memory._entity_store)):  # noqa: SLF001  (as above)
                store.connection_pool.close()
        client = getattr(self._memory.llm, "client", None)
        if client is not None:
            client.close()


class Mem0Factory(PostgresFactory):
    """Mem0 with the reference's embedder; `vector_store=` says where vectors go, `llm=PROVIDER:NAME` lets it infer."""

    name: ClassVar[str] = "mem0"
    adapter = Mem0Target

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        llm = options.get("llm")
        if llm is None:
            return _CAPABILITIES | {"add.verbatim", "add.exact", "inspect.model"}
        return _CAPABILITIES | {"add.infer", *(["inspect.model"] if str(llm).startswith("openai:") else [])}

    async def start(self, folder: Path) -> None:
        # Read once, when Mem0 is imported: it reports to its makers and keeps a file in the home folder otherwise.
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ.setdefault("MEM0_DIR", str(folder / "mem0"))
        await super().start(folder)


def _configuration(env: Environment, store: str, size: int, place: Mapping[str, Tree]) -> dict[str, Tree]:
    length = {} if store == "chroma" else {"embedding_model_dims": size}
    # A key is asked for even where nothing is ever sent.
    nobody = {"provider": "openai", "config": {"api_key": "not used"}}
    return {
        "vector_store": {
            "provider": store,
            "config": {**place, "collection_name": "memories", **length},
        },
        "embedder": nobody,
        "llm": _language_model(env.options) or nobody,
        "history_db_path": str(Path(env.workspace) / "history.sqlite3"),
    }


def _store(options: Mapping[str, Tree]) -> str:
    store = str(options.get("vector_store", "qdrant"))
    if store not in STORES:
        raise SetupError(f"vector_store={store}: Mem0 has more stores, but those that run here are {', '.join(STORES)}")
    return store


def _language_model(options: Mapping[str, Tree]) -> dict[str, Tree] | None:
    asked = options.get("llm")
    if asked is None:
        return None
    provider, _, model = str(asked).partition(":")
    if not model:
        raise SetupError(f"llm={asked}: give PROVIDER:MODEL in Mem0's words, such as ollama:llama3.2")
    host = {"ollama_base_url": options["ollama_host"]} if "ollama_host" in options else {}
    # Cold and seeded, so that a run can be repeated as far as the model allows it.
    server = {"temperature": 0, **({"openai_base_url": options["llm_url"]} if "llm_url" in options else {})}
    key = {"api_key": NO_KEY} if provider == "openai" else {}
    return {"provider": provider, "config": {"model": model, **host, **(server if provider == "openai" else {}), **key}}


def _open(configuration: dict[str, Tree]) -> Any:
    # Takes seconds: only where it was chosen.
    mem0, telemetry = import_module("mem0"), import_module("mem0.memory.telemetry")
    if telemetry.MEM0_TELEMETRY:
        raise SetupError("Mem0 was imported before, with its telemetry on: set MEM0_TELEMETRY=False and start again")
    return mem0.Memory.from_config(configuration)


@contextmanager
def _refusals(*kinds: type[Exception]) -> Iterator[None]:
    """Tell what Mem0 refuses by errors of these kinds, and what Chroma inside it refuses, from a memory that breaks."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, kinds) and not is_refusal(error):
            raise
        raise Refused(str(error)) from error


def _ids(scope: Scope) -> dict[str, str]:
    return {"user_id": scope.user, **({"run_id": scope.session} if scope.session is not None else {})}


def _filters(scope: Scope, kinds: Sequence[str], where: Mapping[str, Tree]) -> dict[str, Tree]:
    return {**where, **({_KIND: {"in": list(kinds)}} if kinds else {}), **_ids(scope)}


def _metadata(item: Item) -> dict[str, Tree]:
    return {**item.metadata, **({_KIND: item.kind} if item.kind is not None else {})}


def _hit(found: Mapping[str, Tree]) -> Hit:
    metadata = dict(found.get("metadata") or {})
    return Hit(
        id=found["id"],
        text=found["memory"],
        score=found.get("score"),
        kind=metadata.pop(_KIND, None),
        created_at=found["created_at"],
        metadata=metadata,
        explain=found.get("score_details"),
    )
