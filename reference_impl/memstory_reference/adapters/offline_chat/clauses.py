"""Sentences cut where a second fact begins, with what the second one leaves unsaid filled in."""

from __future__ import annotations

import re

from memstory_reference.adapters.offline_chat import conduct
from memstory_reference.adapters.offline_chat.facts import REPORTED, parse_fact
from memstory_reference.adapters.offline_chat.predicates import is_job
from memstory_reference.adapters.offline_chat.wording import expanded, words

_JOINT = re.compile(
    r"(?:\s*[,;]\s*(?:and|but|while|whereas|plus|also)?(?: that)?\s+|\s+(?:and|but|while|whereas|plus)(?: also)?(?: "
    r"that)?\s+|"
    r"\s+[–—-]\s+|\s*;\s*)(?:(?:now|today|these days),? (?=(?:I|we|my|our)\b))?",
    re.IGNORECASE,
)
_WORK_AND_JOB = re.compile(r"^(?P<at>(?P<s>I work|my [a-z]+ works) (?:at|for) .+?) (?P<job>as an? .+)$", re.IGNORECASE)
_JOB_AND_MORE = re.compile(
    r"^(?P<s>I am|I['’]m) (?P<a>an?) (?P<job>[\w -]+?) (?P<joint>from|at) (?P<w>(?!heart\b|the moment\b|home\b).+)$",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"^(?:I|we|my|our|the)\b", re.IGNORECASE)
_VERB_FIRST = re.compile(
    r"^(?:live|work|am|have|prefer|like|love|hate|speak|drink|eat|play|use|study|drive|do not|never|come|decided|chose|"
    r"don['’]t|deploy|release|meet|ship)\b",
    re.IGNORECASE,
)
_TURNS = re.compile(r"\s*[,;]\s*(?:and|but)\b|\s*;|.*\b(?:now|today|these days)\b", re.IGNORECASE)
_OWN_SUBJECT = re.compile(r"^(?:I\b|we\b|(?:my|our) )", re.IGNORECASE)
_PERSON_SPEAKS = re.compile(r"^(?:I|we)(?:['’]\w+)? \w+", re.IGNORECASE)
_PRONOUN = re.compile(r"^(?:he|she|they|it) (?P<rest>.+)$", re.IGNORECASE)
_SOMEBODY = re.compile(
    r"^(?P<s>(?:my|our) [a-z]+(?:['’]s [a-z]+)?)(?:,? (?-i:[A-Z])\w+,?)? (?:is|are|has|have|works?|lives?|likes?)\b",
    re.IGNORECASE,
)
_OWNED = re.compile(r"^my [a-z]+['’]s (?P<x>[\w -]+?) (?:is|are)\b", re.IGNORECASE)
_OWNERS = re.compile(r"^(?P<s>my [a-z]+['’]s) (?P<v>(?:is|are) .+)$", re.IGNORECASE)
_ELLIPSIS = re.compile(r"^(?P<s>my [a-z]+(?: [a-z]+)?)(?:['’]s)? (?P<v>[^\Wa-z]\S*(?: \S+)?)$")


def clauses(sentence: str) -> list[str]:
    """Cut a sentence where a second fact begins; lists of values stay whole.

    >>> clauses("My name is Ana and I live in Graz")
    ['My name is Ana', 'I live in Graz']
    >>> clauses("My favourite band is Simon and Garfunkel")
    ['My favourite band is Simon and Garfunkel']
    """
    sentence = sentence.strip().rstrip(".!")
    work = _WORK_AND_JOB.match(sentence)
    if work:
        return [work.group("at"), f"{work.group('s')} {work.group('job')}"]
    job = _JOB_AND_MORE.match(sentence)
    if job and is_job(words(job.group("job"))):
        verb = job.group("s") if job.group("joint").casefold() == "from" else "I work"
        return [
            f"{job.group('s')} {job.group('a')} {job.group('job')}",
            f"{verb} {job.group('joint')} {job.group('w')}",
        ]
    for joint in _JOINT.finditer(sentence):
        left, right = sentence[: joint.start()], sentence[joint.end() :]
        second = _as_clause(left, right)
        if second is not None and (_stands_alone(left) or _is_aside(left, joint.group(), right)):
            return [left, *clauses(second)]
    return [sentence]


def _stands_alone(clause: str) -> bool:
    return (parse_fact(clause) or conduct.parse_rule(clause)) is not None


def _is_aside(left: str, joint: str, right: str) -> bool:
    """Say whether `left` is a clause that states no fact, and what follows its comma a fact about something else."""
    if not _TURNS.match(joint) or not _OWN_SUBJECT.match(right):
        return False
    return bool(_PERSON_SPEAKS.match(left)) and not REPORTED.search(left)


def _as_clause(left: str, right: str) -> str | None:
    """Return `right` as a clause of its own, its subject or verb filled in from `left`; None if it is no clause."""
    subject = re.match(r"(?:I|we)\b", left, re.IGNORECASE)
    if subject and _VERB_FIRST.match(right):
        return f"{subject.group()} {right}" if _stands_alone(_first(f"{subject.group()} {right}")) else None
    pronoun, somebody = _PRONOUN.match(expanded(right)), _SOMEBODY.match(left)
    if pronoun and somebody:
        return f"{somebody.group('s')} {pronoun.group('rest')}"
    owned, owner = _OWNED.match(left), _OWNERS.match(right)
    if owned and owner:
        return f"{owner.group('s')} {owned.group('x')} {owner.group('v')}"
    ellipsis = _ELLIPSIS.match(right)
    verb = re.search(r" (?:is|are)(?: (?:called|named))? ", expanded(left))
    if ellipsis and verb and not parse_fact(right):
        return f"{ellipsis.group('s')}{verb.group()}{ellipsis.group('v')}"
    if _SUBJECT.match(right) or re.match(r"(?:never|always|do not|don['’]t|no|avoid|call me)\b", right, re.IGNORECASE):
        return right if _stands_alone(_first(right)) or _PERSON_SPEAKS.match(right) else None
    return None


def _first(text: str) -> str:
    joint = _JOINT.search(text)
    return text[: joint.start()] if joint and not _stands_alone(text) else text
