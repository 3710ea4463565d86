"""Targets on stores of rows: a memory is a row, which is found by id, key and scope, or ranked by a query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, TypeVar
from uuid import NAMESPACE_OID, uuid5

from memstory.contract.clock import Clock
from memstory.contract.errors import Refused
from memstory.contract.target import Capability, Environment, Hit, Item, Json, Query, Receipt, Ref, Scope, operators_of
from memstory.targets.adapter import Adapter, IdSequence, receipt_item, refuse_undeclared, unknown_refusal
from memstory.targets.embedders import Embedders, EmbeddingTarget, Purpose, vector_length
from memstory.targets.one_thread import OneThread

ROWS: Final[frozenset[Capability]] = frozenset(
    {
        *("add", "add.key", "add.metadata", "add.verbatim", "add.exact", "get.id", "get.key", "list", "update"),
        *("search", "search.scores", "delete", "delete.reports_missing", "delete.scope"),
        *("scope.user", "scope.session", "scope.session_all"),
    }
)
"""What every store of rows can do."""

EMBEDS: Final[frozenset[Capability]] = frozenset({"embedder.fixed", "option.embedder"})
"""What it can do where the embedder is chosen."""

VECTORS: Final = ROWS | EMBEDS | {"add.metadata.lists", "restart", "crash", "clock", "persistent"}
"""What a store of vectors on disk can do that keeps any metadata."""

_AN_OPENING: Final = 1_000_000_000

Condition = TypeVar("Condition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A memory as it is stored. `id` is a UUID that depends on the user; rows are listed by `place`, then as found."""

    id: str
    user: str
    text: str
    session: str | None = None
    kind: str | None = None
    key: str | None = None
    created_at: str | None = None
    place: int = 0
    metadata: Mapping[str, Json] = field(default_factory=dict)
    vector: Sequence[float] = ()

    def hit(self, score: float | None = None) -> Hit:
        """Return the row as a target answers it."""
        return Hit(
            id=self.id,
            text=self.text,
            score=score,
            kind=self.kind,
            key=self.key,
            created_at=self.created_at,
            metadata=self.metadata,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery:
    """A condition on rows: what is not empty must be equal, `where` in the metadata, and one of `where_any` too.

    A search ranks them by `text`, or by its `vector`, and leaves out those below `min_score`.
    """

    user: str
    id: str | None = None
    key: str | None = None
    session: str | None = None
    kinds: Sequence[str] = ()
    where: Mapping[str, Json] = field(default_factory=dict)
    where_any: Sequence[Mapping[str, Json]] = ()
    text: str = ""
    vector: Sequence[float] = ()
    min_score: float | None = None


def conditions_on(
    where: Mapping[str, Json], equal: Callable[[str, Json], Condition], compared: Callable[[str, str, Any], Condition]
) -> list[Condition]:
    """Return the conditions of `where` as a store has them, all of which must hold.

    `equal` makes one of a name and a value, `compared` of a name, an operator and its bound.
    """
    found: list[Condition] = []
    for name, value in where.items():
        said = operators_of(value)
        found += [compared(name, *one) for one in said.items()] if said else [equal(name, value)]
    return found


def expression(
    parts: Sequence[str],
    query: RowQuery,
    equal: Callable[[str, Json], str],
    compared: Callable[[str, str, Any], str],
) -> str:
    """Return `parts` and the conditions of `query` on metadata as one text, joined by `and` and `or`."""
    ways = [" and ".join(conditions_on(one, equal, compared)) for one in query.where_any]
    either = [f"({' or '.join(f'({way})' for way in ways)})"] if ways else []
    return " and ".join([*parts, *conditions_on(query.where, equal, compared), *either])


class RowsTarget(Adapter):
    """A target on a store of rows. A subclass has `connect`, `write`, `find`, `rank` and `remove` for its library.

    The library is called from one thread of the target's own.
    """

    name: ClassVar[str]
    usual_count: ClassVar[int | None] = 10
    """How many a search returns that does not say; None leaves it to the store."""
    refusal_types: ClassVar[tuple[type[Exception], ...]] = (TypeError, ValueError)
    """By what the store declines a write or a search, such as half a surrogate pair; all else is the store breaking."""
    _clock: Clock
    _ids: IdSequence

    def __init__(self) -> None:
        self._thread = OneThread(self.name)

    async def open(self, env: Environment, clock: Clock) -> None:
        self._clock, self._ids = clock, IdSequence(env)
        await self._thread.run(self.connect, env)

    async def close(self) -> None:
        await self._thread.run(self.disconnect)
        self._thread.close()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        vectors = await self.vectors([item.text for item in items], "document")
        rows = [self._row(item, vector, scope) for item, vector in zip(items, vectors, strict=True)]
        with self._refusals():
            known = await self._thread.run(self.write, rows)
        return Receipt(
            items=[
                receipt_item(item, row.id, "updated" if row.id in known else "stored")
                for item, row in zip(items, rows, strict=True)
            ]
        )

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        row = await self._find(ref, scope)
        return None if row is None else row.hit()

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, self.capabilities)
        (vector,) = await self.vectors([query.text], "query")
        ranking = RowQuery(
            user=scope.user, session=scope.session, kinds=query.kinds, where=query.where, where_any=query.where_any,
            text=query.text, vector=vector, min_score=query.min_score,
        )  # fmt: skip
        with self._refusals():
            found = await self._thread.run(self.rank, ranking, self.usual_count if query.top_k is None else query.top_k)
        return [row.hit(score) for row, score in found]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        rows = await self._thread.run(self.find, RowQuery(user=scope.user, session=scope.session, kinds=kinds))
        return [row.hit() for row in sorted(rows, key=lambda row: row.place)[:limit]]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        row = await self._find(ref, scope)
        if row is None:
            raise unknown_refusal(ref)
        (vector,) = await self.vectors([item.text], "document")
        new = replace(row, text=item.text, metadata=item.metadata or row.metadata, vector=vector)
        with self._refusals():
            await self._thread.run(self.rewrite, new)
        return Receipt(items=[receipt_item(item, row.id, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            kinds = [ref.kind] if ref.kind is not None else []
            wanted = RowQuery(user=scope.user, session=scope.session, kinds=kinds)
            found = [*await self._thread.run(self.find, wanted)]
        else:
            known = await self._find(ref, scope)
            found = [] if known is None else [known]
        if found:
            await self._thread.run(self.remove, found)
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

    async def _find(self, ref: Ref, scope: Scope) -> Row | None:
        kinds = [ref.kind] if ref.kind is not None else []
        found = await self._thread.run(self.find, RowQuery(user=scope.user, id=ref.id, key=ref.key, kinds=kinds))
        return found[0] if found else None

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not self.is_refusal(error):
                raise
            raise Refused(str(error)) from error

    def is_refusal(self, error: Exception) -> bool:
        """Return whether the store refuses its input by this error, and is not broken."""
        return isinstance(error, self.refusal_types)

    async def vectors(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return the vector of each text; an empty one where the store is given none."""
        return [() for _ in texts]

    def connect(self, env: Environment) -> None:
        """Open the store, or make it."""
        raise NotImplementedError

    def disconnect(self) -> None:
        """Close it."""
        raise NotImplementedError

    def write(self, rows: Sequence[Row]) -> Collection[str]:
        """Store rows; one with a known id replaces the old one. Return the ids that were known, if the store tells."""
        raise NotImplementedError

    def rewrite(self, row: Row) -> None:
        """Replace the row of this id, which is known."""
        self.write([row])

    def find(self, query: RowQuery) -> Sequence[Row]:
        """Return the rows that are wanted, without their vectors."""
        raise NotImplementedError

    def rank(self, query: RowQuery, count: int | None) -> Sequence[tuple[Row, float]]:
        """Return at most `count` of the rows that are wanted with their scores, the best first."""
        raise NotImplementedError

    def remove(self, rows: Sequence[Row]) -> None:
        """Delete rows."""
        raise NotImplementedError


class VectorRowsTarget(RowsTarget, EmbeddingTarget):
    """A target on a store of rows with vectors; the chosen embedder makes them, and a score is a cosine."""

    capabilities: ClassVar[frozenset[Capability]] = VECTORS
    has_fixed_length: ClassVar[bool] = True
    """Whether the store must know how many numbers a vector has before there is one: `length`."""
    length = 0

    def __init__(self, embedders: Embedders) -> None:
        RowsTarget.__init__(self)
        EmbeddingTarget.__init__(self, embedders)

    async def open(self, env: Environment, clock: Clock) -> None:
        self.choose_embedder(env)
        if self.has_fixed_length:
            self.length = await vector_length(self.embedder, env)
        await super().open(env, clock)

    async def vectors(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        return await self.embedder.embed(texts, purpose)
