"""LangGraph's stores with an index for searching by meaning, in memory, SQLite or Postgres; one namespace a user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import quote

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused, SetupError
from memstory.contract.target import (
    Environment,
    Hit,
    Item,
    Json,
    Query,
    Receipt,
    Ref,
    Scope,
    Tree,
)
from memstory.targets.adapter import IdSequence, receipt_item, refuse_undeclared, stored_receipt, unknown_refusal
from memstory.targets.embedders import Embedders, EmbeddingFactory, EmbeddingTarget, vector_length
from memstory.targets.rows import EMBEDS, ROWS
from memstory.targets.vendors.postgres import OPTION, PostgresFactory, PostgresServers, PostgresTarget, data_refusals
from memstory.targets.vendors.sqlite import loading_driver, name_of

if TYPE_CHECKING:
    import aiosqlite
    from langgraph.store.base import BaseStore, IndexConfig, SearchItem, TTLConfig
    from langgraph.store.base import Item as StoredItem
    from langgraph.store.postgres.base import PostgresIndexConfig
    from langgraph.store.sqlite.aio import AsyncSqliteStore


_CAPABILITIES: Final = ROWS | EMBEDS | {"add.metadata.lists", "search.where", "option.page_size", "option.sentences"}
TIME_TO_LIVE: Final = {"refresh_on_read": False, "omit_expired": True}
"""How the stores that are databases treat what is over: as gone, before a sweep removes it."""

_PAGE = 1_000
_USUAL_COUNT = 10
# Beside what the caller gives as metadata: a filter of the stores that are databases sees the first level only.
_OWN = "memstory_"
_TEXT, _SESSION, _KIND, _KEY = (f"{_OWN}{name}" for name in ("text", "session", "kind", "key"))
_SENTENCES = f"{_OWN}sentences"


class LanggraphTarget(EmbeddingTarget):
    """One of LangGraph's stores; a subclass says which, how it is opened and how it is closed."""

    capabilities = _CAPABILITIES
    _store: BaseStore
    _ids: IdSequence
    _by_sentence = False
    _page_size: int | None = None

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        """Return the store, ready for use."""
        raise NotImplementedError

    async def open(self, env: Environment, clock: Clock) -> None:
        self.choose_embedder(env)
        self._ids = IdSequence(env)
        self._by_sentence, self._page_size = bool(env.options.get("sentences")), _page_size(env.options)
        fields = [f"{_SENTENCES}[*]" if self._by_sentence else _TEXT]
        config = {"dims": await vector_length(self.embedder, env), "embed": self._embed, "fields": fields}
        self._store = await self.open_store(cast("IndexConfig", config), env)

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        from langgraph.store.base import PutOp  # noqa: PLC0415  (a vendor: only where it was chosen)

        ids = [item.key if item.key is not None else self._ids.next() for item in items]
        await self._store.abatch(
            [
                PutOp(_namespace(scope), id_, self._value(item, scope), ttl=None if item.ttl is None else item.ttl / 60)
                for id_, item in zip(ids, items, strict=True)
            ]
        )
        return stored_receipt(items, ids)

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self._store.aget(_namespace(scope), _name(ref))
        return _hit(found, None) if found is not None and ref.kind in (None, found.value[_KIND]) else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, self.capabilities)
        try:
            found = await self._search_pages(query, scope)
        except ValueError as error:
            if "operator" not in str(error):
                raise
            # Its own way to decline a condition, of which it has a language.
            raise Refused(str(error)) from error
        return [_hit(item, item.score) for item in found]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return [_hit(item, None) for item in await self._everything(scope, kinds)][:limit]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        known = await self._store.aget(_namespace(scope), _name(ref))
        if known is None:
            raise unknown_refusal(ref)
        own = {name: value for name, value in known.value.items() if name.startswith(_OWN)}
        metadata = dict(item.metadata) or _metadata(known)
        await self._store.aput(_namespace(scope), known.key, {**metadata, **own, **self._text_fields(item)})
        return Receipt(items=[receipt_item(item, known.key, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            found = [item.key for item in await self._everything(scope, [ref.kind] if ref.kind is not None else [])]
        else:
            hit = await self.get(ref, scope)
            found = [_name(ref)] if hit is not None else []
        for key in found:
            await self._store.adelete(_namespace(scope), key)
        return bool(found)

    async def _search_pages(self, query: Query, scope: Scope) -> Sequence[SearchItem]:
        """Return the hits, asked for at once or page by page, as an application does that shows them so."""
        where, wanted = _filter(scope, query.kinds, query.where), _USUAL_COUNT if query.top_k is None else query.top_k
        found: list[SearchItem] = []
        while len(found) < wanted or not found:
            size = min(self._page_size or wanted, wanted - len(found))
            page = await self._store.asearch(
                _namespace(scope), query=query.text, filter=where, limit=size, offset=len(found)
            )
            found += page
            if len(page) < size or not size:
                break
        return found

    def _text_fields(self, item: Item) -> dict[str, Json]:
        """Return the text as it is stored: whole, and once more by sentence where each has a vector."""
        sentences = [part for part in re.split(r"(?<=[.!?])\s+", item.text) if part] or [item.text]
        return {_TEXT: item.text, **({_SENTENCES: sentences} if self._by_sentence else {})}

    def _value(self, item: Item, scope: Scope) -> dict[str, Json]:
        return {**item.metadata, **self._text_fields(item), _SESSION: scope.session, _KIND: item.kind, _KEY: item.key}

    async def _everything(self, scope: Scope, kinds: Sequence[str]) -> Sequence[SearchItem]:
        """Return everything in scope, page by page: the store gives at most `limit` at once."""
        found: Sequence[SearchItem] = ()
        while True:
            page = await self._store.asearch(
                _namespace(scope), filter=_filter(scope, kinds, {}), limit=_PAGE, offset=len(found)
            )
            found = [*found, *page]
            if len(page) < _PAGE:
                return found

    async def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        # The store does not say whether it embeds what is stored or what is asked.
        return await self.embedder.embed(texts, "document")


class InMemoryTarget(LanggraphTarget):
    """A store in memory: it goes with the target."""

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        from langgraph.store.memory import InMemoryStore  # noqa: PLC0415  (a vendor: only where it was chosen)

        return InMemoryStore(index=index)

    async def close(self) -> None:
        return None

    async def about(self) -> Mapping[str, str]:
        return {"embedder": self.embedder.model, "store": f"langgraph {version('langgraph')} InMemoryStore"}


class LanggraphFactory(EmbeddingFactory):
    """LangGraph's in-memory store, with the embedder that the reference uses too."""

    name: ClassVar[str] = "langgraph"
    adapter = InMemoryTarget


def _namespace(scope: Scope) -> tuple[str, str]:
    # A dot has its own meaning in namespaces, and is refused.
    return "memories", quote(scope.user, safe="").replace(".", "%2E")


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
    return {**where, **session, **kind} or None


def _metadata(item: StoredItem) -> dict[str, Json]:
    return {name: value for name, value in item.value.items() if not name.startswith(_OWN)}


def _hit(item: StoredItem, score: float | None) -> Hit:
    value = item.value
    return Hit(
        id=item.key, text=value[_TEXT], score=score, kind=value[_KIND], key=value[_KEY], metadata=_metadata(item)
    )


# What `aiosqlite.connect` sets: how many rows it fetches at once.
_ROWS_AT_ONCE = 64


class SqliteTarget(LanggraphTarget):
    """The asynchronous store, on a connection that can load extensions."""

    # The store does not embed the text alone (see docs/how-to/backends.md), so that vectors of texts do not fit it.
    capabilities = (_CAPABILITIES - {"embedder.fixed"}) | {
        *("add.ttl", "restart", "restart.embedder", "crash", "other_process", "persistent")
    }

    _driver: Any
    _connection: aiosqlite.Connection
    _sweeping: AsyncSqliteStore

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        import aiosqlite  # noqa: PLC0415  (a vendor: only where it was chosen)
        from langgraph.store.sqlite.aio import AsyncSqliteStore  # noqa: PLC0415  (the same)

        self._driver = loading_driver()
        path = Path(env.workspace) / "langgraph.sqlite3"
        # As the store's own `from_conn_string` opens it, except for the driver.
        connect = partial(self._driver.connect, path, isolation_level=None)
        self._connection = await aiosqlite.Connection(connect, _ROWS_AT_ONCE)
        store = AsyncSqliteStore(self._connection, index=index, ttl=cast("TTLConfig", TIME_TO_LIVE))
        await store.setup()
        self._sweeping = store
        return store

    async def settle(self) -> None:
        # What its sweeper does by itself every few minutes: until then the store gives what is over.
        await self._sweeping.sweep_ttl()

    async def close(self) -> None:
        await self._connection.close()

    async def about(self) -> Mapping[str, str]:
        store = f"langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')} AsyncSqliteStore"
        return {"embedder": self.embedder.model, "store": store, "driver": name_of(self._driver)}


class LanggraphSqliteFactory(EmbeddingFactory):
    """LangGraph's SQLite store, with the embedder that the reference uses too."""

    name: ClassVar[str] = "langgraph-sqlite"
    adapter = SqliteTarget


class LanggraphPostgresTarget(PostgresTarget, LanggraphTarget):
    """The asynchronous store on one connection, as its own `from_conn_string` makes it."""

    # A second process would start a second server.
    capabilities = (SqliteTarget.capabilities - {"other_process"}) | {"embedder.fixed", f"option.{OPTION}"}

    def __init__(self, embedders: Embedders, servers: PostgresServers) -> None:
        super().__init__(embedders, servers)
        self._stack = AsyncExitStack()

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        from langgraph.store.postgres.aio import AsyncPostgresStore  # noqa: PLC0415  (a vendor: only where chosen)

        address = await self.schema_address(env)
        connecting = AsyncPostgresStore.from_conn_string(
            address, index=cast("PostgresIndexConfig", index), ttl=cast("TTLConfig", TIME_TO_LIVE)
        )
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
        store = f"langgraph-checkpoint-postgres {version('langgraph-checkpoint-postgres')} AsyncPostgresStore"
        return {"embedder": self.embedder.model, "store": store, "server": str(self.server)}


class LanggraphPostgresFactory(PostgresFactory):
    """LangGraph's Postgres store, with the embedder that the reference uses too; MEMSTORY_POSTGRES names the server."""

    name: ClassVar[str] = "langgraph-postgres"
    adapter = LanggraphPostgresTarget
