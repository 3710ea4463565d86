"""What happened behind a turn: reports of several lanes in one mapping, without anybody's words."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from memstory.contract.values import Json

KEPT_TURNS = 1_000


def merge_dicts(left: Mapping[str, Json], right: Mapping[str, Json]) -> dict[str, Json]:
    """Return both: mappings merged, lists joined, numbers added; of two other values both are kept, as a list.

    >>> merge_dicts({"a": {"held": 1}, "by": ["x"]}, {"a": {"held": 2, "dropped": 1}, "by": ["y"]})
    {'a': {'held': 3, 'dropped': 1}, 'by': ['x', 'y']}
    """
    merged = dict(left)
    for name, value in right.items():
        merged[name] = _merge(merged[name], value) if name in merged else value
    return merged


class TurnDiagnostics:
    """The reports of the latest turns, by owner, session and number."""

    def __init__(self) -> None:
        self._turns: OrderedDict[tuple[str, str, int], dict[str, Json]] = OrderedDict()

    def report(self, owner: str, session: str, turn: int, part: Mapping[str, Json]) -> None:
        """Merge a part into a turn's report."""
        key = (owner, session, turn)
        self._turns[key] = merge_dicts(self._turns.pop(key, {}), part)
        while len(self._turns) > KEPT_TURNS:
            self._turns.popitem(last=False)

    def of(self, owner: str, session: str) -> list[Mapping[str, Json]]:
        """Return the reports of a session's turns, in order."""
        found = {
            turn: report for (whose, which, turn), report in self._turns.items() if (whose, which) == (owner, session)
        }
        return [{"turn": turn, **found[turn]} for turn in sorted(found)]

    def forget(self, owner: str, session: str | None = None) -> None:
        """Drop what concerns an owner, or one session."""
        for key in [key for key in self._turns if key[0] == owner and session in (None, key[1])]:
            del self._turns[key]


def _merge(left: Json, right: Json) -> Json:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return merge_dicts(left, right)
    if isinstance(left, list) and isinstance(right, list):
        return [*left, *right]
    numbers = (int, float)
    if isinstance(left, numbers) and isinstance(right, numbers) and not isinstance(left, bool):
        return left + right
    return left if left == right else [left, right]
