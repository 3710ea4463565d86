"""The text that a planner reads before it plans (seed 001, PW-O-INJECT; O-17, OF-19, SEC-2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memstory_reference.systems.observations.observation import Observation
from memstory_reference.text.lines import one_line

HEADER = "Prior work on related topics:"
LEFT_OUT = "(more is known; it was left out for its length)"

# What a line of our layout starts with; a stored text that starts so is set off, so it cannot forge a block.
_LAYOUT = re.compile(r"^(\[|•|Key facts:|Prior work on related topics:)", re.IGNORECASE)


def injection(observations: Sequence[Observation], most: int) -> str:
    """Return the block for these observations, in their order; the empty string for none (O-18).

    It has at most `most` characters: the lines that would be beyond are left out, and the last line says so.
    """
    if not observations:
        return ""
    lines = [HEADER, *(line for observation in observations for line in _block(observation))]
    if sum(map(len, lines)) + len(lines) - 1 <= most:
        return "\n".join(lines)
    kept, room = list[str](), most - len(LEFT_OUT)
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, LEFT_OUT])


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
