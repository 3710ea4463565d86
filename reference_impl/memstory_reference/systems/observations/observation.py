"""What one finished run left behind, and what such a record may hold (O-14, OF-18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    MAX_OWNER_CHARACTERS,
    checked_choice,
    checked_moment,
    checked_number,
    checked_owner,
    checked_text,
    checked_texts,
)
from memstory_reference.systems.observations.settings import ObservationsSettings
from memstory_reference.text.lines import one_line

KIND = "observation"
TASK_TYPES = ("enumerated", "best_practices", "research")
MAX_FACTS = 10
FEW_FACTS = 5
HIGHEST_SCORE = 10.0
MAX_FACT = 2_000
MAX_TITLE = 1_000
MOST_GIVEN = 1_000
"""Facts or sources that one observation may be given with; of the facts the first ten are kept."""


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
        """The task without case and spacing: it identifies runs of the same task (OF-20)."""
        return normal_task(self.task)


def normal_task(task: str) -> str:
    """Return a task without case and spacing."""
    return one_line(task).casefold()


def checked_observation(observation: object, config: ObservationsSettings) -> Observation:
    """Return the observation in its stored form, or raise InputError that says which field is wrong and why."""
    if not isinstance(observation, Observation):
        raise InputError(f"an observation is expected, not {type(observation).__name__}")
    one, identifier = observation, checked_owner(observation.id, "id").strip()
    checked_choice(one.task_type, "task_type", TASK_TYPES)
    longest = config.max_memory_characters
    narrative = one_line(checked_text(one.narrative, "narrative", longest, "max_memory_characters"))
    if not narrative:
        raise InputError("narrative holds no sign that can be seen, and it is what is searched by meaning")
    task = checked_text(one.task, "task", longest, "max_memory_characters", may_be_blank=True)
    title = checked_text(one.title, "title", MAX_TITLE, may_be_blank=True)
    facts = checked_texts(one.facts, "facts", MOST_GIVEN, MAX_FACT)
    kept = Observation(
        id=identifier,
        title=one_line(title) or one_line(task)[:80] or "Untitled run",
        narrative=narrative,
        facts=tuple(fact for fact in map(one_line, facts) if fact)[:MAX_FACTS],
        task=task.strip(),
        timestamp=checked_moment(one.timestamp, "timestamp"),
        task_type=one.task_type,
        final_score=checked_score(one.final_score),
        rating=None if one.rating is None else checked_rating(one.rating, config),
        sources=checked_texts(one.sources, "sources", MOST_GIVEN, MAX_OWNER_CHARACTERS),
    )
    texts = config.admit(kept.title, kept.narrative, kept.task, *kept.facts, *kept.sources)
    title, narrative, task, *more = texts
    facts, sources = tuple(more[: len(kept.facts)]), tuple(more[len(kept.facts) :])
    identifier = config.admit_key(kept.id, kept.narrative)
    return replace(kept, id=identifier, title=title, narrative=narrative, task=task, facts=facts, sources=sources)


def checked_score(score: object) -> float | None:
    """Return a score from 0 to 10, or None for a run that nobody scored."""
    return None if score is None else checked_number(score, "final_score", 0, HIGHEST_SCORE)


def checked_rating(rating: object, config: ObservationsSettings) -> float:
    """Return a person's rating."""
    return checked_number(rating, "rating", config.rating_min, config.rating_max)
