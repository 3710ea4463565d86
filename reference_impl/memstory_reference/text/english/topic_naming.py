"""Whose a fact is, and the key that it gets: `My friend Bo lives in Rome` is `user.friend_bo_location`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memstory_reference.text.english import lexicon
from memstory_reference.text.english.wording import (
    expand_contractions,
    is_name,
    key_letters,
    plain_form,
    singular_form,
    words,
)

Holder = tuple[str, ...]
"""The words of whom a fact is about: `()` is the user, `("friend", "Bo")` a friend; `("we",)` is the project."""

ME: Holder = ()
WE: Holder = ("we",)
USER, PROJECT, CONSTRAINT = "user", "project", "constraint"

_LONGEST_HOLDER, _LONGEST_KEY = 5, 7
_NO_HOLDER = lexicon.STOP_WORDS | lexicon.wordset("no_holder")
_KEY_NOISE = lexicon.wordset("key_noise")
_OF_ANY_RULE = lexicon.wordset("of_any_rule")
_LIKED = lexicon.pattern(
    r"^(?:(?:two|three|all-time|absolute|most) )?(?:favou?rite|preferred|fav|fave|go-to) (.+)$|"
    r"^(.+?) (?:of choice|preference)$"
)
_MODIFIED = lexicon.pattern(r"\b(?:programming|coding|text|code) (?=(?:language|editor)s?\b)|\bmobile (?=phone)")
_OF_WHAT = lexicon.pattern(r"^(\w+(?: \w+)?) for (?:the |my |our )?([\w -]+)$")
_EMAIL = lexicon.pattern(r"\be-?mail address(?:es)?\b")


def parse_holder(text: str) -> Holder | None:
    """Return whom `text`, the subject of a sentence or an owner, names; None if it names nobody.

    >>> parse_holder("I"), parse_holder("My friend Bo"), parse_holder("my sister, Ana,"), parse_holder("Bjørn's cat")
    ((), ('friend', 'Bo'), ('sister', 'Ana'), ('Bjørn', 'cat'))
    >>> parse_holder("the weather") is None
    True
    """
    bare = re.sub(r"['’]s?(?= |$)", "", text.replace(",", " ")).split()
    first = bare[0].casefold() if bare else ""
    if len(bare) == 1 and first in {"i", "my"}:
        return ME
    if (len(bare) == 1 and first in {"we", "our"}) or text.casefold() == "the team":
        return WE
    named = bare[1:] if first in {"my", "our"} else bare
    if not 0 < len(named) <= _LONGEST_HOLDER or any(word.casefold() in _NO_HOLDER for word in named):
        return None
    if named is bare and not is_name(named[0]):
        return None
    of_us = WE if first == "our" else ME
    same = lexicon.SAME_WORDS
    return of_us + tuple(one if is_name(one) and one.casefold() not in same else plain_form(one) for one in named)


def forms_of(holder: Holder) -> list[Holder]:
    """Return the ways in which a holder may be named: `my friend Bo`, `Bo`, `my friend`."""
    named = tuple(word for word in holder if is_name(word))
    relation = holder[: len(holder) - len(named)]
    return [holder, named, relation] if named and relation and holder == relation + named else [holder]


def resolve_holder(holder: Holder, known: Mapping[str, Holder]) -> Holder:
    """Return a holder as it was first named: `Bo` as `my friend Bo`."""
    return known.get(holder[0], holder[:1]) + holder[1:] if holder else holder


def attribute_key(holder: Holder, attribute: str) -> str:
    """Return the key of an attribute of `holder`.

    >>> attribute_key(("friend", "Bjørn"), "location"), attribute_key(("we",), "project deadline")
    ('user.friend_bjorn_location', 'project.deadline')
    >>> attribute_key((), "favourite tea")
    'user.tea_preference'
    """
    found = attribute_words(attribute)
    is_ours = holder[:1] == WE or (not holder and any(singular_form(word) in lexicon.PROJECT_WORDS for word in found))
    if is_ours:
        found = [word for word in found if word not in {"project", "team"}] or found
    last = " ".join(["", *attribute.split()]).rpartition(" ")[2]
    found = [word if word == last.casefold() and is_name(last) else plain_form(word) for word in found]
    return _key(PROJECT if is_ours else USER, [*(holder[1:] if holder[:1] == WE else holder), *found])


def attribute_words(attribute: str) -> list[str]:
    """Return the words of an attribute that tell which one it is.

    >>> attribute_words("favourite tea"), attribute_words("new desk number")
    (['tea', 'preference'], ['desk', 'number'])
    """
    return [word for word in words(plain_attribute(attribute)) if word not in _KEY_NOISE]


def plain_attribute(attribute: str) -> str:
    """Return an attribute as the keys name it: `pin for the shed` is `shed pin`, what is liked ends in `preference`."""
    attribute = _OF_WHAT.sub(r"\2 \1", _MODIFIED.sub("", _EMAIL.sub("email", attribute.strip())))
    liked = _LIKED.match(attribute)
    return f"{plain_form(liked[1] or liked[2])} preference" if liked else attribute


def sentence_key(sentence: str, *, rule: bool = False) -> str:
    """Return the key of a sentence that is kept whole: its meaningful words, names among them."""
    found = [word for word in words(expand_contractions(sentence)) if word not in lexicon.STOP_WORDS | _KEY_NOISE]
    found = [word for word in found if not rule or word not in _OF_ANY_RULE] or words(sentence) or [sentence]
    prefix = PROJECT if re.match(r"(?:we|our|the team)\b", sentence, re.IGNORECASE) else USER
    return _key(CONSTRAINT if rule else prefix, [singular_form(word) for word in found])


def key_in_words(topic: str, asked: str = "") -> str:
    """Return a key as a reader would say it; names get the capitals that they have in `asked`."""
    prefix, _, rest = topic.partition(".")
    names = {key_letters(word): word for word in re.findall(r"[\w-]+", asked) if is_name(word)}
    said = " ".join(names.get(part, part) for part in rest.split("_"))
    owner = {PROJECT: "the project's ", USER: "" if said[:1].isupper() else "your "}.get(prefix, "")
    return f"{owner}{said}"


def is_number(word: str) -> bool:
    """Say whether `word` is a number, in digits or in a word up to twelve."""
    return word[:1].isdigit() or word.casefold() in lexicon.NUMBERS


def _key(prefix: str, parts: list[str]) -> str:
    found = [re.sub(r"_+", "_", key_letters(part)).strip("_") for part in parts]
    return f"{prefix}.{'_'.join([part for part in found if part][:_LONGEST_KEY]) or 'thing'}"
