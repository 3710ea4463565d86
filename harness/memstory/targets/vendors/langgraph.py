"""LangGraph's stores with an index for searching by meaning, in memory, SQLite or Postgres; one namespace a user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import quote

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused, SetupError
from memstory.contract.target import (
    Answer,
    Capability,
    Environment,
    Hit,
    Item,
    Json,
    Query,
    Receipt,
    Ref,
    Request,
    Scope,
    Tree,
    operators_of,
)
from memstory.targets.adapter import IdSequence, receipt_item, refuse_undeclared, stored_receipt, unknown_refusal
from memstory.targets.embedders import (
    Embedders,
    EmbeddingFactory,
    EmbeddingTarget,
    Purpose,
    TimedEmbedder,
    vector_length,
)
from memstory.targets.rows import EMBEDS, ROWS
from memstory.targets.vendors.postgres import OPTION, PostgresFactory, PostgresServers, PostgresTarget, data_refusals
from memstory.targets.vendors.sqlite import loading_driver, name_of

if TYPE_CHECKING:
    import aiosqlite
    from langgraph.store.base import BaseStore, IndexConfig, SearchItem, TTLConfig
    from langgraph.store.base import Item as StoredItem
    from langgraph.store.postgres.base import PostgresIndexConfig


_OPERATORS: Final = {"gt": "$gt", "ge": "$gte", "lt": "$lt", "le": "$lte", "ne": "$ne"}
_CAPABILITIES: Final = ROWS | {
    *(*EMBEDS, "add.metadata.lists", "search.where", "search.where.order", "search.where.ne"),
    *("option.page_size", "option.sentences"),
}
OMIT_EXPIRED: Final = "omit_expired"
"""The option of Postgres by which what is over is gone before a sweep removes it; it is off, as the vendor has it."""

FACTORY: Final = "factory"
PERSISTENT: Final = "persistent"
_ON_DISK: Final[frozenset[Capability]] = frozenset({"restart", "crash", "persistent"})
_PAGE = 1_000
_USUAL_COUNT = 10
# Beside what the caller gives as metadata: a filter of the stores that are databases sees the first level only.
_OWN = "memstory_"
_TEXT, _SESSION, _KIND, _KEY = (f"{_OWN}{name}" for name in ("text", "session", "kind", "key"))
_SENTENCES = f"{_OWN}sentences"


class LanggraphTarget(EmbeddingTarget):
    """One of LangGraph's stores; a subclass says which, how it is opened and how it is closed."""

    not_default: ClassVar = {
        "index on the text": "default none, where a search goes by recency; all adapters embed alike",
    }
    capabilities = _CAPABILITIES
    _store: BaseStore
    _ids: IdSequence
    _by_sentence = False
    _page_size: int | None = None
    _room = "memories"
    _kind = "InMemoryStore"
    _index: list[str] | None = None

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        """Return the store, ready for use."""
        raise NotImplementedError

    async def open(self, env: Environment, clock: Clock) -> None:
        self.choose_embedder(env)
        fields = self.prepare(env)
        config = {"dims": await vector_length(self.embedder, env), "embed": self._embed, "fields": fields}
        self._store = await self.open_store(cast("IndexConfig", config), env)

    def prepare(self, env: Environment) -> list[str]:
        """Take the options that every store has; return the fields of a value that are to have vectors."""
        self._ids = IdSequence(env)
        self._by_sentence, self._page_size = bool(env.options.get("sentences")), _page_size(env.options)
        return [f"{_SENTENCES}[*]" if self._by_sentence else _TEXT]

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        from langgraph.store.base import PutOp  # noqa: PLC0415  (a vendor: only where it was chosen)

        ids = [item.key if item.key is not None else self._ids.next() for item in items]
        await self._store.abatch(
            [
                PutOp(
                    self._namespace(scope),
                    id_,
                    self._value(item, scope),
                    index=self._index,
                    ttl=None if item.ttl is None else item.ttl / 60,
                )
                for id_, item in zip(ids, items, strict=True)
            ]
        )
        return stored_receipt(items, ids)

    async def perform(self, request: Request[Answer]) -> Answer:
        from langgraph.store.base import InvalidNamespaceError  # noqa: PLC0415  (a vendor: only where it was chosen)

        try:
            return await super().perform(request)
        except InvalidNamespaceError as error:
            # Its own way to decline a name, such as an empty one.
            raise Refused(str(error)) from error

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self._store.aget(self._namespace(scope), _name(ref))
        return _hit(found, None) if found is not None and ref.kind in (None, found.value[_KIND]) else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, self.capabilities)
        wanted = _USUAL_COUNT if query.top_k is None else query.top_k
        where = _filter(scope, query.kinds, query.where)
        try:
            # At once or page by page, as an application does that shows them so.
            found = await self._pages(scope, where, self._page_size or wanted, wanted, query=query.text)
        except ValueError as error:
            if "operator" not in str(error):
                raise
            # Its own way to decline a condition, of which it has a language.
            raise Refused(str(error)) from error
        return [_hit(item, item.score) for item in found]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        found = await self._pages(scope, _filter(scope, kinds, {}), _PAGE, limit)
        return [_hit(item, None) for item in found]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        known = await self._store.aget(self._namespace(scope), _name(ref))
        if known is None:
            raise unknown_refusal(ref)
        own = {name: value for name, value in known.value.items() if name.startswith(_OWN)}
        metadata = dict(item.metadata) or _metadata(known)
        value = {**metadata, **own, **self._text_fields(item)}
        await self._store.aput(self._namespace(scope), known.key, value, index=self._index)
        return Receipt(items=[receipt_item(item, known.key, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            where = _filter(scope, [] if ref.kind is None else [ref.kind], {})
            found = [item.key for item in await self._pages(scope, where, _PAGE, None)]
        else:
            hit = await self.get(ref, scope)
            found = [_name(ref)] if hit is not None else []
        for key in found:
            await self._store.adelete(self._namespace(scope), key)
        return bool(found)

    async def _pages(
        self, scope: Scope, where: dict[str, Json] | None, size: int, wanted: int | None, query: str | None = None
    ) -> Sequence[SearchItem]:
        """Return the first `wanted` items, None for all: the store gives at most `size` at once."""
        found: list[SearchItem] = []
        while True:
            limit = size if wanted is None else min(size, wanted - len(found))
            page = await self._store.asearch(
                self._namespace(scope), query=query, filter=where, limit=limit, offset=len(found)
            )
            found += page
            if len(page) < limit or len(found) == wanted:
                return found

    def _namespace(self, scope: Scope) -> tuple[str, str]:
        return self._room, namespace_part(scope.user)

    def _text_fields(self, item: Item) -> dict[str, Json]:
        """Return the text as it is stored: whole, and once more by sentence where each has a vector."""
        sentences = [part for part in re.split(r"(?<=[.!?])\s+", item.text) if part] or [item.text]
        return {_TEXT: item.text, **({_SENTENCES: sentences} if self._by_sentence else {})}

    def _value(self, item: Item, scope: Scope) -> dict[str, Json]:
        return {**item.metadata, **self._text_fields(item), _SESSION: scope.session, _KIND: item.kind, _KEY: item.key}

    async def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        # The store does not say whether it embeds what is stored or what is asked.
        return await self.embedder.embed(texts, "document")


class LanggraphMemoryTarget(LanggraphTarget):
    """A store in memory, which goes with the target, or the one that the option `factory` makes.

    That function is called with a folder of the case's own, and returns a store, a coroutine or a context that gives
    one. In a store that others use too, the case has a namespace of its own.
    """

    def __init__(self, embedders: Embedders) -> None:
        super().__init__(embedders)
        self._stack = AsyncExitStack()

    async def open(self, env: Environment, clock: Clock) -> None:
        if FACTORY not in env.options:
            await super().open(env, clock)
            return
        self._index = self.prepare(env)
        self._room = f"memstory{blake2b(env.workspace.encode(), digest_size=12).hexdigest()}"
        self.embedder = TimedEmbedder(_StoreEmbedder())
        spec = str(env.options[FACTORY])
        self._store = await _open_own_store(spec, Path(env.workspace) / "store", self._stack)
        self._kind = f"{type(self._store).__name__} of {spec}"

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        from langgraph.store.memory import InMemoryStore  # noqa: PLC0415  (a vendor: only where it was chosen)

        return InMemoryStore(index=index)

    async def close(self) -> None:
        await self._stack.aclose()

    async def about(self) -> Mapping[str, str]:
        own = {"namespace": f"{self._room}, of the case's own"} if self._index else {}
        return {**await super().about(), **own}

    def store_name(self) -> str:
        return f"langgraph {version('langgraph')} {self._kind}"


class LanggraphFactory(EmbeddingFactory):
    """LangGraph's in-memory store, or your own: `factory=module:function`, `persistent=true` where it keeps on disk."""

    name: ClassVar[str] = "langgraph"
    adapter = LanggraphMemoryTarget

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        can = super().capabilities(options) | {f"option.{FACTORY}", f"option.{PERSISTENT}"}
        if FACTORY not in options:
            return can
        _check_spec(str(options[FACTORY]))
        if "embedder" in options:
            raise SetupError(f"embedder={options['embedder']}: with {FACTORY}=… the store has its own")
        return (can - {"embedder.fixed"}) | (_ON_DISK if options.get(PERSISTENT) else frozenset())


class _StoreEmbedder:
    """Stands for what a store embeds with by itself: nobody else asks it."""

    model = "the store's own"

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Refuse: the vectors are in the store."""
        raise NotSupported("embedder.fixed")


def _check_spec(spec: str) -> None:
    """Raise SetupError where `spec` does not read module:function, or there is no such module."""
    module, _, name = spec.partition(":")
    if not module or not name:
        raise SetupError(f"{FACTORY}={spec}; allowed: module:function, of a function that is given a folder")
    if find_spec(module.partition(".")[0]) is None:
        raise SetupError(f"{FACTORY}={spec}: there is no module '{module}' here. Type the command in its folder.")


def _call_function(spec: str, folder: Path) -> Any:
    """Return what the function of the project returns for a new folder."""
    _check_spec(spec)
    module, _, name = spec.partition(":")
    function = getattr(import_module(module), name, None)
    if not callable(function):
        raise SetupError(f"{FACTORY}={spec}: the module '{module}' has no function '{name}'")
    folder.mkdir(exist_ok=True)
    return function(str(folder))


async def _open_own_store(spec: str, folder: Path, stack: AsyncExitStack) -> BaseStore:
    """Return the store that the function makes; where it makes a context, `stack` leaves it."""
    from langgraph.store.base import BaseStore as Store  # noqa: PLC0415  (a vendor: only where it was chosen)

    made = _call_function(spec, folder)
    if isawaitable(made):
        made = await made
    # A store of LangGraph's may be a context itself, which is for its background task.
    if not isinstance(made, Store) and hasattr(made, "__aenter__"):
        made = await stack.enter_async_context(made)
    elif not isinstance(made, Store) and hasattr(made, "__enter__"):
        made = stack.enter_context(made)
    if not isinstance(made, Store):
        raise SetupError(f"{FACTORY}={spec} returned a {type(made).__name__}; allowed: a BaseStore of LangGraph's")
    return made


def namespace_part(name: str) -> str:
    """Return any name as a part of a namespace of LangGraph's, in which a dot has its own meaning, and is refused."""
    return quote(name, safe="").replace(".", "%2E")


def _name(ref: Ref) -> str:
    return ref.id or ref.key or ""


def _page_size(options: Mapping[str, Tree]) -> int | None:
    size = options.get("page_size")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise SetupError(f"page_size={size}: give a whole number, 1 or more, or leave it out to ask for all at once")
    return size


def _filter(scope: Scope, kinds: Sequence[str], where: Mapping[str, Json]) -> dict[str, Json] | None:
    if len(kinds) > 1:
        raise NotSupported("search.kinds", "the filter of a LangGraph store takes one kind at a time")
    session = {_SESSION: scope.session} if scope.session is not None else {}
    kind = {_KIND: kinds[0]} if kinds else {}
    conditions = {
        name: {_OPERATORS[one]: bound for one, bound in said.items()} if (said := operators_of(value)) else value
        for name, value in where.items()
    }
    return {**conditions, **session, **kind} or None


def _metadata(item: StoredItem) -> dict[str, Json]:
    return {name: value for name, value in item.value.items() if not name.startswith(_OWN)}


def _hit(item: StoredItem, score: float | None) -> Hit:
    value = item.value
    return Hit(
        id=item.key, text=value[_TEXT], score=score, kind=value[_KIND], key=value[_KEY], metadata=_metadata(item)
    )


# What `aiosqlite.connect` sets: how many rows it fetches at once.
_ROWS_AT_ONCE = 64


class LanggraphDatabase(LanggraphTarget):
    """A store on disk, from which what has expired is swept."""

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        if job != "sweep":
            raise NotSupported(f"job.{job}")
        return int(await cast("Any", self._store).sweep_ttl())


class LanggraphSqliteTarget(LanggraphDatabase):
    """The asynchronous store, on a connection that can load extensions."""

    # The store does not embed the text alone (see docs/how-to/backends.md), so that vectors of texts do not fit it.
    capabilities = (_CAPABILITIES - {"embedder.fixed"}) | {
        *("add.ttl", "restart", "restart.embedder", "crash", "other_process", "persistent", "job.sweep")
    }

    _driver: Any
    _connection: aiosqlite.Connection

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        import aiosqlite  # noqa: PLC0415  (a vendor: only where it was chosen)
        from langgraph.store.sqlite.aio import AsyncSqliteStore  # noqa: PLC0415  (the same)

        self._driver = loading_driver()
        path = Path(env.workspace) / "langgraph.sqlite3"
        # As the store's own `from_conn_string` opens it, except for the driver.
        connect = partial(self._driver.connect, path, isolation_level=None)
        self._connection = await aiosqlite.Connection(connect, _ROWS_AT_ONCE)
        store = AsyncSqliteStore(self._connection, index=index)
        await store.setup()
        return store

    async def close(self) -> None:
        await self._connection.close()

    async def about(self) -> Mapping[str, str]:
        return {**await super().about(), "driver": name_of(self._driver)}

    def store_name(self) -> str:
        return f"langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')} AsyncSqliteStore"


class LanggraphSqliteFactory(EmbeddingFactory):
    """LangGraph's SQLite store, with the embedder that the reference uses too."""

    name: ClassVar[str] = "langgraph-sqlite"
    adapter = LanggraphSqliteTarget


class LanggraphPostgresTarget(PostgresTarget, LanggraphDatabase):
    """The asynchronous store on one connection, as its own `from_conn_string` makes it."""

    # A second process would start a second server.
    capabilities = (LanggraphSqliteTarget.capabilities - {"other_process"}) | {
        *("embedder.fixed", f"option.{OPTION}", f"option.{OMIT_EXPIRED}")
    }

    def __init__(self, embedders: Embedders, servers: PostgresServers) -> None:
        super().__init__(embedders, servers)
        self._stack = AsyncExitStack()

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        from langgraph.store.postgres.aio import AsyncPostgresStore  # noqa: PLC0415  (a vendor: only where chosen)

        address = await self.schema_address(env)
        ttl: TTLConfig | None = {"omit_expired": True} if env.options.get(OMIT_EXPIRED) else None
        connecting = AsyncPostgresStore.from_conn_string(address, index=cast("PostgresIndexConfig", index), ttl=ttl)
        store = await self._stack.enter_async_context(connecting)
        await store.setup()
        return store

    async def close(self) -> None:
        await self._stack.aclose()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        with data_refusals():
            return await super().add(items, scope)

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        with data_refusals():
            return await super().update(ref, item, scope)

    async def about(self) -> Mapping[str, str]:
        return {**await super().about(), "server": str(self.server)}

    def store_name(self) -> str:
        return f"langgraph-checkpoint-postgres {version('langgraph-checkpoint-postgres')} AsyncPostgresStore"


class LanggraphPostgresFactory(PostgresFactory):
    """LangGraph's Postgres store, with the embedder that the reference uses too; MEMSTORY_POSTGRES names the server."""

    name: ClassVar[str] = "langgraph-postgres"
    adapter = LanggraphPostgresTarget
