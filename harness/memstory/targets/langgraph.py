"""LangGraph's in-memory store with an index for searching by meaning; one namespace a user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar, cast
from urllib.parse import quote

from memstory.clock import Clock
from memstory.embedders import Embedders, TextEmbedder
from memstory.errors import NotSupported, Refused
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
    TargetFactory,
)

if TYPE_CHECKING:
    from langgraph.store.base import IndexConfig, SearchItem
    from langgraph.store.base import Item as StoredItem
    from langgraph.store.memory import InMemoryStore

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *("add", "add.key", "add.verbatim", "get.id", "get.key", "list", "update"),
        *("search", "search.scores", "search.where"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("scope.user", "scope.session", "embedder.fixed", "option.embedder"),
    }
)
_PAGE = 1_000
_USUAL_COUNT = 10
_PROBE = "How many numbers has a vector?"


class LanggraphTarget(Target):
    """A store in memory: it goes with the target."""

    _store: InMemoryStore
    _embedder: TextEmbedder

    def __init__(self, embedders: Embedders) -> None:
        self._embedders = embedders
        self._seed = 0
        self._given = 0

    async def open(self, env: Environment, clock: Clock) -> None:
        from langgraph.store.memory import InMemoryStore  # noqa: PLC0415  (a vendor: only where it was chosen)

        self._embedder, self._seed = self._embedders.of(env), env.seed
        (probe,) = await self._embed([next(iter(env.vectors), _PROBE)])
        config = {"dims": len(probe), "embed": self._embed, "fields": ["text"]}
        self._store = InMemoryStore(index=cast("IndexConfig", config))

    async def close(self) -> None:
        return None

    async def about(self) -> Mapping[str, str]:
        return {"embedder": self._embedder.model, "store": f"langgraph {version('langgraph')} InMemoryStore"}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        from langgraph.store.base import PutOp  # noqa: PLC0415  (as above)

        ids = [self._id(item) for item in items]
        await self._store.abatch(
            [PutOp(_namespace(scope), id_, _value(item, scope)) for id_, item in zip(ids, items, strict=True)]
        )
        return Receipt(items=[_receipt(id_, item, "stored") for id_, item in zip(ids, items, strict=True)])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self._store.aget(_namespace(scope), _name(ref))
        return _hit(found, None) if found is not None and ref.kind in (None, found.value["kind"]) else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        if query.min_score is not None:
            raise NotSupported("search.min_score")
        if query.token_budget is not None:
            raise NotSupported("search.budget")
        found = await self._store.asearch(
            _namespace(scope),
            query=query.text,
            filter=_filter(scope, query.kinds, query.where),
            limit=_USUAL_COUNT if query.top_k is None else query.top_k,
        )
        return [_hit(item, item.score) for item in found]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return [_hit(item, None) for item in await self._listed(scope, kinds)][:limit]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        known = await self._store.aget(_namespace(scope), _name(ref))
        if known is None:
            raise Refused(f"update: nothing is remembered under {_name(ref)!r}")
        metadata = dict(item.metadata) or known.value["metadata"]
        value = {**known.value, "text": item.text, "metadata": metadata}
        await self._store.aput(_namespace(scope), known.key, value)
        return Receipt(items=[_receipt(known.key, item, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            found = [item.key for item in await self._listed(scope, [ref.kind] if ref.kind is not None else [])]
        else:
            hit = await self.get(ref, scope)
            found = [_name(ref)] if hit is not None else []
        for key in found:
            await self._store.adelete(_namespace(scope), key)
        return bool(found)

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

    def _id(self, item: Item) -> str:
        if item.key is not None:
            return item.key
        self._given += 1
        return f"m{self._seed}.{self._given}"


class LanggraphFactory(TargetFactory):
    """LangGraph's in-memory store, with the embedder that the reference uses too."""

    name: ClassVar[str] = "langgraph"
    spec: ClassVar[str | None] = "memstory.targets.langgraph:LanggraphFactory"

    def __init__(self, embedders: Embedders | None = None) -> None:
        self._embedders = embedders or Embedders()

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        return CAPABILITIES

    def target(self) -> Target:
        return LanggraphTarget(self._embedders)

    async def stop(self) -> None:
        await self._embedders.close()


def _namespace(scope: Scope) -> tuple[str, str]:
    # A dot has a meaning of its own in namespaces, and is refused.
    return "memories", quote(scope.user, safe="").replace(".", "%2E")


def _name(ref: Ref) -> str:
    return ref.id or ref.key or ""


def _value(item: Item, scope: Scope) -> dict[str, Json]:
    return {
        "text": item.text,
        "session": scope.session,
        "kind": item.kind,
        "key": item.key,
        "metadata": dict(item.metadata),
    }


def _filter(scope: Scope, kinds: Sequence[str], where: Mapping[str, Json]) -> dict[str, Json] | None:
    if len(kinds) > 1:
        raise NotSupported("search", "the filter of a LangGraph store takes one kind at a time")
    session = {"session": scope.session} if scope.session is not None else {}
    kind = {"kind": kinds[0]} if kinds else {}
    return {**session, **kind, **({"metadata": dict(where)} if where else {})} or None


def _hit(item: StoredItem, score: float | None) -> Hit:
    value = item.value
    return Hit(
        id=item.key,
        text=value["text"],
        score=score,
        kind=value["kind"],
        key=value["key"],
        metadata=value["metadata"],
    )


def _receipt(id_: str, item: Item, outcome: str) -> ReceiptItem:
    return ReceiptItem(id=id_, text=item.text, outcome=outcome, kind=item.kind, key=item.key)
