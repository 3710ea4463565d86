"""Faults of correcting: old values that stay, return or come first; corrections that take too much or too little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from memstory.contract.target import Hit, Item, Receipt, Ref, Scope
from memstory.controls.matching import words_of
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import OracleMemory

_OLD: Final = timedelta(days=30)


class OldestFirst(Mutant):
    """Puts the older of two statements first."""

    def _place(self, hit: Hit, memory: OracleMemory | None) -> tuple[Any, ...]:
        stuffed, source, score, begun, name = super()._place(hit, memory)
        return (stuffed, source, score, -begun, name)


class KnownValues(Mutant):
    """Drops a change to a value that a memory had before."""

    def _loses(self, new: OracleMemory, old: OracleMemory | None) -> bool:
        known = {(one.memory.hit.id, one.memory.hit.text) for one in self._past}
        return old is not None and (new.hit.id, new.hit.text) in known


class AppendingUpdates(Mutant):
    """Remembers a correction beside what it corrects."""

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        return await self.add([item], scope)


class UpdatingFirst(Mutant):
    """Corrects only the first of several memories about a thing."""

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        found = self._about(about, scope)
        return await self.update(Ref(id=found[0].hit.id), item, scope) if found else Receipt()


class UpdatingTooMuch(Mutant):
    """Applies a correction to every memory that begins with the same words."""

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        return await super().update_about([*about, about[0].split()[0]], item, scope)


class InventingUpdates(Mutant):
    """Remembers a correction of something that it never knew."""

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        known = self._about(about, scope)
        return await (super().update_about(about, item, scope) if known else self.add([item], scope))


class PolarityBlind(Mutant):
    """Mistakes a correction for a repetition if most words are the same, and drops it."""

    def _loses(self, new: OracleMemory, old: OracleMemory | None) -> bool:
        words, old_words = words_of(new.hit.text), words_of(old.hit.text) if old else frozenset()
        return 2 * len(words & old_words) >= len(words)


class FixedAfterMonth(Mutant):
    """Acknowledges a correction of what is older than a month, and drops it."""

    def _loses(self, new: OracleMemory, old: OracleMemory | None) -> bool:
        if old is None or old.begun is None or self._clock is None:
            return False
        return self._clock.now() - datetime.fromisoformat(old.begun) >= _OLD


class CorrectingInSessions(Mutant):
    """Keeps a correction to the session in which it was made."""

    def _in(self, scope: Scope) -> Sequence[OracleMemory]:
        corrected = {one.memory.hit.id: one.memory for one in self._past}
        return [corrected.get(one.hit.id, one) if scope.session is None else one for one in super()._in(scope)]


class IgnoringAsOf(Mutant, query=lambda query: replace(query, as_of=None)):
    """Ignores `as_of` and answers as of now."""


class SeeingTheFuture(Mutant):
    """Finds memories that were added after the moment asked for (`as_of`)."""

    def _as_of(self, moment: str, scope: Scope) -> Sequence[OracleMemory]:
        past = super()._as_of(moment, scope)
        names = {one.hit.id for one in past}
        return [*past, *(one for one in self._in(scope) if one.hit.id not in names)]


class BothAtOnce(Mutant):
    """Returns both values for the moment at which one was corrected."""

    def _as_of(self, moment: str, scope: Scope) -> Sequence[OracleMemory]:
        then = datetime.fromisoformat(moment)
        ended = [one.memory for one in self._past if datetime.fromisoformat(one.ended) == then]
        return [*super()._as_of(moment, scope), *(one for one in ended if one.user == scope.user)]


class MergingValues(Mutant):
    """Writes the new value behind the old one."""

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        old = self._find(ref, scope)
        return await super().update(ref, replace(item, text=f"{old.hit.text} {item.text}") if old else item, scope)


class KeyedOnce(Mutant):
    """Keeps the first value of a key that was deleted and added again."""

    def _memory_of(self, item: Item, scope: Scope, hit: Hit) -> OracleMemory:
        deleted = {one.hit.key: one.hit.text for one in self._deleted if one.user == scope.user}
        text = hit.text if item.key is None else deleted.get(item.key, hit.text)
        return super()._memory_of(item, scope, replace(hit, text=text))
