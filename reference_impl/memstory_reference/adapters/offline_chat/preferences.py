"""Likes, habits and decisions: `I prefer tea over coffee`, `I don't drink coffee`, `we decided on Postgres`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from memstory_reference.adapters.offline_chat.lexicon import STOP_WORDS
from memstory_reference.adapters.offline_chat.predicates import trimmed, without_time
from memstory_reference.adapters.offline_chat.topics import (
    PROJECT,
    USER,
    key,
    kind_of,
    liked_thing,
    noun_phrase_key,
    preference_key,
    prefix_of,
)
from memstory_reference.adapters.offline_chat.wording import singular, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Liking:
    """A key and its value; no value if only the whole clause says it."""

    topic: str
    value: str | None = None


_ADVERBS = (
    r"(?:(?:really|much|strongly|usually|generally|absolutely|also|quite|always|often|never|only|sometimes|mostly|"
    r"mainly|"
    r"still|now|do|does|just|typically|can|currently|definitely|tend to|no longer|would(?= (?:prefer|rather)))\s+)*"
)
_PREFER = re.compile(
    rf"^{_ADVERBS}(?:prefers?|favou?rs?|(?:would )?rather(?: have| use| take| get)?) (?P<v>.+)$", re.IGNORECASE
)
_LIKE = re.compile(
    rf"^{_ADVERBS}(?:likes?|loves?|hates?|dislikes?|enjoys?|adores?|detests?|(?:can|could) not stand|(?:am|is) (?:a "
    r"(?:big |huge )?"
    r"fan of|fond of|keen on|into|scared of|afraid of|interested in))(?P<most> (?:best|most))? (?P<v>.+)$",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    rf"^{_ADVERBS}(?:hates?|dislikes?|detests?|(?:can|could) not|(?:am|is) (?:scared|afraid))\b", re.IGNORECASE
)
_USE = re.compile(
    rf"^{_ADVERBS}(?:uses?|am using|is using|are using|work with|works with) (?P<v>.+?)(?: (?:as|for) (?P<x>.+))?$",
    re.IGNORECASE,
)
_TAKE = re.compile(
    rf"^{_ADVERBS}(?:likes?|takes?|drinks?|prefers?|wants?) (?:my|the|his|her|their) (?P<x>[\w-]+) (?P<v>(?!is\b|"
    r"are\b)[\w ]+)$",
    re.IGNORECASE,
)
_HABITS = [
    "drink",
    "eat",
    "play",
    "drive",
    "study",
    "collect",
    "read",
    "watch",
    "wear",
    "teach",
    "smoke",
    "cook",
    "practise",
    "practice",
    "ride",
    "follow",
    "support",
    "learn",
    "own",
    "wake_up",
    "get_up",
    "go_to_bed",
    "sleep",
    "commute",
    "attend",
    "listen_to",
    "grow",
    "sing",
    "paint",
    "swim",
    "cycle",
    "run",
    "meditate",
    "volunteer",
    "write",
    "hike",
    "exercise",
    "work",
    "program",
    "code",
    "bake",
    "garden",
    "ski",
    "climb",
    "dance",
    "knit",
    "subscribe_to",
    "celebrate",
]
_HABIT = re.compile(
    rf"^{_ADVERBS}(?P<verb>{'|'.join(habit.replace('_', ' ') for habit in _HABITS)}|studies|watches|teaches|"
    r"practises|practices)"
    r"(?:s|es)?(?: (?P<v>.+))?$",
    re.IGNORECASE,
)
_ONE_OF_A_KIND = frozenset(
    ["drive", "study", "teach", "wake_up", "get_up", "go_to_bed", "sleep", "commute", "support", "own"]
)
"""Habits of which somebody has one: the key is the verb alone."""

_DECIDE = re.compile(
    rf"^(?:(?:have|has|finally|also|all|will|are|just|had)\s+)*{_ADVERBS}"
    r"(?:(?:decided|agreed|settled|chose|chosen|picked|selected|opted|going|go|went|switched|moved|migrated|"
    r"standardi[sz]ed|"
    r"adopted|voted)(?: from .+?)?(?: on| for| to| with| that| upon)*(?: use| using| go with| adopt| pick)?|"
    r"use|using|adopt|pick|choose|select|decide on|rely on|run on|target|build on) (?P<v>.+?)(?: (?:as|for) "
    r"(?P<x>(?:our |the |all )?[\w -]+))?$",
    re.IGNORECASE,
)
_SCHEDULE = re.compile(
    rf"^(?:will |are |plan to |want to |need to |have to )?{_ADVERBS}(?P<verb>release|launch|ship|meet|deploy|go "
    r"live|demo|present|start|finish|deliver)"
    r"(?:s|es|ing)?(?: (?P<x>[\w .-]+?))? (?P<v>(?:on|at|in|by|every|each|next|once|twice) .+)$",
    re.IGNORECASE,
)
_POINTING = re.compile(
    r"^(?:it|this|that|these|those|you|your|him|her|them|what|how|when|where|if|us|myself|the (?:idea|way|answer|"
    r"look|sound))\b",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r",?\s+(?:over|rather than|instead of|more than|to(?= \w+$)|than|and not|not)\s+.+$", re.IGNORECASE
)
_MOST = re.compile(r"\s+(?:the )?(?:best|most|a lot|very much|so much|the best of all)$", re.IGNORECASE)
_PHRASE_END = re.compile(
    r"\s+(?:on|in|at|with|to|from|before|after|when|while|because|every|each|than|during|since|of|by)\b.*$|[,;].*$"
)
_ARTICLE = re.compile(r"^(?:an?|the|my|some|any)\s+", re.IGNORECASE)


def parse(subject: str, rest: str) -> Liking | None:
    """Return the liking, habit or decision that `rest`, a sentence without its subject, states.

    >>> parse("I", "prefer tea over coffee"), parse("we", "decided to use Postgres")
    (Liking(topic='user.drink_preference', value='tea'), Liking(topic='project.database', value='Postgres'))
    """
    person, rest = subject.casefold(), trimmed(rest)
    forms = _FORMS_OF_WE if person == "we" else _FORMS_OF_ONE
    for form in forms:
        found = form(rest)
        if found is not None:
            return found if person in {"i", "we"} else _of_another(subject, found)
    return None


def kind_key(phrase: str) -> str:
    """Return the key of what is preferred in `my favourite tea`, or among `tea`."""
    bare = re.sub(r"^(?:my|our|the)\s+", "", phrase, flags=re.IGNORECASE)
    return preference_key(liked_thing(bare) or bare, prefix_of(phrase) if phrase.casefold().startswith("our") else USER)


def is_liked(phrase: str) -> bool:
    """Say whether a noun phrase names what somebody prefers."""
    return liked_thing(re.sub(r"^(?:my|our|the)\s+", "", phrase, flags=re.IGNORECASE)) is not None


def _of_another(subject: str, liking: Liking) -> Liking:
    owner = noun_phrase_key(subject, attribute=liking.topic.partition(".")[2].replace("_", " "))
    return Liking(topic=owner, value=liking.value)


def _taken(rest: str) -> Liking | None:
    found = _TAKE.match(rest)
    return Liking(topic=preference_key(found.group("x")), value=found.group("v")) if found else None


def _preferred(rest: str) -> Liking | None:
    found = _PREFER.match(rest)
    if not found or _POINTING.match(found.group("v")):
        return None
    value = found.group("v")
    what_for = re.match(r"(?P<v>.+?) (?:as|for|when it comes to) (?P<x>.+)$", value, re.IGNORECASE)
    if what_for:
        return Liking(topic=preference_key(what_for.group("x")), value=_COMPARED.sub("", what_for.group("v")))
    value = _MOST.sub("", _COMPARED.sub("", value))
    return Liking(topic=_thing_key(value), value=value)


def _liked(rest: str) -> Liking | None:
    found = _LIKE.match(rest)
    if not found or _POINTING.match(found.group("v")):
        return None
    value = _MOST.sub("", found.group("v"))
    negative = bool(_NEGATIVE.match(rest))
    most = bool(found.group("most")) or value != found.group("v")
    thing = _COMPARED.sub("", value)
    if not negative and (most or kind_of(thing) or thing != value):
        return Liking(topic=_thing_key(thing), value=thing)
    return Liking(topic=preference_key(_head_phrase(thing)))


def _used(rest: str) -> Liking | None:
    found = _USE.match(rest)
    if not found or _POINTING.match(found.group("v")):
        return None
    if found.group("x"):
        return Liking(topic=noun_phrase_key(f"my {_ARTICLE.sub('', found.group('x'))}"), value=found.group("v"))
    kind = kind_of(_ARTICLE.sub("", found.group("v")))
    return (
        Liking(topic=key(USER, kind), value=found.group("v"))
        if kind
        else Liking(topic=_verb_key("use", found.group("v")))
    )


def _habit(rest: str) -> Liking | None:
    found = _HABIT.match(rest)
    if not found or _POINTING.match(found.group("v") or ""):
        return None
    verb = _base(found.group("verb"))
    if verb in _ONE_OF_A_KIND:
        value = found.group("v")
        return Liking(topic=key(USER, verb.replace("_", " ")), value=value)
    return Liking(topic=_verb_key(verb.replace("_", " "), found.group("v") or ""))


def _decided(rest: str) -> Liking | None:
    found = _DECIDE.match(rest)
    if not found or _POINTING.match(found.group("v")):
        return None
    thing = without_time(_ARTICLE.sub("", re.sub(r"^from .+? to ", "", found.group("v"))))
    if found.group("x"):
        return Liking(topic=noun_phrase_key(f"our {re.sub(r'^(?:our|the|all) ', '', found.group('x'))}"), value=thing)
    kind = kind_of(thing)
    if kind:
        return Liking(topic=key(PROJECT, kind), value=thing)
    meaning = [word for word in words(_PHRASE_END.sub("", thing) or thing) if word not in STOP_WORDS]
    return Liking(topic=key(PROJECT, *(meaning[:3] or [thing])))


def _scheduled(rest: str) -> Liking | None:
    found = _SCHEDULE.match(rest)
    if not found:
        return None
    verb = "release" if found.group("verb").casefold() == "go live" else found.group("verb")
    return Liking(topic=key(PROJECT, verb), value=found.group("v"))


_Form = Callable[[str], Liking | None]
_FORMS_OF_ONE: tuple[_Form, ...] = (_taken, _preferred, _liked, _used, _habit)
_FORMS_OF_WE: tuple[_Form, ...] = (_scheduled, _decided, _preferred, _liked, _habit)


def _thing_key(value: str) -> str:
    """Return the key of a preferred thing: by its kind, or by its last word (`dark mode` is a mode)."""
    first = re.split(r"\s+or\s+|\s+and\s+", value)[0]
    thing = _ARTICLE.sub("", first)
    return preference_key(kind_of(thing) or _head_phrase(_ARTICLE.sub("", value) if " " not in thing else thing))


def _head_phrase(value: str) -> str:
    """Return the last word of the noun phrase that `value` begins with."""
    phrase = _PHRASE_END.sub("", _ARTICLE.sub("", re.split(r"\s+or\s+", value)[-1])).strip()
    found = [word for word in words(phrase) if word not in {"to", "at", "all"}]
    return found[-1] if found else value


def _verb_key(verb: str, thing: str) -> str:
    meaning = [singular(word) for word in words(_PHRASE_END.sub("", thing)) if word not in STOP_WORDS]
    return key(USER, verb, *meaning[:2])


def _base(verb: str) -> str:
    verb = verb.casefold().replace(" ", "_")
    return {
        "studies": "study",
        "watches": "watch",
        "teaches": "teach",
        "practises": "practise",
        "practices": "practice",
    }.get(verb, verb)
