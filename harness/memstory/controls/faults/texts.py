"""Faults of storing: texts and metadata that come back changed."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from unicodedata import category, normalize

from memstory.contract.target import Item, Json
from memstory.controls.mutants import Mutant


class Composing(Mutant, text=lambda text: normalize("NFC", text)):
    """Composes letters and accents that were different."""


class Trimming(Mutant, text=str.strip):
    """Takes the white space off both ends of a text."""


class Flattening(Mutant, text=lambda text: re.sub(r"(?<=\S)\s+(?=\S)", " ", text)):
    """Makes one space of every line break, tab and run of spaces."""


class Cutting(Mutant, text=lambda text: text[:1_000]):
    """Truncates long texts silently."""


class CuttingAtZero(Mutant, text=lambda text: text.partition("\0")[0]):
    """Cuts a text off at the character with the number 0."""


class LosingEmoji(Mutant, text=lambda text: re.sub("[\U0001f000-\U0010ffff]", "?", text)):
    """Puts question marks where characters need four bytes."""


class LosingInvisible(Mutant, text=lambda text: "".join(one for one in text if category(one) != "Cf")):
    """Drops the invisible characters that hold emoji together and give scripts their direction."""


def _number(text: str) -> str:
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


class ReadingNumbers(Mutant, text=_number):
    """Reads a text that looks like a number as that number."""


class Escaping(Mutant, text=html.escape):
    """Stores HTML characters as entities such as `&amp;`."""


class Unescaping(Mutant, text=lambda text: re.sub(r"\\(.)", r"\1", text)):
    """Reads a backslash as the beginning of an escape."""


class FillingIn(Mutant, text=lambda text: re.sub(r"\{\w*\}", "", text)):
    """Reads names in braces as placeholders."""


class TextMetadata(
    Mutant, metadata=lambda own: {name: str(one) if isinstance(one, (int, float)) else one for name, one in own.items()}
):
    """Keeps numbers and booleans of metadata as texts."""


class FloatMetadata(
    Mutant, metadata=lambda own: {name: float(one) if type(one) is int else one for name, one in own.items()}
):
    """Keeps whole numbers of metadata as floating ones, which are not exact when large."""


class FlatMetadata(
    Mutant, metadata=lambda own: {name: one for name, one in own.items() if not isinstance(one, (list, dict))}
):
    """Drops lists and mappings from metadata silently."""


class AsciiMetadata(Mutant, metadata=lambda own: {name: one for name, one in own.items() if name.isascii()}):
    """Drops metadata whose name has letters that are not English."""


class GatheringMetadata(Mutant):
    """Gives each memory the metadata of those before it, too."""

    def __init__(self) -> None:
        super().__init__()
        self._gathered: dict[str, Json] = {}

    def _distort(self, item: Item) -> Item:
        self._gathered.update(item.metadata)
        return replace(item, metadata={**self._gathered})
