"""Questions turned into the statements that would answer them: `Where do I live?` into `I live in …`.

These go through the rules for statements, so what is stated and what is asked meet in the same key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

WH = r"(?:what|which|who|whom|whose|where|when|why|how)"
"""The words that ask, as a pattern."""

GAP = "Zzgap"
"""Stands for the answer in a statement made of a question; no key may hold it."""

_S = r"(?P<s>I|we|(?:my|our|the) (?:(?!\b(?:is|are|was|were)\b)[\w'’ -])+?)"
_ASKED = re.compile(
    rf"^(?P<wh>{WH}|how many (?P<n>[\w -]+?)|which [\w -]+?|what [\w -]+?|how often|how long|how much) (?P<aux>do|"
    rf"does|did|am|is|are|was|were|have|has|will) {_S}(?: (?P<rest>.+))?$",
    re.IGNORECASE,
)
_INDIRECT = re.compile(
    rf"^(?P<wh>{WH}|how many (?P<n>[\w -]+?)|which [\w -]+?|what [\w -]+?|how often) {_S} (?P<rest>(?:am|is|are|"
    r"was|were|live|lives|work|works|prefer|like|speak|drive|drink|eat|play|study|use|have|has|come|comes|deploy|"
    r"meet|release|ship|launch|go|decided|wake|get|support|teach).*)$",
    re.IGNORECASE,
)
_POLAR = re.compile(
    rf"^(?P<aux>do|does|did|am|is|are|was|were|have|has|will)(?: not)? {_S} (?P<rest>.+)$", re.IGNORECASE
)


def statements(core: str) -> Iterator[str]:
    """Yield statements that would answer the question, with a gap for what is asked.

    >>> next(statements("Where do I live"))
    'I live Zzgap'
    """
    found = _ASKED.match(core)
    indirect = None if found else _INDIRECT.match(core)
    polar = None if found or indirect else _POLAR.match(core)
    if found:
        statement = _joined(found)
        yield from _filled(found, statement) if statement else ()
    elif indirect:
        yield from _filled(indirect, f"{indirect.group('s')} {indirect.group('rest')}")
    elif polar:
        yield from _affirmed(polar)
    else:
        yield core


_BE = frozenset(["is", "are", "was", "were", "am"])
_PREDICATE_END = re.compile(
    r"^(?:\w+ly )?(?:called|named|known as|(?:come )?from|based(?: in)?|located(?: in)?|living(?: in)?|allergic to|"
    r"born(?: in| on)?|due|employed(?: as)?)"
    r"(?: (?:again|now))?$",
    re.IGNORECASE,
)


def _joined(found: re.Match[str]) -> str:
    aux, rest = found.group("aux").casefold(), found.group("rest") or ""
    if aux in _BE and found.group("s").casefold() not in {"i", "we"} and not _PREDICATE_END.match(rest):
        # `What is my dog's name` holds one noun phrase, and no verb after it.
        return ""
    return " ".join(
        part for part in (found.group("s"), "" if aux in {"do", "does", "did", "will"} else aux, rest) if part
    )


def _filled(found: re.Match[str], statement: str) -> Iterator[str]:
    if found.group("n"):
        yield f"{re.sub(r' have.*$', '', statement)} have 2 {found.group('n')}"
        yield f"there are 2 {found.group('n')} in {found.group('s')}"
        return
    yield f"{statement} {GAP}"
    word = found.group("wh").split()[0].casefold()
    joints = {
        "where": ("in", "at"),
        "when": ("on", "at"),
        "how": (),
        "which": ("in", "on"),
        "what": ("on", "at"),
    }
    for joint in joints.get(word, ()):
        yield f"{statement} {joint} {GAP}"


def _affirmed(found: re.Match[str]) -> Iterator[str]:
    """Yield `I drink coffee` for `do I drink coffee`; what is asked of a subject of several words is cut at each."""
    aux = found.group("aux").casefold()
    if aux in {"do", "does", "did", "will"}:
        subject, rest = found.group("s"), found.group("rest")
        yield f"{subject} {rest}"
        yield f"{subject} {re.sub('^have (?:got )?', 'have some ', rest)}"
        return
    whole = f"{found.group('s')} {found.group('rest')}".split()
    if whole[0].casefold() in {"i", "we"}:
        yield f"{whole[0]} {aux} {' '.join(whole[1:])}"
        return
    for cut in range(2, min(len(whole), _LONGEST_SUBJECT) + 1):
        yield f"{' '.join(whole[:cut])} {aux} {' '.join(whole[cut:])}".strip()


_LONGEST_SUBJECT = 4
