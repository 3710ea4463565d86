"""Oracles with one fault each: how a fault is written, and the five broad ones, which many stories must find.

`memstory.controls.faults` has the narrow ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import eq
from types import ModuleType
from typing import ClassVar, Final, TypedDict, Unpack, cast

from memstory.contract.target import Capability, Hit, Item, Json, Query, Receipt, Ref, Scope, Target
from memstory.controls.matching import is_about
from memstory.controls.oracle import Oracle, OracleFactory, OracleMemory

_LOST: Final = 3
"""The amnesiac loses the third memory, the sixth, the ninth …"""


class Places(TypedDict, total=False):
    """Where a function can make a fault: it takes what passes there, and returns what the mutant makes of it.

    - `text`, `metadata`: of an item that is added, or that an update brings.
    - `record`: an item as it is written down; here its source, its role and its time to live count.
    - `query`: what a search is asked.
    - `hits`: what a search has found.
    - `sees`: two users' names -> whether the first sees what is the second's.
    - `about`: a text, and what is to be deleted or corrected -> whether the text is about it.
    """

    text: Callable[[str], str]
    metadata: Callable[[Mapping[str, Json]], Mapping[str, Json]]
    record: Callable[[Item], Item]
    query: Callable[[Query], Query]
    hits: Callable[[Sequence[Hit]], Sequence[Hit]]
    sees: Callable[[str, str], object]
    about: Callable[[str, str], object]


class Mutant(Oracle):
    """An oracle with one fault, which the name and the docstring of its class say.

    A fault that is a function at one of the `Places` stands in the head of the class, such as
    `class Trimming(Mutant, text=str.strip)`; any other overrides operations of the oracle. A class whose name begins
    with an underscore is no mutant, but what some have in common.
    """

    by_name: ClassVar[dict[str, type[Mutant]]] = {}
    """Every mutant, in the order in which they are written; `CappedList` has the name `capped_list`."""
    fault_name: ClassVar[str]
    can_be_killed: ClassVar[bool] = False
    """Whether it runs stories that take a process for each, by `crash` or `other_process`: only if it is about them."""
    _at: ClassVar[Places] = {
        "text": lambda text: text,
        "metadata": lambda metadata: metadata,
        "record": lambda item: item,
        "query": lambda query: query,
        "hits": lambda hits: hits,
        "sees": eq,
        "about": is_about,
    }

    def __init_subclass__(cls, **faults: Unpack[Places]) -> None:
        cls._at = {**cls._at, **faults}
        if not cls.__name__.startswith("_"):
            cls.fault_name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
            cls.by_name[cls.fault_name] = cls

    def __init__(self) -> None:
        super().__init__()
        self._deleted: list[OracleMemory] = []

    async def about(self) -> Mapping[str, str]:
        return {**await super().about(), "memory": f"oracle with a fault: {self.fault_name} (a control, not a backend)"}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        return await super().add([self._distort(item) for item in items], scope)

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        return await super().update(ref, self._distort(item), scope)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return self._at["hits"](await super().search(self._at["query"](query), scope))

    def _distort(self, item: Item) -> Item:
        return replace(item, text=self._at["text"](item.text), metadata=self._at["metadata"](item.metadata))

    def _memory_of(self, item: Item, scope: Scope, hit: Hit) -> OracleMemory:
        return super()._memory_of(self._at["record"](item), scope, hit)

    def _in(self, scope: Scope) -> Sequence[OracleMemory]:
        visible = [one for one in self._now_valid() if self._at["sees"](scope.user, one.user)]
        return [one for one in visible if scope.session in (None, one.session)]

    def _about(self, about: Sequence[str], scope: Scope) -> Sequence[OracleMemory]:
        return [one for one in self._in(scope) if any(self._at["about"](one.hit.text, thing) for thing in about)]

    def _forget(self, gone: Sequence[OracleMemory], *, durable: bool) -> None:
        super()._forget(gone, durable=durable)
        self._deleted += gone

    def _deleted_in(self, scope: Scope) -> Sequence[OracleMemory]:
        return [one for one in self._deleted if one.user == scope.user and scope.session in (None, one.session)]

    def _put(self, new: OracleMemory, old: OracleMemory | None) -> None:
        if not self._loses(new, old):
            super()._put(new, old)

    def _loses(self, new: OracleMemory, old: OracleMemory | None) -> bool:
        """Return whether what is acknowledged is not kept; `old` is what it would take the place of."""
        return False


class MutantFactory(OracleFactory):
    """Makes memories with one fault."""

    mutant: ClassVar[type[Mutant]]

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        return super().capabilities(options) - (set() if self.mutant.can_be_killed else {"crash", "other_process"})

    def target(self) -> Target:
        return self.mutant()


def factories_in(*modules: ModuleType) -> Mapping[str, type[MutantFactory]]:
    """Return the factory of every mutant that these modules define, by its name, in the order in which they stand."""
    homes = {module.__name__ for module in modules}
    return {name: _factory_of(mutant) for name, mutant in Mutant.by_name.items() if mutant.__module__ in homes}


def _factory_of(mutant: type[Mutant]) -> type[MutantFactory]:
    name = f"control:{mutant.fault_name}"  # another process finds it by this
    members = {"__doc__": mutant.__doc__, "mutant": mutant, "name": name, "spec": name}
    return cast("type[MutantFactory]", type(f"{mutant.__name__}Factory", (MutantFactory,), members))


class _Broad(Mutant):
    """Has a fault that touches all that a memory does."""

    can_be_killed: ClassVar[bool] = True


class Amnesiac(_Broad):
    """Acknowledges every memory and loses each third one."""

    def _loses(self, new: OracleMemory, old: OracleMemory | None) -> bool:
        return old is None and self._count % _LOST == 0


class Leaky(_Broad):
    """Shows everybody's memories to everybody."""

    def _in(self, scope: Scope) -> Sequence[OracleMemory]:
        return self._now_valid()


class Stale(_Broad):
    """Acknowledges a new value and goes on telling the old one."""

    def _loses(self, new: OracleMemory, old: OracleMemory | None) -> bool:
        return old is not None


class Undeleting(_Broad):
    """Acknowledges a deletion and keeps what was deleted."""

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        return bool(self._in(scope)) if ref == Ref() else self._find(ref, scope) is not None

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        return len(self._about(about, scope))


class Duplicating(_Broad):
    """Remembers everything twice."""

    def _put(self, new: OracleMemory, old: OracleMemory | None) -> None:
        super()._put(new, old)
        twin = self._new(Item(text=new.hit.text))
        super()._put(replace(new, hit=replace(new.hit, id=twin.id)), None)
