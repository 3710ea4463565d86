"""Faults of ownership: owners and sessions that see, change or lose what is not theirs, and names taken for others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final
from unicodedata import normalize

from memstory.contract.target import Hit, Item, Query, Receipt, Ref, Scope
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import OracleMemory

_NEAREST: Final = 10
"""So many of everybody's memories are looked at before the others' are left out."""

_LONGEST_NAME: Final = 128
_RESERVED: Final = frozenset({"all", "any", "default", "false", "none", "null", "public", "undefined", "0"})


class _Finding(Mutant):
    """Finds the owner of an id, no matter who asks."""

    def _scope_of(self, ref: Ref, scope: Scope) -> Scope:
        owners = [one.user for one in self._now_valid() if ref.id is not None and one.hit.id == ref.id]
        return replace(scope, user=owners[0]) if owners else scope


class LeakyGet(_Finding):
    """Returns any memory to anyone who knows its id."""

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        return await super().get(ref, self._scope_of(ref, scope))


class LeakyUpdate(_Finding):
    """Lets anybody who knows an id change the memory."""

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        return await super().update(ref, item, self._scope_of(ref, scope))


class LeakyDelete(_Finding):
    """Lets anybody who knows an id delete the memory."""

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        return await super().delete(ref, self._scope_of(ref, scope))


class LeakySearch(Mutant):
    """Searches in everybody's memories."""

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return self._now_valid()


class LeakingBehind(Mutant):
    """Appends another user's memory to the hits."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        others = [one.hit for one in self._now_valid() if one.user != scope.user]
        return [*await super().search(query, scope), *others[:1]]


class LeakyList(Mutant):
    """Lists everybody's memories."""

    def _listable(self, scope: Scope) -> Sequence[OracleMemory]:
        return self._now_valid()


class LeakySessions(Mutant):
    """Answers from all sessions when it is asked about one."""

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return self._in(replace(scope, session=None))

    _listable = _searchable


class WipingOwners(Mutant):
    """Deletes everybody's memories when one user's are to go."""

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref != Ref():
            return await super().delete(ref, scope)
        found, self._memories = self._memories, []
        self._save()
        return bool(found)


class WipingSessions(Mutant):
    """Deletes all sessions of a user when one is to go."""

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        return await super().delete(ref, replace(scope, session=None) if ref == Ref() else scope)


class JoinedKeys(Mutant):
    """Joins user and key with a dot into one name, which two pairs can share."""

    def _find(self, ref: Ref, scope: Scope) -> OracleMemory | None:
        wanted = f"{scope.user}.{ref.key}"
        named = [one for one in self._now_valid() if one.hit.key and f"{one.user}.{one.hit.key}" == wanted]
        return named[0] if ref.key is not None and named else super()._find(ref, scope)


class SharedTexts(Mutant):
    """Stores equal texts of all users once, so one user's deletion deletes everybody's."""

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if found := self._find(ref, scope):
            self._memories = [one for one in self._memories if one == found or one.hit.text != found.hit.text]
        return await super().delete(ref, scope)


