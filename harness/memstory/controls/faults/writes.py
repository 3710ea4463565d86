"""Faults of remembering: acknowledged writes that are lost, doubled, mixed up or merged."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from memstory.contract.target import Hit, Item, Query, Receipt, ReceiptItem, Ref, Scope
from memstory.controls.matching import words_of
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import OracleMemory

_CONTRADICTION: Final = 0.6
_NEGATIONS: Final = frozenset({"not", "no", "never"})


class LosingRaces(Mutant):
    """Reads all, waits, and writes all back: of memories added concurrently, one survives."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        before = list(self._memories)
        await asyncio.sleep(0)
        self._memories = before
        return await super().add(items, scope)


class RacingKeys(Mutant):
    """Looks whether a key is known, waits, and then adds: concurrent writes under one key are stored several times."""

    _unknown: frozenset[str | None] = frozenset()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        keys = {item.key for item in items} - {None}
        unknown = frozenset(key for key in keys if self._find(Ref(key=key), scope) is None)
        await asyncio.sleep(0)
        self._unknown = unknown
        try:
            return await super().add(items, scope)
        finally:
            self._unknown = frozenset()

    def _find(self, ref: Ref, scope: Scope) -> OracleMemory | None:
        return None if ref.key in self._unknown else super()._find(ref, scope)


class MergingUpdates(Mutant):
    """Joins the texts of concurrent updates."""

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        before = await self.get(ref, scope)
        await asyncio.sleep(0)
        now = await self.get(ref, scope)
        if before and now and before.text != now.text:
            item = replace(item, text=f"{now.text} {item.text}")
        return await super().update(ref, item, scope)


class Lagging(Mutant):
    """Finds the newest memory only after another was added."""

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return [one for one in self._in(scope) if one.hit.id != f"m{self._seed}-{self._count}"]


class Rebuilding(Mutant):
    """Finds nothing while something is added."""

    _adding = 0

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._adding += 1
        await asyncio.sleep(0)
        self._adding -= 1
        return await super().add(items, scope)

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return [] if self._adding else self._in(scope)


class DoubledRetries(Mutant):
    """Stores a key twice when it is written twice."""

    _is_adding = False

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._is_adding = True
        try:
            return await super().add(items, scope)
        finally:
            self._is_adding = False

    def _find(self, ref: Ref, scope: Scope) -> OracleMemory | None:
        return None if self._is_adding else super()._find(ref, scope)


class CutBatches(Mutant):
    """Acknowledges a whole batch and stores its first ten items."""

    stored_items: ClassVar[int] = 10

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        kept = self.stored_items
        stored = await super().add(items[:kept], scope)
        lost = [ReceiptItem(id=f"lost-{number}", text=item.text) for number, item in enumerate(items[kept:])]
        return Receipt(items=(*stored.items, *lost))


class ReversedReceipts(Mutant):
    """Acknowledges the items of a batch in another order than they came."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        receipts = (await super().add(items, scope)).items
        return Receipt(items=[replace(one, id=other.id) for one, other in zip(receipts, receipts[::-1], strict=True)])


class ConfusedTwins(Mutant):
    """Counts equal texts of a batch once, so that the acknowledgements after them name other memories."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        return await super().add(list({item.text: item for item in items}.values()), scope)


class LikeKeys(Mutant):
    """Compares keys by a pattern in which an underscore stands for any character."""

    def _find(self, ref: Ref, scope: Scope) -> OracleMemory | None:
        if ref.key is None:
            return super()._find(ref, scope)
        pattern = re.escape(ref.key).replace("_", ".")
        return next((one for one in self._in(Scope(user=scope.user)) if re.fullmatch(pattern, one.hit.key or "")), None)


class MixedMetadata(Mutant):
    """Keeps the metadata of the old value when a key is written again."""

    def _put(self, new: OracleMemory, old: OracleMemory | None) -> None:
        mixed = {**(old.hit.metadata if old else {}), **new.hit.metadata}
        super()._put(replace(new, hit=replace(new.hit, metadata=mixed)), old)


class RememberingQuestions(Mutant):
    """Remembers what it is asked."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(query, scope)
        await self.add([Item(text=query.text)], scope)
        return found


class _Merging(Mutant):
    """Acknowledges a text and drops it as a repetition of one that is like it in some way."""

    def _likeness(self, text: str) -> object:
        raise NotImplementedError

    def _loses(self, new: OracleMemory, old: OracleMemory | None) -> bool:
        likeness = self._likeness(new.hit.text)
        return old is None and any(self._likeness(one.hit.text) == likeness for one in self._in(Scope(user=new.user)))


class MergingNumbers(_Merging):
    """Drops a text that differs from another in a number only."""

    def _likeness(self, text: str) -> object:
        return re.sub(r"\d+", "#", text)


class MergingNegations(_Merging):
    """Drops the negation of a text."""

    def _likeness(self, text: str) -> object:
        return words_of(text) - _NEGATIONS


class MergingOrders(_Merging):
    """Drops a text that has the words of another in another order."""

    def _likeness(self, text: str) -> object:
        return sorted(re.findall(r"\w+", text))


def _overlap(one: Hit, other: Hit) -> bool:
    """Return whether two texts share so many words that one may contradict the other."""
    first, second = words_of(one.text), words_of(other.text)
    return len(first & second) >= _CONTRADICTION * max(len(first | second), 1)


class DeletingContradictions(Mutant):
    """Deletes what a new text contradicts, and the new text with it."""

    def _put(self, new: OracleMemory, old: OracleMemory | None) -> None:
        mine = self._in(Scope(user=new.user)) if old is None else ()
        contradicted = [one for one in mine if one.hit.text != new.hit.text and _overlap(one.hit, new.hit)]
        self._memories = [one for one in self._memories if one not in contradicted]
        if not contradicted:
            super()._put(new, old)


class RetiringNeighbours(Mutant):
    """Retires all that it knows of a person when one fact about the person changes."""

    def _put(self, new: OracleMemory, old: OracleMemory | None) -> None:
        mine = self._in(Scope(user=new.user)) if old is None else ()
        if any(_overlap(one.hit, new.hit) for one in mine):
            retired = [one for one in mine if one.hit.text.split()[:1] == new.hit.text.split()[:1]]
            self._memories = [one for one in self._memories if one not in retired]
        super()._put(new, old)
