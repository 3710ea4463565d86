"""Looks for texts that must be gone: in a step's result, by asking for each, in lists, contexts, logs and files."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from memstory.contract.codec import encode
from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import Capability, Hit, Query, Request, Scope, Target, Tree
from memstory.results.containment import found_in, is_in
from memstory.results.recording import Forbidden, Probe
from memstory.running.stage import Stage
from memstory.running.workspace_files import texts_in_files

ECHOES: Final = frozenset({"add", "update"})
"""Steps whose results repeat what they were given."""

_UNCOUNTED: Final = 100
"""How many hits are asked for at first where nobody can tell how many memories there are."""

_FEWEST: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A memory that nobody deletes: what to ask for, and which text must come back."""

    asked: str
    wanted: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prober:
    """Looks on behalf of the user of `scope`, in all sessions; `able` is what the target can do.

    Files are looked at with `in_files` only: what was corrected, or is another user's, may well be there.
    """

    stage: Stage
    able: frozenset[Capability]
    scope: Scope
    in_files: bool = False
    _found: dict[str, list[str]] = field(default_factory=dict)
    _looked: list[str] = field(default_factory=list)

    @property
    def found_so_far(self) -> Probe | None:
        """What a look that was cut short has found; None where that is nothing, for the rest was not looked at."""
        found = [Forbidden(text=text, found=places) for text, places in self._found.items() if places]
        return Probe(forbidden=found, looked=self._looked, twins=()) if found else None

    async def probe(self, texts: Sequence[str], twins: Sequence[Twin], result: Tree) -> Probe:
        """Return where `texts` still are, in `result` or anywhere, and which twins are not found."""
        found, looked = self._found, self._looked
        found.update({text: [] for text in texts})
        async for place, about, seen in self._sightings(texts, twins, result):
            looked += [] if place in looked else [place]
            for text in found_in(about, seen):
                found[text] += [] if place in found[text] else [place]
        return Probe(
            forbidden=[Forbidden(text=text, found=places) for text, places in found.items()],
            looked=looked,
            twins=[twin.wanted for twin in twins],
            lost=[twin.wanted for twin in twins if not await self._finds(twin)],
        )

    async def texts(self, asked: Sequence[str]) -> Sequence[str]:
        """Return the texts of all that the memory lists, and of what it finds for `asked` that is not listed.

        Raises:
            NotSupported: the memory declines to be read.
        """
        scope = Scope(user=self.scope.user)
        most = await self._count(scope)
        found: Counter[str] = Counter()
        try:
            if "list" in self.able:
                found |= Counter(hit.text for hit in await self.stage.target.perform(Request.of(Target.list, scope)))
            for text in dict.fromkeys(asked):
                found |= Counter(hit.text for hit in await self._search(text, scope, most))
        except Refused as refusal:
            raise NotSupported("search", f"the memory cannot be read here: {refusal}") from refusal
        return sorted(found.elements())

    async def _sightings(
        self, texts: Sequence[str], twins: Sequence[Twin], result: Tree
    ) -> AsyncIterator[tuple[str, Sequence[str], Tree]]:
        """Yield each place, the texts that it may hold, and what is seen there."""
        scope = Scope(user=self.scope.user)
        # Asked about something else, for a context may begin with the question.
        other = next((twin.asked for twin in twins), "What do you know?")
        most = await self._count(scope)
        perform = self.stage.target.perform
        looks: list[tuple[str, Sequence[str], Callable[[], Awaitable[Any]]]] = [
            ("list", texts, lambda: perform(Request.of(Target.list, scope))),
            *(("search", [text], partial(self._search, text, scope, most)) for text in texts),
            ("context", texts, lambda: perform(Request.of(Target.context, Query(text=other), scope))),
            ("inspect.log", texts, lambda: perform(Request.of(Target.inspect, "log", {}, scope))),
        ]
        if result is not None:
            yield "result", texts, result
        for place, about, look in looks:
            if place in self.able and (seen := await self._ask(look())) is not None:
                yield place.removeprefix("inspect."), about, seen
        if self.in_files:
            yield "files", texts, await asyncio.to_thread(texts_in_files, Path(self.stage.env.workspace), texts)

    async def _finds(self, twin: Twin) -> bool:
        scope = Scope(user=twin.user)
        return is_in(twin.wanted, await self._ask(self._search(twin.asked, scope, await self._count(scope))))

    async def _search(self, text: str, scope: Scope, most: int) -> Sequence[Hit]:
        """Return all that a search finds: where `most` come back, ever more is asked for, until no more comes."""
        found: Sequence[Hit] = ()
        while True:
            try:
                hits = await self.stage.target.perform(Request.of(Target.search, Query(text=text, top_k=most), scope))
            except Refused:
                if not found:
                    raise
                return found  # It declines to give so many.
            if len(hits) < most or len(hits) <= len(found):
                return hits
            most, found = most * 4, hits

    async def _count(self, scope: Scope) -> int:
        """Return one more than the memory lists, so that a search that finds as many may hold back others."""
        perform = self.stage.target.perform
        listed = await self._ask(perform(Request.of(Target.list, scope))) if "list" in self.able else None
        return (_UNCOUNTED if listed is None else max(len(listed), _FEWEST)) + 1

    async def _ask(self, answer: Awaitable[Any]) -> Any:
        """Return the answer as JSON; None where the target declines to look."""
        try:
            return encode(await answer)
        except (NotSupported, Refused):
            return None
