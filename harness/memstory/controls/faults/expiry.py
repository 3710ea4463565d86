"""Faults of time: expired memories that are still shown, and memories that are forgotten too early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from memstory.contract.clock import Clock
from memstory.contract.target import Environment, Hit, Item, Ref, Scope
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import Memory


class _Expired(Mutant):
    """Still holds what is over."""

    def _all(self, scope: Scope) -> Sequence[Memory]:
        return [one for one in self._memories if one.user == scope.user and scope.session in (None, one.session)]


class FindingExpired(_Expired):
    """Finds what is over."""

    fault_name: ClassVar[str] = "finding_expired"

    def _searched(self, scope: Scope) -> Sequence[Memory]:
        return self._all(scope)


class ListingExpired(_Expired):
    """Lists what is over."""

    fault_name: ClassVar[str] = "listing_expired"

    def _listed(self, scope: Scope) -> Sequence[Memory]:
        return self._all(scope)


class GettingExpired(_Expired):
    """Returns an expired memory to anyone who knows its id."""

    fault_name: ClassVar[str] = "getting_expired"

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        return next((one.hit for one in self._all(scope) if ref.id and one.hit.id == ref.id), None)


class ForgettingEarly(Mutant):
    """Forgets at once what is to be forgotten later."""

    fault_name: ClassVar[str] = "forgetting_early"

    def _told(self, item: Item, scope: Scope, hit: Hit) -> Memory:
        return super()._told(replace(item, ttl=None if item.ttl is None else 0.0), scope, hit)


class SpreadingTtl(Mutant):
    """Gives the time to live of one memory to all that are added after it."""

    fault_name: ClassVar[str] = "spreading_ttl"
    _last: float | None = None

    def _told(self, item: Item, scope: Scope, hit: Hit) -> Memory:
        self._last = item.ttl if item.ttl is not None else self._last
        return super()._told(replace(item, ttl=self._last), scope, hit)


class UnwrittenTtl(Mutant):
    """Does not write down how long a memory lives."""

    fault_name: ClassVar[str] = "unwritten_ttl"

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        self._memories = [replace(one, until=None) for one in self._memories]
