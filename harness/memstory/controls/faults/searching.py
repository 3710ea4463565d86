"""Faults of finding: wrong order, wrong scores, unrequested limits, filters that do not filter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import ClassVar

from memstory.contract.target import Hit, Item, Json, Query, Receipt, Scope
from memstory.controls.matching import words_of
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import Memory

_MOST_FOUND = 5
_MOST_LISTED = 100
_LONGEST_QUERY = 500
_LONGER_WORD = 4


class WorstFirst(Mutant):
    """Orders by distance as if it were nearness."""

    fault_name: ClassVar[str] = "worst_first"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(replace(query, top_k=None), scope)
        return list(reversed(found))[: query.top_k]


class DistanceScores(Mutant):
    """Orders rightly and gives distances for scores."""

    fault_name: ClassVar[str] = "distance_scores"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [replace(hit, score=1 - (hit.score or 0.0)) for hit in await super().search(query, scope)]


class NanScores(Mutant):
    """Gives scores that are not numbers."""

    fault_name: ClassVar[str] = "nan_scores"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [replace(hit, score=nan) for hit in await super().search(query, scope)]


class IgnoringMinScore(Mutant):
    """Finds below the score that was asked for."""

    fault_name: ClassVar[str] = "ignoring_min_score"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return await super().search(replace(query, min_score=None), scope)


class CappedSearch(Mutant):
    """Finds five at most, however many are asked for."""

    fault_name: ClassVar[str] = "capped_search"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return (await super().search(query, scope))[:_MOST_FOUND]


class ShortOfTopK(Mutant):
    """Finds one less than was asked for."""

    fault_name: ClassVar[str] = "short_of_top_k"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        short = None if query.top_k is None else max(query.top_k - 1, 0)
        return await super().search(replace(query, top_k=short), scope)


class DroppingLast(Mutant):
    """Leaves out the last hit of every search."""

    fault_name: ClassVar[str] = "dropping_last"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return (await super().search(query, scope))[:-1]


class OneTooMany(Mutant):
    """Finds one memory more than it should, whatever was asked."""

    fault_name: ClassVar[str] = "one_too_many"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(query, scope)
        known = {hit.id for hit in found}
        return [*found, *[one.hit for one in self._in(scope) if one.hit.id not in known][:1]]


class RepeatingHits(Mutant):
    """Gives the last hit of every search twice."""

    fault_name: ClassVar[str] = "repeating_hits"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(query, scope)
        return [*found, *found[-1:]]


class CappedList(Mutant):
    """Lists a hundred at most."""

    fault_name: ClassVar[str] = "capped_list"

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return (await super().list(scope, kinds, limit))[:_MOST_LISTED]


class CappedAtThousand(Mutant):
    """Lists a thousand at most."""

    fault_name: ClassVar[str] = "capped_at_thousand"

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return (await super().list(scope, kinds, limit))[:1000]


class IgnoringLimit(Mutant):
    """Lists all, however few are asked for."""

    fault_name: ClassVar[str] = "ignoring_limit"

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return await super().list(scope, kinds)


class IgnoringWhere(Mutant):
    """Finds whatever the metadata."""

    fault_name: ClassVar[str] = "ignoring_where"

    def _fits(self, hit: Hit, where: Mapping[str, Json]) -> bool:
        return True


class AnyWhere(Mutant):
    """Takes one of several conditions for all of them."""

    fault_name: ClassVar[str] = "any_where"

    def _fits(self, hit: Hit, where: Mapping[str, Json]) -> bool:
        return not where or any(super(AnyWhere, self)._fits(hit, {name: value}) for name, value in where.items())


class LooseWhere(Mutant):
    """Compares metadata as texts, so that 1, true and "1" are one."""

    fault_name: ClassVar[str] = "loose_where"

    def _fits(self, hit: Hit, where: Mapping[str, Json]) -> bool:
        return all(name in hit.metadata and str(hit.metadata[name]) == str(value) for name, value in where.items())


class FloatWhere(Mutant):
    """Compares numbers as floats, so that two large ones that differ by one are one."""

    fault_name: ClassVar[str] = "float_where"

    def _fits(self, hit: Hit, where: Mapping[str, Json]) -> bool:
        return super()._fits(replace(hit, metadata=_floats(hit.metadata)), _floats(where))


def _floats(values: Mapping[str, Json]) -> dict[str, Json]:
    return {name: float(value) if type(value) is int else value for name, value in values.items()}


class FilteringLate(Mutant):
    """Takes the nearest first, and leaves out afterwards what does not fit."""

    fault_name: ClassVar[str] = "filtering_late"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        nearest = await super().search(replace(query, where={}), scope)
        return [hit for hit in nearest if self._fits(hit, query.where)]


class AlienIds(Mutant):
    """Gives hits ids by which nothing can be looked up."""

    fault_name: ClassVar[str] = "alien_ids"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(query, scope)
        return [replace(hit, id=f"hit-{place}") for place, hit in enumerate(found)]


class Flickering(Mutant):
    """Answers the same question otherwise each second time."""

    fault_name: ClassVar[str] = "flickering"
    _asked = 0

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._asked += 1
        found = await super().search(query, scope)
        return found if self._asked % 2 else list(reversed(found))


class QueryLanguage(Mutant):
    """Takes what a user types for a language with operators, and finds nothing where it does not understand."""

    fault_name: ClassVar[str] = "query_language"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        has_operator = re.search(r"[\"'*():^{}\[\]\\$%;/+~|&!<>=]|(?<!\w)-|\b(AND|OR|NOT|NEAR)\b", query.text)
        return [] if has_operator else await super().search(query, scope)


class ShortQueries(Mutant):
    """Finds nothing when the question is long."""

    fault_name: ClassVar[str] = "short_queries"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [] if len(query.text) > _LONGEST_QUERY else await super().search(query, scope)


class BrokenByEmptiness(Mutant):
    """Finds nothing of a user any more once it was given a text without any longer word."""

    fault_name: ClassVar[str] = "broken_by_emptiness"

    def __init__(self) -> None:
        super().__init__()
        self._broken: set[str] = set()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        if any(max(map(len, words_of(item.text)), default=0) < _LONGER_WORD for item in items):
            self._broken.add(scope.user)
        return await super().add(items, scope)

    def _searched(self, scope: Scope) -> Sequence[Memory]:
        return [] if scope.user in self._broken else self._in(scope)


class BrokenByQuestions(Mutant):
    """Finds nothing any more once it was asked a question without a word."""

    fault_name: ClassVar[str] = "broken_by_questions"
    _is_broken = False

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._is_broken = self._is_broken or not words_of(query.text)
        return [] if self._is_broken else await super().search(query, scope)


class ByteWords(Mutant):
    """Finds a word only if its accents are encoded as they were told."""

    fault_name: ClassVar[str] = "byte_words"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        asked = set(re.findall(r"\w+", query.text.casefold()))
        found = await super().search(query, scope)
        return [hit for hit in found if asked & set(re.findall(r"\w+", hit.text.casefold()))]


class CaseWords(Mutant):
    """Finds a word only in the case in which it was told."""

    fault_name: ClassVar[str] = "case_words"

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        asked = set(re.findall(r"\w+", query.text))
        found = await super().search(query, scope)
        return [hit for hit in found if asked & set(re.findall(r"\w+", hit.text))]
