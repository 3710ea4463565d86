"""When two records say the same: locally where it is certain, else it is for the model to say (C-16, C-17, CF-2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from memstory_reference.systems.layers.policy.safety import words_of
from memstory_reference.systems.layers.records.record import DENIED, Content, Fact, Rule, is_note
from memstory_reference.text.token_sets import jaccard, token_list, token_set

# What turns a statement around. Two texts may be as like as 15 of 16 tokens and differ in just one of these.
NEGATIONS = words_of(
    "no not never none neither nor without cannot can't don't doesn't didn't isn't aren't wasn't weren't won't "
    "wouldn't shouldn't couldn't haven't hasn't hadn't ain't dont doesnt cant wont hardly barely stop stopped "
    "quit"
)
_POLES = (
    ("always", "usually", "often", "sometimes", "rarely", "seldom"),
    ("like", "likes", "love", "loves", "enjoy", "enjoys", "hate", "hates", "dislike", "dislikes"),
    ("more", "less", "most", "least", "fewer"),
    ("before", "after", "during"),
    ("start", "started", "begin", "began", "end", "ended", "finish"),
    ("with", "unlike"),
    ("can", "must", "may", "might", "should"),
    ("good", "bad", "better", "worse", "best", "worst", "great", "terrible"),
    ("yes", "true", "false", "on", "off", "in", "out", "up", "down"),
    ("increase", "increased", "decrease", "decreased", "raise", "lower"),
    ("hot", "cold", "warm", "cool", "morning", "evening", "night", "left", "right"),
    ("first", "last", "only", "all", "some", "every", "any", "everyone", "nobody", "nothing", "everything"),
    ("allow", "forbid", "accept", "reject", "include", "exclude", "agree", "disagree", "married", "divorced", "single"),
    ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "half", "twice", "once", "double"),
)
POLARITY = frozenset(word for poles in _POLES for word in poles)


class Likeness(StrEnum):
    """How two contents stand to each other."""

    SAME = "same"
    NEAR = "near"
    ALIKE = "alike"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A likeness with the index that made it. `near` is the same for certain; `alike` needs a judgement."""

    likeness: Likeness
    index: float


def compare_texts(left: str, right: str, threshold: float) -> Comparison:
    """Compare two texts by their sets of tokens; at the threshold counts as above it.

    >>> compare_texts("take 10 mg at night", "take 20 mg at night", 0.6).likeness.value
    'alike'
    """
    if token_list(left) == token_list(right) and token_list(left):
        return Comparison(likeness=Likeness.SAME, index=1.0)
    index = jaccard(token_set(left), token_set(right))
    if index < threshold:
        return Comparison(likeness=Likeness.DIFFERENT, index=index)
    return Comparison(likeness=Likeness.NEAR if agree(left, right) else Likeness.ALIKE, index=index)


def agree(left: str, right: str) -> bool:
    """Say whether numbers, negations and words of polarity are the same in both, each as often and in this order."""
    return _telling(left) == _telling(right)


def compare(left: Content, right: Content, threshold: float) -> Comparison:
    """Compare two facts by their triples, two rules by their texts; unlike kinds are different."""
    if is_note(left) or is_note(right):
        # What was given as it is stays as it is, unless it is the same word for word.
        is_one = is_note(left) and is_note(right) and note_key(left) == note_key(right)
        return Comparison(likeness=Likeness.SAME if is_one else Likeness.DIFFERENT, index=float(is_one))
    if isinstance(left, Fact) and isinstance(right, Fact):
        if all(token_list(a) == token_list(b) for a, b in zip(_triple(left), _triple(right), strict=True)):
            return Comparison(likeness=Likeness.SAME, index=1.0)
        found = compare_texts(" ".join(_triple(left)), " ".join(_triple(right)), threshold)
        # Owner and relation are not details: only objects may differ a little.
        if found.likeness is not Likeness.DIFFERENT and not share_a_slot(left, right):
            return Comparison(likeness=Likeness.ALIKE, index=found.index)
        return found
    if isinstance(left, Rule) and isinstance(right, Rule):
        return compare_texts(left.rule, right.rule, threshold)
    return Comparison(likeness=Likeness.DIFFERENT, index=0.0)


def note_key(content: Content) -> tuple[str, ...]:
    """Return what two notes of the same words have in common."""
    return tuple(token_list(content.object)) if isinstance(content, Fact) else ()


def is_same(left: Content, right: Content, threshold: float) -> bool:
    """Say whether two contents are one, by local rules alone."""
    return compare(left, right, threshold).likeness in (Likeness.SAME, Likeness.NEAR)


def share_a_slot(left: Content, right: Content) -> bool:
    """Say whether two facts speak of one thing's one property."""
    return (
        isinstance(left, Fact)
        and isinstance(right, Fact)
        and token_list(left.subject) == token_list(right.subject)
        and token_list(left.predicate) == token_list(right.predicate)
    )


def is_opposite(left: Content, right: Content) -> bool:
    """Say whether of two facts one denies the other: `LIVES_IN Oslo` and `NOT_LIVES_IN Oslo`."""
    if not isinstance(left, Fact) or not isinstance(right, Fact):
        return False
    bare = [replace(one, predicate=one.predicate.removeprefix(DENIED)) for one in (left, right)]
    is_one_denied = left.predicate.startswith(DENIED) != right.predicate.startswith(DENIED)
    return is_one_denied and share_a_slot(*bare) and token_list(left.object) == token_list(right.object)


def _triple(fact: Fact) -> tuple[str, str, str]:
    return fact.subject, fact.predicate.replace("_", " "), fact.object


def _telling(text: str) -> list[str]:
    words = token_list(text)
    return [word for word in words if word in NEGATIONS or word in POLARITY or any(sign.isdigit() for sign in word)]
