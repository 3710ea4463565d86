"""Faults of finding: wrong order, wrong scores, unrequested limits, filters that do not filter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Final

from memstory.contract.target import Hit, Item, Json, Query, Receipt, Scope
from memstory.controls.matching import words_of
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import OracleMemory

_LONGEST_QUERY: Final = 500
_LONGER_WORD: Final = 4
_INDEXED_WORDS: Final = 40


class WorstFirst(Mutant):
    """Ranks by distance as if it were similarity: the worst hit comes first."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(replace(query, top_k=None), scope)
        return found[::-1][: query.top_k]


class DistanceScores(Mutant, hits=lambda hits: [replace(hit, score=1 - (hit.score or 0.0)) for hit in hits]):
    """Ranks correctly, but returns distances as scores."""


class NanScores(Mutant, hits=lambda hits: [replace(hit, score=nan) for hit in hits]):
    """Returns scores that are not numbers (NaN)."""


class IgnoringMinScore(Mutant, query=lambda query: replace(query, min_score=None)):
    """Ignores `min_score`."""


class CappedSearch(Mutant, hits=lambda hits: hits[:5]):
    """Returns at most five hits, however many are requested."""


class ShortOfTopK(Mutant, query=lambda query: replace(query, top_k=query.top_k and query.top_k - 1)):
    """Returns one hit fewer than requested."""


class DroppingLast(Mutant, hits=lambda hits: hits[:-1]):
    """Leaves out the last hit of every search."""


class OneTooMany(Mutant):
    """Finds one memory more than it should, whatever was asked."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(query, scope)
        known = {hit.id for hit in found}
        return [*found, *[one.hit for one in self._in(scope) if one.hit.id not in known][:1]]


class RepeatingHits(Mutant, hits=lambda hits: [*hits, *hits[-1:]]):
    """Gives the last hit of every search twice."""


class CappedList(Mutant):
    """Lists a hundred at most."""

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return (await super().list(scope, kinds, limit))[:100]


class CappedAtThousand(Mutant):
    """Lists a thousand at most."""

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return (await super().list(scope, kinds, limit))[:1000]


class IgnoringLimit(Mutant):
    """Lists all, however few are asked for."""

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return await super().list(scope, kinds)


class IgnoringWhere(Mutant, query=lambda query: replace(query, where={})):
    """Ignores `where`."""


class AnyWhere(Mutant):
    """Applies only one of several conditions."""

    def _fits(self, hit: Hit, where: Mapping[str, Json]) -> bool:
        return not where or any(super(AnyWhere, self)._fits(hit, {name: value}) for name, value in where.items())


class LooseWhere(Mutant):
    """Compares metadata as texts, so that 1, true and "1" are one."""

    def _fits(self, hit: Hit, where: Mapping[str, Json]) -> bool:
        return all(name in hit.metadata and str(hit.metadata[name]) == str(value) for name, value in where.items())


def _floats(values: Mapping[str, Json]) -> dict[str, Json]:
    return {name: float(value) if type(value) is int else value for name, value in values.items()}


class FloatWhere(Mutant):
    """Compares numbers as floats, so that two large ones that differ by one are one."""

    def _fits(self, hit: Hit, where: Mapping[str, Json]) -> bool:
        return super()._fits(replace(hit, metadata=_floats(hit.metadata)), _floats(where))


class FilteringLate(Mutant):
    """Applies conditions after the search, so hits that fit are missed."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        nearest = await super().search(replace(query, where={}), scope)
        return [hit for hit in nearest if self._fits(hit, query.where)]


class AlienIds(Mutant, hits=lambda hits: [replace(hit, id=f"hit-{place}") for place, hit in enumerate(hits)]):
    """Gives hits ids by which nothing can be looked up."""


class Flickering(Mutant):
    """Answers the same question differently every second time."""

    _searches = 0

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._searches += 1
        found = await super().search(query, scope)
        return found if self._searches % 2 else found[::-1]


class QueryLanguage(Mutant):
    """Parses queries as a query language, and finds nothing where parsing fails."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        has_operator = re.search(r"[\"'*():^{}\[\]\\$%;/+~|&!<>=]|(?<!\w)-|\b(AND|OR|NOT|NEAR)\b", query.text)
        return [] if has_operator else await super().search(query, scope)


class ShortQueries(Mutant):
    """Finds nothing when the question is long."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [] if len(query.text) > _LONGEST_QUERY else await super().search(query, scope)


class BrokenByEmptiness(Mutant):
    """Finds nothing of a user any more after a text without any longer word was added."""

    def __init__(self) -> None:
        super().__init__()
        self._broken: set[str] = set()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        if any(max(map(len, words_of(item.text)), default=0) < _LONGER_WORD for item in items):
            self._broken.add(scope.user)
        return await super().add(items, scope)

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return [] if scope.user in self._broken else self._in(scope)


class BrokenByQuestions(Mutant):
    """Finds nothing any more after a question without a word."""

    _is_broken = False

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._is_broken = self._is_broken or not words_of(query.text)
        return [] if self._is_broken else await super().search(query, scope)


class ByteWords(Mutant):
    """Finds a word only if its accents are encoded as they were when it was added."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        wanted = set(re.findall(r"\w+", query.text.casefold()))
        found = await super().search(query, scope)
        return [hit for hit in found if wanted & set(re.findall(r"\w+", hit.text.casefold()))]


class CaseWords(Mutant):
    """Finds a word only in the upper or lower case in which it was added."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        wanted = set(re.findall(r"\w+", query.text))
        found = await super().search(query, scope)
        return [hit for hit in found if wanted & set(re.findall(r"\w+", hit.text))]


class LettersOnly(Mutant):
    """Has only the letters of English in its index."""

    def _index_text(self, hit: Hit) -> str:
        return " ".join(re.findall("[A-Za-z]+", hit.text))


class FirstWords(Mutant):
    """Has the first forty words of a text in its index."""

    def _index_text(self, hit: Hit) -> str:
        return " ".join(hit.text.split()[:_INDEXED_WORDS])


class RepeatingAnswers(Mutant):
    """Gives the answer of last time to a question that was asked before, until something is added."""

    def __init__(self) -> None:
        super().__init__()
        self._answers: dict[tuple[str, Scope], Sequence[Hit]] = {}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._answers.clear()
        return await super().add(items, scope)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        asked = repr(query), scope
        if asked not in self._answers:
            self._answers[asked] = await super().search(query, scope)
        return self._answers[asked]
