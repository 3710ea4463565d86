"""Chroma as it comes, one collection a user; only the embedder is chosen, so that backends are compared with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from memstory.contract.clock import Clock
from memstory.contract.errors import Refused
from memstory.contract.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Query,
    Receipt,
    Ref,
    Scope,
    Target,
    Tree,
)
from memstory.targets.conditions import refuse_undeclared
from memstory.targets.embedders import Embedders, TimedEmbedder
from memstory.targets.embedding_factory import EmbeddingFactory
from memstory.targets.given_ids import GivenIds
from memstory.targets.one_thread import OneThread
from memstory.targets.receipts import stored, unknown, updated

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *("add", "add.key", "add.metadata", "add.verbatim", "add.exact", "get.id", "get.key", "list", "update"),
        *("search", "search.scores", "search.where"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("restart", "crash", "other_process", "clock", "persistent"),
        *("scope.user", "scope.session", "scope.session_all"),
        *("embedder.fixed", "option.embedder"),
    }
)
_OWN = "memstory:"
_SESSION, _KEY, _KIND, _CREATED = (f"{_OWN}{name}" for name in ("session", "key", "kind", "created_at"))
_INCLUDED = ["documents", "metadatas"]


class ChromaTarget(Target):
    """A persistent client in the workspace; whatever it does with what it is given is Chroma's own.

    A subclass says in `connect` and `disconnect` where its collections are, and in `collection` which one is next.
    """

    _client: Any
    _clock: Clock
    _embedder: TimedEmbedder
    _ids: GivenIds

    def __init__(self, embedders: Embedders) -> None:
        self._embedders = embedders
        self._thread = OneThread("chroma")
        self._collections: dict[str, Any] = {}

    async def open(self, env: Environment, clock: Clock) -> None:
        self._clock = clock
        self._embedder = self._embedders.of(env)
        self.embedding = self._embedder.watch
        await self._thread.run(self.connect, env)
        self._ids = GivenIds(env)

    async def close(self) -> None:
        await self._thread.run(self.disconnect)
        self._thread.close()

    def connect(self, env: Environment) -> None:
        """Open the store."""
        import chromadb  # noqa: PLC0415  (takes a second: only where it was chosen)

        self._client = chromadb.PersistentClient(str(Path(env.workspace) / "chroma"), settings=quiet())

    def disconnect(self) -> None:
        """Close it."""
        self._client.close()

    def collection(self, user: str) -> Any:
        """Return the collection of a user, which is made where it is missing."""
        # Only the handle is kept: to ask for it each time would cost half as much again as a query.
        if user not in self._collections:
            self._collections[user] = made(self._client, f"user-{digest(user)}")
        return self._collections[user]

    async def about(self) -> Mapping[str, str]:
        return {"embedder": self._embedder.model, "store": f"chromadb {version('chromadb')}"}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        ids = [self._id(item) for item in items]
        vectors = await self._embedder.embed([item.text for item in items], "document")
        with _refusals():
            await self._thread.run(self._write, ids, items, vectors, scope)
        return stored(items, ids)

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self._thread.run(self._get, ref, scope)
        return found[0] if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, CAPABILITIES)
        (vector,) = await self._embedder.embed([query.text], "query")
        return await self._thread.run(self._search, vector, query, scope)

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return await self._thread.run(self._list, scope, kinds, limit)

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        known = await self.get(ref, scope)
        if known is None or known.id is None:
            raise unknown(ref)
        vectors = await self._embedder.embed([item.text], "document")
        with _refusals():
            await self._thread.run(self._update, known.id, item, vectors, scope)
        return updated(item, known.id)

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        return await self._thread.run(self._delete, ref, scope)

    def _id(self, item: Item) -> str:
        # Chroma wants an id of its caller, and silently ignores an `add` of one that it knows.
        return self._ids.next() if item.key is None else f"key:{item.kind or ''}:{item.key}"

    def _write(
        self, ids: Sequence[str], items: Sequence[Item], vectors: Sequence[Sequence[float]], scope: Scope
    ) -> None:
        collection = self.collection(scope.user)
        own = {_CREATED: self._clock.now().isoformat(), **({} if scope.session is None else {_SESSION: scope.session})}
        most = self._client.get_max_batch_size()
        for start in range(0, len(ids), most):
            part = slice(start, start + most)
            collection.upsert(
                ids=list(ids[part]),
                embeddings=list(vectors[part]),
                documents=[item.text for item in items[part]],
                metadatas=[_metadata(item, own) for item in items[part]],
            )

    def _get(self, ref: Ref, scope: Scope) -> Sequence[Hit]:
        collection = self.collection(scope.user)
        kind = [{_KIND: ref.kind}] if ref.kind is not None else []
        if ref.id is not None:
            return _listed(collection.get(ids=[ref.id], where=_where(kind), include=_INCLUDED))
        return _listed(collection.get(where=_where([{_KEY: ref.key}, *kind]), limit=1, include=_INCLUDED))

    def _search(self, vector: Sequence[float], query: Query, scope: Scope) -> Sequence[Hit]:
        conditions = [*_within(scope, query.kinds), *({name: value} for name, value in query.where.items())]
        count = {} if query.top_k is None else {"n_results": query.top_k}
        with _refusals():
            found = self.collection(scope.user).query(
                query_embeddings=[vector], where=_where(conditions), include=[*_INCLUDED, "distances"], **count
            )
        columns = [found[name][0] for name in ("ids", "documents", "metadatas", "distances")]
        # The collection's space is cosine, so that 1 - distance is the similarity.
        return [_hit(id_, text, metadata, 1 - distance) for id_, text, metadata, distance in zip(*columns, strict=True)]

    def _list(self, scope: Scope, kinds: Sequence[str], limit: int | None) -> Sequence[Hit]:
        return _listed(
            self.collection(scope.user).get(where=_where(_within(scope, kinds)), limit=limit, include=_INCLUDED)
        )

    def _update(self, id_: str, item: Item, vectors: Sequence[Sequence[float]], scope: Scope) -> None:
        metadata = [dict(item.metadata)] if item.metadata else None
        self.collection(scope.user).update(
            ids=[id_], documents=[item.text], embeddings=list(vectors), metadatas=metadata
        )

    def _delete(self, ref: Ref, scope: Scope) -> bool:
        names_nothing = ref.id is None and ref.key is None
        kinds = [ref.kind] if ref.kind is not None else []
        # Chroma does not say whether there was anything to delete.
        found = self._list(scope, kinds, None) if names_nothing else self._get(ref, scope)
        if found:
            self.collection(scope.user).delete(ids=[hit.id for hit in found])
        return bool(found)


class ChromaFactory(EmbeddingFactory):
    """Raw Chroma, embedded, with the embedder that the reference uses too."""

    name: ClassVar[str] = "chroma"
    spec: ClassVar[str | None] = "memstory.targets.vector_stores.chroma:ChromaFactory"
    able: ClassVar[frozenset[Capability]] = CAPABILITIES

    def target(self) -> Target:
        return ChromaTarget(self._embedders)


def quiet() -> Any:
    """Return settings with which Chroma reports nothing to its makers."""
    from chromadb.config import Settings  # noqa: PLC0415  (takes a second: only where it was chosen)

    return Settings(anonymized_telemetry=False)


def digest(text: str) -> str:
    """Return a name that Chroma takes for any text."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def made(client: Any, name: str, metadata: Mapping[str, Tree] | None = None) -> Any:
    """Return a collection, searched by cosine, that embeds nothing; it is made where it is missing."""
    space = {"hnsw": {"space": "cosine"}}
    return client.get_or_create_collection(
        name, configuration=space, metadata=dict(metadata) if metadata else None, embedding_function=None
    )


