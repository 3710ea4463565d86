"""What a step cost: its time, and the size of the context that it made."""

from __future__ import annotations

import re

from memstory.results.recording import StepRecord

_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
_LETTERS_A_TOKEN = 6
"""Words longer than this are counted as several tokens, as tokenizers split them; an estimate, for comparing runs."""


def latency_ms(record: StepRecord) -> float:
    """Return how long the step took, in milliseconds."""
    return record.seconds * 1000


def context_tokens(record: StepRecord) -> int | None:
    """Estimate the tokens of the context that the step made or used; None where the target shows none."""
    result = record.result
    text = result.get("context") if isinstance(result, dict) else result
    return estimated_tokens(text) if isinstance(text, str) else None


def estimated_tokens(text: str) -> int:
    """Estimate the number of tokens of a text without any model's tokenizer.

    >>> estimated_tokens("Tea, at internationalisation.")
    8
    """
    return sum(1 + (len(piece) - 1) // _LETTERS_A_TOKEN for piece in _WORD_OR_SIGN.findall(text))
