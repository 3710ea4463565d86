"""Memories that do none of the work; a story that they pass proves nothing.

`nothing` remembers nothing and answers everything; the others remember faithfully and find by chance, by substring, or
by returning all there is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import ClassVar

from memstory.contract.clock import Clock
from memstory.contract.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Json,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    Target,
    TargetFactory,
    ToolCall,
    ToolSchema,
    Turn,
)
from memstory.controls.oracle import Oracle
from memstory.language.capabilities import FEATURES, operations

_SHORTEST_WORD = 4
"""Letters that a word of a query must have for grep: shorter ones are in every text."""


class Nothing(Target):
    """Acknowledges everything and remembers nothing."""

    def __init__(self) -> None:
        self._count = 0

    async def open(self, env: Environment, clock: Clock) -> None:
        pass

    async def close(self) -> None:
        pass

    async def about(self) -> Mapping[str, str]:
        return {"memory": "nothing (a control, not a backend)"}

    async def fault(self, part: str, mode: str) -> None:
        pass

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        return Receipt(items=tuple(self._receipt(item, "stored") for item in items))

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        return None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return ()

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return ()

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        return Receipt(items=(self._receipt(item, "updated"),))

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        return False

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        return Receipt(items=(self._receipt(item, "updated"),))

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        return 0

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        return False

    async def context(self, query: Query, scope: Scope) -> str:
        return ""

    async def say(self, text: str, scope: Scope) -> Turn:
        return Turn(answer="")

    async def tools(self) -> Sequence[ToolSchema]:
        return ()

    async def tool(self, name: str, args: Mapping[str, Json], scope: Scope, caller: str | None = None) -> ToolCall:
        return ToolCall(name=name, args=args)

    async def end_session(self, scope: Scope, reason: str) -> None:
        pass

    def _receipt(self, item: Item, outcome: str) -> ReceiptItem:
        self._count += 1
        return ReceiptItem(id=f"nothing-{self._count}", text=item.text, outcome=outcome, kind=item.kind, key=item.key)


class NothingFactory(TargetFactory):
    """Makes memories that remember nothing; they claim all that a story may ask of any memory."""

    name: ClassVar[str] = "control:nothing"
    spec: ClassVar[str | None] = "control:nothing"

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        # No story asks for `load`: it is a way to write, and this memory writes nothing.
        return frozenset({*operations(), *FEATURES, *(f"option.{name}" for name in options)} - {"load"})

    def target(self) -> Target:
        return Nothing()


class Unranked(Oracle):
    """Remembers faithfully; its subclasses say what is found."""

    name: ClassVar[str]

    async def about(self) -> Mapping[str, str]:
        return {"memory": f"{self.name} (a control, not a backend)"}

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        present = [one.hit for one in self._in(scope) if not query.kinds or one.hit.kind in query.kinds]
        found = self._choose_hits(present, query)[: query.top_k]
        return [replace(hit, score=1 / (place + 1)) for place, hit in enumerate(found)]

    def _choose_hits(self, present: Sequence[Hit], query: Query) -> Sequence[Hit]:
        raise NotImplementedError


class RandomMemory(Unranked):
    """Finds what chance gives; the same seed and query find the same."""

    name: ClassVar[str] = "random"

    def _choose_hits(self, present: Sequence[Hit], query: Query) -> Sequence[Hit]:
        draw = Random(f"{self._seed}/{query.text}")  # noqa: S311  (chance that can be repeated, not a secret)
        return draw.sample(present, len(present))


class Grep(Unranked):
    """Finds every memory that has a longer word of the query in it as a substring, the oldest first."""

    name: ClassVar[str] = "grep"

    def _choose_hits(self, present: Sequence[Hit], query: Query) -> Sequence[Hit]:
        words = re.findall(r"\w+", query.text.casefold())
        wanted = [word for word in words if len(word) >= _SHORTEST_WORD] or words
        return [hit for hit in present if any(word in hit.text.casefold() for word in wanted)]


class Everything(Unranked):
    """Finds all that it remembers, the newest first."""

    name: ClassVar[str] = "everything"

    def _choose_hits(self, present: Sequence[Hit], query: Query) -> Sequence[Hit]:
        return present[::-1]


class _UnrankedFactory(TargetFactory):
    """Claims no looking up and no forgetting: with those a story would test what these memories do right."""

    memory: ClassVar[type[Unranked]]

    def __init_subclass__(cls, memory: type[Unranked]) -> None:
        cls.memory, cls.name, cls.spec = memory, f"control:{memory.name}", f"control:{memory.name}"

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        words = (
            "add add.key add.metadata add.source add.role add.verbatim search search.scores search.min_score "
            "restart crash clock persistent scope.user"
        )
        return frozenset({*words.split(), *(f"option.{name}" for name in options)})

    def target(self) -> Target:
        return self.memory()


class RandomFactory(_UnrankedFactory, memory=RandomMemory):
    """Makes memories that find by chance."""


class GrepFactory(_UnrankedFactory, memory=Grep):
    """Makes memories that find by substring."""


class EverythingFactory(_UnrankedFactory, memory=Everything):
    """Makes memories that return all there is."""


BASELINES: Mapping[str, type[TargetFactory]] = {
    "nothing": NothingFactory,
    "random": RandomFactory,
    "grep": GrepFactory,
    "everything": EverythingFactory,
}
"""By the name behind `control:`."""
