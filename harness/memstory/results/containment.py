"""Which texts occur in what a memory shows, in any spelling and behind any sign that a reader does not notice."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from memstory.contract.values import Tree

UNSEEN: Final = frozenset(
    "\u00ad\u034f\u061c\u180e\ufeff"
    + "".join(
        map(chr, chain(range(0x200B, 0x2010), range(0x202A, 0x202F), range(0x2060, 0x2065), range(0xFE00, 0xFE10)))
    )
)
"""Signs that a reader does not see, and that would hide a text or a secret: soft hyphens, joints, directions."""

_ALIKE: Final = str.maketrans(
    dict.fromkeys(UNSEEN, "")
    | dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]\w{1,31});")
_ESCAPE: Final = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|([nrt"\\/]))')
_SPACES: Final = str.maketrans("nrt", "   ")
_MARKUP: Final = re.compile(r"[&*`\\]")
_MARK: Final = re.compile(r"\*+|`+")


def is_in(text: str, seen: Tree) -> bool:
    """Return whether `text` is in `seen`, as `found_in` looks for it.

    >>> is_in("Café  noir", [{"text": "A CAFE\u0301 noir."}])
    True
    """
    return text in found_in([text], seen)


def found_in(texts: Iterable[str], seen: Tree) -> set[str]:
    """Return those of `texts` that are in `seen`.

    It does not matter how letter case, accents, white space, quotation marks, hyphens, the entities of HTML, the
    escapes of JSON and the emphasis of Markdown are written.

    >>> sorted(found_in(["Ana's PIN", "tea"], {"note": "**Ana&rsquo;s** pin"}))
    ["Ana's PIN"]
    """
    sought = {text: _plain(text) for text in texts}
    return {text for shown in _spellings(seen) for text, plain in sought.items() if plain in shown}


def _spellings(seen: Tree) -> Iterator[str]:
    """Yield each text within `seen` as it is written, and as it would be shown where that is not the same."""
    if isinstance(seen, Mapping):
        seen = [part for pair in seen.items() for part in pair]
    if isinstance(seen, (list, tuple)):
        for inner in seen:
            yield from _spellings(inner)
    elif seen is not None:
        text = str(seen)
        yield _plain(text)
        if _MARKUP.search(text):
            plain = _ESCAPE.sub(_unescape, _ENTITY.sub(lambda found: html.unescape(found[0]), text))
            # Two escapes may be the halves of one sign.
            yield _strip_emphasis(_plain(plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")))


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else found[2].translate(_SPACES)


def _plain(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_ALIKE))
    return " ".join(text.casefold().split())


def _strip_emphasis(text: str) -> str:
    """Return `text` without the signs of emphasis; a sign that is not one of a pair around words stays."""
    opened: dict[str, tuple[int, int]] = {}
    cuts: list[tuple[int, int]] = []
    for found in _MARK.finditer(text):
        mark, before, after = (
            found[0],
            text[max(found.start() - 1, 0) : found.start()],
            text[found.end() : found.end() + 1],
        )
        within = mark.startswith("**")  # A single one between letters multiplies them.
        if mark in opened and before.strip() and (within or not after.isalnum()):
            cuts += opened.pop(mark), found.span()
        elif after.strip() and (within or not before.isalnum()):
            opened[mark] = found.span()
    kept = [0, *chain.from_iterable(sorted(cuts)), len(text)]
    return "".join(text[start:end] for start, end in zip(kept[::2], kept[1::2], strict=True))
