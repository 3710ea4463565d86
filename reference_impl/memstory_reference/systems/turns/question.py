"""What a question says beside its words: whom it names, which dates, and whether it is about the present; pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache, lru_cache

from memstory_reference.text.words import plain_words, stem


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


SAME_DAY, DAYS_AFTER, NEAR_DAY, DAYS_MONTH = 1.5, 1.25, 1.0, 0.75
"""How much it says that a turn was said on the day that is asked for, in the 3 days after it (people tell what
happened), from 2 days before to 10 after it, or in its month at all."""

IN_MONTH, WEEK_AFTER, IN_YEAR = 1.0, 0.5, 0.5
HELD, HALF_LIFE_DAYS = 1.0, 120
"""What was told before the span may still hold in it: as much as a turn within it, half as much after four months."""


@dataclass(frozen=True, slots=True)
class Span:
    """A day, a month or a year; a day or a month whose year was not said has `year` None."""

    year: int | None
    month: int | None = None
    day: int | None = None

    @lru_cache(maxsize=1_000)  # noqa: B019  (a span is a value of a few bytes)
    def end(self) -> date | None:
        """Return the first day after it; None where its year was not said, or it is not a date."""
        if self.year is None:
            return None
        try:
            if self.day is not None and self.month is not None:
                return date(self.year, self.month, self.day) + timedelta(days=1)
            month = self.month or 12
            return date(self.year, month, calendar.monthrange(self.year, month)[1]) + timedelta(days=1)
        except (ValueError, OverflowError, calendar.IllegalMonthError):
            return None


_Read = Callable[[re.Match[str]], Span | list[Span]]


def spans_in(question: str, asked_at: datetime, language: Language) -> tuple[Span, ...]:
    """Return the dates that a question names: `8 May 2023`, `May 8th`, `in May`, `May 2023`, `2023`, `yesterday`.

    A part of a year, such as `spring 2023` or `the end of 2023`, is each of its months. Relative ones are counted from
    `asked_at`. A word that can be something else is a month only behind a preposition or beside a number.
    """
    rest, found = question.lower(), list[Span]()
    for pattern, read in _readers(language):
        for match in pattern.finditer(rest):
            one = read(match)
            found += one if isinstance(one, list) else [one]
        rest = pattern.sub(" ; ", rest)
    found += _relative(rest, asked_at.date())
    return tuple(dict.fromkeys(found))


def closeness(span: Span, said_at: datetime) -> float:
    """Return how well the moment at which something was said fits a span, 0 to 1.5.

    >>> closeness(Span(2023, 5, 8), datetime(2023, 5, 9)), closeness(Span(2023), datetime(2023, 1, 1))
    (1.25, 0.5)
    """
    said = said_at.date()
    if span.month is None:
        return IN_YEAR if said.year == span.year else 0.0
    years = [span.year] if span.year is not None else [said.year - 1, said.year, said.year + 1]
    return max(_in_year(span, year, said) for year in years)


def holding_share(span: Span, said_at: datetime) -> float:
    """Return how far something said before the end of a span may hold in it, 0 to HELD."""
    end = span.end()
    days = -1 if end is None else (end - said_at.date()).days
    return HELD * 0.5 ** (days / HALF_LIFE_DAYS) if days > 0 else 0.0


def _in_year(span: Span, year: int, said: date) -> float:
    assert span.month is not None  # noqa: S101  (for the type checker; `closeness` has seen to it)
    in_month = (said.year, said.month) == (year, span.month)
    if span.day is None:
        end = Span(year, span.month).end()
        after = -1 if end is None else (said - end).days
        return IN_MONTH if in_month else WEEK_AFTER if 0 <= after < 7 else 0.0  # noqa: PLR2004  (a week)
    try:
        days = (said - date(year, span.month, span.day)).days
    except ValueError:
        return 0.0
    steps = ((days == 0, SAME_DAY), (0 < days <= 3, DAYS_AFTER), (-2 <= days <= 10, NEAR_DAY), (in_month, DAYS_MONTH))  # noqa: PLR2004
    return next((value for fits, value in steps if fits), 0.0)


@cache
def _readers(language: Language) -> Sequence[tuple[re.Pattern[str], _Read]]:
    return tuple(_made_readers(language))


def _made_readers(language: Language) -> Iterator[tuple[re.Pattern[str], _Read]]:
    names = "|".join(language.months)
    plain = "|".join(name for name in language.months if name not in language.ambiguous)
    number = {name: place for place, name in enumerate(language.months, start=1)}
    ordinal = r"(\d{1,2})(?:st|nd|rd|th)?"
    yield re.compile(r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b"), lambda m: Span(int(m[1]), _month(m[2]), int(m[3]))
    yield (
        re.compile(rf"\b{ordinal}(?: of)? ({names})\b(?:,? (\d{{4}}))?"),
        lambda m: Span(_number(m[3]), number[m[2]], int(m[1])),
    )
    yield (
        re.compile(rf"\b({names}) {ordinal}\b(?:,? (\d{{4}}))?"),
        lambda m: Span(_number(m[3]), number[m[1]], int(m[2])),
    )
    yield re.compile(rf"\b({names}),? (\d{{4}})\b"), lambda m: Span(int(m[2]), number[m[1]])
    prepositions = "in|of|during|by|since|until|before|after|around|early|late|mid|last|this"
    yield re.compile(rf"\b(?:{prepositions}) ({names})\b"), lambda m: Span(None, number[m[1]])
    yield re.compile(rf"\b({plain})\b"), lambda m: Span(None, number[m[1]])
    for part, months in language.parts.items():
        # A winter or a turn of the year may name both of its years.
        second = r"(?: ?(?:to|/|-|–) ?(?:20)?\d\d\b)?" if {0, 12} & set(months) and 1 in months else ""
        year = rf"(?:,? (?:of )?|-)((?:19|20)\d\d)\b({second})"
        yield re.compile(rf"\b(?:{part}){year}"), _part(months)
    yield re.compile(r"\b((?:19|20)\d\d)\b"), lambda m: Span(int(m[1]))


def _part(months: Sequence[int]) -> _Read:
    return lambda match: months_of(months, match)


def months_of(months: Sequence[int], match: re.Match[str]) -> list[Span]:
    """Return the months of a part of a year, or those about the new year where both of its years are named."""
    year = int(match[1])
    if match[2]:
        return [Span(year, 12), *(Span(year + 1, month) for month in months if month in (1, 2))]
    return [Span(year, month) if month else Span(year - 1, 12) for month in months]


def _relative(text: str, today: date) -> Sequence[Span]:
    found = list[Span]()
    if re.search(r"\byesterday\b", text):
        found.append(_day(today - timedelta(days=1)))
    for match in re.finditer(r"\b(\d{1,3}) (day|week|month|year)s? ago\b", text):
        found.append(_ago(today, int(match[1]), match[2]))
    for match in re.finditer(r"\blast (week|month|year)\b", text):
        found.append(_ago(today, 1, match[1]))
    return found


def _ago(today: date, count: int, unit: str) -> Span:
    if unit in ("day", "week"):
        return _day(today - timedelta(days=count * (7 if unit == "week" else 1)))
    if unit == "year":
        return Span(today.year - count)
    months = today.year * 12 + today.month - 1 - count
    return Span(months // 12, months % 12 + 1)


def _day(day: date) -> Span:
    return Span(day.year, day.month, day.day)


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _month(text: str) -> int:
    return min(max(int(text), 1), 12)


LONGEST_COMPARISON = 200
"""Characters of a question that is taken apart; it is matched by patterns that take long for long texts."""

_GENITIVE = re.compile(r"['\u2019]s\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, read. `bare` is what is left of it without names and words that only ask; its `stems` are distinct.

    `named` are the known speakers that it names; `asks_assistant` is for what "you" said.
    """

    text: str
    bare: str
    stems: tuple[str, ...]
    named: tuple[str, ...]
    spans: tuple[Span, ...]
    is_about_now: bool
    asks_assistant: bool


