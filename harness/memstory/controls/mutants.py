"""The oracle with one fault each: the faults that memories really have. Stories that matter find them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from memstory.controls.oracle import Memory, Oracle, OracleFactory
from memstory.target import Hit, Item, Ref, Scope, Target

_LOST = 3
"""The amnesiac loses the third memory, the sixth, the ninth …"""


class Mutant(Oracle):
    """An oracle that says which fault it has."""

    fault_name: ClassVar[str]

    async def about(self) -> Mapping[str, str]:
        return {"memory": f"oracle with a fault: {self.fault_name} (a control, not a backend)"}


class Amnesiac(Mutant):
    """Acknowledges every memory and loses each third one."""

    fault_name: ClassVar[str] = "amnesiac"

    def _put(self, new: Memory, old: Memory | None) -> None:
        if old is not None or self._made % _LOST:
            super()._put(new, old)


class Leaky(Mutant):
    """Shows everybody's memories to everybody."""

    fault_name: ClassVar[str] = "leaky"

    def _in(self, scope: Scope) -> Sequence[Memory]:
        return self._now_valid()


class Stale(Mutant):
    """Acknowledges a new value and goes on telling the old one."""

    fault_name: ClassVar[str] = "stale"

    def _put(self, new: Memory, old: Memory | None) -> None:
        if old is None:
            super()._put(new, old)


class Undeleting(Mutant):
    """Acknowledges a deletion and keeps what was deleted."""

    fault_name: ClassVar[str] = "undeleting"

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        return bool(self._in(scope)) if ref == Ref() else self._find(ref, scope) is not None


class Duplicating(Mutant):
    """Remembers everything twice."""

    fault_name: ClassVar[str] = "duplicating"

    def _put(self, new: Memory, old: Memory | None) -> None:
        super()._put(new, old)
        super()._put(replace(new, hit=self._twin(new.hit)), None)

    def _twin(self, hit: Hit) -> Hit:
        twin = self._new(Item(text=hit.text, key=hit.key, kind=hit.kind))
        return replace(hit, id=twin.id)


class AmnesiacFactory(OracleFactory):
    """Makes memories that lose each third memory."""

    name: ClassVar[str] = "control:amnesiac"
    spec: ClassVar[str | None] = "memstory.controls:AmnesiacFactory"

    def target(self) -> Target:
        return Amnesiac()


class LeakyFactory(OracleFactory):
    """Makes memories that keep no users apart."""

    name: ClassVar[str] = "control:leaky"
    spec: ClassVar[str | None] = "memstory.controls:LeakyFactory"

    def target(self) -> Target:
        return Leaky()


class StaleFactory(OracleFactory):
    """Makes memories that keep the old value."""

    name: ClassVar[str] = "control:stale"
    spec: ClassVar[str | None] = "memstory.controls:StaleFactory"

    def target(self) -> Target:
        return Stale()


class UndeletingFactory(OracleFactory):
    """Makes memories that forget nothing."""

    name: ClassVar[str] = "control:undeleting"
    spec: ClassVar[str | None] = "memstory.controls:UndeletingFactory"

    def target(self) -> Target:
        return Undeleting()


class DuplicatingFactory(OracleFactory):
    """Makes memories that remember everything twice."""

    name: ClassVar[str] = "control:duplicating"
    spec: ClassVar[str | None] = "memstory.controls:DuplicatingFactory"

    def target(self) -> Target:
        return Duplicating()
