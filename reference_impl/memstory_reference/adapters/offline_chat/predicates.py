"""What is said of a person: name, home, work, age and the like, by the verb that says it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memstory_reference.adapters.offline_chat.lexicon import (
    DIETS,
    JOB_ENDINGS,
    JOBS,
    NATIONALITIES,
    NO_JOBS,
    PASSING_STATES,
    TRAITS,
)
from memstory_reference.adapters.offline_chat.wording import singular, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """What is said: the name of an attribute and its value; `whole` if only the clause itself is a value."""

    name: str
    value: str = ""
    whole: bool = False


NEGATION = re.compile(
    r"^(?:(?:do|does|did|have|has) (?:not|never)(?: \b(?:any ?more|really)\b)?|no longer|never|not)\s+|(?<=^am )not "
    r"|(?<=^is )not |"
    r"(?<=^are )not |(?<=^can )not (?!stand\b)",
    re.IGNORECASE,
)

_BE = r"(?:am|is|are)"
_ADVERB = r"(?:(?:currently|now|still|also|originally|actually|both|normally|usually) )*"
_MONTHS = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\.?"
_NUMBER_WORD = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|"
    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?)"
)
_WEEKDAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"

_BY_VERB = tuple(
    (name, re.compile(rf"^{_ADVERB}{pattern}$", re.IGNORECASE))
    for name, pattern in (
        ("name", rf"{_BE} (?:called|named|known as) (?P<v>.+)"),
        ("name", r"(?:(?:am|is) going|go|goes) by (?:the name (?:of )?)?(?P<v>.+)"),
        (
            "location",
            (
                rf"(?:live|lives|(?:have|has) lived|reside|resides|{_BE} {_ADVERB}(?:based|living|located)|(?:have |"
                r"has )?(?:just |"
                r"recently )?"
                rf"(?:re)?(?:moved|located)) {_ADVERB}(?:from .+? )?(?:in|to|at|near|on) (?P<v>.+)"
            ),
        ),
        ("origin", rf"(?:{_BE}|come|comes) (?:originally )?from (?P<v>.+)"),
        ("birthday", rf"(?:was|were) born (?:on (?P<v>.+)|in (?P<v2>(?:{_MONTHS} )?\d{{4}}|{_MONTHS})(?: in .+)?)"),
        ("birthplace", r"(?:was|were) born in (?P<v>.+)"),
        ("employer", r"works? (?:at|for) (?P<v>.+)"),
        ("job", r"works? as (?:an? |the )?(?P<v>.+)"),
        ("job", r"(?:am|is) employed as (?:an? )?(?P<v>.+)"),
        ("height", r"(?:am|is) (?P<v>\d[\w.,' ]*) tall"),
        ("weight", r"weighs? (?P<v>.+)"),
        ("age", rf"(?:am|is|turned) (?P<v>\d{{1,3}}|{_NUMBER_WORD})(?: years? old| years? of age)?"),
        ("allergy", rf"{_BE} (?:\w+ly )?allergic to (?P<v>.+)"),
        ("allergy", r"(?:have|has|got) (?:an? )?(?:\w+ly )?(?P<v>[\w -]+?) allerg(?:y|ies)"),
        ("spoken_language", r"speaks? (?:fluent )?(?P<v>.+)"),
    )
)
_MOVED = re.compile(rf"^{_ADVERB}(?:(?:have|has) )?(?:just |recently )?(?:re)?moved\b", re.IGNORECASE)
"""What somebody moved to is a home; what a thing moved to is its new value."""

_OWNED_NAME = re.compile(
    r"^(?:recently |just )?(?:have got|has got|have|has|own|owns|adopted|got|bought) (?:an? |one |two |three "
    r")?(?P<x>[\w -]+?),? "
    r"(?:(?:who|which|that) (?:is|are) )?(?:named|called|whose names? (?:is|are)) (?P<v>.+)$",
    re.IGNORECASE,
)
_OWNED = re.compile(
    r"^(?:have got|has got|have|has|own|owns) "
    r"(?P<v>(?P<n>an?|one|two|three|four|five|six|seven|eight|nine|ten|\d+|no|some|any)? ?(?P<x>.+))$",
    re.IGNORECASE,
)
_OWNED_FOR_NOW = frozenset(
    [
        "headache",
        "meeting",
        "question",
        "cold",
        "idea",
        "problem",
        "minute",
        "moment",
        "doubt",
        "feeling",
        "call",
        "appointment",
        "appetite",
        "flu",
        "fever",
        "lot",
        "bit",
        "few",
        "couple",
        "look",
        "break",
        "favour",
        "favor",
        "request",
        "suggestion",
        "hangover",
        "blast",
        "crush",
        "deadline",
        "exam",
        "point",
        "clue",
    ]
)
_STATE = re.compile(r"^(?:am|is|are) (?P<a>an? )?(?P<v>.+)$", re.IGNORECASE)
_LONGEST_JOB, _LONGEST_NAME = 4, 3
_DATE = re.compile(rf"^(?:the )?(?:\d|{_MONTHS}\b|{_WEEKDAYS}\b|next\b|tomorrow\b)", re.IGNORECASE)
_SINCE = re.compile(
    r",?\s+(?:(?:last|this) (?:year|month|week|spring|summer|autumn|fall|winter)|in \d{4}|since .+|for (?:\w+ "
    r"){1,2}(?:years|months)|"
    r"(?:\w+ ){1,2}(?:years?|months?|weeks?) ago|recently|yesterday)$",
    re.IGNORECASE,
)


def without_time(text: str) -> str:
    """Return a text without when it began.

    >>> without_time("Vienna last year"), without_time("Lisbon since 2015")
    ('Vienna', 'Lisbon')
    """
    return _SINCE.sub("", text)


_RELATIVE = re.compile(r"\s+(?:who|which|whom)\b.*$")


def attribute_of(rest: str, *, speaker: bool, living: bool = True) -> Attribute | None:
    """Return the attribute that `rest`, a sentence without its subject, says.

    `speaker`: the subject is `I`; `living`: it is somebody, of whom a bare number is the age.

    >>> attribute_of("live in Graz", speaker=True)
    Attribute(name='location', value='Graz', whole=False)
    """
    rest = rest.strip()
    for name, pattern in _BY_VERB:
        found = pattern.match(rest)
        if not found or (not living and (_MOVED.match(rest) or (name == "age" and "old" not in rest))):
            continue
        value = without_time(next(value for value in found.groups() if value))
        if name != "location" or not _DATE.match(value):
            return Attribute(name=name, value=value)
    return _owned(rest) or _state(rest, speaker=speaker)


def _owned(rest: str) -> Attribute | None:
    named = _OWNED_NAME.match(rest)
    if named:
        return Attribute(
            name=f"{singular(named.group('x').split()[-1])} name", value=_RELATIVE.sub("", named.group("v"))
        )
    owned = _OWNED.match(rest)
    if not owned:
        return None
    thing = re.split(r",|\b(?:with|in|at|of|from|for|on|named|who|that|and)\b", owned.group("x"), maxsplit=1)[0]
    found = words(thing)
    if not found or singular(found[-1]) in _OWNED_FOR_NOW:
        return None
    if not owned.group("n") and (len(found) > _LONGEST_BARE or _PARTICIPLE.match(found[0])):
        return None
    return Attribute(name=found[-1], value=owned.group("v"))


_LONGEST_BARE = 2
_PARTICIPLE = re.compile(
    r"^(?:to|been|had|gone|done|seen|never|not|just|already|always|ever|got|it|this|that|you|your|\w+ed|\w+en|made|"
    r"said|told|lost|found|left|read|put|met|heard|forgot|come|become|begun|run|bought|thought)$"
)


def _state(rest: str, *, speaker: bool) -> Attribute | None:
    """Read what somebody is: a job, a diet, a nationality, a trait, or, of the speaker, a name."""
    found = _STATE.match(rest)
    if not found:
        return None
    value = trimmed(found.group("v"))
    said = words(value)
    if not said or said[0] in PASSING_STATES:
        return None
    trait = next((name for name in (said[0], "-".join(said)) if name in TRAITS), None)
    if trait:
        return Attribute(name=trait, whole=True)
    name = _state_name(said, value, is_one=bool(found.group("a")), speaker=speaker)
    return Attribute(name=name, value=value) if name else None


def _state_name(said: list[str], value: str, *, is_one: bool, speaker: bool) -> str | None:
    if len(said) == 1 and said[0] in DIETS | NATIONALITIES:
        return "diet" if said[0] in DIETS else "nationality"
    if is_one:
        return "job" if is_job(said) else None
    # A script without capitals counts as one.
    capital = all(part[0].isalpha() and not part[0].islower() for part in value.split())
    return "name" if speaker and capital and len(said) <= _LONGEST_NAME else None


def is_job(said: list[str]) -> bool:
    """Say whether the words name a profession.

    >>> is_job(["software", "developer"]), is_job(["morning", "person"])
    (True, False)
    """
    head = re.split(r"\b(?:at|for|in|by|with|from|and)\b", " ".join(said), maxsplit=1)[0].split()
    if not 0 < len(head) <= _LONGEST_JOB or head[-1] in NO_JOBS:
        return False
    return head[-1] in JOBS or head[-1].endswith(JOB_ENDINGS)


_TRAILING = re.compile(
    r"(?:,?\s+(?:now|by the way|btw|please|too|as well|actually|again|these days|at the moment|any ?more|from now on|"
    r"instead(?: of .+)?|though|thanks|thank you|for now|currently|already))+$",
    re.IGNORECASE,
)
_LEADING = re.compile(r"^(?:now|currently|also|still|actually|just|simply)\s+", re.IGNORECASE)
_AT = re.compile(rf"^(?:at|on|by|in) (?=\d|{_MONTHS}\b|{_WEEKDAYS}\b|noon\b|midnight\b)", re.IGNORECASE)
_NOT_THIS = re.compile(
    r"(?:,\s*|\s+and\s+)not\s+[^,]+$|(?-i:\s+not\s+[A-Z]\w*$)|\s+rather than\s+.+$|^no longer .+? but ", re.IGNORECASE
)
_QUOTES = "\"'“”‘’«»`"


def without_trailing(text: str) -> str:
    """Return a text without `now`, `please` and the like at its end."""
    return _TRAILING.sub("", text.strip().rstrip(".!?;, ")).strip(" ,;")


def trimmed(value: str) -> str:
    """Return a value without what surrounds it in speech; its case and script stay.

    >>> trimmed("now Rust, not Elixir."), trimmed("on 14 March, by the way")
    ('Rust', '14 March')
    """
    value = without_trailing(value)
    previous = None
    while previous != value:
        previous = value
        value = _NOT_THIS.sub("", _TRAILING.sub("", _LEADING.sub("", value))).strip(" ,;.")
    value = _AT.sub("", value)
    if len(value) > 1 and value[0] in _QUOTES and value[-1] in _QUOTES:
        value = value[1:-1]
    return value.strip()
