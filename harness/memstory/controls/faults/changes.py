"""Faults of changing and forgetting: old values that stay, new ones that stray, deleted ones that come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from memstory.contract.errors import Refused
from memstory.contract.target import Hit, Item, Query, Receipt, ReceiptItem, Ref, Scope
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import Memory

_UPDATES = 10
"""After so many updates a memory drops out of the index."""

_DELETIONS = 10
"""After so many deletions the index begins to have holes."""


class StaleIndex(Mutant):
    """Finds an updated memory by its old words only."""

    fault_name: ClassVar[str] = "stale_index"

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[str | None, str] = {}

    def _put(self, new: Memory, old: Memory | None) -> None:
        self._first.setdefault(new.hit.id, new.hit.text)
        super()._put(new, old)

    def _indexed(self, hit: Hit) -> str:
        return self._first.get(hit.id, hit.text)


class StaleSearch(StaleIndex):
    """Shows an updated memory rightly, and finds it as it was."""

    fault_name: ClassVar[str] = "stale_search"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [replace(hit, text=self._indexed(hit)) for hit in await super().search(query, scope)]


class Reissuing(Mutant):
    """Gives an updated memory a new id, under which nobody looks for it."""

    fault_name: ClassVar[str] = "reissuing"

    def _put(self, new: Memory, old: Memory | None) -> None:
        issued = self._new(Item(text=new.hit.text)).id if old else new.hit.id
        super()._put(replace(new, hit=replace(new.hit, id=issued)), old)


class DroppingMetadata(Mutant):
    """Forgets the metadata of what is updated."""

    fault_name: ClassVar[str] = "dropping_metadata"

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        old = self._find(ref, scope)
        if old is not None:
            bare = replace(old, hit=replace(old.hit, metadata={}))
            self._memories = [bare if one == old else one for one in self._memories]
        return await super().update(ref, item, scope)


class Resurrecting(Mutant):
    """Acknowledges the update of what was deleted, and has it again."""

    fault_name: ClassVar[str] = "resurrecting"

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        if self._find(ref, scope) is None:
            return await self.add([item], scope)
        return await super().update(ref, item, scope)


class SpillingUpdates(Mutant):
    """Changes every memory that says the same as the one that is updated."""

    fault_name: ClassVar[str] = "spilling_updates"

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        old = self._find(ref, scope)
        for twin in [one for one in self._in(scope) if old and one != old and one.hit.text == old.hit.text]:
            self._put(replace(twin, hit=replace(twin.hit, text=item.text)), twin)
        return await super().update(ref, item, scope)


class SpillingDeletions(Mutant):
    """Deletes every memory that says the same as the one that is deleted."""

    fault_name: ClassVar[str] = "spilling_deletions"

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        found = self._find(ref, scope)
        twins = [one for one in self._in(scope) if found and one != found and one.hit.text == found.hit.text]
        self._memories = [one for one in self._memories if one not in twins]
        return await super().delete(ref, scope)


class WearingOut(Mutant):
    """Does not find what was updated often."""

    fault_name: ClassVar[str] = "wearing_out"

    def __init__(self) -> None:
        super().__init__()
        self._updates: Counter[str | None] = Counter()

    def _put(self, new: Memory, old: Memory | None) -> None:
        self._updates[new.hit.id] += 1
        super()._put(new, old)

    def _searched(self, scope: Scope) -> Sequence[Memory]:
        return [one for one in self._in(scope) if self._updates[one.hit.id] <= _UPDATES]


class LostAmongDeleted(Mutant):
    """Finds nothing once a thousand memories were deleted."""

    fault_name: ClassVar[str] = "lost_among_deleted"
    _deleted = 0

    def _forget(self, gone: Sequence[Memory], *, durable: bool) -> None:
        super()._forget(gone, durable=durable)
        self._deleted += len(gone)

    def _searched(self, scope: Scope) -> Sequence[Memory]:
        return [] if self._deleted >= 1000 else super()._searched(scope)  # noqa: PLR2004  (as its name says)


class _Remembering(Mutant):
    """Knows what was deleted."""

    def __init__(self) -> None:
        super().__init__()
        self._gone: list[Memory] = []

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        before = list(self._memories)
        found = await super().delete(ref, scope)
        self._gone += [one for one in before if one not in self._memories]
        return found

    def _gone_in(self, scope: Scope) -> Sequence[Memory]:
        return [one for one in self._gone if one.user == scope.user and scope.session in (None, one.session)]


class FindingDeleted(_Remembering):
    """Still finds what was deleted, and shows it nowhere else."""

    fault_name: ClassVar[str] = "finding_deleted"

    def _searched(self, scope: Scope) -> Sequence[Memory]:
        return [*self._in(scope), *self._gone_in(scope)]


class ListingDeleted(_Remembering):
    """Still lists what was deleted, and shows it nowhere else."""

    fault_name: ClassVar[str] = "listing_deleted"

    def _listed(self, scope: Scope) -> Sequence[Memory]:
        return [*self._in(scope), *self._gone_in(scope)]


class GettingDeleted(_Remembering):
    """Still gives what was deleted to who knows its id or key, and shows it nowhere else."""

    fault_name: ClassVar[str] = "getting_deleted"

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        gone = (one.hit for one in self._gone_in(Scope(user=scope.user)) if _is_named(one.hit, ref))
        return await super().get(ref, scope) or next(gone, None)


class Tombstoned(_Remembering):
    """Acknowledges and drops a text that is added again after it was deleted."""

    fault_name: ClassVar[str] = "tombstoned"

    def _put(self, new: Memory, old: Memory | None) -> None:
        if not any(one.hit.text == new.hit.text for one in self._gone_in(Scope(user=new.user))):
            super()._put(new, old)


class CrowdingDeleted(_Remembering):
    """Lets what was deleted take places among the hits, and then leaves the places empty."""

    fault_name: ClassVar[str] = "crowding_deleted"

    def _searched(self, scope: Scope) -> Sequence[Memory]:
        return [*self._in(scope), *self._gone_in(scope)]

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        live = {one.hit.id for one in self._in(scope)}
        return [hit for hit in await super().search(query, scope) if hit.id in live]


class LosingReach(_Remembering):
    """After many deletions, does not find each fourth memory that is left."""

    fault_name: ClassVar[str] = "losing_reach"

    def _searched(self, scope: Scope) -> Sequence[Memory]:
        left = self._in(scope)
        return left if len(self._gone) < _DELETIONS else [one for place, one in enumerate(left) if place % 4]


class WipingOnMiss(Mutant):
    """Deletes everything of a user when asked to delete what it does not know."""

    fault_name: ClassVar[str] = "wiping_on_miss"

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref == Ref() or self._find(ref, scope) is not None:
            return await super().delete(ref, scope)
        await super().delete(Ref(), scope)
        return False


class DeafWhenWiped(Mutant):
    """Once all of a user was deleted, acknowledges what the user tells and keeps none of it."""

    fault_name: ClassVar[str] = "deaf_when_wiped"

    def __init__(self) -> None:
        super().__init__()
        self._wiped: set[str] = set()

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref == Ref():
            self._wiped.add(scope.user)
        return await super().delete(ref, scope)

    def _put(self, new: Memory, old: Memory | None) -> None:
        if new.user not in self._wiped:
            super()._put(new, old)


class UnknownUpdates(Mutant):
    """Acknowledges the update of what it does not know, and does nothing."""

    fault_name: ClassVar[str] = "unknown_updates"

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        try:
            return await super().update(ref, item, scope)
        except Refused:
            return Receipt(items=[ReceiptItem(id=ref.id, text=item.text, outcome="updated", key=ref.key)])


def _is_named(hit: Hit, ref: Ref) -> bool:
    return hit.id == ref.id if ref.id is not None else hit.key is not None and hit.key == ref.key
