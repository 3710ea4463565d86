"""Step 1: a text without needless blank lines, in Unicode's form C; formatting and code stay (P-02, PF-1)."""

from __future__ import annotations

import re
import unicodedata

from memstory_reference.text.chunks import blocks

_LINE_END = re.compile(r"\r\n?")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    r"""Return the cleaned text; text in a fence keeps all but its line ends.

    >>> clean("  e\u0301\n\n\n\n**b**  "), clean("a\nb"), clean("\ufb01")
    ('é\n\n**b**', 'a\nb', 'ﬁ')
    """
    # A lone surrogate or a NUL cannot be written to a file or read by a tokenizer.
    text = _UNWRITABLE.sub("\ufffd", _LINE_END.sub("\n", text)).strip()
    parts: list[str] = []
    for block in blocks(text):
        parts.append(block.text if block.is_fence else _tidy(block.text, follows_fence=bool(parts)))
    return "".join(parts).strip()


def _tidy(prose: str, *, follows_fence: bool) -> str:
    # A fence ends with its own newline: the first one here already makes a blank line.
    joined = _BLANK_LINES.sub("\n\n", f"\n{prose}" if follows_fence else prose)
    return unicodedata.normalize("NFC", joined.removeprefix("\n") if follows_fence else joined)
