"""Documents as Markdown: report.md, and compare.md. Whatever came from a story or a target is escaped here.

A text can neither open a cell, a line, a link, an image, a tag or a mention, nor hide by control characters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from memstory.reporting.document import (
    BLOCK_LIMIT,
    SIGNS,
    TEXT_LIMIT,
    Block,
    CaseLink,
    Document,
    FileLink,
    Fold,
    Items,
    ListItem,
    Markup,
    Note,
    Part,
    PlaceLink,
    Section,
    Sign,
    Table,
    Words,
    one_line,
    shorten,
    visible,
)

NOTE_LIMIT: Final = 2_000
"""Characters of one text in a paragraph."""

FOLDED: Final = 12
"""A table of more rows is folded, where it says that it may be."""

# Entities where a backslash is not enough for every reader: a pipe splits a row before escapes are read.
_ENTITIES: Final = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "`": "&#96;", "$": "&#36;", "@": "&#64;",
}  # fmt: skip
_SPECIAL: Final = re.compile(r"[&<>|`$@]|[\\*~\[\]]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|://|(?i:www\.)")
_AT_START: Final = re.compile(r"^(?:(\d+)([.)])(?=\s|$)|([#+=-])(?=[\s#=-]|$))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Makes links that work from `folder`; stories are looked for below `roots`. Empty, it makes none."""

    folder: Path | None = None
    page: str = ""
    roots: Sequence[Path] = ()

    def link(self, link: CaseLink | PlaceLink | FileLink) -> str:
        """Return markdown that opens what the link names, where that is at hand."""
        match link:
            case CaseLink():
                text = inline(link.text)
                return f"[{text}]({self.page}{link.fragment})" if self.page else text
            case PlaceLink():
                return self._to_place(link)
            case FileLink(text, path):
                return f"[{inline(text)}]({quote(path)})"

    def _to_place(self, link: PlaceLink) -> str:
        """Return markdown that opens the place, where the file is at hand."""
        text = inline(link.text)
        file, _, rest = link.where.partition(":")
        line = rest.partition(":")[0]
        if self.folder is None or not line.isdigit():
            return text
        for root in self.roots:
            if (root / file).is_file():
                path = Path(os.path.relpath(root / file, self.folder)).as_posix()
                return f"[{text}]({quote(path)}#L{line})"
        return text


def as_markdown(document: Document, links: Links | None = None) -> str:
    """Return the document as a page of Markdown; `links` makes links, None makes none."""
    return _parts(document, links or Links()) + "\n"


def inline(text: str, limit: int = TEXT_LIMIT) -> str:
    r"""Return `text` as one line of markdown that reads as written and means nothing more.

    >>> print(inline("a|b <b>*c*"))
    a&#124;b &lt;b&gt;\*c\*
    """
    safe = _SPECIAL.sub(_escape_sign, visible(one_line(text, limit)))
    return _AT_START.sub(lambda found: f"{found[1]}\\{found[2]}" if found[1] else f"\\{found[3]}", safe)


def code_block(text: str, limit: int) -> str:
    """Return `text` as a block that shows it line by line; the fence is longer than any run of ticks inside."""
    body = visible(shorten(text, limit))
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", body)), default=0))
    return f"{ticks}text\n{body}\n{ticks}"


def _parts(parts: Sequence[Part], links: Links) -> str:
    return "\n\n".join(text for part in parts if (text := _part(part, links)))


def _part(part: Part, links: Links) -> str:
    match part:
        case Note(text):
            return _words(text, links, NOTE_LIMIT)
        case Table():
            return _table(part, links)
        case Items(items):
            return "\n".join(line for item in items for line in _item(item, links))
        case Block(text, limit):
            return code_block(text, limit)
        case Fold(title, inner):
            return _fold(_words(title, links), _parts(inner, links))
        case Section(title, inner, level):
            heading = f"{'#' * level} {_words(title, links)}"
            return f"{heading}\n\n{text}" if (text := _parts(inner, links)) else ""


def _fold(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>" if text else ""


def _table(table: Table, links: Links) -> str:
    if not table.rows:
        return ""
    rule = ["---:" if column in table.number_columns else "---" for column in range(len(table.header))]
    header, *rows = ([_words(cell, links) or " " for cell in line] for line in (table.header, *table.rows))
    text = "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *rows))
    return _fold(f"{len(rows)} rows", text) if table.may_fold and len(rows) > FOLDED else text


def _item(item: ListItem, links: Links) -> list[str]:
    lines = [f"- {_words(item.text, links)}", *(f"  - {_words(inner, links)}" for inner in item.inner)]
    if item.block:
        lines += ["", *(f"  {line}" for line in code_block(item.block, BLOCK_LIMIT).split("\n"))]
    return lines


def _words(words: Words, links: Links, limit: int = TEXT_LIMIT) -> str:
    match words:
        case Sign():
            return SIGNS[words]
        case Markup():
            return str(words)
        case str():
            return inline(words, limit)
        case CaseLink() | PlaceLink() | FileLink():
            return links.link(words)
        case _:
            return "".join(_words(each, links, limit) for each in words)


def _escape_sign(found: re.Match[str]) -> str:
    special = found[0]
    if special == "://":
        return "&#58;//"
    if special.lower() == "www.":
        return f"{special[:3]}&#46;"
    return _ENTITIES.get(special, f"\\{special}")
