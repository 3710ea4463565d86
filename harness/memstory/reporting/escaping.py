"""Untrusted text made safe for markdown: answers, titles and reasons come from the memory under test.

A text can neither open a cell, a line, a link, an image, a tag or a mention, nor hide by control characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

TEXT_LIMIT: Final = 300
"""Characters of one text inside a line."""

BLOCK_LIMIT: Final = 4000
"""Characters of one text in its own block."""

# Entities where a backslash is not enough for every reader: a pipe splits a row before escapes are read.
_ENTITIES: Final = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "`": "&#96;", "$": "&#36;", "@": "&#64;",
}  # fmt: skip
_SPECIAL: Final = re.compile(r"[&<>|`$@]|[\\*~\[\]]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|://|(?i:www\.)")
_AT_START: Final = re.compile(r"^(?:(\d+)([.)])(?=\s|$)|([#+=-])(?=[\s#=-]|$))")


def visible(text: str) -> str:
    r"""Return `text` with every character that would not show as itself written as its code; newlines stay.

    >>> print(visible("a\x1b[31mb"))
    a\u001b[31mb
    """
    plain = text.replace("\r\n", "\n").replace("\t", "    ")
    return plain if plain.isprintable() else "".join(map(_shown, plain))


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, and how many were left out.

    >>> shorten("abcdef", 3)
    'abc… (+3 characters)'
    """
    left_out = len(text) - limit
    return text if left_out <= 0 else f"{text[:limit]}… (+{left_out} character{'s' if left_out > 1 else ''})"


def inline(text: object, limit: int = TEXT_LIMIT) -> str:
    r"""Return `text` as one line of markdown that reads as written and means nothing more.

    >>> print(inline("a|b <b>*c*"))
    a&#124;b &lt;b&gt;\*c\*
    """
    line = shorten(" ".join(str(text).split()), limit)
    safe = _SPECIAL.sub(_escaped, visible(line))
    return _AT_START.sub(lambda found: f"{found[1]}\\{found[2]}" if found[1] else f"\\{found[3]}", safe)


def fenced(text: str, limit: int = BLOCK_LIMIT) -> str:
    """Return `text` as a block that shows it line by line; the fence is longer than any run of ticks inside."""
    body = visible(shorten(text, limit))
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", body)), default=0))
    return f"{ticks}text\n{body}\n{ticks}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> str:
    """Return a markdown table of cells that are safe already; `right` are the columns of numbers."""
    aligned = frozenset(right)
    rule = ["---:" if column in aligned else "---" for column in range(len(header))]
    lines = [header, rule]
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"a row of {len(row)} cells under a header of {len(header)}: {row}")
        lines.append(row)
    return "\n".join(f"| {' | '.join(cell or ' ' for cell in line)} |" for line in lines)


def _shown(character: str) -> str:
    # Joiners make emoji and some scripts; all other invisible characters could reorder or hide what is read.
    if character in "\n\u200c\u200d":
        return character
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
        return f"\\u{ord(character):04x}"
    return character


def _escaped(found: re.Match[str]) -> str:
    special = found[0]
    if special == "://":
        return "&#58;//"
    if special.lower() == "www.":
        return f"{special[:3]}&#46;"
    return _ENTITIES.get(special, f"\\{special}")
