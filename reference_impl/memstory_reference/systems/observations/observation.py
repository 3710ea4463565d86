"""What one finished run left behind, and what such a record may hold (O-14, OF-18)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memstory_reference.errors import InputError
from memstory_reference.text.lines import one_line

TASK_TYPES = ("enumerated", "best_practices", "research")
MAX_FACTS = 10
FEW_FACTS = 5
HIGHEST_SCORE = 10.0
MAX_TEXT = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One run: `narrative` is embedded, `facts` are what a planner reads; `timestamp` is aware UTC.

    `final_score` is 0 to 10 or None for a run that nobody scored; `rating` is a person's later word on it;
    `sources` are the ids of the documents that the run read.
    """

    id: str
    title: str
    narrative: str
    facts: Sequence[str]
    task: str
    timestamp: datetime
    task_type: str = "research"
    final_score: float | None = None
    rating: float | None = None
    sources: Sequence[str] = ()

    @property
    def normal_task(self) -> str:
        """The task without case and spacing: runs of the same task are told by it (OF-20)."""
        return normal_task(self.task)


def normal_task(task: str) -> str:
    """Return a task without case and spacing."""
    return one_line(task).casefold()


def checked(observation: Observation) -> Observation:
    """Return the observation in its stored form, or raise InputError that says which field is wrong and why."""
    if not observation.id.strip():
        raise InputError("id: an observation needs the id of its run")
    if observation.task_type not in TASK_TYPES:
        raise InputError(f"task_type: {observation.task_type!r} is none of {', '.join(TASK_TYPES)}")
    check_score(observation.final_score)
    if not observation.narrative.strip():
        raise InputError("narrative: it is empty, and it is what is searched by meaning")
    for name, text in (("narrative", observation.narrative), ("task", observation.task), ("title", observation.title)):
        if len(text) > MAX_TEXT:
            raise InputError(f"{name}: {len(text)} characters; at most {MAX_TEXT}")
    facts = tuple(fact for fact in map(one_line, observation.facts) if fact)[:MAX_FACTS]
    return Observation(
        id=observation.id.strip(),
        title=one_line(observation.title) or one_line(observation.task)[:80] or "Untitled run",
        narrative=one_line(observation.narrative),
        facts=facts,
        task=observation.task.strip(),
        timestamp=observation.timestamp.astimezone(UTC),
        task_type=observation.task_type,
        final_score=None if observation.final_score is None else float(observation.final_score),
        rating=observation.rating,
        sources=tuple(observation.sources),
    )


def check_score(score: float | None) -> None:
    """Refuse a score that would break the ranking: not finite, or outside 0 to 10."""
    if score is None:
        return
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise InputError(f"final_score: {score!r} is not a number")
    if not math.isfinite(score) or not 0 <= score <= HIGHEST_SCORE:
        raise InputError(f"final_score: {score} is outside 0 to 10")
