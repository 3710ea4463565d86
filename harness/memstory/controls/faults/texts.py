"""Faults of storing: texts and metadata that come back changed."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from memstory.contract.target import Item, Json, Receipt, Ref, Scope
from memstory.controls.mutants import Mutant

_LONGEST = 1_000
_FIRST_EMOJI = 0x1F000


class _Mangling(Mutant):
    """Changes a text before it stores it."""

    def _mangled(self, item: Item) -> Item:
        return replace(item, text=self._text(item.text))

    def _text(self, text: str) -> str:
        raise NotImplementedError

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        return await super().add([self._mangled(item) for item in items], scope)

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        return await super().update(ref, self._mangled(item), scope)


class Composing(_Mangling):
    """Composes letters and accents that were different."""

    fault_name: ClassVar[str] = "composing"

    def _text(self, text: str) -> str:
        return unicodedata.normalize("NFC", text)


class Trimming(_Mangling):
    """Takes the white space off both ends of a text."""

    fault_name: ClassVar[str] = "trimming"

    def _text(self, text: str) -> str:
        return text.strip()


class Flattening(_Mangling):
    """Makes one space of every line break, tab and run of spaces."""

    fault_name: ClassVar[str] = "flattening"

    def _text(self, text: str) -> str:
        return re.sub(r"(?<=\S)\s+(?=\S)", " ", text)


class Cutting(_Mangling):
    """Cuts long texts off without a word."""

    fault_name: ClassVar[str] = "cutting"

    def _text(self, text: str) -> str:
        return text[:_LONGEST]


class CuttingAtZero(_Mangling):
    """Cuts a text off at the character with the number 0."""

    fault_name: ClassVar[str] = "cutting_at_zero"

    def _text(self, text: str) -> str:
        return text.partition("\0")[0]


class LosingEmoji(_Mangling):
    """Puts question marks where characters need four bytes."""

    fault_name: ClassVar[str] = "losing_emoji"

    def _text(self, text: str) -> str:
        return "".join("?" if ord(letter) >= _FIRST_EMOJI else letter for letter in text)


class LosingInvisible(_Mangling):
    """Drops the invisible characters that hold emoji together and give scripts their direction."""

    fault_name: ClassVar[str] = "losing_invisible"

    def _text(self, text: str) -> str:
        return "".join(letter for letter in text if unicodedata.category(letter) != "Cf")


class ReadingNumbers(_Mangling):
    """Takes a text that looks like a number for that number."""

    fault_name: ClassVar[str] = "reading_numbers"

    def _text(self, text: str) -> str:
        with suppress(ValueError):
            return f"{float(text):g}"
        return text


class Escaping(_Mangling):
    """Keeps the characters of HTML as their names."""

    fault_name: ClassVar[str] = "escaping"

    def _text(self, text: str) -> str:
        return html.escape(text)


class Unescaping(_Mangling):
    """Takes a backslash for the beginning of an escape."""

    fault_name: ClassVar[str] = "unescaping"

    def _text(self, text: str) -> str:
        return re.sub(r"\\(.)", r"\1", text)


class FillingIn(_Mangling):
    """Takes names in braces for places to be filled in."""

    fault_name: ClassVar[str] = "filling_in"

    def _text(self, text: str) -> str:
        return re.sub(r"\{\w*\}", "", text)


class _ManglingMetadata(_Mangling):
    """Changes values of metadata before it keeps them."""

    def _mangled(self, item: Item) -> Item:
        return replace(item, metadata=self._metadata(item.metadata))

    def _metadata(self, metadata: Mapping[str, Json]) -> Mapping[str, Json]:
        raise NotImplementedError


class TextMetadata(_ManglingMetadata):
    """Keeps numbers and booleans of metadata as texts."""

    fault_name: ClassVar[str] = "text_metadata"

    def _metadata(self, metadata: Mapping[str, Json]) -> Mapping[str, Json]:
        return {name: str(value) if isinstance(value, (int, float)) else value for name, value in metadata.items()}


class FloatMetadata(_ManglingMetadata):
    """Keeps whole numbers of metadata as floating ones, which are not exact when large."""

    fault_name: ClassVar[str] = "float_metadata"

    def _metadata(self, metadata: Mapping[str, Json]) -> Mapping[str, Json]:
        return {name: float(value) if type(value) is int else value for name, value in metadata.items()}


class FlatMetadata(_ManglingMetadata):
    """Drops lists and mappings from metadata without a word."""

    fault_name: ClassVar[str] = "flat_metadata"

    def _metadata(self, metadata: Mapping[str, Json]) -> Mapping[str, Json]:
        return {name: value for name, value in metadata.items() if not isinstance(value, (list, dict))}


class AsciiMetadata(_ManglingMetadata):
    """Drops metadata whose name has other letters than English."""

    fault_name: ClassVar[str] = "ascii_metadata"

    def _metadata(self, metadata: Mapping[str, Json]) -> Mapping[str, Json]:
        return {name: value for name, value in metadata.items() if name.isascii()}
