"""The topic keys that the answer to a question may stand under, the likeliest first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memstory_reference.adapters.offline_chat.facts import parse_fact
from memstory_reference.adapters.offline_chat.lexicon import PREFERRED_KINDS, RELATIVES
from memstory_reference.adapters.offline_chat.question_statements import GAP, WH, statements
from memstory_reference.adapters.offline_chat.topics import PROJECT, noun_phrase_key, preference_key, rule_key

__all__ = ["WH", "keys_of"]


def keys_of(core: str) -> Iterator[str]:
    """Yield the keys for a question that stands without courtesies; the same key may come twice.

    >>> next(keys_of("What language do I prefer")), next(keys_of("Where do I live"))
    ('user.language_preference', 'user.location')
    """
    for candidate in _candidates(_APPOSITION.sub(r"\1", core)):
        if candidate and GAP.casefold() not in candidate:
            yield candidate


def _candidates(core: str) -> Iterator[str | None]:
    special = _special(core)
    if special:
        yield special
    kind = _KIND_ASKED.match(core)
    if kind:
        yield from _of_kind(kind)
    for statement in statements(core):
        fact = parse_fact(statement)
        # Where the gap is only the end of the value, the statement was misread: `my son is born …` gives no value.
        if fact is not None and (GAP not in statement or fact.value in {GAP, f"on {GAP}", f"at {GAP}", fact.said}):
            yield fact.topic
    phrase = _noun_phrase(core)
    if phrase:
        topic = noun_phrase_key(phrase)
        yield from (topic, *_twins(topic, core)) if topic != "project.project" else ()


_APPOSITION = re.compile(rf"\b((?i:my|our) (?:{'|'.join(sorted(RELATIVES))})),? [A-Z]\w+(?!['’]s|\w| [A-Z]),?")
"""`My daughter Ida` is kept as `my daughter`, as in statements."""

_SPECIAL = (
    (
        re.compile(
            r"^(?:who (?:am I|I am)|what (?:am I called|do (?:you|people) call me|I am called)|how (?:should|do|"
            r"must) (?:you|people) (?:call|address) me|what should you call me)$",
            re.IGNORECASE,
        ),
        "user.name",
    ),
    (
        re.compile(
            r"^(?:what|which job|which work)(?: work| job)? (?:do I do|I do)(?: for (?:a living|work|money))?$",
            re.IGNORECASE,
        ),
        "user.job",
    ),
    (
        re.compile(
            r"^(?:what|which) (?:languages? do I speak|languages? I speak|languages? can I speak)$", re.IGNORECASE
        ),
        "user.spoken_language",
    ),
    (re.compile(r"^(?:how old (?:am I|I am)|what age am I)$", re.IGNORECASE), "user.age"),
    (re.compile(r"^(?:how tall (?:am I|I am))$", re.IGNORECASE), "user.height"),
    (re.compile(r"^(?:how (?:much|heavy) (?:do I weigh|I weigh|am I)|what do I weigh)$", re.IGNORECASE), "user.weight"),
    (re.compile(r"^(?:do I have|have I(?: got)?) (?:any |an )?allerg(?:y|ies)$", re.IGNORECASE), "user.allergy"),
    (
        re.compile(
            r"^what (?:is my goal|do I (?:want|plan|aim|intend|hope) to .+|am I (?:planning|hoping) to .+)$",
            re.IGNORECASE,
        ),
        "user.goal",
    ),
)
_JOB_OF = re.compile(r"^what (?:does|do) (?P<s>my .+?) do(?: for (?:a living|work))?$", re.IGNORECASE)
_AGE_OF = re.compile(
    r"^how old (?:is|are) (?P<s>(?:my|our) .+)$|^how old (?P<t>(?:my|our) .+) (?:is|are)$", re.IGNORECASE
)
_MINE_IN = re.compile(
    r"^(?:what|which) (?P<x>[\w-]+(?: [\w-]+)?) (?:am I|are we|do I have to be) (?:in|on|at)$", re.IGNORECASE
)
_QUALITY_OF = re.compile(
    r"^(?:what|which) (?P<x>[\w-]+(?: [\w-]+)?) (?:is|are|does|do) (?P<s>(?:my|our) (?!favou?rite|"
    r"preferred)[\w'’ -]+?)(?: have)?$",
    re.IGNORECASE,
)
_PLACE_OF = re.compile(
    r"^(?:what|which) [\w-]+ (?:is|are) (?P<s>(?:my|our|the) [\w'’ -]+?) (?:in|on|at)$", re.IGNORECASE
)
_RULES = re.compile(
    r"^(?:what (?:is|are) (?:the|our|my|your) )?(?:rules?|polic(?:y|ies)|constraints?|conventions?) (?:about|for|on|"
    r"regarding|concerning|with) (?P<x>.+)$",
    re.IGNORECASE,
)
_IS_ALLOWED = re.compile(
    r"^(?:is|are) (?P<x>.+?) (?:allowed|permitted|forbidden|banned|ok|okay|fine|acceptable|off limits)$", re.IGNORECASE
)
_ALLOWED = re.compile(
    r"^(?:(?:may|can|should|must|shall|could) (?:I|we|one|people|anyone)|(?:may|should|must) you|(?:am I|are we|are "
    r"you) allowed to|is it (?:ok|okay|allowed|fine|forbidden|acceptable) (?:to|if (?:I|we|you)))(?: ever)? "
    r"(?P<x>.+)$",
    re.IGNORECASE,
)


def _special(core: str) -> str | None:
    for pattern, topic in _SPECIAL:
        if pattern.match(core):
            return topic
    job, age = _JOB_OF.match(core), _AGE_OF.match(core)
    if job:
        return noun_phrase_key(job.group("s"), attribute="job")
    if age:
        return noun_phrase_key(age.group("s") or age.group("t"), attribute="age")
    place, quality, mine = _PLACE_OF.match(core), _QUALITY_OF.match(core), _MINE_IN.match(core)
    thing = place.group("s") if place else f"my {mine.group('x')}" if mine else None
    if thing:
        return noun_phrase_key(thing)
    if quality:
        return noun_phrase_key(quality.group("s"), attribute=quality.group("x"))
    rule = _RULES.match(core) or _ALLOWED.match(core) or _IS_ALLOWED.match(core)
    return rule_key(rule.group("x")) if rule else None


_KIND_ASKED = re.compile(
    r"^(?:what|which)(?: is the)?(?: (?:kind|sort|type|brand) of)? (?P<x>(?!is\b|are\b|was\b|do\b|did\b|can\b|"
    r"could\b|should\b|would\b|will\b|may\b|must\b|am\b|have\b|has\b|"
    r"does\b)[\w-]+(?: [\w-]+){0,2}?)"
    r" (?:that )?(?:(?:do|does|did|should|will|would|shall|have|has|am|are|is|was|were) )?(?P<s>I|we|(?:my|our|the) "
    r"[\w' ’-]+?)"
    r"(?: (?:usually|always|really|still|currently|actually|finally|decide|want|choose|chose|agree|agreed|decided))*"
    r" (?P<verb>prefer|like|love|favou?r|enjoy|hate|use|using|decided?|choose|chose|chosen|picked?|pick|agreed?|"
    r"agree|settled?|settle|go|going|went|gone|"
    r"drive|fly|order|buy|play|work|wear|drink|eat|have|got|own|study|learn|support|follow|read|watch|run|build|adopt|adopted|"
    r"need|select|selected)s?\b(?P<rest>.*)$",
    re.IGNORECASE,
)


def _of_kind(found: re.Match[str]) -> Iterator[str]:
    """Yield the keys of `which editor do I use`: the kind of thing is said, the thing is asked for."""
    kind, subject, verb = found.group("x"), found.group("s"), found.group("verb").casefold()
    rest = found.group("rest").strip()
    if verb in {"work", "wear"} and rest:
        return
    mine = subject.casefold() == "i"
    if verb in _LIKING:
        purpose = re.match(r"(?:for|when|in) (.+)$", rest, re.IGNORECASE)
        if purpose:
            yield preference_key(purpose.group(1))
        yield _liked_by(subject, kind)
        if mine:
            yield noun_phrase_key(f"my {kind}")
    elif mine or subject.casefold() in {"we", "the team", "our team"}:
        yield noun_phrase_key(f"{'my' if mine else 'our'} {kind}")
        if mine:
            yield preference_key(kind)
    else:
        yield noun_phrase_key(subject, attribute=kind)


_LIKING = frozenset(["prefer", "like", "love", "favor", "favour", "enjoy"])


def _liked_by(subject: str, kind: str) -> str:
    if subject.casefold() == "i":
        return preference_key(kind)
    if subject.casefold().startswith("my "):
        return noun_phrase_key(subject, attribute=f"{kind} preference")
    return preference_key(kind, PROJECT)


_IS_NP = re.compile(
    rf"^(?:{WH}|how (?:much|long|big|large|many|often)|(?:what|which) (?:day|date|time|kind|sort|type|colour|"
    r"color))(?: (?:exactly|again))? (?:is|are|was|were|will|does|do)(?: (?:it|again))? (?P<np>(?:my|our|the) "
    r".+?)(?: (?:again|now|currently|these days|called|named|be|due|like|look like|spelled|start|begin|end|happen|"
    r"at|on|scheduled(?: for)?))*$",
    re.IGNORECASE,
)
_NP_IS = re.compile(
    rf"^(?:{WH}|(?:what|which) (?:day|date|time)) (?P<np>(?:my|our|the) .+?) (?:is|are|was|were)(?: (?:again|now|"
    r"due|called|named|on|at))*$",
    re.IGNORECASE,
)
_NP_ONLY = re.compile(r"^(?:and |what about |how about )?(?P<np>(?:my|our) [\w'’ -]+)$", re.IGNORECASE)
_NP_WITHIN = re.compile(
    r"\b(?P<np>(?:my|our) (?:(?:favou?rite|preferred) )?[\w-]+(?:['’]s [\w-]+)?)\s*(?:is|was|are|again)?$",
    re.IGNORECASE,
)
_LIKED_IS = re.compile(
    r"^(?:what|which)(?: (?P<x>[\w-]+(?: [\w-]+)?))? (?:is|are) (?:my|our) (?:favou?rite|preferred)(?: one)?$|"
    r"^(?:what|which) (?P<y>[\w-]+(?: [\w-]+)?) (?:is|are) (?:my|our) (?:favou?rite|preferred)(?: one)?$",
    re.IGNORECASE,
)


def _noun_phrase(core: str) -> str | None:
    liked = _LIKED_IS.match(core)
    if liked and (liked.group("x") or liked.group("y")):
        return f"my favourite {liked.group('x') or liked.group('y')}"
    for pattern in (_IS_NP, _NP_IS, _NP_ONLY, _NP_WITHIN):
        found = pattern.match(core) if pattern is not _NP_WITHIN else pattern.search(core)
        if found:
            return found.group("np")
    return None


def _twins(topic: str, core: str) -> Iterator[str]:
    """Yield the other key under which the same fact may have been said."""
    prefix, _, thing = topic.partition(".")
    if thing.endswith("_name"):
        yield topic.removesuffix("_name")
    elif re.match(r"who\b", core, re.IGNORECASE) or re.search(r"\b(?:called|named)$", core):
        yield f"{topic}_name"
    elif thing.endswith("_preference"):
        yield topic.removesuffix("_preference")
    elif thing in PREFERRED_KINDS:
        yield f"{topic}_preference"
    elif re.match(r"when\b", core, re.IGNORECASE) and thing not in _TIMES:
        yield f"{prefix}.{thing}_date"


_TIMES = frozenset(
    ["deadline", "birthday", "date", "time", "standup", "meeting", "due", "anniversary", "retro", "project"]
)
