"""Faults of users' names: two names taken for one, and names that a program reads as patterns, numbers or nothing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import ClassVar, Final

from memstory.contract.target import Ref, Scope
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import Memory

_LONGEST_OWNER: Final = 128
_RESERVED: Final = frozenset({"all", "any", "default", "false", "none", "null", "public", "undefined", "0"})


def _number(name: str) -> str:
    bare = name.strip('"').lstrip("+")
    return f"{float(bare):g}" if re.fullmatch(r"[0-9]+(\.[0-9]*)?(e[0-9])?", bare) else name


def _fits(name: str, pattern: str) -> bool:
    """Return whether a pattern of SQL, of a shell or of `re` means `name`."""
    with suppress(re.error):
        if re.fullmatch(pattern, name):
            return True
    shell = pattern.replace("%", "*").replace("_", "?")
    return name == pattern or fnmatchcase(name, shell)


def _is_like(name: str, other: str) -> bool:
    plain, plain_other = (_number(unicodedata.normalize("NFKC", one).strip().casefold()) for one in (name, other))
    return plain == plain_other or plain_other in _RESERVED or _fits(name, other)


class _Renaming(Mutant):
    """Tells users apart by something that is less than their name."""

    def _name(self, user: str) -> str:
        raise NotImplementedError

    def _in(self, scope: Scope) -> Sequence[Memory]:
        named = [one for one in self._now_valid() if self._name(one.user) == self._name(scope.user)]
        return [one for one in named if scope.session is None or one.session == scope.session]


class FoldingOwners(_Renaming):
    """Takes two users for one whose names differ in the case of letters."""

    fault_name: ClassVar[str] = "folding_owners"

    def _name(self, user: str) -> str:
        return user.casefold()


class TidyingOwners(_Renaming):
    """Takes two users for one whose names differ in characters that are not letters."""

    fault_name: ClassVar[str] = "tidying_owners"

    def _name(self, user: str) -> str:
        return re.sub(r"[^a-zA-Z0-9]", "_", user)


class CuttingOwners(_Renaming):
    """Takes two users for one whose long names begin alike."""

    fault_name: ClassVar[str] = "cutting_owners"

    def _name(self, user: str) -> str:
        return user[:_LONGEST_OWNER]


class TrimmingOwners(_Renaming):
    """Takes two users for one whose names differ in the space around them."""

    fault_name: ClassVar[str] = "trimming_owners"

    def _name(self, user: str) -> str:
        return user.strip()


class ComposingOwners(_Renaming):
    """Takes two users for one whose names look alike in Unicode."""

    fault_name: ClassVar[str] = "composing_owners"

    def _name(self, user: str) -> str:
        return unicodedata.normalize("NFKC", user)


class CountingOwners(_Renaming):
    """Takes a name that is written like a number for that number."""

    fault_name: ClassVar[str] = "counting_owners"

    def _name(self, user: str) -> str:
        return _number(user)


class PatternOwners(Mutant):
    """Takes a name for a pattern, in which some characters mean any others."""

    fault_name: ClassVar[str] = "pattern_owners"

    def _in(self, scope: Scope) -> Sequence[Memory]:
        named = [one for one in self._now_valid() if _fits(one.user, scope.user)]
        return [one for one in named if scope.session is None or one.session == scope.session]


class ReservedOwners(Mutant):
    """Takes a name that means nothing or all to a program for nobody's, and then for everybody's."""

    fault_name: ClassVar[str] = "reserved_owners"

    def _in(self, scope: Scope) -> Sequence[Memory]:
        return self._now_valid() if scope.user.casefold() in _RESERVED else super()._in(scope)


class LooseDeletions(Mutant):
    """Deletes the memories of all users whose names are somehow like the one that is to be forgotten."""

    fault_name: ClassVar[str] = "loose_deletions"

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref == Ref():
            self._memories = [one for one in self._memories if not _is_like(one.user, scope.user)]
        return await super().delete(ref, scope)


class PrefixOwners(Mutant):
    """Takes every user whose name begins with another user's name for that user."""

    fault_name: ClassVar[str] = "prefix_owners"

    def _in(self, scope: Scope) -> Sequence[Memory]:
        named = [one for one in self._now_valid() if one.user.startswith(scope.user)]
        return [one for one in named if scope.session is None or one.session == scope.session]