class CrowdedOwners(Mutant):
    """Searches everybody's memories first and filters by user afterwards, so other users' memories crowd out hits."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        users = dict.fromkeys(one.user for one in self._memories)
        found = [hit for user in users for hit in await super(CrowdedOwners, self).search(query, Scope(user=user))]
        own = {one.hit.id for one in self._in(scope)}
        return [hit for hit in sorted(found, key=lambda hit: -(hit.score or 0.0))[:_NEAREST] if hit.id in own]


class CrowdedLists(Mutant):
    """Cuts everybody's list at its limit and filters by user afterwards, so other users' memories crowd it out."""

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        own = {one.hit.id for one in self._in(scope)}
        first = [one.hit for one in self._now_valid() if not kinds or one.hit.kind in kinds][:limit]
        return [hit for hit in first if hit.id in own]


class JoinedSessions(Mutant):
    """Joins the letters of user and session into one name, which two pairs can share."""

    def _in(self, scope: Scope) -> Sequence[OracleMemory]:
        if scope.session is None:
            return super()._in(scope)
        wanted = _letters(f"{scope.user}{scope.session}")
        return [one for one in self._now_valid() if one.session and _letters(f"{one.user}{one.session}") == wanted]


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name)


class MixedUsers(Mutant):
    """Keeps the current user in one shared variable, so users who write at the same time are mixed up."""

    _present: Scope

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._present = scope
        await asyncio.sleep(0)
        return await super().add(items, self._present)


class KeepingShares(Mutant):
    """Keeps showing a memory after sharing it has ended."""

    def _share(self, owner: str, other: str, *, on: bool) -> None:
        if on:
            super()._share(owner, other, on=on)


class SharingWithAll(Mutant):
    """Shows what is shared with one user to everybody."""

    def _owners(self, scope: Scope) -> frozenset[str]:
        return frozenset({scope.user, *(owner for owner, _ in self._shared)})


class SharingCopies(Mutant):
    """Keeps using a prompt text that it made while a memory was shared."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: dict[str, str] = {}

    async def context(self, query: Query, scope: Scope) -> str:
        return self._texts.setdefault(scope.user, await super().context(query, scope))


def _alike(form: Callable[[str], str]) -> Callable[[str, str], bool]:
    """Return whether two names have the same form, as a function of the two."""
    return lambda one, other: form(one) == form(other)


class FoldingOwners(Mutant, sees=_alike(str.casefold)):
    """Confuses users whose names differ only in upper and lower case."""


class TidyingOwners(Mutant, sees=_alike(lambda name: re.sub(r"[^a-zA-Z0-9]", "_", name))):
    """Confuses users whose names differ only in characters that are not letters."""


class CuttingOwners(Mutant, sees=_alike(lambda name: name[:_LONGEST_NAME])):
    """Confuses users whose long names begin with the same characters."""


class TrimmingOwners(Mutant, sees=_alike(str.strip)):
    """Confuses users whose names differ only in leading or trailing spaces."""


class ComposingOwners(Mutant, sees=_alike(lambda name: normalize("NFKC", name))):
    """Confuses users whose names are the same after Unicode normalization."""


def _number(name: str) -> str:
    bare = name.strip('"').lstrip("+")
    return f"{float(bare):g}" if re.fullmatch(r"[0-9]+(\.[0-9]*)?(e[0-9])?", bare) else name


class CountingOwners(Mutant, sees=_alike(_number)):
    """Reads a user name that looks like a number as that number."""


class PrefixOwners(Mutant, sees=lambda user, owner: owner.startswith(user)):
    """Confuses a user with every user whose name begins with the same text."""


def _is_pattern_of(pattern: str, name: str) -> bool:
    """Return whether a pattern of SQL, of a shell or of `re` means `name`."""
    with suppress(re.error):
        if re.fullmatch(pattern, name):
            return True
    return name == pattern or fnmatchcase(name, pattern.replace("%", "*").replace("_", "?"))


class PatternOwners(Mutant, sees=_is_pattern_of):
    """Reads a user name as a pattern with wildcards."""


class ReservedOwners(Mutant, sees=lambda user, owner: user == owner or user.casefold() in _RESERVED):
    """Shows everybody's memories to a user whose name is a reserved word such as `null`."""


def _is_like(name: str, other: str) -> bool:
    plain, plain_other = (_number(normalize("NFKC", one).strip().casefold()) for one in (name, other))
    return plain == plain_other or plain_other in _RESERVED or _is_pattern_of(other, name)


class LooseDeletions(Mutant):
    """Deletes the memories of all users whose names resemble the one to be deleted."""

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref == Ref():
            self._memories = [one for one in self._memories if not _is_like(one.user, scope.user)]
        return await super().delete(ref, scope)
