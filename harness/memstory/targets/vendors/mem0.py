"""Mem0 with a vector store: it stores texts as they are, or, with a language model, what that makes of them."""

from __future__ import annotations

import asyncio
import json
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
from memstory.contract.errors import NotSupported, Refused, SetupError
from memstory.contract.installation import install_command
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
    operators_of,
)
from memstory.models.counted_model import CountedModel
from memstory.models.openai_server import NO_KEY
from memstory.targets.adapter import refuse_keys, refuse_undeclared, unknown_refusal
from memstory.targets.embedders import BlockingEmbedder, Embedders, Purpose, TimedEmbedder, vector_length
from memstory.targets.one_thread import OneThread
from memstory.targets.vendors.chroma import is_refusal
from memstory.targets.vendors.mem0_config import (
    NOTES,
    close_memory,
    drop_unused_collections,
    mem0_errors,
    note_collections,
    own_configuration,
    read_object,
)
from memstory.targets.vendors.model_inside import counted_model, spoiled_replies
from memstory.targets.vendors.postgres import OPTION, PostgresFactory, PostgresServers, PostgresTarget

CONFIG: Final = "config"
INFER: Final = "infer"

_OPERATORS: Final = {"ge": "gte", "le": "lte"}
_CAPABILITIES: Final[frozenset[Capability]] = frozenset(
    {
        *("add", "add.metadata", "add.role", "get.id", "list", "update"),
        *("search", "search.scores", "search.explain", "search.min_score", "search.where"),
        *("search.where.order", "search.where.ne", "search.where.in", "search.where.any"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("restart", "crash", "persistent", "scope.user", "scope.session", "scope.session_all"),
        *("embedder.fixed", "option.embedder", "option.llm", "option.llm_url", "option.ollama_host"),
        *(
            "llm.scripted",
            "fault.replies",
            "option.vector_store",
            f"option.{OPTION}",
            f"option.{CONFIG}",
            f"option.{INFER}",
        ),
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


# A key is asked for even where nothing is ever sent.
_NOBODY: Final = {"provider": "openai", "config": {"api_key": "not used"}}
_REASON_LIMIT: Final = 300


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


class _ConfiguredEmbedder:
    """The embedder that a configuration names, as Mem0 has made it of that."""

    def __init__(self, made: Any, name: str, file: str) -> None:
        self.model, self.made = name, made
        self._file = file

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return one vector a text; SetupError where there are none, which Mem0 would only log."""
        action = "search" if purpose == "query" else "add"
        try:
            vectors: Sequence[Sequence[float]] = await asyncio.to_thread(self.made.embed_batch, list(texts), action)
        except Exception as error:
            reason = " ".join(str(error).split())[:_REASON_LIMIT] or type(error).__name__
            raise SetupError(f"the embedder {self.model} of {self._file} gave no vectors: {reason}") from error
        return vectors


class Mem0Target(PostgresTarget):
    """A Mem0 memory in the workspace, one collection for all users as Mem0 has it; a session is a run of Mem0's."""

    not_default: ClassVar = {
        "infer off": "default on; with a language model, `llm`, it infers as by default",
        "top_k of a list": "default 20; a million where a story asks for everything",
        "embedder replaced": "default OpenAI's; all adapters embed alike",
        "telemetry off": "default on",
    }
    capabilities = _CAPABILITIES
    _memory: Any
    _embedding: _Embedding
    _infers: bool
    _store: str
    _about: Mapping[str, str]
    _made: Any
    _model: CountedModel | None = None

    def __init__(self, embedders: Embedders, servers: PostgresServers) -> None:
        super().__init__(embedders, servers)
        self._thread = OneThread("mem0")

    async def open(self, env: Environment, clock: Clock) -> None:
        infers = _infers(env.options)
        self._model = counted_model(env)
        self._infers = infers or self._model is not None
        if self._model is not None:
            own = {"llm": f"openai:{self._model.name}", "llm_url": self._model.url}
            env = replace(env, options={**env.options, **own})
        try:
            await (self._open_configured(env) if CONFIG in env.options else self._open_usual(env))
        except BaseException:
            self._end()
            raise
        # Mem0 takes embedders by the name of a provider alone; what it made of that name is called by ours, or never.
        self._made, self._memory.embedding_model = self._memory.embedding_model, self._embedding

    async def _open_usual(self, env: Environment) -> None:
        self.choose_embedder(env)
        self._embedding = _Embedding(BlockingEmbedder(self.embedder))
        store = _store(env.options)
        length = await vector_length(self.embedder, env)
        place = await self._database(env) if store == PGVECTOR else {"path": str(Path(env.workspace) / store)}
        self._memory = await self._thread.run(_open, _configuration(env, store, length, place))
        self._store = f"{STORES[store]} {version(STORES[store])}"
        self._about = {
            **({"server": self.server} if self.server else {}),
            "infer": str(env.options["llm"]) if self._infers else "off",
        }

    async def _open_configured(self, env: Environment) -> None:
        """Open it by the user's own configuration; an embedder that was chosen, and a model's rules, replace theirs."""
        file = str(env.options[CONFIG])
        written, length = read_object(CONFIG, env.options[CONFIG]), None
        others: dict[str, Tree] = {}
        if "embedder" in env.options:
            self.choose_embedder(env)
            length = await vector_length(self.embedder, env)
            others["embedder"] = _NOBODY
        if self._model is not None:
            others["llm"] = _language_model(env.options)
        own = await self._thread.run(
            lambda: own_configuration(written, env.workspace, file=file, others=others, length=length)
        )
        with mem0_errors(file):
            self._memory = await self._thread.run(_open, own.tree)
        if own.is_at_server:
            note_collections(env.workspace, own.tree)
        if length is None:
            name = _model_name(own.tree.get("embedder"), self._memory.embedding_model)
            self.embedder = TimedEmbedder(_ConfiguredEmbedder(self._memory.embedding_model, name, file))
            self.embedding = self.embedder.watch
        self._embedding = _Embedding(BlockingEmbedder(self.embedder))
        self._store = own.provider
        self._about = {
            "infer": _model_name(own.tree.get("llm"), self._memory.llm) if self._infers else "off",
            CONFIG: f"{Path(file).name}; of the case's own: {', '.join(own.changed)}",
        }

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
        self._end()

    def _end(self) -> None:
        self._thread.close()
        if self._model is not None:
            self._model.close()

    @property
    def model_use(self) -> ModelUse | None:
        return None if self._model is None else self._model.use

    async def about(self) -> Mapping[str, str]:
        scripted = {"infer": self._model.label} if self._model else {}
        return {**await super().about(), **self._about, **scripted}

    def store_name(self) -> str:
        return f"mem0ai {version('mem0ai')}, {self._store}"

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        refuse_keys(items)
        texts = [item.text for item in items]
        if not self._infers:
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
        filters = _filters(scope, query.kinds, query.where)
        if query.where_any:
            filters["OR"] = [_conditions(one) for one in query.where_any]
        return await self._thread.run(self._search, query.text, filters, given)

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

    async def fault(self, part: str, mode: str) -> None:
        if part != "model" or self._model is None:
            await super().fault(part, mode)
        else:
            self._model.spoil(mode)

    async def fault_counts(self) -> Mapping[str, int]:
        return {**await super().fault_counts(), "model": self._model.spoiled_replies if self._model else 0}

    async def inspect(self, what: str, args: Mapping[str, Json], scope: Scope) -> Json:
        if what != "model" or (self._model is None and self._infers):
            raise NotSupported(f"inspect.{what}", "only a model of OpenAI's protocol can be looked at")
        if self._model is None:
            return {"calls": 0, "log": []}
        since = args.get("since", 0)
        return self._model.data(since if isinstance(since, int) else 0)

    def _add(self, items: Sequence[Item], scope: Scope) -> Sequence[ReceiptItem]:
        # What a language model is given at once it takes for one conversation.
        # By their JSON: to Python, 1 and true are alike.
        by_metadata = groupby(items, lambda item: json.dumps(_metadata(item), sort_keys=True))
        alike = [[*group] for _, group in by_metadata] if not self._infers else [[one] for one in items]
        return [receipt for group in alike for receipt in self._add_group(group, scope)]

    def _add_group(self, items: Sequence[Item], scope: Scope) -> Sequence[ReceiptItem]:
        """Add texts with the same metadata in one call: Mem0 takes several messages, but one metadata for all."""
        messages = [{"role": item.role or "user", "content": item.text} for item in items]
        asked = self._model.use if self._model else ModelUse()
        with spoiled_replies(self._model), _refusals(ValueError):
            found = self._memory.add(messages, **_ids(scope), metadata=_metadata(items[0]) or None, infer=self._infers)[
                "results"
            ]
        kept = [ReceiptItem(id=one["id"], text=one["memory"], kind=items[0].kind) for one in found]
        # A language model may find nothing in a text that is worth keeping.
        said = self._model.last_reply(asked) if self._model else None
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
        self._memory.embedding_model = self._made
        close_memory(self._memory)


class Mem0Factory(PostgresFactory):
    """Mem0: `vector_store=` is where vectors go, `llm=PROVIDER:NAME` lets it infer; `config=FILE` is your own Mem0."""

    name: ClassVar[str] = "mem0"
    adapter = Mem0Target

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        can = super().capabilities(options) | ({"add.infer"} if _infers(options) else {"add.verbatim", "add.exact"})
        if CONFIG in options:
            read_object(CONFIG, options[CONFIG])
            # Vectors of a story need an embedder that is ours to replace.
            return can - ({"embedder.fixed", "fault.embedder", "fault.nan"} if "embedder" not in options else set())
        return can | ({"inspect.model"} if str(options.get("llm", "openai:")).startswith("openai:") else set())

    async def start(self, folder: Path) -> None:
        # Read once, when Mem0 is imported: it reports to its makers and keeps a file in the home folder otherwise.
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ.setdefault("MEM0_DIR", str(folder / "mem0"))
        # A child process of this one notes there what it has made on a server.
        os.environ.setdefault(NOTES, str(folder / "mem0-collections.jsonl"))
        await super().start(folder)

    async def stop(self) -> None:
        await asyncio.to_thread(drop_unused_collections)
        await super().stop()


def _configuration(env: Environment, store: str, size: int, place: Mapping[str, Tree]) -> dict[str, Tree]:
    length = {} if store == "chroma" else {"embedding_model_dims": size}
    return {
        "vector_store": {
            "provider": store,
            "config": {**place, "collection_name": "memories", **length},
        },
        "embedder": _NOBODY,
        "llm": _language_model(env.options) or _NOBODY,
        "history_db_path": str(Path(env.workspace) / "history.sqlite3"),
    }


def _infers(options: Mapping[str, Tree]) -> bool:
    """Say whether a language model decides what is kept: of its own accord, Mem0 lets one do it."""
    asked = options.get(INFER, CONFIG in options or "llm" in options)
    if not isinstance(asked, bool):
        raise SetupError(f"{INFER}={asked}; allowed: true, false")
    if CONFIG in options and (named := [one for one in ("llm", "vector_store", OPTION) if one in options]):
        raise SetupError(f"{named[0]}={options[named[0]]}: with {CONFIG}=… write it into that file")
    if asked and not {CONFIG, "llm"} & {*options}:
        raise SetupError(f"{INFER}=true needs a language model: llm=PROVIDER:MODEL, or {CONFIG}=FILE")
    return asked


def _model_name(part: Tree, made: Any) -> str:
    """Return the provider and the model of a part as Mem0 has made it."""
    provider = part.get("provider", "openai") if isinstance(part, dict) else "openai"
    return f"{provider}:{getattr(getattr(made, 'config', None), 'model', None) or 'its own choice'}"


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


def _conditions(where: Mapping[str, Tree]) -> dict[str, Tree]:
    return {
        name: {_OPERATORS.get(one, one): bound for one, bound in said.items()}
        if (said := operators_of(value))
        else value
        for name, value in where.items()
    }


def _filters(scope: Scope, kinds: Sequence[str], where: Mapping[str, Tree]) -> dict[str, Tree]:
    return {**_conditions(where), **({_KIND: {"in": list(kinds)}} if kinds else {}), **_ids(scope)}


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
