"""The text that a planner reads before it plans (seed 001, PW-O-INJECT; O-17, OF-19, SEC-2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memstory_reference.systems.observations.observation import Observation
from memstory_reference.text.lines import one_line

HEADER = "Prior work on related topics:"

# What a line of our layout starts with; a stored text that starts so is set off, and so forges no block of its own.
_LAYOUT = re.compile(r"^(\[|•|Key facts:|Prior work on related topics:)", re.IGNORECASE)


def injection(observations: Sequence[Observation]) -> str:
    """Return the block for these observations, in their order; the empty string for none (O-18)."""
    if not observations:
        return ""
    return "\n".join([HEADER, *(line for observation in observations for line in _block(observation))])


def _block(observation: Observation) -> list[str]:
    title = one_line(observation.title).replace("[", "(").replace("]", ")")
    return [
        f"[{title} — score {score_text(observation.final_score)}]",
        _LAYOUT.sub(r"  \1", one_line(observation.narrative)),
        "Key facts:",
        *(f"• {one_line(fact)}" for fact in observation.facts),
    ]


def score_text(score: float | None) -> str:
    """Return a score with one decimal, or `n/a`.

    >>> score_text(8.7), score_text(None)
    ('8.7', 'n/a')
    """
    return "n/a" if score is None else f"{score:.1f}"
