"""Faults of conditions with operators: bounds, types, several at once, and what has no such metadata."""

from __future__ import annotations

import operator as operators
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from memstory.contract.errors import Refused
from memstory.contract.target import Hit, Json, Query, operators_of
from memstory.controls import matching
from memstory.controls.mutants import Mutant

_ORDER: Final = ("gt", "ge", "lt", "le")


class WideBounds(Mutant):
    """Takes above for at least, and below for at most."""

    def _holds(self, is_there: bool, own: Json, operator: str, bound: Json) -> bool:  # noqa: FBT001  (as the oracle)
        return super()._holds(is_there, own, {"gt": "ge", "lt": "le"}.get(operator, operator), bound)


class TextualOrder(Mutant):
    """Puts numbers in order as texts: 10 comes before 9."""

    def _holds(self, is_there: bool, own: Json, operator: str, bound: Json) -> bool:  # noqa: FBT001  (as the oracle)
        if operator not in _ORDER:
            return super()._holds(is_there, own, operator, bound)
        one, other = str(own), str(bound)
        return is_there and bool(getattr(operators, operator)(one, other))


class FailingOnMixed(Mutant):
    """Fails where a text is among the numbers that are compared."""

    def _holds(self, is_there: bool, own: Json, operator: str, bound: Json) -> bool:  # noqa: FBT001  (as the oracle)
        if operator in _ORDER and isinstance(own, str):
            raise Refused("a text cannot be compared with a number")
        return super()._holds(is_there, own, operator, bound)


class LastBound(Mutant):
    """Looks at the last operator of a condition only."""

    def _meets(self, is_there: bool, own: Json, condition: Json) -> bool:  # noqa: FBT001  (as the oracle)
        last = list(operators_of(condition).items())[-1:]
        return super()._meets(is_there, own, dict(last) or condition)


class NeIgnored(Mutant):
    """Finds what has the value that was to be left out."""

    def _holds(self, is_there: bool, own: Json, operator: str, bound: Json) -> bool:  # noqa: FBT001  (as the oracle)
        return operator == "ne" or super()._holds(is_there, own, operator, bound)


class InFirst(Mutant):
    """Looks for the first of several values only."""

    def _holds(self, is_there: bool, own: Json, operator: str, bound: Json) -> bool:  # noqa: FBT001  (as the oracle)
        if operator == "in" and isinstance(bound, (list, tuple)):
            return is_there and matching.is_same_json(own, bound[0])
        return super()._holds(is_there, own, operator, bound)


class FalsyAbsent(Mutant):
    """Takes metadata for absent whose value is zero, false or an empty text."""

    def _holds(self, is_there: bool, own: Json, operator: str, bound: Json) -> bool:  # noqa: FBT001  (as the oracle)
        return super()._holds(is_there and (operator != "exists" or bool(own)), own, operator, bound)


class OperatorsAlone(Mutant):
    """Ignores the conditions on a value where another one has an operator."""

    def _fits(self, hit: Hit, where: Mapping[str, Json]) -> bool:
        return super()._fits(hit, {name: one for name, one in where.items() if operators_of(one)} or where)


class FirstWayOnly(Mutant, query=lambda query: replace(query, where_any=query.where_any[:1])):
    """Looks at the first of several ways to meet a condition."""


class WaysAlone(Mutant):
    """Drops what must hold besides one of several ways."""

    def _meets_query(self, hit: Hit, query: Query) -> bool:
        return super()._meets_query(hit, replace(query, where={}) if query.where_any else query)


class WholeNumbers(Mutant):
    """Cuts the fraction off a number that is asked for."""

    def _meets(self, is_there: bool, own: Json, condition: Json) -> bool:  # noqa: FBT001  (as the oracle)
        cut = isinstance(condition, float) and is_there and isinstance(own, (int, float)) and int(own) == int(condition)
        return cut or super()._meets(is_there, own, condition)