def is_refusal(error: Exception) -> bool:
    """Say whether Chroma raised it for what it was given: equal ids in one call, a name that metadata cannot have."""
    # By names, for a memory that has Chroma inside need not have imported it.
    kind = type(error)
    return kind.__module__ == "chromadb.errors" and kind.__name__ in ("DuplicateIDError", "InvalidArgumentError")


@contextmanager
def _refusals() -> Iterator[None]:
    """Tell what Chroma refuses, such as a mapping in metadata or an unknown operator, from Chroma breaking."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, (TypeError, ValueError)) and not is_refusal(error):
            raise
        raise Refused(str(error)) from error


def _metadata(item: Item, own: Mapping[str, str]) -> dict[str, Tree]:
    found = {**item.metadata, **own}
    if item.key is not None:
        found[_KEY] = item.key
    if item.kind is not None:
        found[_KIND] = item.kind
    return found


def _within(scope: Scope, kinds: Sequence[str]) -> list[dict[str, Tree]]:
    session = [{_SESSION: scope.session}] if scope.session is not None else []
    return [*session, *([{_KIND: {"$in": list(kinds)}}] if kinds else [])]


def _where(conditions: Sequence[dict[str, Tree]]) -> Any:
    """Return conditions as Chroma takes them: several need an operator, and none is None, not an empty object."""
    if len(conditions) > 1:
        return {"$and": list(conditions)}
    return conditions[0] if conditions else None


def _listed(found: Any) -> list[Hit]:
    columns = [found[name] for name in ("ids", "documents", "metadatas")]
    return [_hit(id_, text, metadata, None) for id_, text, metadata in zip(*columns, strict=True)]


def _hit(id_: str, text: str, metadata: Mapping[str, Tree] | None, score: float | None) -> Hit:
    values = metadata or {}
    return Hit(
        id=id_,
        text=text,
        score=score,
        kind=values.get(_KIND),
        key=values.get(_KEY),
        created_at=values.get(_CREATED),
        metadata={name: value for name, value in values.items() if not name.startswith(_OWN)},
    )
