"""What the oracle knows of texts: their words, what they are about, which of them are stuffed, and whom it trusts."""

from __future__ import annotations

import math
import operator as operators
import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from operator import mul
from typing import Final

from memstory.contract.target import Json

_TRUST: Final = ("user", "assistant", "tool", "web")
_SHORTEST_STUFFED: Final = 12
_LEAST_DISTINCT: Final = 0.4


_LATIN: Final = {
    **dict(zip(map(ord, "абвгдезийклмнопрстуфыэ"), "abvgdeziiklmnoprstufye", strict=True)),
    **dict(zip(map(ord, "жхцчшщюя"), ["zh", "kh", "ts", "ch", "sh", "shch", "yu", "ya"], strict=True)),
    **dict.fromkeys(map(ord, "ъь")),
    **dict(zip(map(ord, "αβγδεζηικλμνξοπρσςτυφω"), "avgdeziiklmnxoprsstyfo", strict=True)),
    **dict(zip(map(ord, "θχψ"), ("th", "ch", "ps"), strict=True)),
}
"""Cyrillic and Greek letters as passports write them."""


def words_of(text: str) -> frozenset[str]:
    """Return the words of `text`, whatever their case and however their accents are encoded."""
    return frozenset(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return how like two vectors are, from -1 to 1; one without direction is like nothing."""
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(map(mul, one, other)) / lengths if lengths else 0.0


def is_about(text: str, about: str) -> bool:
    """Return whether `text` is about a thing: one identifier in any of its spellings, or all words of a phrase.

    >>> is_about("Her number is 555-1234.", "5551234"), is_about("Ticket 123456 is open.", "12345")
    (True, False)
    """
    if not any(character.isspace() for character in about):
        return squeeze(about) in {squeeze(token) for token in text.split()}
    return words_of(about) <= words_of(text)


def squeeze(token: str) -> str:
    """Return an identifier without case, accents, separators and quotes."""
    plain = unicodedata.normalize("NFKD", token).casefold().translate(_LATIN)
    return "".join(character for character in plain if character.isalnum())


def is_stuffed(text: str) -> bool:
    """Return whether `text` says the same few words again and again."""
    words = re.findall(r"\w+", text.casefold())
    return len(words) >= _SHORTEST_STUFFED and len(set(words)) < _LEAST_DISTINCT * len(words)


def distrust(source: str | None) -> int:
    """Return how little a source is trusted: 0 is the user, and anyone who is not named."""
    return _TRUST.index(source) if source in _TRUST else 0


def fingerprints(text: str) -> frozenset[str]:
    """Return what tells a text, and each identifier in it, from others without holding it."""
    identifiers = (squeeze(token) for token in text.split() if any(letter.isdigit() for letter in token))
    told = (" ".join(sorted(words_of(text))), *identifiers)
    return frozenset(blake2b(one.encode(), digest_size=8).hexdigest() for one in told)


def text_digest(text: str) -> str:
    """Return what tells a text from any other."""
    return sha256(text.encode()).hexdigest()


def is_same_json(one: Json, other: Json) -> bool:
    """Return whether two values are equal and of one kind: `1` is not `true`."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def is_in_order(one: Json, operator: str, bound: Json) -> bool:
    """Return whether a number is on that side of another (`gt`, `ge`, `lt`, `le`); nothing else has an order."""
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (one, bound))
    return numbers and bool(getattr(operators, operator)(one, bound))


def is_past(written: Json, now: datetime) -> bool:
    """Return whether a moment, ISO 8601, has come; what is not a text is not a time."""
    if not isinstance(written, str):
        return False
    moment = datetime.fromisoformat(written)
    return now >= (moment if moment.tzinfo else moment.replace(tzinfo=UTC))
