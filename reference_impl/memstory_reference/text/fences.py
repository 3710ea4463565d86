"""Fenced code in a text: what is inside is never reflowed, split or read as prose (PF-1, PF-19)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_OPENING = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A stretch of prose, or one fence from its opening line to its closing line."""

    text: str
    is_fence: bool


def blocks(text: str) -> list[Block]:
    r"""Return the blocks of `text`; joined they give it back. A fence that nobody closes goes to the end.

    >>> [(block.text, block.is_fence) for block in blocks("a\n```\nb\n```\nc")]
    [('a\n', False), ('```\nb\n```\n', True), ('c', False)]
    """
    found: list[Block] = []
    held: list[str] = []
    fence = ""

    def flush(*, is_fence: bool) -> None:
        if held:
            found.append(Block(text="".join(held), is_fence=is_fence))
            held.clear()

    for line in _LINE.findall(text):
        if not fence:
            fence = _opening(line)
            if fence:
                flush(is_fence=False)
            held.append(line)
        else:
            held.append(line)
            if _closes(line, fence):
                flush(is_fence=True)
                fence = ""
    flush(is_fence=bool(fence))
    return found


def prose(text: str) -> str:
    """Return `text` without its fenced code."""
    if "```" not in text and "~~~" not in text:
        return text
    return "".join(block.text for block in blocks(text) if not block.is_fence)


def _opening(line: str) -> str:
    """Return the marks that open a fence, or an empty text; as CommonMark has it, backticks admit none behind them."""
    opening = _OPENING.match(line)
    if opening is None or (opening[1][0] == "`" and "`" in opening[2]):
        return ""
    return opening[1]


def _closes(line: str, fence: str) -> bool:
    marks = line.strip()
    return len(marks) >= len(fence) and set(marks) == {fence[0]} and not line.startswith("    ")
