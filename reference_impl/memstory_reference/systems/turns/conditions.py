"""Which turns may be found at all: what a search or a list asks for beside its words; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memstory.contract.values import Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner, checked_texts, is_finite, is_storable
from memstory_reference.systems.turns.turn import Turn, checked_kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What must hold, all together: `since` and `until` bound the moment, both included.

    `where` names exact values of speaker, session, said_at or metadata; True is not 1.
    """

    kinds: Sequence[str] = ()
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    where: Mapping[str, Tree] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether every turn meets them."""
        return self == Conditions()

    def admits(self, turn: Turn) -> bool:
        """Say whether a turn has what `where` names; all else is known without its text."""
        fields = turn.fields
        return all(name in fields and _is_same(fields[name], value) for name, value in self.where.items())


def checked_conditions(conditions: Conditions) -> Conditions:
    """Return the conditions if they can be met; InputError says which is wrong."""
    checked_kinds(checked_texts(conditions.kinds, "kinds", most=100, longest=100))
    if conditions.session is not None:
        checked_owner(conditions.session, "session")
    if not isinstance(conditions.where, Mapping):
        raise InputError(f"where must be an object, not {type(conditions.where).__name__}")
    for name, value in conditions.where.items():
        is_text = isinstance(value, str) and is_storable(value)
        if not (is_text or isinstance(value, bool) or is_finite(value)):
            raise InputError(f"where[{name!r:.40}] is {value!r:.80}; allowed: a text, a number, true or false")
    if conditions.since and conditions.until and conditions.since > conditions.until:
        raise InputError(f"since {conditions.since.isoformat()} lies after until {conditions.until.isoformat()}")
    return conditions


def _is_same(found: Tree, wanted: Tree) -> bool:
    return found == wanted and isinstance(found, bool) == isinstance(wanted, bool)
