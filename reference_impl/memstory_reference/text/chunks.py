"""A text cut where its meaning changes: at paragraphs, and at sentences where a paragraph is too long (P-03 to P-05).

The most tokens of a chunk are a hard bound, the least are wished for: a short chunk joins its neighbour only where the
two fit (PF-2). A fence stays whole unless it alone is too long, and is then cut at its line ends (PF-1).

What is inside fenced code is never reflowed, split or read as prose (PF-1, PF-19).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memstory_reference.text.sentences import clause_units, letter_units, line_units, sentence_units, word_units
from memstory_reference.text.words import count_tokens

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


MAX_TOKENS = 300
MIN_TOKENS = 50

Units = Callable[[str], list[str]]
Fits = Callable[[str], bool]

_BLANK_LINES = re.compile(r"\n{2,}")
_PROSE: tuple[Units, ...] = (sentence_units, clause_units, word_units, letter_units)
_CODE: tuple[Units, ...] = (line_units, word_units, letter_units)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A part of a text; `joint` is the text between it and the part before."""

    text: str
    joint: str


def split_chunks(
    text: str,
    *,
    max_tokens: int = MAX_TOKENS,
    min_tokens: int = MIN_TOKENS,
    count: Callable[[str], int] = count_tokens,
) -> list[str]:
    r"""Return the chunks of `text`, none above `max_tokens`; joined by their whitespace they are the whole text.

    >>> split_chunks("one two\n\nthree four five\n\nsix", max_tokens=4, min_tokens=2)
    ['one two', 'three four five\n\nsix']
    """
    pieces: list[_Piece] = []
    for paragraph in _paragraphs(text):
        pieces += _pieces(paragraph, lambda part: count(part) <= max_tokens)
    return _merge(pieces, max_tokens, min_tokens, count)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield what is between blank lines; a blank line inside a fence divides nothing."""
    current = ""
    for block in blocks(text):
        if block.is_fence:
            current += block.text
            continue
        if current and block.text.startswith("\n"):
            yield from _stripped_part(current)
            current = ""
        first, *others = _BLANK_LINES.split(block.text)
        current += first
        for other in others:
            yield from _stripped_part(current)
            current = other
    yield from _stripped_part(current)


def _stripped_part(paragraph: str) -> Iterator[str]:
    if paragraph.strip():
        yield paragraph.strip("\n")


def _pieces(paragraph: str, fits: Fits) -> list[_Piece]:
    if fits(paragraph):
        return [_Piece(text=paragraph, joint="\n\n")]
    pieces: list[_Piece] = []
    before = "\n\n"
    for block in blocks(paragraph):
        if block.is_fence:
            parts = [block.text] if fits(block.text.rstrip()) else _pack(block.text, _CODE, fits)
        else:
            parts = [part for unit in sentence_units(block.text) for part in _pack(unit, _PROSE[1:], fits)]
        for part in parts:
            stripped = part.rstrip() if block.is_fence else part.strip()
            if stripped:
                pieces.append(_Piece(text=stripped, joint=before))
                before = _space_behind(part)
    return pieces


def _space_behind(part: str) -> str:
    space = part[len(part.rstrip()) :]
    return "\n" if "\n" in space else space[:1]


def _pack(text: str, levels: Sequence[Units], fits: Fits) -> list[str]:
    """Return parts that fit, as long as they can be, cut at the coarsest level that will do."""
    if fits(text.strip()) or not levels:
        return [text]
    units = levels[0](text)
    parts: list[str] = []
    start = 0
    while start < len(units):
        stop = _farthest(units, start, fits)
        parts += _pack("".join(units[start:stop]), levels[1:], fits)
        start = stop
    return parts


def _farthest(units: Sequence[str], start: int, fits: Fits) -> int:
    """Return how far the units from `start` on fit together; at least one is taken."""

    def fit(stop: int) -> bool:
        return fits("".join(units[start:stop]).strip())

    low, step = start + 1, 1
    while low + step <= len(units) and fit(low + step):
        low, step = low + step, step * 2
    high = min(low + step, len(units) + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fit(middle) else (low, middle)
    return low


def _merge(pieces: Sequence[_Piece], max_tokens: int, min_tokens: int, count: Callable[[str], int]) -> list[str]:
    """Join a short piece with what follows, else with what came before, else leave it short."""
    merged: list[_Piece] = []
    index = 0
    while index < len(pieces):
        current, tokens = pieces[index], count(pieces[index].text)
        index += 1
        while index < len(pieces) and tokens < min_tokens:
            joined = _Piece(text=current.text + pieces[index].joint + pieces[index].text, joint=current.joint)
            more = count(joined.text)
            if more > max_tokens:
                break
            current, tokens, index = joined, more, index + 1
        if merged and tokens < min_tokens:
            last = merged[-1]
            joined = _Piece(text=last.text + current.joint + current.text, joint=last.joint)
            if count(joined.text) <= max_tokens:
                merged[-1] = joined
                continue
        merged.append(current)
    return [piece.text for piece in merged]
