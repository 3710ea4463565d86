"""LangGraph's stores with an index for searching by meaning; one namespace a user. Here the one in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar, Final, cast
from urllib.parse import quote

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused, SetupError
from memstory.contract.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Json,
    Query,
    Receipt,
    Ref,
    Scope,
    Target,
    Tree,
)
from memstory.targets.conditions import refuse_undeclared
from memstory.targets.embedders import Embedders, TimedEmbedder
from memstory.targets.embedding_factory import EmbeddingFactory, vector_length
from memstory.targets.given_ids import GivenIds
from memstory.targets.receipts import stored, unknown, updated

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore, IndexConfig, SearchItem
    from langgraph.store.base import Item as StoredItem

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *("add.metadata", "add.metadata.lists"),
        *("add", "add.key", "add.verbatim", "add.exact", "get.id", "get.key", "list", "update"),
        *("search", "search.scores", "search.where"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("scope.user", "scope.session", "scope.session_all", "embedder.fixed", "option.embedder"),
        *("option.page_size", "option.sentences"),
    }
)
TIME_TO_LIVE: Final = {"refresh_on_read": False, "omit_expired": True}
"""How the stores that are databases treat what is over: as gone, before a sweep removes it."""

_PAGE = 1_000
_USUAL_COUNT = 10
# Beside what the caller gives as metadata: a filter of the stores that are databases sees the first level only.
_OWN = "memstory_"
_TEXT, _SESSION, _KIND, _KEY = (f"{_OWN}{name}" for name in ("text", "session", "kind", "key"))
_SENTENCES = f"{_OWN}sentences"


class LanggraphTarget(Target):
    """One of LangGraph's stores; a subclass says which, how it is opened and how it is closed."""

    _store: BaseStore
    _embedder: TimedEmbedder
    _ids: GivenIds
    _by_sentence = False
    _page_size: int | None = None

    def __init__(self, embedders: Embedders) -> None:
        self._embedders = embedders

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        """Return the store, ready for use."""
        raise NotImplementedError

    async def open(self, env: Environment, clock: Clock) -> None:
        self._embedder, self._ids = self._embedders.of(env), GivenIds(env)
        self.embedding = self._embedder.watch
        self._by_sentence, self._page_size = bool(env.options.get("sentences")), _page_size(env.options)
        fields = [f"{_SENTENCES}[*]" if self._by_sentence else _TEXT]
        config = {"dims": await vector_length(self._embedder, env), "embed": self._embed, "fields": fields}
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
        return stored(items, ids)

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self._store.aget(_namespace(scope), _name(ref))
        return _hit(found, None) if found is not None and ref.kind in (None, found.value[_KIND]) else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, CAPABILITIES)
        try:
            found = await self._found(query, scope)
        except ValueError as error:
            if "operator" not in str(error):
                raise
            # Its own way to decline a condition, of which it has a language.
            raise Refused(str(error)) from error
        return [_hit(item, item.score) for item in found]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return [_hit(item, None) for item in await self._listed(scope, kinds)][:limit]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        known = await self._store.aget(_namespace(scope), _name(ref))
        if known is None:
            raise unknown(ref)
        own = {name: value for name, value in known.value.items() if name.startswith(_OWN)}
        metadata = dict(item.metadata) or _metadata(known)
        await self._store.aput(_namespace(scope), known.key, {**metadata, **own, **self._told(item)})
        return updated(item, known.key)

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            found = [item.key for item in await self._listed(scope, [ref.kind] if ref.kind is not None else [])]
        else:
            hit = await self.get(ref, scope)
            found = [_name(ref)] if hit is not None else []
        for key in found:
            await self._store.adelete(_namespace(scope), key)
        return bool(found)

    async def _found(self, query: Query, scope: Scope) -> Sequence[SearchItem]:
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

    def _told(self, item: Item) -> dict[str, Json]:
        """Return the text as it is stored: whole, and once more by sentence where each has a vector."""
        sentences = [part for part in re.split(r"(?<=[.!?])\s+", item.text) if part] or [item.text]
        return {_TEXT: item.text, **({_SENTENCES: sentences} if self._by_sentence else {})}

    def _value(self, item: Item, scope: Scope) -> dict[str, Json]:
        return {**item.metadata, **self._told(item), _SESSION: scope.session, _KIND: item.kind, _KEY: item.key}

    async def _listed(self, scope: Scope, kinds: Sequence[str]) -> Sequence[SearchItem]:
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
        return await self._embedder.embed(texts, "document")


class InMemoryTarget(LanggraphTarget):
    """A store in memory: it goes with the target."""

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        from langgraph.store.memory import InMemoryStore  # noqa: PLC0415  (a vendor: only where it was chosen)

        return InMemoryStore(index=index)

    async def close(self) -> None:
        return None

    async def about(self) -> Mapping[str, str]:
        return {"embedder": self._embedder.model, "store": f"langgraph {version('langgraph')} InMemoryStore"}


class LanggraphFactory(EmbeddingFactory):
    """LangGraph's in-memory store, with the embedder that the reference uses too."""

    name: ClassVar[str] = "langgraph"
    spec: ClassVar[str | None] = "memstory.targets.frameworks.langgraph:LanggraphFactory"
    able: ClassVar[frozenset[Capability]] = CAPABILITIES

    def target(self) -> Target:
        return InMemoryTarget(self._embedders)


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
