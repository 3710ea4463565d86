"""Oracles with one broad fault each, which many stories must find; `memstory.controls.faults` has the narrow ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, cast

from memstory.contract.target import Capability, Hit, Item, Json, Ref, Scope, Target
from memstory.controls.oracle import Memory, Oracle, OracleFactory

_LOST = 3
"""The amnesiac loses the third memory, the sixth, the ninth …"""


class Mutant(Oracle):
    """An oracle that says which fault it has; the first line of its docstring is the fault."""

    fault_name: ClassVar[str]
    can_be_killed: ClassVar[bool] = False
    """Whether it runs stories that take a process for each, by `crash` or `other_process`: only if it is about them."""

    async def about(self) -> Mapping[str, str]:
        return {**await super().about(), "memory": f"oracle with a fault: {self.fault_name} (a control, not a backend)"}


class MutantFactory(OracleFactory):
    """Makes memories with one fault."""

    mutant: ClassVar[type[Mutant]]

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        return super().capabilities(options) - (set() if self.mutant.can_be_killed else {"crash", "other_process"})

    def target(self) -> Target:
        return self.mutant()


def factory_of(mutant: type[Mutant]) -> type[MutantFactory]:
    """Return the factory of one mutant; another process finds it by its spec."""
    members = {
        "__doc__": mutant.__doc__,
        "mutant": mutant,
        "name": f"control:{mutant.fault_name}",
        "spec": f"memstory.controls.by_name:{mutant.fault_name}",
    }
    return cast("type[MutantFactory]", type(f"{mutant.__name__}Factory", (MutantFactory,), members))


class Amnesiac(Mutant):
    """Acknowledges every memory and loses each third one."""

    fault_name: ClassVar[str] = "amnesiac"
    can_be_killed: ClassVar[bool] = True

    def _put(self, new: Memory, old: Memory | None) -> None:
        if old is not None or self._made % _LOST:
            super()._put(new, old)


class Leaky(Mutant):
    """Shows everybody's memories to everybody."""

    fault_name: ClassVar[str] = "leaky"
    can_be_killed: ClassVar[bool] = True

    def _in(self, scope: Scope) -> Sequence[Memory]:
        return self._now_valid()


class Stale(Mutant):
    """Acknowledges a new value and goes on telling the old one."""

    fault_name: ClassVar[str] = "stale"
    can_be_killed: ClassVar[bool] = True

    def _put(self, new: Memory, old: Memory | None) -> None:
        if old is None:
            super()._put(new, old)


class Undeleting(Mutant):
    """Acknowledges a deletion and keeps what was deleted."""

    fault_name: ClassVar[str] = "undeleting"
    can_be_killed: ClassVar[bool] = True

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        return bool(self._in(scope)) if ref == Ref() else self._find(ref, scope) is not None

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        return len(self._about(about, scope))


class Duplicating(Mutant):
    """Remembers everything twice."""

    fault_name: ClassVar[str] = "duplicating"
    can_be_killed: ClassVar[bool] = True

    def _put(self, new: Memory, old: Memory | None) -> None:
        super()._put(new, old)
        super()._put(replace(new, hit=self._twin(new.hit)), None)

    def _twin(self, hit: Hit) -> Hit:
        twin = self._new(Item(text=hit.text, key=hit.key, kind=hit.kind))
        return replace(hit, id=twin.id)
