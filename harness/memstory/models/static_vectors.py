"""An embedder that needs no package: a vector for each token of all-MiniLM-L6-v2, of which a text's mean is taken.

It knows that a boat is like a ship, and nothing of word order. `packaging/make_static_vectors.py` makes the table.
"""

from __future__ import annotations

import math
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "static_minilm"
DIMENSION: Final = 256
_CACHED: Final = 10_000
_LONGEST_WORD: Final = 100
"""Characters of a word; the model knows no longer one, and no vector is taken of what it does not know."""

_CHINESE: Final = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xF900, 0xFB00), range(0x20000, 0x2FA20))
"""Blocks of Unicode of which each character is a word."""


class StaticVectors:
    """Texts to vectors of length 1, or of zeros for a text of which no token is known."""

    model = f"static MiniLM-{DIMENSION}"

    async def embed(self, texts: Sequence[str], purpose: str) -> list[array[float]]:
        """Return one vector a text, whatever the purpose."""
        return [static_vector(text) for text in texts]


@lru_cache(_CACHED)
def static_vector(text: str) -> array[float]:
    """Return the mean of the vectors of a text's tokens, of length 1; it is made once for each of the last texts."""
    table, total = _table(), [0.0] * DIMENSION
    for token, count in Counter(tokens_of(text)).items():
        number = table.numbers[token]
        factor = table.factors[number] * count
        row = table.rows[number * DIMENSION : (number + 1) * DIMENSION]
        total = [sum_ + factor * value for sum_, value in zip(total, row, strict=True)]
    length = math.sqrt(math.fsum(value * value for value in total)) or 1.0
    return array("f", [value / length for value in total])


def tokens_of(text: str) -> Iterator[str]:
    """Yield the tokens of a text that the table has: words, and where one is not known, its longest known pieces.

    >>> list(tokens_of("Tea's unbrewable!"))
    ['tea', "'", 's', 'un', '##bre', '##wa', '##ble', '!']
    """
    known = _table().numbers
    for word in _words(text):
        pieces = list(_pieces(word, known))
        # A word of which one part is unknown is unknown as a whole.
        yield from pieces if all(pieces) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    numbers: Mapping[str, int]
    factors: memoryview[float]
    rows: memoryview[int]


@cache
def _table() -> _Table:
    tokens = FOLDER.joinpath("tokens.vocab").read_text("utf-8").split("\n")[:-1]
    data = memoryview(FOLDER.joinpath("vectors.bin").read_bytes())
    end = len(tokens) * array("f").itemsize
    return _Table(
        numbers={token: number for number, token in enumerate(tokens)},
        factors=data[:end].cast("f"),
        rows=data[end:].cast("b"),
    )


def _words(text: str) -> Iterator[str]:
    """Yield words without case and accents, and each sign and each Chinese character alone."""
    word: list[str] = []
    for character in unicodedata.normalize("NFD", text.lower()):
        kind = unicodedata.category(character)
        if kind == "Mn" or (kind[0] == "C" and character not in "\t\n\r"):
            continue
        if character.isspace() or _stands_alone(character, kind):
            if word:
                yield "".join(word)
                word.clear()
            if not character.isspace():
                yield character
        else:
            word.append(character)
    if word:
        yield "".join(word)


def _stands_alone(character: str, kind: str) -> bool:
    is_sign = kind[0] == "P" or (character.isascii() and not character.isalnum())
    return is_sign or any(ord(character) in block for block in _CHINESE)


def _pieces(word: str, known: Mapping[str, int]) -> Iterator[str]:
    """Yield the longest known beginning, then those of the rest; an empty text where there is none."""
    at = 0
    while at < len(word):
        mark = "##" if at else ""
        ends = range(len(word), at, -1) if len(word) <= _LONGEST_WORD else ()
        end = next((end for end in ends if mark + word[at:end] in known), None)
        if end is None:
            yield ""
            return
        yield mark + word[at:end]
        at = end
