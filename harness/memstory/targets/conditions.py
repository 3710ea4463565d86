"""What a search may ask for beside its text."""

from __future__ import annotations

from memstory.contract.errors import NotSupported
from memstory.contract.target import Capability, Query, Scope


def refuse_undeclared(query: Query, scope: Scope, able: frozenset[Capability]) -> None:
    """Raise NotSupported for a condition that is not among `able`: left out, the search would find too much."""
    asked = (
        ("scope.session", scope.session is not None),
        ("search.min_score", query.min_score is not None),
        ("search.budget", query.token_budget is not None),
        ("search.as_of", query.as_of is not None),
        ("search.where", bool(query.where or query.kinds)),
    )
    for capability, is_asked in asked:
        if is_asked and capability not in able:
            raise NotSupported(capability)