def read_question(text: str, speakers: Collection[str], asked_at: datetime, language: Language = ENGLISH) -> Question:
    """Return what `text` asks; names of known speakers and words that only ask are not words to look for.

    >>> asked = read_question("Where does Ana live now?", {"Ana", "Ben"}, datetime(2024, 1, 1))
    >>> asked.stems, asked.named, asked.is_about_now
    (('live', 'now'), ('Ana',), True)
    """
    first_names: dict[str, list[str]] = {}
    for speaker in sorted(speakers):
        for word in plain_words(speaker)[:1]:
            first_names.setdefault(word, []).append(speaker)
    words = plain_words(_GENITIVE.sub("", text))
    named = [speaker for word in words for speaker in first_names.get(word, ())]
    telling = [word for word in words if word not in first_names and word not in language.asking] or words
    wanted = [word for word in telling if word not in language.empty] or telling
    return Question(
        text=text,
        bare=" ".join(telling) or text,
        stems=tuple(dict.fromkeys(map(stem, wanted))),
        named=tuple(dict.fromkeys(named)),
        spans=spans_in(text, asked_at, language),
        is_about_now=bool(language.now.search(text)),
        asks_assistant=bool(language.answered.search(text)),
    )


def compared_events(text: str, language: Language = ENGLISH) -> tuple[str, ...]:
    """Return the two events of a question that asks which of them came first; empty of any other question.

    >>> compared_events("Did Ana move before or after the flood?"), compared_events("When did Ana move?")
    (('Did Ana move', 'the flood'), ())
    """
    plain = " ".join(text.split()).rstrip("?. ")
    if len(plain) > LONGEST_COMPARISON:
        return ()
    found = (pattern.fullmatch(plain) for pattern in language.compared)
    return next((match.groups() for match in found if match), ())
