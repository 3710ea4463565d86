"""Scores by capability: stories by any author, grouped by what they test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memstory.reporting.comparing.columns import Column
from memstory.results.outcomes import OUTCOMES, CaseResult, Outcome

EVERY: Final = "all shared stories"
OTHER: Final = "other"
ALONE: Final = "stories of one target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A story belongs to it by one of these tags, or because it needs one of these capabilities of its target.

    A need that ends in a dot stands for all that begin so.
    """

    tags: frozenset[str]
    needs: frozenset[str] = frozenset()

    def has(self, tags: Sequence[str], needs: Sequence[str]) -> bool:
        """Whether a story with these tags and needs belongs to it."""
        return not self.tags.isdisjoint(tags) or any(
            one in self.needs or f"{one.partition('.')[0]}." in self.needs for one in needs
        )


GROUPS: Final[Mapping[str, Group]] = {
    "recall": Group(tags=frozenset({"recall", "retrieval", "query", "limits", "list"})),
    "save and recall in conversation": Group(tags=frozenset({"window"}), needs=frozenset({"chat"})),
    "ranking": Group(
        tags=frozenset({"ranking"}), needs=frozenset({"rank.", "search.explain", "search.min_score", "feedback"})
    ),
    "retrieval quality": Group(tags=frozenset({"quality"})),
    "texts and metadata": Group(
        tags=frozenset({"text", "metadata", "filter"}), needs=frozenset({"search.where", "unicode_lexical"})
    ),
    "update": Group(
        tags=frozenset({"update", "merging", "contradiction", "dedup", "reconciliation"}),
        needs=frozenset({"update", "supersede", "dedup"}),
    ),
    "forget": Group(tags=frozenset({"forget"}), needs=frozenset({"delete", "delete."})),
    "expiry": Group(tags=frozenset({"expiry"}), needs=frozenset({"expiry", "expiry."})),
    "isolation": Group(tags=frozenset({"isolation"}), needs=frozenset({"scope."})),
    "durability": Group(
        tags=frozenset({"durability", "durable", "crash"}), needs=frozenset({"restart", "crash", "persistent"})
    ),
    "many at once": Group(tags=frozenset({"concurrency", "batch", "retry"}), needs=frozenset({"add.batch_atomic"})),
    "when a part is down": Group(tags=frozenset({"faults"}), needs=frozenset({"fault."})),
    "security": Group(tags=frozenset({"security"}), needs=frozenset({"incognito", "audit_separate"})),
    "prompts and tools": Group(
        tags=frozenset({"prompt", "tools"}), needs=frozenset({"context", "tool", "tool.schema", "search.budget"})
    ),
}
"""The one definition; a story may be in several, and is in `other` if it is in none.

Only stories that at least two columns were asked are in groups; the rest are about one memory's own ways.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityScore:
    """One group of stories; `columns` counts for each column every outcome of those that were asked of it."""

    name: str
    stories: Sequence[str]
    columns: Mapping[str, Mapping[Outcome, int]]


def capability_scores(columns: Sequence[Column]) -> list[CapabilityScore]:
    """Return every group that has a story, all of them together first, and each column's own stories last."""
    cases = {story: case for column in columns for story, case in column.cases.items()}
    asked = Counter(story for column in columns for story in column.cases)
    members: dict[str, list[str]] = {name: [] for name in (EVERY, *GROUPS, OTHER, ALONE)}
    for story, case in cases.items():
        is_shared = asked[story] > 1 or len(columns) == 1
        names = (EVERY, *(groups_of(case) or [OTHER])) if is_shared else (ALONE,)
        for name in names:
            members[name].append(story)
    return [
        CapabilityScore(name=name, stories=stories, columns={one.title: _counts(one, stories) for one in columns})
        for name, stories in members.items()
        if stories
    ]


def groups_of(case: CaseResult) -> list[str]:
    """Return the groups that the story of a case is in; none for one that is in `other`."""
    return [name for name, group in GROUPS.items() if group.has(case.tags, case.needs)]


def _counts(column: Column, stories: Sequence[str]) -> Mapping[Outcome, int]:
    found = Counter(column.cases[story].outcome for story in stories if story in column.cases)
    return {outcome: found[outcome] for outcome in OUTCOMES}
