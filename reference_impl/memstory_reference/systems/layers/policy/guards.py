"""What no model overrides: the shape of what is stored, and safety; checked at writing and at promotion (C-10)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_texts, is_storable
from memstory_reference.systems.layers.policy.signals import (
    any_acute,
    any_unsafe,
    is_against_its_owner,
    is_vague_weakening,
)
from memstory_reference.systems.layers.records.record import (
    SESSION_ONLY,
    STABLE,
    Arc,
    Content,
    Fact,
    Rule,
    normal_category,
)
from memstory_reference.text.lines import one_line
from memstory_reference.text.secret_guard import SecretPolicy, is_notice
from memstory_reference.text.sentences import sentences
from memstory_reference.text.words import token_list

MAX_SAID = 100_000
MAX_PART = 400
MAX_TOPICS = 8
MAX_QUOTE = 1_000
MAX_NOTE = 20_000
"""Characters of a text that is stored as it was given, without extraction."""

QUOTED_SHARE = 0.8
"""So much of a quote must be in what the user said: models paraphrase a little, and invent at times."""

UNSAFE = "guard: it asks for less safety"
NOTHING_LEFT = "guard: nothing is left of it without the secret"
AGAINST = "guard: it would turn the assistant against its owner"
CRISIS = "guard: this belongs to the crisis log alone"
MALFORMED = f"guard: malformed: a part is empty or too long (a note has at most {MAX_NOTE:,} characters), or no text"
OF_THE_MOMENT = "guard: this category is of the moment"
UNKNOWN_CATEGORY = "guard: the category is not known to last"
VAGUE = "guard: what is to be left out is not named"

_TYPES_OF: Mapping[str, type] = {"explicit": bool, "turns": int}
"""Fields that are not texts."""

_PREDICATE = re.compile(r"\w{1,60}")


def check_said(said: object) -> None:
    """Raise InputError for what is not a turn."""
    if not isinstance(said, str):
        raise InputError(f"a turn is a text, not {type(said).__name__}")
    if not said.strip() or len(said) > MAX_SAID:
        raise InputError(f"a turn has 1 to {MAX_SAID} characters, not {len(said)} or only blanks")


def checked_content(content: object) -> Content:
    """Return a content whose fields are what they should be; InputError names the one that is not."""
    if not isinstance(content, Fact | Rule | Arc):
        raise InputError(f"a memory is a Fact, a Rule or an Arc, not {type(content).__name__}")
    values = {one.name: getattr(content, one.name) for one in fields(content)}
    if isinstance(content, Arc):
        checked_texts(values.pop("topics"), "topics", MAX_TOPICS, MAX_PART)
    for name, value in values.items():
        is_fit = isinstance(value, _TYPES_OF.get(name, str)) and (name == "explicit" or not isinstance(value, bool))
        if not is_fit:
            raise InputError(f"{name} must be {_TYPES_OF.get(name, str).__name__}, not {type(value).__name__}")
    return content


def normal_content(content: Fact | Rule, *, longest: int = MAX_PART) -> Fact | Rule | None:
    """Return the content as it may be stored, None if it may not be: parts on one line, of limited length, none empty.

    Control characters go, a predicate becomes UPPER_CASE and a category a plain name.
    """
    if isinstance(content, Rule):
        rule, quote = one_line(content.rule), one_line(content.evidence_quote)
        is_fit = _has_words(rule) and len(rule) <= MAX_PART and len(quote) <= MAX_QUOTE and is_storable(rule + quote)
        return replace(content, rule=rule, evidence_quote=quote) if is_fit else None
    fact = replace(
        content,
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
        and is_storable(fact.subject + fact.object + fact.evidence_quote)
    )
    return fact if is_fit else None


def is_quoted(quote: str, said: Sequence[str]) -> bool:
    """Say whether the user said so: what an assistant, a tool or a model's fancy said is not evidence (SEC-8)."""
    wanted, heard = token_list(quote), set(token_list(" ".join(said)))
    return bool(wanted) and sum(word in heard for word in wanted) >= QUOTED_SHARE * len(wanted)


def refusal_reason(content: Fact | Rule, around: Sequence[str]) -> str | None:
    """Return why this must not be stored at all, None if it may. `around` are the user's turns up to now."""
    texts = _texts(content)
    if isinstance(content, Fact) and is_notice(content.object):
        return NOTHING_LEFT
    # What this text only hints at, the turn before or after may have named.
    if any_unsafe(texts, around):
        return UNSAFE
    # A fact that tells of such words stays data; a rule would be followed.
    if isinstance(content, Rule) and any(map(is_against_its_owner, texts)):
        return AGAINST
    return CRISIS if any_acute(texts) else None


def text_refusal_reason(text: str, around: Sequence[str] = ()) -> str | None:
    """Return why a text of any kind, such as a summary, must not be told in later prompts; None if it may.

    A wish to leave out what is not named is refused too: what it means may be named in another session.
    """
    texts = (text, *sentences(text))
    if any_unsafe(texts, around) or any(map(is_vague_weakening, texts)):
        return UNSAFE
    return CRISIS if any_acute([text]) else None


def without_secrets(content: Content, secrets: SecretPolicy) -> Content:
    """Return a content as it may be kept (SEC-12); InputError where what holds a secret is refused.

    What a fact says of a password may be told by its predicate alone.
    """
    named = {one.name: getattr(content, one.name) for one in fields(content)}
    named = {name: value for name, value in named.items() if isinstance(value, str)}
    topics = tuple(content.topics) if isinstance(content, Arc) else ()
    readings = []
    if isinstance(content, Fact):
        predicate = content.predicate.replace("_", " ")
        readings = [f"{content.subject} {predicate} {content.object}", f"{predicate}: {content.object}"]
    texts = secrets.admit(*named.values(), *topics, readings=readings)
    changes: dict[str, Any] = dict(zip(named, texts, strict=False))
    if isinstance(content, Arc):
        changes["topics"] = tuple(texts[len(named) :])
    return replace(content, **changes)


def hold_reason(content: Fact | Rule) -> str | None:
    """Return why this may not be stored at once, whatever the model decided; None if it may."""
    if isinstance(content, Rule):
        return VAGUE if any(is_vague_weakening(text) for text in _texts(content)) else None
    return session_only_reason(content) or (None if content.category in STABLE else UNKNOWN_CATEGORY)


def session_only_reason(content: Fact | Rule) -> str | None:
    """Return why this must not outlive its session; None if it may."""
    return OF_THE_MOMENT if isinstance(content, Fact) and content.category in SESSION_ONLY else None


def _texts(content: Fact | Rule) -> list[str]:
    if isinstance(content, Rule):
        return [content.rule, content.evidence_quote]
    # The predicate may be the half that weakens: User WANTS_NO "safety checks".
    return [f"{content.predicate.replace('_', ' ')} {content.object}", content.evidence_quote]


def _has_words(text: str) -> bool:
    return any(sign.isalnum() for sign in text)
