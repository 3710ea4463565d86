"""What no model overrides: the shape of what is stored, and safety; checked at writing and at promotion (C-10)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memstory_reference.systems.layers.audit.crisis_log import CrisisLevel
from memstory_reference.systems.layers.audit.crisis_signals import notice
from memstory_reference.systems.layers.policy.categories import Durability, durability, normal_category
from memstory_reference.systems.layers.policy.safety import is_unsafe, is_unsafe_with, is_vague_weakening
from memstory_reference.systems.layers.records.record import Fact, Rule
from memstory_reference.text.lines import one_line
from memstory_reference.text.token_sets import token_list

MAX_PART = 400
MAX_QUOTE = 1_000
MAX_NOTE = 20_000
"""Characters of a text that is stored as it was given, without extraction."""

QUOTED_SHARE = 0.8
"""So much of a quote must be in what the user said: models paraphrase a little, and invent at times."""

UNSAFE = "guard: it asks for less safety"
CRISIS = "guard: this belongs to the crisis log alone"
MALFORMED = "guard: malformed"
SESSION_ONLY = "guard: this category is of the moment"
UNKNOWN_CATEGORY = "guard: the category is not known to last"
VAGUE = "guard: what is to be left out is not named"

_PREDICATE = re.compile(r"\w{1,60}")


def well_formed(content: Fact | Rule, *, longest: int = MAX_PART) -> Fact | Rule | None:
    """Return the content as it may be stored, None if it may not be: parts on one line, of limited length, none empty.

    Control characters go, a predicate becomes UPPER_CASE and a category a plain name.
    """
    if isinstance(content, Rule):
        rule, quote = one_line(content.rule), one_line(content.evidence_quote)
        is_fit = _has_words(rule) and len(rule) <= MAX_PART and len(quote) <= MAX_QUOTE and _is_text(rule, quote)
        return replace(content, rule=rule, evidence_quote=quote) if is_fit else None
    fact = Fact(
        category=normal_category(content.category),
        subject=one_line(content.subject),
        predicate=re.sub(r"[\s-]+", "_", content.predicate.strip()).upper(),
        object=one_line(content.object),
        evidence_quote=one_line(content.evidence_quote),
    )
    is_fit = (
        bool(fact.category)
        and bool(_PREDICATE.fullmatch(fact.predicate))
        and _has_words(fact.subject)
        and _has_words(fact.object)
        and len(fact.subject) <= MAX_PART
        and len(fact.object) <= longest
        and len(fact.evidence_quote) <= max(longest, MAX_QUOTE)
        and _is_text(fact.subject, fact.object, fact.evidence_quote)
    )
    return fact if is_fit else None


def is_quoted(quote: str, said: Sequence[str]) -> bool:
    """Say whether the user said so: what an assistant, a tool or a model's fancy said is no evidence (SEC-8)."""
    wanted, heard = token_list(quote), set(token_list(" ".join(said)))
    return bool(wanted) and sum(word in heard for word in wanted) >= QUOTED_SHARE * len(wanted)


def refused(content: Fact | Rule, around: Sequence[str]) -> str | None:
    """Return why this must not be stored at all, None if it may. `around` are the user's turns up to now."""
    texts = _texts(content)
    if any(is_unsafe(text) for text in texts):
        return UNSAFE
    # What this text only hints at, the turn before or after may have named.
    if any(is_unsafe_with(text, around) for text in texts):
        return UNSAFE
    if any(_is_acute(text) for text in texts):
        return CRISIS
    return None


def refused_text(text: str) -> str | None:
    """Return why a text of any kind, such as a summary, must not be told in later prompts; None if it may."""
    if is_unsafe(text):
        return UNSAFE
    return CRISIS if _is_acute(text) else None


def must_wait(content: Fact | Rule) -> str | None:
    """Return why this may not be stored at once, whatever the model decided; None if it may."""
    if isinstance(content, Rule):
        return VAGUE if any(is_vague_weakening(text) for text in _texts(content)) else None
    match durability(content.category):
        case Durability.SESSION_ONLY:
            return SESSION_ONLY
        case Durability.UNKNOWN:
            return UNKNOWN_CATEGORY
        case Durability.STABLE:
            return None


def must_not_last(content: Fact | Rule) -> str | None:
    """Return why this must not outlive its session; None if it may."""
    is_momentary = isinstance(content, Fact) and durability(content.category) is Durability.SESSION_ONLY
    return SESSION_ONLY if is_momentary else None


def _is_acute(text: str) -> bool:
    noticed = notice(text)
    return noticed is not None and noticed.level is CrisisLevel.ACUTE


def _texts(content: Fact | Rule) -> list[str]:
    if isinstance(content, Rule):
        return [content.rule, content.evidence_quote]
    # The predicate may be the half that weakens: User WANTS_NO "safety checks".
    return [f"{content.predicate.replace('_', ' ')} {content.object}", content.evidence_quote]


def _has_words(text: str) -> bool:
    return any(sign.isalnum() for sign in text)


def _is_text(*texts: str) -> bool:
    """Say whether the texts can be written as UTF-8: broken JSON gives halves of characters."""
    return not any("\ud800" <= sign <= "\udfff" for text in texts for sign in text)
