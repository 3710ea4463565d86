"""Rules that somebody sets: `never use tabs`, `no deploys on Fridays`, `code must be formatted`."""

from __future__ import annotations

import re

from memstory_reference.adapters.offline_chat.facts import Fact
from memstory_reference.adapters.offline_chat.lexicon import PASSING, PASSING_STATES
from memstory_reference.adapters.offline_chat.predicates import without_trailing
from memstory_reference.adapters.offline_chat.topics import rule_key
from memstory_reference.adapters.offline_chat.wording import expanded, singular

_PLEASE = re.compile(r"^(?:please|kindly|just)\s+|,?\s+please$", re.IGNORECASE)
_IMPERATIVE = re.compile(
    r"^(?P<how>do not ever|do not|never|always|avoid|refrain from|stop|under no circumstances|only(?= use| write| "
    r"answer| reply))"
    r" (?P<c>.+)$",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"^(?:worry|mind|bother|think|know|get me wrong|say|ask|tell me|be (?:sorry|silly|shy)|let me|you|i|we|a|the|it|"
    r"that|"
    r"understand|remember|see|care|forget|panic|hesitate|feel)\b",
    re.IGNORECASE,
)
_DUTY = re.compile(
    r"^(?P<s>you|we|everyone|everybody|nobody|no one|the [\w -]+?|our [\w -]+?|all [\w -]+?|[\w-]+) "
    r"(?P<how>must(?: not| never| always)?|shall(?: not)?|should (?:not|never|always)|may not|can not|can only|"
    r"(?:is|are) not (?:allowed|permitted) to|(?:is|are) only allowed to|(?:has|have) to always|may only|(?:is|are) "
    r"never to) "
    r"(?P<c>.+)$",
    re.IGNORECASE,
)
_EVERYTHING = re.compile(
    r"^(?P<c>(?:everything|each|every|all|any) (?!(?:i|you|we|he|she|they|it|that)\b).+? "
    r"(?:should|needs?|has to|have to|ought to|must have|requires?) .+)$",
    re.IGNORECASE,
)
_ONLY_SOME = re.compile(
    r"^(?:nobody|no one|only [\w -]+?) (?:may|can|is allowed to|are allowed to|should|gets? to) (?P<c>.+)$",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"^(?P<c>(?:keep|limit|restrict|cap|hold) .+? (?:(?:shorter|longer|smaller|larger|lower|higher|less|fewer|more) "
    r"than|under|below|above|within|at most|at least|up to|to) .+)$",
    re.IGNORECASE,
)
_MUST_BE = re.compile(
    r"^(?!(?:i|he|she|it|they|this|that|these|those|there|my|his|her|their|here)\b)(?P<s>[\w-]+(?: [\w-]+){0,4}) "
    r"(?:(?:has|have|needs?|ought) to|must|should(?= be (?:at (?:most|least)|no \w+ than|less|fewer|more|shorter|"
    r"longer|under|below|above|within|between|written|kept|named|formatted)\b)) (?P<c>be (?P<state>[\w-]+).*)$",
    re.IGNORECASE,
)
_BANNED = re.compile(
    r"^(?P<c>.+?) (?:is|are) (?:strictly |absolutely )?(?:forbidden|prohibited|banned|not allowed|not permitted|off "
    r"limits|"
    r"off-limits|mandatory|required|compulsory|a must|out of bounds)(?P<when> .+)?$",
    re.IGNORECASE,
)
_NO = re.compile(r"^no (?P<c>[\w-]+(?: [\w-]+){0,6}?)(?: allowed| ever| whatsoever)?$", re.IGNORECASE)
_NO_TALK = re.compile(
    r"^(?:thanks|thank|problem|problems|worries|worry|idea|way|one|need|doubt|it|i|that|this|wait|not|you|we|he|she|"
    r"more(?! than)|clue|"
    r"offen[cs]e|pressure|rush|matter|wonder|big|really|sorry|actually|longer|my|the|sir|please|probs?|luck|news)\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"^I (?:do not want|would rather not have|hate it when|want|need|expect|would like|insist that|do not like it "
    r"when) "
    r"you (?P<not>not |never )?(?:to )?(?P<c>(?:never |always |not )?.+)$",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"^(?P<c>(?:use|prefer|write|answer|reply|respond|keep|speak|format|indent|name|choose|commit|deploy)\b.+"
    r"(?:,? not | instead of | rather than | over | only$).*)$",
    re.IGNORECASE,
)
_SETTING = re.compile(
    r"^(?P<c>(?:use|answer|reply|respond|keep|speak|write|format|indent|address|call|give|add|put|run|start|end|"
    r"include|show)\b.+)$",
    re.IGNORECASE,
)


def parse_rule(clause: str) -> Fact | None:
    """Return the rule that `clause` sets, or None.

    >>> rule = parse_rule("Please never use tabs.")
    >>> rule.topic, rule.value
    ('constraint.tab', 'never use tabs')
    """
    said = without_trailing(_PLEASE.sub("", _PLEASE.sub("", clause.strip().rstrip(".!; "))))
    text = expanded(said)
    content = _content(text)
    return Fact(topic=rule_key(content), value=_uncapitalised(said), said=said) if content else None


def wanted_from_now_on(clause: str) -> Fact:
    """Return the rule in what somebody wants `from now on`, whatever its form."""
    said = without_trailing(_PLEASE.sub("", clause.strip().rstrip(".!; ")))
    return parse_rule(said) or Fact(topic=rule_key(expanded(said)), value=_uncapitalised(said), said=said)


def is_setting(clause: str) -> bool:
    """Say whether `clause` tells the assistant how to behave, so that `always` or `from now on` makes it a rule."""
    return bool(_SETTING.match(_PLEASE.sub("", clause)))


def _content(text: str) -> str | None:
    imperative = _IMPERATIVE.match(text)
    if imperative:
        return None if _TALK.match(imperative.group("c")) else imperative.group("c")
    banned = _BANNED.match(text)
    if banned:
        return banned.group("c") + (banned.group("when") or "")
    without = _NO.match(text)
    if without:
        return None if _NO_TALK.match(without.group("c")) else without.group("c")
    wish = _WISH.match(text)
    if wish:
        return re.sub(r"^(?:never|always|not) ", "", wish.group("c"), flags=re.IGNORECASE)
    instead = _INSTEAD.match(text) or _EVERYTHING.match(text) or _LIMIT.match(text) or _ONLY_SOME.match(text)
    return _duty(text) or (instead.group("c") if instead else None)


def _duty(text: str) -> str | None:
    duty = _DUTY.match(text)
    if duty and not _TALK.match(duty.group("c")) and duty.group("s").casefold() not in _POINTING:
        subject = "" if duty.group("s").casefold() in _EVERYBODY else duty.group("s")
        return f"{subject} {duty.group('c')}".strip()
    state = _MUST_BE.match(text)
    if not state or state.group("state").casefold() in PASSING_STATES:
        return None
    head = singular(state.group("s").casefold().rsplit(maxsplit=1)[-1])
    return f"{state.group('s')} {state.group('c')}" if head not in PASSING else None


_POINTING = frozenset(["i", "it", "that", "this", "he", "she"])
_EVERYBODY = frozenset(["you", "we", "everyone", "everybody", "nobody"])


def _uncapitalised(text: str) -> str:
    first, *_ = text.split(maxsplit=1) or [""]
    return text[:1].lower() + text[1:] if first.istitle() and first.isascii() and first != "I" else text
