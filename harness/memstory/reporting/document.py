"""A report as data: sections of notes, tables, lists and folds, which `markdown`, `terminal` and `page` print.

What sections hold is as it came; each writer makes it safe for its own kind of page.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self, TypeAlias
from urllib.parse import quote


class Markup(str):
    """Our own words: marks of Markdown in them (`**bold**`) mean what they do there. Any other text is escaped."""

    __slots__ = ()


class Sign(str):
    """How a case ended: a sign in Markdown, the word in a terminal, the word in its colour on a page."""

    __slots__ = ()


class Badge(str):
    """A word, such as a harm, that a page sets off by a colour of its own."""

    __slots__ = ()


SIGNS: Final[Mapping[str, str]] = {
    "passed": "✅",
    "failed": "❌",
    "measured": "📏",
    "unsupported": "⬜",
    "exhausted": "🪫",
    "error": "💥",
    "invalid": "⚠️",
}


class ShareCell(str):
    """A share in words, such as `9/12`, which a page shades from bad (0) to good (1); `more` is shown on pointing."""

    __slots__ = ("more", "share")

    def __new__(cls, text: str, share: float | None, more: str) -> Self:
        """Return the cell; `share` is None where nothing was judged."""
        cell = super().__new__(cls, text)
        cell.share, cell.more = share, more
        return cell

    share: float | None
    more: str


@dataclass(frozen=True, slots=True)
class CaseLink:
    """A text that opens a case on the page, where there is one."""

    text: str
    story: str
    target: str

    @property
    def fragment(self) -> str:
        """The end of the page's address by which it opens the case."""
        # As the page writes both: of what does not show, and of half a character, their code.
        return f"#case={quote(visible(f'{self.story}@{self.target}'), safe='')}"


@dataclass(frozen=True, slots=True)
class PlaceLink:
    """A text that opens a place, `file:line:column`, where the file is at hand."""

    text: str
    where: str


@dataclass(frozen=True, slots=True)
class FileLink:
    """A text that opens a file of the report, named by its path from the file that has the link."""

    text: str
    path: str


Word: TypeAlias = str | CaseLink | PlaceLink | FileLink
Words: TypeAlias = Word | Sequence[Word]
"""What stands in a line or a cell: one text, or several joined without a blank."""

TEXT_LIMIT: Final = 300
"""Characters of one text inside a line."""

BLOCK_LIMIT: Final = 4_000
"""Characters of a block below a line of a list."""

DASH: Final = Markup("-")
"""A cell for what was not asked or not taken."""

_NOTHING: Final = ("", DASH)


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph."""

    text: Words


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header; the columns of `numbers` hold numbers. `may_fold` lets a page fold it where it is long.

    Raises:
        ValueError: a row has more or fewer cells than the header.
    """

    header: Sequence[Words]
    rows: Sequence[Sequence[Words]]
    numbers: slice | None = None
    may_fold: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"a row of {len(row)} cells under a header of {len(self.header)}: {row}")

    def without_empty_columns(self) -> Table:
        """Return the table without columns, behind the first, in which no row says anything."""
        said = [
            place
            for place in range(len(self.header))
            if not place or any(row[place] not in _NOTHING for row in self.rows)
        ]
        rows = [[row[place] for place in said] for row in self.rows]
        return replace(self, header=[self.header[place] for place in said], rows=rows)

    @property
    def number_columns(self) -> range:
        """The places of the columns that hold numbers."""
        return range(len(self.header))[self.numbers] if self.numbers else range(0)


@dataclass(frozen=True, slots=True)
class ListItem:
    """A line of a list, with lines and a block of text below it."""

    text: Words
    inner: Sequence[Words] = ()
    block: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: Sequence[ListItem]


@dataclass(frozen=True, slots=True)
class Block:
    """A text line by line, cut to `limit` characters."""

    text: str
    limit: int


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that are shown when their title is clicked."""

    title: Words
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading; one without parts is left out."""

    title: Words
    parts: Sequence[Part]
    level: int = 2


Part: TypeAlias = "Note | Table | Items | Block | Fold | Section"
Document: TypeAlias = "Sequence[Part]"


def sign_of(outcome: str | None) -> str:
    """Return the cell for how a case ended: a dash for one that was not asked."""
    return Sign(outcome) if outcome else DASH


def where_any(*parts: Part) -> Sequence[Part]:
    """Return the parts, or none of them where their tables have no row."""
    return parts if any(isinstance(part, Table) and part.rows for part in parts) else ()


def page_note(page: str, how: str) -> Markup:
    """Return a sentence with a link to the page of a report."""
    return Markup(f"[{page}]({page}) shows every case, {how}.")


def join_words(texts: Iterable[Word], by: str = ", ") -> list[Word]:
    """Return the texts with `by`, which are our own words, between them."""
    return [each for text in texts for each in (Markup(by), text)][1:]


def visible(text: str) -> str:
    r"""Return `text` with every character that would not show as itself written as its code; newlines stay.

    >>> print(visible("a\x1b[31mb"))
    a\u001b[31mb
    """
    plain = text.replace("\r\n", "\n").replace("\t", "    ")
    if plain.isprintable() or plain.replace("\n", "").isprintable():
        return plain
    return "".join(map(_visible_character, plain))


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, and how many were left out.

    >>> shorten("abcdef", 3)
    'abc… (+3 characters)'
    """
    left_out = len(text) - limit
    return text if left_out <= 0 else f"{text[:limit]}… (+{left_out} character{'s' if left_out > 1 else ''})"


def one_line(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text` without line breaks, and how many were left out."""
    return shorten(" ".join(text.split()), limit)


def _visible_character(character: str) -> str:
    # Joiners make emoji and some scripts; all other invisible characters could reorder or hide what is read.
    if character in "\n\u200c\u200d":
        return character
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
        return f"\\u{ord(character):04x}"
    return character
