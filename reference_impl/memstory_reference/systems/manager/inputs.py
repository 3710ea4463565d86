"""What the memory accepts, checked before anything is embedded, read or written; pure."""

from __future__ import annotations

from memstory_reference.errors import InputError

MAX_LIMIT = 1_000
MAX_CONTENT_CHARACTERS = 100_000
MAX_KEY_CHARACTERS = 500


def checked_content(content: object) -> str:
    """Return `content` if it is text that says something and can be written."""
    text = _checked_text("content", content)
    if not text.strip():
        raise InputError("content is blank")
    return text


def checked_query(query: object) -> str:
    """Return `query` if it is text; a blank one is allowed and finds nothing."""
    return _checked_text("query", query)


def checked_limit(limit: object) -> int:
    """Return `limit` if it is a number of results, 0 included."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= MAX_LIMIT:
        raise InputError(f"limit {limit!r:.40} is not allowed; allowed: whole numbers from 0 to {MAX_LIMIT}")
    return limit


def checked_floor(min_score: object) -> float:
    """Return `min_score` if it is a cosine; 0 lets everything through, for scores end there."""
    if isinstance(min_score, bool) or not isinstance(min_score, (int, float)) or not -1 <= min_score <= 1:
        raise InputError(f"min_score {min_score!r:.40} is not allowed; allowed: numbers from -1 to 1")
    return float(min_score)


def checked_key(key: object) -> str:
    """Return the key of a context entry."""
    text = _checked_text("context key", key)
    if not text.strip() or len(text) > MAX_KEY_CHARACTERS:
        raise InputError(f"context key {text!r:.40} is not allowed; allowed: 1 to {MAX_KEY_CHARACTERS} characters")
    return text


def _checked_text(what: str, text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"{what} must be text, not {type(text).__name__}")
    if len(text) > MAX_CONTENT_CHARACTERS:
        raise InputError(f"{what} has {len(text)} characters; at most {MAX_CONTENT_CHARACTERS}")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError(f"{what} holds half of a character (a lone surrogate), which no file can keep")
    return text
