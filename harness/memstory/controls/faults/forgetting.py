"""Faults of forgetting: deleted or expired memories that are still shown, come back, or take others with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memstory.contract.clock import Clock
from memstory.contract.target import Environment, Hit, Item, Query, Ref, Scope
from memstory.controls.matching import is_about, squeeze, words_of
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import Oracle, OracleMemory

_SHORT: Final = 4
_LONG: Final = 40


def _longest(text: str) -> int:
    return max((len(squeeze(token)) for token in text.split() if any(map(str.isdigit, token))), default=0)


class SparingShort(Mutant):
    """Keeps a deleted secret that is short."""

    def _forget(self, gone: Sequence[OracleMemory], *, durable: bool) -> None:
        super()._forget([one for one in gone if not 0 < _longest(one.hit.text) <= _SHORT], durable=durable)


class SparingLong(Mutant):
    """Keeps a deleted secret that is long."""

    def _forget(self, gone: Sequence[OracleMemory], *, durable: bool) -> None:
        super()._forget([one for one in gone if _longest(one.hit.text) < _LONG], durable=durable)


class SparingSecond(Mutant):
    """Forgets only the first of several things that are named."""

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        return await super().delete_about(about[:1], scope, durable=durable)


class SparingOthers(Mutant):
    """Forgets only the first memory about a thing."""

    def _about(self, about: Sequence[str], scope: Scope) -> Sequence[OracleMemory]:
        return super()._about(about, scope)[:1]


class SparingEdited(Mutant):
    """Keeps a deleted memory that was changed before."""

    def _forget(self, gone: Sequence[OracleMemory], *, durable: bool) -> None:
        edited = {one.memory.hit.id for one in self._past}
        super()._forget([one for one in gone if one.hit.id not in edited], durable=durable)


class LooseAbout(Mutant, about=lambda text, thing: words_of(text) & words_of(thing)):
    """Also forgets every memory that shares a word with what is to be forgotten."""


def _identifiers(text: str) -> Sequence[str]:
    return [squeeze(token) for token in text.split()]


class PrefixAbout(Mutant, about=lambda text, thing: any(one.startswith(squeeze(thing)) for one in _identifiers(text))):
    """Also forgets every identifier that begins with the one named."""


class LiteralAbout(Mutant, about=lambda text, thing: thing in text):
    """Forgets an identifier only in the spelling in which it is named."""


def _is_near(one: str, other: str) -> bool:
    return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) <= 1


class FuzzyAbout(Mutant, about=lambda text, thing: any(_is_near(one, squeeze(thing)) for one in _identifiers(text))):
    """Also forgets identifiers that differ in one character from the one named."""


class WipingAbout(Mutant):
    """Forgets everything when nothing is known of what is to be forgotten."""

    def _about(self, about: Sequence[str], scope: Scope) -> Sequence[OracleMemory]:
        return super()._about(about, scope) or self._in(scope)


class LeakyAbout(Mutant):
    """Forgets what other users said of a thing, too."""

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        for user in {one.user for one in self._memories} - {scope.user}:
            await super().delete_about(about, Scope(user=user), durable=durable)
        return await super().delete_about(about, scope, durable=durable)


class Miscounting(Mutant):
    """Says that one memory was forgotten, however many there were."""

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        return min(1, await super().delete_about(about, scope, durable=durable))


class RememberingContext(Mutant):
    """Makes the text for the prompt once, and keeps it."""

    _context: str | None = None

    async def context(self, query: Query, scope: Scope) -> str:
        self._context = self._context or await super().context(query, scope)
        return self._context


class StaleExport(Mutant):
    """Leaves a deleted memory in what was exported before."""

    def _export(self) -> None:
        exported = self._path.with_name("export.json") if self._path else None
        if exported and not exported.exists():
            super()._export()


class QuotingLog(Mutant):
    """Writes the text of what is deleted into its log."""

    def _forget(self, gone: Sequence[OracleMemory], *, durable: bool) -> None:
        super()._forget(gone, durable=durable)
        self._log += [{"op": "deleted", "text": one.hit.text} for one in gone]


class QuotingRetractions(Mutant):
    """Keeps a note of what is no longer so, with its words."""

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        texts = [one.hit.text for one in self._about(about, scope)]
        count = await super().delete_about(about, scope, durable=durable)
        await Oracle.add(self, [Item(text=f"No longer so: {text}") for text in texts], scope)
        return count


class LeavingFiles(Mutant):
    """Leaves what is deleted in an old copy of its file."""

    def _save(self) -> None:
        if self._path and self._path.exists():
            self._path.with_suffix(".bak").write_bytes(self._path.read_bytes())
        super()._save()


class RebuildingDeleted(Mutant):
    """Finds deleted memories again once its index is rebuilt."""

    def _reindex(self) -> int:
        self._memories += self._deleted
        return super()._reindex()


class PrefixSessions(Mutant):
    """Takes all sessions whose names begin alike for one when it forgets."""

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref != Ref() or not scope.session:
            return await super().delete(ref, scope)
        mine = [one for one in self._memories if one.user == scope.user]
        self._forget([one for one in mine if (one.session or "").startswith(scope.session)], durable=False)
        self._save()
        return True


class TellingThePast(Mutant):
    """Returns what was deleted in a search as of a time before."""

    def _as_of(self, moment: str, scope: Scope) -> Sequence[OracleMemory]:
        return [*super()._as_of(moment, scope), *(one for one in self._deleted if one.user == scope.user)]


class FindingByHash(Mutant):
    """Finds a deleted memory where the question is the deleted text itself."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        words = words_of(query.text)
        cached = [one.hit for one in self._deleted if len(words) == 1 and words <= words_of(one.hit.text)]
        return [*await super().search(query, scope), *cached[-1:]][: query.top_k]


class OneScript(Mutant, about=lambda text, thing: thing in text and is_about(text, thing)):
    """Finds a name only in the alphabet in which it was added."""


class _Expired(Mutant):
    """Still holds what is over."""

    def _all(self, scope: Scope) -> Sequence[OracleMemory]:
        return [one for one in self._memories if one.user == scope.user and scope.session in (None, one.session)]


class FindingExpired(_Expired):
    """Finds expired memories."""

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return self._all(scope)


class ListingExpired(_Expired):
    """Lists expired memories."""

    def _listable(self, scope: Scope) -> Sequence[OracleMemory]:
        return self._all(scope)


class GettingExpired(_Expired):
    """Returns an expired memory to anyone who knows its id."""

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        return next((one.hit for one in self._all(scope) if ref.id and one.hit.id == ref.id), None)


class CrowdingExpired(_Expired):
    """Counts expired memories among the hits and removes them afterwards, so a search returns too few."""

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return self._all(scope)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        live = {one.hit.id for one in self._in(scope)}
        return [hit for hit in await super().search(query, scope) if hit.id in live]


class ForgettingEarly(Mutant, record=lambda item: replace(item, ttl=None if item.ttl is None else 0.0)):
    """Forgets at once what is to be forgotten later."""


class SpreadingTtl(Mutant):
    """Applies the time to live of one memory to all memories added after it."""

    _ttl: float | None = None

    def _memory_of(self, item: Item, scope: Scope, hit: Hit) -> OracleMemory:
        self._ttl = self._ttl if item.ttl is None else item.ttl
        return super()._memory_of(replace(item, ttl=self._ttl), scope, hit)


class UnwrittenTtl(Mutant):
    """Does not write down how long a memory lives."""

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        self._memories = [replace(one, until=None) for one in self._memories]
