"""Whether a text states facts of the form subject, predicate, object (P-11, PF-19)."""

from __future__ import annotations

import re

from memstory_reference.text.english.lexicon import expand_contractions
from memstory_reference.text.english.statements import Context, read_message
from memstory_reference.text.sentences import sentences

_VERBS = """
is are has have works lives owns uses likes loves prefers speaks runs needs wants knows studies plays teaches costs
contains includes belongs depends supports means requires believes drives drinks eats builds leads manages writes reads
comes hates keeps makes sells wears weighs stands lies starts ends opens closes
"""
FACT_VERBS = frozenset(_VERBS.split())
_FIRST_PERSON = """
am have work live own use like love speak run need want know study play teach believe drive drink eat build lead manage
write read keep make sell wear hate come
"""

_LASTING = """
moved married divorced quit joined left founded built bought sold adopted graduated retired died became won lost broke
learned learnt inherited owned lived worked
"""
"""What these say about a third person holds from then on; about the first person they report an event."""
_TOLD_OF_ONESELF = "moved married divorced quit joined bought sold adopted graduated retired became"

_ADVERB = r"(?:(?:also|now|usually|often|really|still|both|only|already)\s+)?"
_NAME = r"[^\W\d_a-z]\w*(?:\s+(?:of|de|von|van|the)?\s*[^\W\d_a-z]\w*){0,3}"
_OWNED = r"(?:my|our|his|her|their|the|user's|[A-Z]\w*'s)(?:\s+[\w'-]+){1,3}"
_SUBJECT = rf"(?:(?-i:{_NAME})|(?:the\s+)?user|{_OWNED})"
_STATED = re.compile(
    rf"(?:{_SUBJECT})\s+{_ADVERB}(?:{'|'.join(FACT_VERBS)})\s+\S"
    rf"|(?!(?:I|we)\b)(?:{_SUBJECT})\s+{_ADVERB}(?:{'|'.join(_LASTING.split())})\b"
    rf"|(?:I|we)(?:\s+{_ADVERB}(?:{'|'.join((_FIRST_PERSON + _TOLD_OF_ONESELF).split())}|are)|'(?:m|ve|re))\s+\S",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(
    r"(?:it|this|that|there|here|these|those|what|who|which|how|why|where|when|if|he|she|they|you|yes|no|so|then)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"(?:\b(?:do|does) )?\b(?:not|never|no longer)\b", re.IGNORECASE)
_BULLET = re.compile(r"[-*\u2022]\s+")


def holds_facts(text: str) -> bool:
    """Say whether at least half of the sentences state a fact: in the present tense, or a change that lasts.

    A question states none.

    >>> holds_facts("Alice works at Acme"), holds_facts("We talked about the trip"), holds_facts("Is Alice at Acme?")
    (True, False, False)
    """
    said = [_BULLET.sub("", sentence, count=1) for sentence in sentences(text)]
    stated = sum(map(_states_a_fact, said))
    return stated > 0 and stated * 2 >= len(said)


def _states_a_fact(sentence: str) -> bool:
    meant = read_message(sentence, Context())
    if meant.talk or meant.question or meant.lists or meant.forget:
        return False
    if any(not one.is_quote for one in meant.facts):
        return True
    # What somebody asks to remember, or how something is not, is stated all the same.
    said = " ".join(_DENIAL.sub("", expand_contractions(meant.facts[0].said if meant.facts else sentence)).split())
    return not _NO_SUBJECT.match(said) and bool(_STATED.match(said))
