"""Faults of remembering: acknowledged writes that are lost, doubled, mixed up or merged."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from memstory.contract.target import Hit, Item, Query, Receipt, ReceiptItem, Ref, Scope
from memstory.controls.matching import words_of
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import Memory

_BATCH = 10
_CONTRADICTION = 0.6
_NEGATIONS = frozenset({"not", "no", "never"})


class LosingRaces(Mutant):
    """Reads all, waits, and writes all back: of memories that are added at once, one stays."""

    fault_name: ClassVar[str] = "losing_races"

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        before = list(self._memories)
        await asyncio.sleep(0)
        self._memories = before
        return await super().add(items, scope)


class RacingKeys(Mutant):
    """Looks whether a key is known, waits, and then adds: concurrent writes under one key are stored several times."""

    fault_name: ClassVar[str] = "racing_keys"

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        new = [item.key is not None and self._find(Ref(key=item.key), scope) is None for item in items]
        await asyncio.sleep(0)
        self._unknown = {item.key for item, is_new in zip(items, new, strict=True) if is_new}
        try:
            return await super().add(items, scope)
        finally:
            self._unknown = set()

    _unknown: set[str | None] = set()  # noqa: RUF012  (never changed in place)

    def _find(self, ref: Ref, scope: Scope) -> Memory | None:
        return None if ref.key is not None and ref.key in self._unknown else super()._find(ref, scope)


class MergingUpdates(Mutant):
    """Joins the texts of updates that come at once."""

    fault_name: ClassVar[str] = "merging_updates"

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        before = await self.get(ref, scope)
        await asyncio.sleep(0)
        now = await self.get(ref, scope)
        raced = before is not None and now is not None and before.text != now.text
        text = f"{now.text} {item.text}" if raced and now is not None else item.text
        return await super().update(ref, replace(item, text=text), scope)


class Lagging(Mutant):
    """Finds the newest memory only after another was added."""

    fault_name: ClassVar[str] = "lagging"

    def _searched(self, scope: Scope) -> Sequence[Memory]:
        return [one for one in self._in(scope) if one.hit.id != f"m{self._seed}-{self._made}"]


class Rebuilding(Mutant):
    """Finds nothing while something is added."""

    fault_name: ClassVar[str] = "rebuilding"
    _adding = 0

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._adding += 1
        await asyncio.sleep(0)
        self._adding -= 1
        return await super().add(items, scope)

    def _searched(self, scope: Scope) -> Sequence[Memory]:
        return [] if self._adding else self._in(scope)


class DoubledRetries(Mutant):
    """Stores a key twice when it is written twice."""

    fault_name: ClassVar[str] = "doubled_retries"
    _adding = False

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._adding = True
        try:
            return await super().add(items, scope)
        finally:
            self._adding = False

    def _find(self, ref: Ref, scope: Scope) -> Memory | None:
        return None if self._adding else super()._find(ref, scope)


class CutBatches(Mutant):
    """Acknowledges a whole batch and stores its first ten items."""

    fault_name: ClassVar[str] = "cut_batches"

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        stored = await super().add(items[:_BATCH], scope)
        lost = [ReceiptItem(id=f"lost-{number}", text=item.text) for number, item in enumerate(items[_BATCH:])]
        return Receipt(items=(*stored.items, *lost))


class ReversedReceipts(Mutant):
    """Acknowledges the items of a batch in another order than they came."""

    fault_name: ClassVar[str] = "reversed_receipts"

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        receipt = await super().add(items, scope)
        ids = [one.id for one in receipt.items][::-1]
        return Receipt(items=[replace(one, id=id_) for one, id_ in zip(receipt.items, ids, strict=True)])


class ConfusedTwins(Mutant):
    """Counts equal texts of a batch once, so that the acknowledgements after them name other memories."""

    fault_name: ClassVar[str] = "confused_twins"

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        return await super().add(list({item.text: item for item in items}.values()), scope)


class LikeKeys(Mutant):
    """Compares keys by a pattern in which an underscore stands for any character."""

    fault_name: ClassVar[str] = "like_keys"

    def _find(self, ref: Ref, scope: Scope) -> Memory | None:
        if ref.key is None:
            return super()._find(ref, scope)
        pattern = re.escape(ref.key).replace("_", ".")
        return next((one for one in self._in(Scope(user=scope.user)) if re.fullmatch(pattern, one.hit.key or "")), None)


class MixedMetadata(Mutant):
    """Keeps the metadata of the old value when a key is written again."""

    fault_name: ClassVar[str] = "mixed_metadata"

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        known = [self._find(Ref(key=item.key), scope) if item.key is not None else None for item in items]
        mixed = [
            replace(item, metadata={**old.hit.metadata, **item.metadata}) if old else item
            for item, old in zip(items, known, strict=True)
        ]
        return await super().add(mixed, scope)


class RememberingQuestions(Mutant):
    """Remembers what it is asked."""

    fault_name: ClassVar[str] = "remembering_questions"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(query, scope)
        await self.add([Item(text=query.text)], scope)
        return found


class _Merging(Mutant):
    """Acknowledges a text and drops it as a repetition of one that is like it in some way."""

    def _likeness(self, text: str) -> object:
        raise NotImplementedError

    def _put(self, new: Memory, old: Memory | None) -> None:
        mine = self._in(Scope(user=new.user))
        alike = (one for one in mine if self._likeness(one.hit.text) == self._likeness(new.hit.text))
        if old is not None or next(alike, None) is None:
            super()._put(new, old)


class MergingNumbers(_Merging):
    """Drops a text that differs from another in a number only."""

    fault_name: ClassVar[str] = "merging_numbers"

    def _likeness(self, text: str) -> object:
        return re.sub(r"\d+", "#", text)


class MergingNegations(_Merging):
    """Drops the negation of a text."""

    fault_name: ClassVar[str] = "merging_negations"

    def _likeness(self, text: str) -> object:
        return words_of(text) - _NEGATIONS


class MergingOrders(_Merging):
    """Drops a text that has the words of another in another order."""

    fault_name: ClassVar[str] = "merging_orders"

    def _likeness(self, text: str) -> object:
        return sorted(re.findall(r"\w+", text))


class DeletingContradictions(Mutant):
    """Deletes what a new text contradicts, and the new text with it."""

    fault_name: ClassVar[str] = "deleting_contradictions"

    def _put(self, new: Memory, old: Memory | None) -> None:
        mine = self._in(Scope(user=new.user)) if old is None else ()
        contradicted = [one for one in mine if one.hit.text != new.hit.text and _overlap(one.hit, new.hit)]
        self._memories = [one for one in self._memories if one not in contradicted]
        if not contradicted:
            super()._put(new, old)


class RetiringNeighbours(Mutant):
    """Retires all that it knows of a person when one fact about the person changes."""

    fault_name: ClassVar[str] = "retiring_neighbours"

    def _put(self, new: Memory, old: Memory | None) -> None:
        mine = self._in(Scope(user=new.user)) if old is None else ()
        if any(_overlap(one.hit, new.hit) for one in mine):
            retired = [one for one in mine if one.hit.text.split()[:1] == new.hit.text.split()[:1]]
            self._memories = [one for one in self._memories if one not in retired]
        super()._put(new, old)


def _overlap(one: Hit, other: Hit) -> bool:
    """Return whether two texts share so many words that one may contradict the other."""
    first, second = words_of(one.text), words_of(other.text)
    return len(first & second) >= _CONTRADICTION * max(len(first | second), 1)
