"""What targets on a plain vector store do alike: a memory is a row with its vector, and is found by both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final
from uuid import NAMESPACE_OID, uuid5

from memstory.contract.clock import Clock
from memstory.contract.errors import Refused
from memstory.contract.target import Capability, Environment, Hit, Item, Json, Query, Receipt, Ref, Scope, Target
from memstory.targets.conditions import refuse_undeclared
from memstory.targets.embedders import Embedders, TimedEmbedder
from memstory.targets.embedding_factory import vector_length
from memstory.targets.given_ids import GivenIds
from memstory.targets.one_thread import OneThread
from memstory.targets.receipts import stored, unknown, updated

ABLE: Final[frozenset[Capability]] = frozenset(
    {
        *("add", "add.key", "add.metadata", "add.metadata.lists", "add.verbatim", "add.exact"),
        *("get.id", "get.key", "list", "update", "search", "search.scores"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("restart", "crash", "clock", "persistent", "scope.user", "scope.session", "scope.session_all"),
        *("embedder.fixed", "option.embedder"),
    }
)
"""What all of them can do."""

USUAL_COUNT: Final = 10
_AN_OPENING: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A memory as it is stored. `id` is a UUID that depends on the user, `place` orders rows by age."""

    id: str
    user: str
    session: str | None
    kind: str | None
    key: str | None
    created_at: str
    place: int
    text: str
    metadata: Mapping[str, Json] = field(default_factory=dict)
    vector: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows are meant; what is None or empty does not matter. `where` are equal values of metadata."""

    user: str
    id: str | None = None
    key: str | None = None
    session: str | None = None
    kinds: Sequence[str] = ()
    where: Mapping[str, Json] = field(default_factory=dict)


class RowsTarget(Target):
    """A store in the workspace, used in one thread; a subclass has the methods that its vendor's words are for."""

    able: ClassVar[frozenset[Capability]] = ABLE
    name: ClassVar[str]
    _clock: Clock
    _embedder: TimedEmbedder
    _ids: GivenIds

    def __init__(self, embedders: Embedders) -> None:
        self._embedders = embedders
        self._thread = OneThread(self.name)

    async def open(self, env: Environment, clock: Clock) -> None:
        self._clock, self._embedder = clock, self._embedders.of(env)
        self.embedding = self._embedder.watch
        self._ids = GivenIds(env)
        await self._thread.run(self.connect, env, await vector_length(self._embedder, env))

    async def close(self) -> None:
        await self._thread.run(self.disconnect)
        self._thread.close()

    async def about(self) -> Mapping[str, str]:
        return {"embedder": self._embedder.model, "store": self.store_name()}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        vectors = await self._embedder.embed([item.text for item in items], "document")
        rows = [self._row(item, vector, scope) for item, vector in zip(items, vectors, strict=True)]
        await self._write(list({row.id: row for row in rows}.values()))
        return stored(items, [row.id for row in rows])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        row = await self._known(ref, scope)
        return None if row is None else hit(row)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, self.able)
        (vector,) = await self._embedder.embed([query.text], "query")
        wanted = Wanted(user=scope.user, session=scope.session, kinds=query.kinds, where=query.where)
        count = USUAL_COUNT if query.top_k is None else query.top_k
        with refusals():
            found = await self._thread.run(self.near, vector, wanted, count)
        return [hit(row, score) for row, score in found]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        wanted = Wanted(user=scope.user, session=scope.session, kinds=kinds)
        rows = sorted(await self._thread.run(self.find, wanted), key=lambda row: row.place)
        return [hit(row) for row in rows[:limit]]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        row = await self._known(ref, scope)
        if row is None:
            raise unknown(ref)
        (vector,) = await self._embedder.embed([item.text], "document")
        metadata = item.metadata or row.metadata
        await self._write([replace(row, text=item.text, metadata=metadata, vector=vector)])
        return updated(item, row.id)

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            kinds = [ref.kind] if ref.kind is not None else []
            wanted = Wanted(user=scope.user, session=scope.session, kinds=kinds)
            found = [*await self._thread.run(self.find, wanted)]
        else:
            known = await self._known(ref, scope)
            found = [] if known is None else [known]
        if found:
            await self._thread.run(self.remove, [row.id for row in found])
        return bool(found)

    def _row(self, item: Item, vector: Sequence[float], scope: Scope) -> Row:
        name = self._ids.next()
        _, opened, number = name.split(".")
        # What is stored under a key that is known replaces it: the same id. A user's ids are the user's own.
        named = name if item.key is None else f"key\0{item.kind or ''}\0{item.key}"
        return Row(
            id=str(uuid5(NAMESPACE_OID, f"{scope.user}\0{named}".encode(errors="surrogatepass").hex())),
            user=scope.user,
            session=scope.session,
            kind=item.kind,
            key=item.key,
            created_at=self._clock.now().isoformat(),
            place=int(opened) * _AN_OPENING + int(number),
            text=item.text,
            metadata=item.metadata,
            vector=vector,
        )

    async def _known(self, ref: Ref, scope: Scope) -> Row | None:
        kinds = [ref.kind] if ref.kind is not None else []
        wanted = Wanted(user=scope.user, id=ref.id, key=ref.key, kinds=kinds)
        found = await self._thread.run(self.find, wanted)
        return found[0] if found else None

    async def _write(self, rows: Sequence[Row]) -> None:
        with refusals():
            await self._thread.run(self.write, rows)

    def connect(self, env: Environment, size: int) -> None:
        """Open the store, or make it for vectors of `size` numbers."""
        raise NotImplementedError

    def disconnect(self) -> None:
        """Close it."""
        raise NotImplementedError

    def store_name(self) -> str:
        """Return what the store is, with its version."""
        raise NotImplementedError

    def write(self, rows: Sequence[Row]) -> None:
        """Store rows; one of the same id is replaced whole."""
        raise NotImplementedError

    def find(self, wanted: Wanted) -> Sequence[Row]:
        """Return the rows that are meant, without their vectors, in any order."""
        raise NotImplementedError

    def near(self, vector: Sequence[float], wanted: Wanted, count: int) -> Sequence[tuple[Row, float]]:
        """Return at most `count` rows among those that are meant with their cosine, the nearest first."""
        raise NotImplementedError

    def remove(self, ids: Sequence[str]) -> None:
        """Delete rows."""
        raise NotImplementedError


@contextmanager
def refusals() -> Iterator[None]:
    """Tell what a store refuses, such as half a surrogate pair, from a store that breaks."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise Refused(str(error)) from error


def hit(row: Row, score: float | None = None) -> Hit:
    """Return a row as a target answers it."""
    return Hit(
        id=row.id, text=row.text, score=score, kind=row.kind, key=row.key, created_at=row.created_at,
        metadata=row.metadata,
    )  # fmt: skip
