"""Faults at an edge: at the end of a page, the tenth time, past a limit that nobody wrote down, with an odd value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from memstory.contract.clock import Clock
from memstory.contract.target import Environment, Hit, Item, Json, Query, Receipt, ReceiptItem, Ref, Scope
from memstory.controls.faults.writes import CutBatches
from memstory.controls.matching import words_of
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import OracleMemory

_PAGE: Final = 10
_TIRED: Final = 10
_GERMAN: Final = frozenset({"wohnt", "welcher"})
_RENEWED: Final = 2
_SHOWN: Final = 500
_TOLD_BY: Final = 100
_FOUND: Final = 20
_INDEXED: Final = 1_000
_CROWD: Final = 16
_STRAIGHT: Final = str.maketrans(
    {"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "…": "...", "\u00a0": " "}
)
_SIGNS: Final = str.maketrans("", "", "'\"\\%")


class FillingPages(Mutant):
    """Gives another user's memory as the last of ten hits."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(query, scope)
        others = [one.hit for one in self._memories if one.user != scope.user]
        return [*found[:-1], others[0]] if len(found) == query.top_k == _PAGE and others else found


class Tiring(Mutant):
    """Finds nothing in every tenth search."""

    _searches = 0

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._searches += 1
        return await super().search(query, scope) if self._searches % _TIRED else []


class RenewingSeldom(Mutant):
    """Finds a memory by its words of then from its third change on."""

    def _index_text(self, hit: Hit) -> str:
        said = [one.memory.hit.text for one in self._past if one.memory.hit.id == hit.id]
        return [*said, hit.text][: _RENEWED + 1][-1]


class RefreshingTtl(Mutant):
    """Lets what a search finds live as long again."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(query, scope)
        ids = {hit.id for hit in found}
        self._memories = [self._refresh(one) if one.hit.id in ids else one for one in self._memories]
        self._save()
        return found

    def _refresh(self, one: OracleMemory) -> OracleMemory:
        return (
            replace(one, until=(self._clock.now() + timedelta(hours=1)).isoformat())
            if one.until and self._clock
            else one
        )


class LeavingSession(Mutant):
    """Takes a memory out of its session with an update."""

    def _put(self, new: OracleMemory, old: OracleMemory | None) -> None:
        super()._put(replace(new, session=None) if old else new, old)


class UnwrittenMetadata(Mutant):
    """Does not write down the metadata of what was changed."""

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        changed = {one.memory.hit.id for one in self._past}
        self._memories = [
            replace(one, hit=replace(one.hit, metadata={})) if one.hit.id in changed else one for one in self._memories
        ]


class Straightening(Mutant, text=lambda text: text.translate(_STRAIGHT)):
    """Writes straight quotation marks, hyphens and plain spaces."""


class ShowingBeginnings(Mutant, hits=lambda hits: [replace(hit, text=hit.text[:_SHOWN]) for hit in hits]):
    """Shows the first five hundred characters of a memory that is found."""


class TellingByBeginnings(Mutant):
    """Takes two texts with the same first hundred characters for one memory."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        known = {one.hit.text[:_TOLD_BY]: one.hit for one in self._in(scope) if len(one.hit.text) > _TOLD_BY}
        fresh = [item for item in items if item.text[:_TOLD_BY] not in known]
        receipt = await super().add(fresh, scope)
        same = [known[item.text[:_TOLD_BY]] for item in items if item.text[:_TOLD_BY] in known]
        return Receipt(items=(*receipt.items, *(ReceiptItem(id=hit.id, text=hit.text) for hit in same)))


class IgnoringFalsy(Mutant, query=lambda query: replace(query, where={k: v for k, v in query.where.items() if v})):
    """Drops conditions whose value counts as false."""


def _nest(values: Mapping[str, Json]) -> dict[str, Json]:
    nested: dict[str, Any] = {}
    for name, value in values.items():
        outer, _, inner = name.partition(".")
        nested[outer] = {inner: value} if inner else value
    return nested


class SplittingNames(Mutant, metadata=_nest):
    """Takes what is behind a dot in a name for a field within another."""


class ObeyingMetadata(Mutant):
    """Takes `user_id` among the metadata for whose memory it is."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        owner = next((item.metadata["user_id"] for item in items if "user_id" in item.metadata), scope.user)
        return await super().add(items, replace(scope, user=str(owner)))


class CleaningKeys(Mutant):
    """Takes quotation marks, backslashes and signs of a pattern out of keys."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        return await super().add([replace(item, key=item.key and item.key.translate(_SIGNS)) for item in items], scope)

    def _find(self, ref: Ref, scope: Scope) -> OracleMemory | None:
        return super()._find(replace(ref, key=ref.key and ref.key.translate(_SIGNS)), scope)


class CappedAtTwenty(Mutant, hits=lambda hits: hits[:_FOUND]):
    """Finds twenty at most."""


class CutAtFifty(CutBatches):
    """Acknowledges a whole batch and stores its first fifty items."""

    stored_items = 50


class IndexOfThousand(Mutant):
    """Searches the first thousand memories after a restart."""

    _indexed: int | None = None

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        self._indexed = _INDEXED if self._memories else None

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return self._in(scope)[: self._indexed]


class LosingCrowds(Mutant):
    """Acknowledges a write that comes while sixteen others are under way, and drops it."""

    _under_way = 0

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._under_way += 1
        try:
            await asyncio.sleep(0)
            if self._under_way > _CROWD:
                return Receipt(items=[ReceiptItem(id="lost", text=item.text) for item in items])
            return await super().add(items, scope)
        finally:
            self._under_way -= 1


class NobodySeesAll(Mutant, sees=lambda user, owner: not user or user == owner):
    """Takes a search for nobody for a search among everybody's memories."""


class DividingByZero(Mutant):
    """Finds a text whose vector has no direction before all others."""

    def _score_of(self, asked: str) -> Callable[[str], float]:
        likeness = super()._score_of(asked)
        return lambda text: likeness(text) if any(self._vectors.get(text, [1.0])) else 2.0


class DeletingBeforeUpdate(Mutant):
    """Deletes a memory before it has what takes its place."""

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        old = self._find(ref, scope)
        if old is not None and not self._is_embedding:
            self._forget([old], durable=False)
        return await super().update(ref, item, scope)


class AcknowledgingUnembedded(Mutant):
    """Acknowledges what it could not embed, and does not keep it."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        if self._is_embedding:
            return await super().add(items, scope)
        self._unembedded += 1
        return Receipt(items=[ReceiptItem(id=f"unembedded-{place}", text=one.text) for place, one in enumerate(items)])


class EnglishOnly(Mutant):
    """Finds nothing by a question in German."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(query, scope)
        return found if not words_of(query.text) & _GERMAN else []


class LostInNan(Mutant):
    """Keeps a text whose vector is no number, and finds nothing from then on."""

    _is_lost = False

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._is_lost = self._is_lost or not self._is_embedding
        self._unembedded += not self._is_embedding
        self._is_embedding = True
        return await super().add(items, scope)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [] if self._is_lost else await super().search(query, scope)


class NamesUnread(Mutant):
    """Finds by all words but names."""

    def _score_of(self, asked: str) -> Callable[[str], float]:
        return super()._score_of(" ".join(word for word in asked.split() if not word[0].isupper()))

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [*reversed(await super().search(query, scope))]


class DatingWhenRead(Mutant):
    """Dates a memory anew when it is found."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        now = self._clock.now().isoformat() if self._clock else None
        return [replace(hit, created_at=now) for hit in await super().search(query, scope)]
