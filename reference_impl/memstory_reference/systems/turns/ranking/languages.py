"""What the ranking knows of a language, in one table: a language that is not in it goes without these parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Language:
    """Word lists and phrases of one language.

    `asking` are words of a question that say what kind of answer is wanted, `empty` words that tell nothing alone.
    `now` finds that a question is about the present; `answered` that it asks for what the assistant said; `compared`
    find the two events of a question that asks which came first.
    `months` are in order, `may` can be one and another word too. `parts` find a part of a year that is named before it,
    such as a season, and give the numbers of its months: 0 is the last one of the year before.
    """

    asking: frozenset[str]
    empty: frozenset[str]
    now: re.Pattern[str]
    answered: re.Pattern[str]
    compared: tuple[re.Pattern[str], ...]
    months: tuple[str, ...]
    ambiguous: frozenset[str]
    parts: Mapping[str, tuple[int, ...]]


def _phrases(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(alternatives)})\b", re.IGNORECASE)


def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_FIRST, _IF = "(?:first|last|earlier|later)", "(?:did|was|were|had|has|have|is)"
_SAID = "(?:answer|explain|mention|offer|outlin|propos|recommend|suggest|advis|describ|list)"
_AUXILIARY, _SAY = "(?:did|have|had)", f"(?:say|said|tell|told|give|given|{_SAID}(?:e|ed)?)"
_SEASON = "(?:school )?(?:year|month|week|spring|summer|autumn|winter)"

_ASKING = """
what when where who whom whose which why how many much long often did does do is are was were has have had would could
will can kind kinds type types
"""
# Lucene's list, the shortest in wide use: longer ones lose words that tell something in a question.
_EMPTY = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was
will with
"""

ENGLISH = Language(
    asking=frozenset(_ASKING.split()),
    empty=frozenset(_EMPTY.split()),
    now=_phrases(
        *("now", "nowadays", "currently", "current", "present", "still", "today", "latest"),
        *("these days", "at the moment", "any ?more", f"this {_SEASON}"),
    ),
    answered=_phrases(
        rf"{_AUXILIARY} you (?:\w+ )?{_SAY}",
        f"you (?:said|told|gave|{_SAID}ed)",
        "your (?:advice|answer|explanation|proposal|recommendation|reply|suggestion)s?",
    ),
    compared=(
        _whole(r"(.+?) (?:before or after|after or before|(?:come |came )?(?:earlier|later|sooner) than) (.+)"),
        _whole(rf".*?\b{_FIRST}\b[^,:]*[,:] (.+?),? or (.+)"),
        _whole(rf"(.+?) and (.+?)(?:, [^:]*)?: wh.*\b{_FIRST}\b.*"),
        _whole(rf"{_IF} (.+? first .+?), or {_IF} (.+)"),
        _whole(rf"{_IF} (.+?) (?:before|after|when) (.+?)(?:, or .*)?"),
        _whole(rf"when (.+?), {_IF} (.+)"),
    ),
    months=(
        *("january", "february", "march", "april", "may", "june"),
        *("july", "august", "september", "october", "november", "december"),
    ),
    ambiguous=frozenset({"may", "march"}),
    parts={
        "spring": (3, 4, 5),
        "summer": (6, 7, 8),
        "autumn|fall": (9, 10, 11),
        "winter": (1, 2, 12),
        "easter": (3, 4),
        "christmas|(?:end|close) of|late(?: in)?": (12,),
        "new year['’]?s?(?: day| of)?|turn of(?: the year)?": (0, 1),
        "(?:start|beginning) of|early(?: in)?": (1,),
        "middle of|mid": (6, 7),
        "(?:first|1st) half of": (1, 2, 3, 4, 5, 6),
        "(?:second|2nd|last) half of": (7, 8, 9, 10, 11, 12),
        "(?:first|1st) quarter of|q1": (1, 2, 3),
        "(?:second|2nd) quarter of|q2": (4, 5, 6),
        "(?:third|3rd) quarter of|q3": (7, 8, 9),
        "(?:fourth|4th|last) quarter of|q4": (10, 11, 12),
    },
)
