"""The stand-in for a model's extraction: what a few English forms of speech say (documented in the explanation)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memstory_reference.systems.layers.records.record import Fact, Rule
from memstory_reference.text.sentences import sentences

USER = "User"
_HEDGE = r"(?:(?:i think|i guess|maybe|perhaps|probably|well|and|but|so|by the way|actually)[,]?\s+)*"
_REST = r"(?P<object>[^.!?;]+)"

_NAME = r"(?P<object>(?-i:[^\Wa-z_])[^.!?;,]*)"
_PLACE = (
    r"(?P<object>(?:(?:an?|the|my|our) )?(?-i:[^\Wa-z_])[^.!?;,]*?|(?:an?|the|my|our) [^.!?;,]+?)(?= with |[.,!?;]|$)"
)

_FORMS: Sequence[tuple[str, str, str]] = (
    ("identity", "IS_NAMED", rf"(?:my name is|i am called|call me)\s+{_NAME}"),
    ("identity", "BORN_IN", rf"i was born (?:in|on)\s+{_NAME}"),
    ("location", "LIVES_IN", rf"i (?:now )?(?:live|am living) in\s+{_PLACE}"),
    ("location", "LIVES_IN", rf"i(?: have|'ve)?(?: just)? moved (?:back )?(?:from .+? )?to\s+{_PLACE}"),
    ("work", "WORKS_AS", rf"i (?:now )?work as (?:an? )?{_REST}"),
    ("work", "WORKS_AT", rf"i (?:now )?work (?:at|for)\s+{_PLACE}"),
    ("work", "WORKS_AT", rf"i(?: am|'m) at\s+{_NAME} now\b"),
    ("health", "IS_ALLERGIC_TO", rf"i(?: am|'m) allergic to\s+{_REST}"),
    (
        "health",
        "HAS_CONDITION",
        r"i have (?P<object>(?:asthma|diabetes|migraines?|insomnia|anxiety|depression)\b[^.!?;]*)",
    ),
    (
        "coping_strategy",
        "USES",
        r"i (?:take|use) (?P<object>[\w-]+)(?: (?:daily|every|each|at|when|twice|once)\b[^.!?;]*)",
    ),
    ("preference", "PREFERS", rf"i prefer\s+{_REST}"),
    ("preference", "DISLIKES", rf"i (?:hate|dislike|do not like|don't like|can't stand)\s+{_REST}"),
    ("preference", "LIKES", rf"i (?:really )?(?:like|love|enjoy)\s+{_REST}"),
    ("preference", "HAS_FAVOURITE", rf"my favou?rite\s+{_REST}"),
    ("routine", "USUALLY", rf"i (?:usually|always|often)\s+{_REST}"),
    ("goal", "WANTS_TO", rf"i (?:want|plan|hope|intend) to\s+{_REST}"),
    ("possession", "HAS", rf"i (?:have|own)\s+(?=(?:an?|one|two|three|some|several|many|\d+) )(?:an? )?{_REST}"),
    ("mood", "FEELS", rf"i(?: feel|'m feeling| am feeling)\s+{_REST}"),
)
_COMPILED = tuple(
    (category, predicate, re.compile(_HEDGE + form, re.IGNORECASE)) for category, predicate, form in _FORMS
)
_RELATION = re.compile(
    _HEDGE
    + r"my (?P<who>boss|manager|colleague|mother|mom|father|dad|sister|brother|wife|husband|partner|son|daughter|"
    r"friend|dog|cat)(?:'s name)? is (?P<object>[^.!?;]+)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r";\s*|,\s+(?=(?:i|i'm|my|we|our|he|she|they)\b)|,?\s+(?:and|but|so)\s+(?=(?:i|i'm|my|we|our|he|she|they|it|"
    r"is|lives?|works?|have|am|own|prefer|like|love|enjoy|hate)\b)",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"(?:live|work|have|am|own|prefer|like|love|enjoy|hate)\b", re.IGNORECASE)
_UNSURE = re.compile(
    r"\b(?:if|unless|wish(?:es)?|imagine|suppose|pretend|kidding|joking|said|says|told|tells|claims?)\b|[\"“”«»]",
    re.IGNORECASE,
)
"""A sentence with one of these may not be so, or somebody else says it."""
_DENIED = re.compile(
    r"\b(?:no longer|any ?more|used to|might|would|could|(?:is|am|are) not|isn't|never)\b", re.IGNORECASE
)
_VAGUE = re.compile(r"(?:to say|it|this|that|these|those|him|her|them|you)\b", re.IGNORECASE)
_TRAILING = re.compile(
    r"(?:,? (?:now|currently|these days|at the moment|too|again|as well|please|though)|,? (?:but|and) not .+)+$",
    re.IGNORECASE,
)
_OF_ONE = frozenset(["boss", "manager", "mother", "mom", "father", "dad", "wife", "husband", "partner"])
# Of other things only what has a name, or is the user's own: "the Zorvane relay", "our boat".
_NAMED = re.compile(
    r"(?P<subject>(?:(?:[Mm]y|[Oo]ur) [^.!?;,]{2,60}?|[^.!?;,]{1,40}? [A-Z][^.!?;,]{1,60}?)) (?P<verb>is|are) " + _REST
)
_EXPLICIT = re.compile(
    r"(?:from now on|in future|in the future|going forward)\b[,:]?\s*(?P<a>.+)|"
    r"(?:please\s+)?(?P<b>(?:always|never)\b.+)|(?:please\s+)?remember to (?P<c>.+)|"
    r"(?:please\s+)?(?P<d>(?:stop|don't|do not)\s+"
    r"(?:using|call|ask|send|write|end|start|say|use|give|add)\w*\b.+)",
    re.IGNORECASE,
)
_IMPLIED = re.compile(
    r"(?:i'd rather|i would rather) you\b.+|"
    r"i (?:like|prefer|love) (?:it when you|short|brief|long|detailed|simple)\b.*|"
    r"(?:that|this|your (?:answer|reply|replies)) (?:was|were|is|are) (?:too|a bit) (?P<how>[\w -]+)|"
    r"(?:please\s+)?be (?P<be>brief|shorter|concise|kind|gentle|direct)\b.*",
    re.IGNORECASE,
)


def facts_by_rules(said: str) -> list[Fact | Rule]:
    """Return the facts that the forms find, in order; questions and wishes to the assistant hold none.

    >>> [(fact.predicate, fact.object) for fact in facts_by_rules("I live in Oslo. Do I like tea?")]
    [('LIVES_IN', 'Oslo')]
    """
    found: list[Fact | Rule] = []
    for sentence in _statements(said):
        if not rules_by_rules(sentence) and not _UNSURE.search(sentence):
            found += [fact for clause, quote in _clauses(sentence) if (fact := _fact(clause, quote))]
    return found


def rules_by_rules(said: str) -> list[Fact | Rule]:
    """Return the rules that the forms find, in order.

    >>> [(rule.rule, rule.explicit) for rule in rules_by_rules("From now on, answer briefly.")]
    [('Answer briefly.', True)]
    """
    found: list[Fact | Rule] = []
    for sentence in _statements(said):
        explicit = _EXPLICIT.fullmatch(sentence)
        if explicit:
            text = next(group for group in explicit.groups() if group)
            found.append(Rule(rule=_imperative(text), explicit=True, evidence_quote=sentence))
            continue
        implied = _IMPLIED.fullmatch(sentence.rstrip(".!"))
        if implied:
            found.append(Rule(rule=_wished(implied, sentence), explicit=False, evidence_quote=sentence))
    return found


def _wished(implied: re.Match[str], sentence: str) -> str:
    if implied["be"]:
        return f"Be {implied['be'].lower()}."
    return f"The user finds answers too {implied['how']}." if implied["how"] else _imperative(sentence)


def _statements(said: str) -> list[str]:
    plain = said.replace("’", "'")
    return [sentence for sentence in sentences(plain) if not sentence.endswith("?")]


def _clauses(sentence: str) -> list[tuple[str, str]]:
    """Return the clauses of a sentence, each with its own words; one without a subject takes over the `I` before it.

    >>> _clauses("I work at Acme and live in Oslo.")
    [('I work at Acme', 'I work at Acme'), ('I live in Oslo.', 'live in Oslo.')]
    """
    found: list[tuple[str, str]] = []
    for quote in _CLAUSE.split(sentence):
        is_mine = bool(found) and re.match(r"i\b", found[-1][0], re.IGNORECASE)
        found.append((f"I {quote}" if is_mine and _FIRST_PERSON.match(quote) else quote, quote))
    return found


def _fact(clause: str, quote: str) -> Fact | None:
    if _DENIED.search(clause):
        return None
    relation = _RELATION.match(clause)
    if relation:
        who, what = relation["who"].lower(), _trimmed(relation["object"])
        is_name = who in _OF_ONE and what[:1].isupper()
        return _made("relationship", f"User's {who}", "IS_NAMED" if is_name else "IS", what, quote)
    for category, predicate, form in _COMPILED:
        match = form.match(clause.rstrip(".!"))
        if match:
            is_vague = category in ("preference", "goal") and _VAGUE.match(match["object"])
            return None if is_vague else _made(category, USER, predicate, match["object"], quote)
    named = _NAMED.match(clause)
    if named is None or named["subject"].split()[0].lower() in ("what", "who", "i", "if", "there"):
        return None
    return _made("note", _trimmed(named["subject"]), named["verb"].upper(), named["object"], quote)


def _made(category: str, subject: str, predicate: str, value: str, quote: str) -> Fact | None:
    value = _trimmed(value)
    return (
        Fact(category=category, subject=subject, predicate=predicate, object=value, evidence_quote=quote)
        if value
        else None
    )


def _trimmed(text: str) -> str:
    return _TRAILING.sub("", text.strip()).strip(",:\"' ")


def _imperative(text: str) -> str:
    text = text.strip().rstrip(".!").strip()
    return f"{text[:1].upper()}{text[1:]}."
