"""Which held candidates become memory at a session's end, and by which path (C-12, C-14, C-27, SEC-9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from memstory_reference.systems.layers.policy.guards import refusal_reason, session_only_reason
from memstory_reference.systems.layers.records.candidates import (
    Candidate,
    Decision,
    SessionMemoryBuffer,
    SpokenTurn,
)
from memstory_reference.systems.layers.records.record import Arc, Fact
from memstory_reference.systems.layers.settings import LayersConfig
from memstory_reference.text.keywords import STOP_WORDS
from memstory_reference.text.token_sets import token_set


class Path(StrEnum):
    """What speaks for a candidate."""

    POLICY = "policy"
    REPETITION = "repetition"
    TRANSCRIPT = "transcript"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """What becomes of a held candidate: `path` is what speaks for it, None drops it; `reason` is for diagnostics."""

    candidate: Candidate
    path: Path | None
    reason: str


def promotions(buffer: SessionMemoryBuffer, arc: Arc | None, config: LayersConfig) -> list[Promotion]:
    """Judge every held candidate; the guards look again, now with all that was said."""
    said = [turn.user for turn in buffer.turns]
    return [_judge(candidate, buffer.turns, arc, config, said) for candidate in buffer.held]


def token_coverage(wanted: str, text: str) -> float:
    """Return the share of the telling tokens of `wanted` that `text` holds.

    >>> token_coverage("the night shift", "I work the night shift again")
    1.0
    """
    tokens = token_set(wanted)
    telling = tokens - STOP_WORDS or tokens
    return len(telling & token_set(text)) / len(telling) if telling else 0.0


def _judge(
    candidate: Candidate, turns: Sequence[SpokenTurn], arc: Arc | None, config: LayersConfig, said: Sequence[str]
) -> Promotion:
    dropped = candidate.reason if candidate.decision is Decision.DROP else None
    why_not = dropped or refusal_reason(candidate.content, said) or session_only_reason(candidate.content)
    if why_not:
        return Promotion(candidate=candidate, path=None, reason=why_not)
    path = _path(candidate, turns, arc, config)
    return Promotion(candidate=candidate, path=path, reason=str(path) if path else "nothing supports it")


def _path(candidate: Candidate, turns: Sequence[SpokenTurn], arc: Arc | None, config: LayersConfig) -> Path | None:
    if candidate.decision is Decision.COMMIT:
        return Path.POLICY
    if len(candidate.turns) >= config.repetitions:
        return Path.REPETITION
    # A rule, and whatever must be repeated, has no other way.
    if not isinstance(candidate.content, Fact) or candidate.decision is Decision.REPEAT:
        return None
    wanted = candidate.content.object
    # The turn it comes from does not support it, and what the assistant said never is.
    others = [turn.user for turn in turns if turn.number not in candidate.turns]
    if any(token_coverage(wanted, text) >= config.support for text in others):
        return Path.TRANSCRIPT
    # A summary by rules repeats the user's words, so only a model's judgement of what mattered counts.
    if arc is not None and arc.by == "model" and token_coverage(wanted, arc.summary) >= config.support:
        return Path.SUMMARY
    return None
