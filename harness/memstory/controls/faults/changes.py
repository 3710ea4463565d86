"""Faults of changing and forgetting: old values that stay, new ones that stray, deleted ones that come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memstory.contract.errors import Refused
from memstory.contract.target import Hit, Item, Query, Receipt, ReceiptItem, Ref, Scope
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import OracleMemory

_UPDATES: Final = 10
"""After so many updates a memory drops out of the index."""

_DELETIONS: Final = 10
"""After so many deletions the index begins to have holes."""

_MANY_DELETIONS: Final = 1000


class StaleIndex(Mutant):
    """Finds an updated memory by its old words only."""

    def _index_text(self, hit: Hit) -> str:
        return next((one.memory.hit.text for one in self._past if one.memory.hit.id == hit.id), hit.text)


class StaleSearch(StaleIndex):
    """Shows an updated memory rightly, and finds it as it was."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [replace(hit, text=self._index_text(hit)) for hit in await super().search(query, scope)]


class Reissuing(Mutant):
    """Gives an updated memory a new id, under which nobody looks for it."""

    def _put(self, new: OracleMemory, old: OracleMemory | None) -> None:
        issued = self._new(Item(text=new.hit.text)).id if old else new.hit.id
        super()._put(replace(new, hit=replace(new.hit, id=issued)), old)


class DroppingMetadata(Mutant):
    """Forgets the metadata of what is updated."""

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        if old := self._find(ref, scope):
            bare = replace(old, hit=replace(old.hit, metadata={}))
            self._memories = [bare if one == old else one for one in self._memories]
        return await super().update(ref, item, scope)


class Resurrecting(Mutant):
    """Acknowledges the update of what was deleted, and has it again."""

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        if self._find(ref, scope) is None:
            return await self.add([item], scope)
        return await super().update(ref, item, scope)


class SpillingUpdates(Mutant):
    """Changes every memory that says the same as the one that is updated."""

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        old = self._find(ref, scope)
        for twin in [one for one in self._in(scope) if old and one != old and one.hit.text == old.hit.text]:
            self._put(replace(twin, hit=replace(twin.hit, text=item.text)), twin)
        return await super().update(ref, item, scope)


class SpillingDeletions(Mutant):
    """Deletes every memory that says the same as the one that is deleted."""

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        found = self._find(ref, scope)
        twins = [one for one in self._in(scope) if found and one != found and one.hit.text == found.hit.text]
        self._memories = [one for one in self._memories if one not in twins]
        return await super().delete(ref, scope)


class WearingOut(Mutant):
    """Does not find what was updated often."""

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        updates = Counter(one.memory.hit.id for one in self._past)
        return [one for one in self._in(scope) if updates[one.hit.id] < _UPDATES]


class LostAmongDeleted(Mutant):
    """Finds nothing once a thousand memories were deleted."""

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return [] if len(self._deleted) >= _MANY_DELETIONS else super()._searchable(scope)


class FindingDeleted(Mutant):
    """Still finds what was deleted, and shows it nowhere else."""

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return [*self._in(scope), *self._deleted_in(scope)]


class ListingDeleted(Mutant):
    """Still lists what was deleted, and shows it nowhere else."""

    def _listable(self, scope: Scope) -> Sequence[OracleMemory]:
        return [*self._in(scope), *self._deleted_in(scope)]


def _is_named(hit: Hit, ref: Ref) -> bool:
    return hit.id == ref.id if ref.id is not None else hit.key is not None and hit.key == ref.key


class GettingDeleted(Mutant):
    """Still returns a deleted memory to anyone who knows its id or key, and shows it nowhere else."""

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        gone = (one.hit for one in self._deleted_in(Scope(user=scope.user)) if _is_named(one.hit, ref))
        return await super().get(ref, scope) or next(gone, None)


class Tombstoned(Mutant):
    """Acknowledges and drops a text that is added again after it was deleted."""

    def _loses(self, new: OracleMemory, old: OracleMemory | None) -> bool:
        return any(one.hit.text == new.hit.text for one in self._deleted_in(Scope(user=new.user)))


class CrowdingDeleted(Mutant):
    """Counts deleted memories among the hits and removes them afterwards, so a search returns too few."""

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return [*self._in(scope), *self._deleted_in(scope)]

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        live = {one.hit.id for one in self._in(scope)}
        return [hit for hit in await super().search(query, scope) if hit.id in live]


class LosingReach(Mutant):
    """After many deletions, misses every fourth memory that is left."""

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        left = self._in(scope)
        return left if len(self._deleted) < _DELETIONS else [one for place, one in enumerate(left) if place % 4]


class WipingOnMiss(Mutant):
    """Deletes everything of a user when asked to delete what it does not know."""

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref == Ref() or self._find(ref, scope) is not None:
            return await super().delete(ref, scope)
        await super().delete(Ref(), scope)
        return False


class DeafWhenWiped(Mutant):
    """After everything of a user was deleted, acknowledges this user's new memories and stores none."""

    def __init__(self) -> None:
        super().__init__()
        self._wiped: set[str] = set()

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref == Ref():
            self._wiped.add(scope.user)
        return await super().delete(ref, scope)

    def _loses(self, new: OracleMemory, old: OracleMemory | None) -> bool:
        return new.user in self._wiped


class UnknownUpdates(Mutant):
    """Acknowledges the update of what it does not know, and does nothing."""

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        try:
            return await super().update(ref, item, scope)
        except Refused:
            return Receipt(items=[ReceiptItem(id=ref.id, text=item.text, outcome="updated", key=ref.key)])
