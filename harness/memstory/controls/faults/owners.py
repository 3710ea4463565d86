"""Faults of ownership: owners and sessions that see, change or lose what is not theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from memstory.contract.target import Hit, Item, Query, Receipt, Ref, Scope
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import Memory

_NEAREST = 10
"""So many of everybody's memories are looked at before the others' are left out."""


class _Finding(Mutant):
    """Finds the owner of an id, no matter who asks."""

    def _scope_of(self, ref: Ref, scope: Scope) -> Scope:
        owners = [one.user for one in self._now_valid() if ref.id is not None and one.hit.id == ref.id]
        return replace(scope, user=owners[0]) if owners else scope


class LeakyGet(_Finding):
    """Gives any memory to anyone who knows its id."""

    fault_name: ClassVar[str] = "leaky_get"

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        return await super().get(ref, self._scope_of(ref, scope))


class LeakyUpdate(_Finding):
    """Lets anybody who knows an id change the memory."""

    fault_name: ClassVar[str] = "leaky_update"

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        return await super().update(ref, item, self._scope_of(ref, scope))


class LeakyDelete(_Finding):
    """Lets anybody who knows an id delete the memory."""

    fault_name: ClassVar[str] = "leaky_delete"

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        return await super().delete(ref, self._scope_of(ref, scope))


class LeakySearch(Mutant):
    """Searches in everybody's memories."""

    fault_name: ClassVar[str] = "leaky_search"

    def _searched(self, scope: Scope) -> Sequence[Memory]:
        return self._now_valid()


class LeakingBehind(Mutant):
    """Gives another user's memory behind those that were asked for."""

    fault_name: ClassVar[str] = "leaking_behind"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        others = [one.hit for one in self._now_valid() if one.user != scope.user]
        return [*await super().search(query, scope), *others[:1]]


class LeakyList(Mutant):
    """Lists everybody's memories."""

    fault_name: ClassVar[str] = "leaky_list"

    def _listed(self, scope: Scope) -> Sequence[Memory]:
        return self._now_valid()


class LeakySessions(Mutant):
    """Answers from all sessions when it is asked about one."""

    fault_name: ClassVar[str] = "leaky_sessions"

    def _searched(self, scope: Scope) -> Sequence[Memory]:
        return self._in(replace(scope, session=None))

    def _listed(self, scope: Scope) -> Sequence[Memory]:
        return self._in(replace(scope, session=None))


class WipingOwners(Mutant):
    """Deletes everybody's memories when one user's are to go."""

    fault_name: ClassVar[str] = "wiping_owners"

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref != Ref():
            return await super().delete(ref, scope)
        found, self._memories = self._memories, []
        self._save()
        return bool(found)


class WipingSessions(Mutant):
    """Deletes all sessions of a user when one is to go."""

    fault_name: ClassVar[str] = "wiping_sessions"

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        return await super().delete(ref, replace(scope, session=None) if ref == Ref() else scope)


class JoinedKeys(Mutant):
    """Joins user and key with a dot into one name, which two pairs can share."""

    fault_name: ClassVar[str] = "joined_keys"

    def _find(self, ref: Ref, scope: Scope) -> Memory | None:
        wanted = f"{scope.user}.{ref.key}"
        named = [one for one in self._now_valid() if one.hit.key and f"{one.user}.{one.hit.key}" == wanted]
        return named[0] if ref.key is not None and named else super()._find(ref, scope)


class SharedTexts(Mutant):
    """Keeps equal texts of all users as one, so that who deletes his deletes everybody's."""

    fault_name: ClassVar[str] = "shared_texts"

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        found = self._find(ref, scope)
        if found is not None:
            text = found.hit.text
            self._memories = [one for one in self._memories if one == found or one.hit.text != text]
        return await super().delete(ref, scope)


class CrowdedOwners(Mutant):
    """Looks at everybody's nearest memories first, and leaves out the others' afterwards."""

    fault_name: ClassVar[str] = "crowded_owners"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        everybody = [await super(CrowdedOwners, self).search(query, Scope(user=user)) for user in self._users()]
        nearest = sorted((hit for hits in everybody for hit in hits), key=lambda hit: -(hit.score or 0.0))[:_NEAREST]
        own = {one.hit.id for one in self._in(scope)}
        return [hit for hit in nearest if hit.id in own]

    def _users(self) -> Sequence[str]:
        return list(dict.fromkeys(one.user for one in self._memories))


class MixedUsers(Mutant):
    """Keeps the present user in one place, so that users who write at once are mixed up."""

    fault_name: ClassVar[str] = "mixed_users"
    _present: Scope

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._present = scope
        await asyncio.sleep(0)
        return await super().add(items, self._present)


class KeepingShares(Mutant):
    """Keeps showing a memory after sharing it has ended."""

    fault_name: ClassVar[str] = "keeping_shares"

    def _share(self, owner: str, other: str, *, on: bool) -> None:
        if on:
            super()._share(owner, other, on=on)


class SharingWithAll(Mutant):
    """Shows what is shared with one user to everybody."""

    fault_name: ClassVar[str] = "sharing_with_all"

    def _owners(self, scope: Scope) -> frozenset[str]:
        return frozenset({scope.user, *(owner for owner, _ in self._shared)})


class SharingCopies(Mutant):
    """Keeps the text for the prompt that it made of what was shared."""

    fault_name: ClassVar[str] = "sharing_copies"

    def __init__(self) -> None:
        super().__init__()
        self._texts: dict[str, str] = {}

    async def context(self, query: Query, scope: Scope) -> str:
        self._texts.setdefault(scope.user, await super().context(query, scope))
        return self._texts[scope.user]
