"""Faults of correcting: old values that stay, return or come first; corrections that take too much or too little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from memstory.contract.target import Hit, Item, Query, Receipt, Ref, Scope
from memstory.controls.matching import words_of
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import Memory

_OLD = timedelta(days=30)


class OldestFirst(Mutant):
    """Puts the older of two statements first."""

    fault_name: ClassVar[str] = "oldest_first"

    def _place(self, hit: Hit, memory: Memory | None) -> tuple[Any, ...]:
        stuffed, source, score, begun, name = super()._place(hit, memory)
        return (stuffed, source, score, -begun, name)


class KnownValues(Mutant):
    """Drops a change to a value that a memory had before."""

    fault_name: ClassVar[str] = "known_values"

    def _put(self, new: Memory, old: Memory | None) -> None:
        ids = {(one.memory.hit.id, one.memory.hit.text) for one in self._past}
        if old is None or (new.hit.id, new.hit.text) not in ids:
            super()._put(new, old)


class AppendingUpdates(Mutant):
    """Remembers a correction beside what it corrects."""

    fault_name: ClassVar[str] = "appending_updates"

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        return await self.add([item], scope)


class UpdatingFirst(Mutant):
    """Corrects the first memory about a thing, and leaves the others as they were."""

    fault_name: ClassVar[str] = "updating_first"

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        found = self._about(about, scope)
        return await self.update(Ref(id=found[0].hit.id), item, scope) if found else Receipt()


class UpdatingTooMuch(Mutant):
    """Takes a correction for one of all that begins with the same words."""

    fault_name: ClassVar[str] = "updating_too_much"

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        first = about[0].split()[0]
        return await super().update_about([*about, first], item, scope)


class InventingUpdates(Mutant):
    """Remembers a correction of something that it never knew."""

    fault_name: ClassVar[str] = "inventing_updates"

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        known = self._about(about, scope)
        return await (super().update_about(about, item, scope) if known else self.add([item], scope))


class PolarityBlind(Mutant):
    """Takes a correction for what it corrects where most words are the same."""

    fault_name: ClassVar[str] = "polarity_blind"

    def _put(self, new: Memory, old: Memory | None) -> None:
        mine, theirs = words_of(new.hit.text), words_of(old.hit.text) if old else frozenset()
        if 2 * len(mine & theirs) < len(mine):
            super()._put(new, old)


class FixedAfterMonth(Mutant):
    """Acknowledges a correction of what is older than a month, and drops it."""

    fault_name: ClassVar[str] = "fixed_after_month"

    def _put(self, new: Memory, old: Memory | None) -> None:
        now = self._clock.now() if self._clock else None
        is_young = old is None or old.begun is None or now is None or now - datetime.fromisoformat(old.begun) < _OLD
        if is_young:
            super()._put(new, old)


class CorrectingInSessions(Mutant):
    """Keeps a correction to the session in which it was made."""

    fault_name: ClassVar[str] = "correcting_in_sessions"

    def _in(self, scope: Scope) -> Sequence[Memory]:
        corrected = {one.memory.hit.id: one.memory for one in self._past}
        return [corrected.get(one.hit.id, one) if scope.session is None else one for one in super()._in(scope)]


class IgnoringAsOf(Mutant):
    """Answers as of now, whatever moment is asked for."""

    fault_name: ClassVar[str] = "ignoring_as_of"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return await super().search(replace(query, as_of=None), scope)


class SeeingTheFuture(Mutant):
    """Finds what was told later than the moment that is asked for."""

    fault_name: ClassVar[str] = "seeing_the_future"

    def _as_of(self, moment: str, scope: Scope) -> Sequence[Memory]:
        past = super()._as_of(moment, scope)
        names = {one.hit.id for one in past}
        return [*past, *(one for one in self._in(scope) if one.hit.id not in names)]


class BothAtOnce(Mutant):
    """Tells both values of the moment at which one was corrected."""

    fault_name: ClassVar[str] = "both_at_once"

    def _as_of(self, moment: str, scope: Scope) -> Sequence[Memory]:
        then = datetime.fromisoformat(moment)
        ended = [one.memory for one in self._past if datetime.fromisoformat(one.ended) == then]
        return [*super()._as_of(moment, scope), *(one for one in ended if one.user == scope.user)]


class MergingValues(Mutant):
    """Writes the new value behind the old one."""

    fault_name: ClassVar[str] = "merging_values"

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        old = self._find(ref, scope)
        return await super().update(ref, replace(item, text=f"{old.hit.text} {item.text}") if old else item, scope)


class KeyedOnce(Mutant):
    """Keeps the first value of a key once it was deleted and told again."""

    fault_name: ClassVar[str] = "keyed_once"

    def __init__(self) -> None:
        super().__init__()
        self._firsts: dict[tuple[str, str | None], str] = {}

    def _told(self, item: Item, scope: Scope, hit: Hit) -> Memory:
        if item.key is not None:
            hit = replace(hit, text=self._firsts.get((scope.user, item.key), hit.text))
        return super()._told(item, scope, hit)

    def _forget(self, gone: Sequence[Memory], *, durable: bool) -> None:
        self._firsts |= {(one.user, one.hit.key): one.hit.text for one in gone if one.hit.key}
        super()._forget(gone, durable=durable)
