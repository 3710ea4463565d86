"""BM25 by the library bm25s, an index over each user's texts: a keyword baseline that adds and searches, no more.

The library has no store: it ranks the texts that it was given, and is given all of them again with every `add`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import Any, ClassVar

from memstory.contract.clock import Clock
from memstory.contract.target import (
    Environment,
    Hit,
    Item,
    Query,
    Receipt,
    ReceiptItem,
    Scope,
)
from memstory.targets.adapter import Adapter, AdapterFactory, refuse_keys, refuse_undeclared
from memstory.targets.one_thread import OneThread

_USUAL_COUNT = 10


@dataclass(slots=True)
class _Texts:
    """One user's texts and the index over them."""

    texts: list[str] = field(default_factory=list)
    index: Any = None


class Bm25Target(Adapter):
    """Indexes in memory: they go with the target."""

    capabilities = frozenset({"add", "add.verbatim", "search", "search.scores", "search.lexical", "scope.user"})

    def __init__(self) -> None:
        self._thread = OneThread("bm25")
        self._users: dict[str, _Texts] = {}

    async def open(self, env: Environment, clock: Clock) -> None:
        await self._thread.run(_import)

    async def close(self) -> None:
        self._thread.close()

    async def about(self) -> Mapping[str, str]:
        return {**await super().about(), "words": "as written, not stemmed"}

    def store_name(self) -> str:
        return f"bm25s {version('bm25s')}"

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        refuse_keys(items)
        own = self._users.setdefault(scope.user, _Texts())
        # In its thread, where no other addition can take the same places.
        first = await self._thread.run(_index, own, [item.text for item in items])
        return Receipt(items=[ReceiptItem(id=str(first + place), text=item.text) for place, item in enumerate(items)])

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, self.capabilities)
        own = self._users.get(scope.user)
        return await self._thread.run(_retrieve, own, query) if own else []


class Bm25Factory(AdapterFactory):
    """BM25 by the library bm25s, in memory; words count as they are written, without stemming."""

    name: ClassVar[str] = "bm25"
    adapter = Bm25Target


def _import() -> Any:
    # Takes half a second: only where it was chosen. It has no types to check against.
    return import_module("bm25s")


def _index(own: _Texts, texts: list[str]) -> int:
    """Index more texts; return the place of the first of them."""
    bm25s, first = _import(), len(own.texts)
    index = bm25s.BM25()
    index.index(bm25s.tokenize([*own.texts, *texts], show_progress=False), show_progress=False)
    own.texts, own.index = [*own.texts, *texts], index
    return first


def _retrieve(own: _Texts, query: Query) -> list[Hit]:
    count = min(_USUAL_COUNT if query.top_k is None else query.top_k, len(own.texts))
    if count == 0:
        return []
    tokens = _import().tokenize(query.text, show_progress=False)
    places, scores = own.index.retrieve(tokens, k=count, show_progress=False)
    # The library fills up to k with texts that share no word with the query; their score is 0.
    return [
        Hit(id=str(place), text=own.texts[place], score=score)
        for place, score in zip(places[0].tolist(), scores[0].tolist(), strict=True)
        if score > 0
    ]
