"""Corrections: `Actually it is Rust now` gives a new value to the topic that was talked about last."""

from __future__ import annotations

import re
from dataclasses import replace

from memstory_reference.adapters.offline_chat.conduct import parse_rule
from memstory_reference.adapters.offline_chat.facts import Fact, parse_fact
from memstory_reference.adapters.offline_chat.predicates import trimmed
from memstory_reference.adapters.offline_chat.wording import expanded

_MARK = re.compile(
    r"^(?:(?:actually|no|nope|wait|hold on|sorry|oops|my mistake|my bad|correction|scratch that|strike that|on "
    r"second thoughts?|(?:(?:small|quick|minor|slight|little|one) )?(?:update|correction|change)|"
    r"change of plans?|i (?:have )?changed my mind|i was wrong|i made a mistake|i misspoke|update|rather|hmm|ah|oh|"
    r"well|"
    r"i (?:got|had) (?:that|it|this) wrong|i was mistaken|"
    r"that (?:is|was) (?:wrong|not right|incorrect|outdated|old)|not any ?more|things (?:have )?changed|edit|and|"
    r"but)\b\s*[,:;.!–—-]*\s*)+",
    re.IGNORECASE,
)
_MEANT = re.compile(
    r"^(?:i (?:actually )?(?:meant|mean|should have said)|(?:please )?(?:make|change) (?:it|that)(?: to)?|let us "
    r"(?:make it|say|go with)|"
    r"it should (?:now )?(?:be|say|read)|that should be|(?:please )?(?:update|correct|set|switch) (?:it|that) "
    r"to)\s+(?P<v>.+)$",
    re.IGNORECASE,
)
_IT_IS = re.compile(
    r"^(?:it|that|this|he|she|they|the answer) (?:(?:is|are|was|will be|has become|became)(?: now| actually| "
    r"really)?|(?:has |have |is |was )?(?:now )?"
    r"(?:changed|moved|switched|been (?:changed|moved|switched|pushed back|postponed))(?: from .+?)? to)\s+(?P<v>.+)$",
    re.IGNORECASE,
)
_SAID_BUT = re.compile(
    r"^i (?:said|wrote|told you|typed) .+?,? but (?:(?:it|that|this) (?:is|was|should be|has to be|must be)|i meant)"
    r"(?: actually| really| now)? (?P<v>.+)$",
    re.IGNORECASE,
)
_BARE = re.compile(r"^(?P<v>[\w+#.:/-]+(?: [\w+#.:/-]+){0,3})(?: (?:now|instead|then))?$")
_NOT_BUT = re.compile(r"^(?:it (?:is|was) )?not .+?,? but (?:rather )?(?P<v>.+)$", re.IGNORECASE)
_NOT_THIS = re.compile(
    r"^(?i:not) [A-Z\d]\w*[,;.–—-]+\s*(?i:(?:sorry|but|oops|rather|actually|i mean(?:t)?),? )?(?P<v>[A-Z\d]\S*)$"
)
_TALK = re.compile(
    r"^(?:(?:very |so |really |quite |too |all |a )*(?:thanks?|thank you|fine|good|great|nice|cool|problem|worries|"
    r"way|idea|okay|ok|right|wrong|true|"
    r"false|funny|interesting|raining|sunny|late|early|hard|easy|possible|important|time|complicated|not|sorry|"
    r"enough|need|"
    r"never ?mind|yes|no|i|you|we|me|what|why|how|who|when|where|which|do|does|can|could|would|is|are|please|let|"
    r"that|this|it|"
    r"tired|busy|sick|hungry|lot|bit|shame|pity|joke))\b",
    re.IGNORECASE,
)


def correct(sentence: str, talked_about: str | None) -> tuple[Fact, ...]:
    """Return the corrected facts, or none if `sentence` corrects nothing.

    >>> correct("Actually it is Rust now.", "user.language_preference")[0].value
    'Rust'
    >>> correct("Actually, I am tired.", "user.language_preference")
    ()
    """
    if sentence.rstrip().endswith("?"):
        return ()
    text = expanded(sentence.strip().rstrip(".!"))
    marked = _MARK.match(text)
    rest = text[marked.end() :].strip() if marked else text
    if marked and rest and (named := parse_rule(rest) or parse_fact(rest)):
        return (_on_topic(named, talked_about),)
    value = _new_value(rest, marked=marked is not None)
    if value is None or talked_about is None:
        return ()
    return (Fact(topic=talked_about, value=value, said=sentence.strip().rstrip(".!")),)


def _on_topic(named: Fact, talked_about: str | None) -> Fact:
    """Return the fact under the topic talked about, if it names the same thing: `my deadline` of the project's."""
    same = talked_about is not None and talked_about.partition(".")[2] == named.topic.partition(".")[2]
    return replace(named, topic=talked_about) if same and talked_about else named


def _new_value(rest: str, *, marked: bool) -> str | None:
    meant = _MEANT.match(rest) or _NOT_BUT.match(rest) or _SAID_BUT.match(rest) or _NOT_THIS.match(rest)
    it_is = _IT_IS.match(rest)
    found = meant or it_is or (_BARE.match(rest) if marked else None)
    if not found:
        return None
    value = found.group("v")
    changes = (
        marked
        or meant
        or re.search(r"\b(?:now|instead|any ?more|changed|moved|switched)\b|,? not ", rest, re.IGNORECASE)
    )
    if not changes or _TALK.match(value):
        return None
    return trimmed(value) or None
