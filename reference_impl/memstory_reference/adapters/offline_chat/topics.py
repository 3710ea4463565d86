"""Topic keys: the same key for what is stated and for what is asked later.

A key is one of the prefixes `user.`, `project.`, `constraint.` and words of a-z, 0-9 and `_`. The words are those of
the noun phrase, with its owner first, without articles and the like, the last one in the singular; what is preferred
ends in `_preference`.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Sequence

from memstory_reference.adapters.offline_chat.lexicon import KEY_NOISE, KIND_OF, PROJECT_WORDS, SAME_WORDS, STOP_WORDS
from memstory_reference.adapters.offline_chat.wording import base, expanded, singular, words

USER, PROJECT, CONSTRAINT = "user", "project", "constraint"
_LONGEST_KEY_WORDS = 6

_OF_CHOICE = re.compile(r"\b(.+?)\s+of\s+choice\b", re.IGNORECASE)
_LIKED = re.compile(
    r"^(?:(?:two|three|top|all-time|absolute|very|\w+ most)\s+)?(?:(?:favou?rite|preferred|fave?|go-to|top)\s+)(.+)$",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(r"^(.+?)\s+(?:preference|choice)s?(?:\s+(?:for|in|of)\s+.+)?$", re.IGNORECASE)
_OF = re.compile(r"^(.+?)\s+(?:of|for|in)\s+((?:my|our|the|this)\s+.+)$", re.IGNORECASE)
_OWNER = re.compile(r"^(?:my|our|the|this|a|an)\s+", re.IGNORECASE)
_SAME_PHRASES = tuple(
    (re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), same)
    for pattern, same in (
        (r"e-?mail address(?:es)?", "email"),
        (r"(?:tele|mobile |cell |cell)phone number|(?:mobile|cell|telephone) number", "phone number"),
        (r"date of birth|birth ?date", "birthday"),
        (r"job title", "job"),
        (r"stand-up", "standup"),
        (r"due date", "deadline"),
        (r"te(?:ch|chnology) stack", "stack"),
        (r"home town", "hometown"),
        (r"mum|mom|mummy", "mother"),
        (r"dad|daddy", "father"),
    )
)
_MODIFIED = re.compile(r"\b(?:programming|coding|text|code|computer)\s+(?=(?:language|editor)s?\b)", re.IGNORECASE)


def key(prefix: str, *parts: str) -> str:
    """Join `parts`, free words, to a key under `prefix`.

    >>> key("user", "sister", "names"), key("project", "the current deadline")
    ('user.sister_name', 'project.deadline')
    """
    found = [word for part in parts for word in _key_words(part)]
    if not found:
        found = [_spelled_out(" ".join(parts))]
    if not _ends_in_a_name(parts):
        found[-1] = SAME_WORDS.get(found[-1], singular(found[-1]))
    if len(found) > 1 and found[-1] in _OWNED:
        # `my dogs name` is written as often as `my dog's name`.
        found[-2] = singular(found[-2])
    return f"{prefix}.{'_'.join(found[:_LONGEST_KEY_WORDS])}"


def _ends_in_a_name(parts: Sequence[str]) -> bool:
    """Say whether the last word has a capital and is not the first: `meeting with Jonas` has no plural."""
    *before, last = " ".join(part for part in parts if part).split() or [""]
    return bool(before) and last[:1].isupper()


def noun_phrase_key(phrase: str, *, attribute: str = "") -> str:
    """Return the key of what a noun phrase names; `attribute` is what is said of it, such as `location`.

    >>> noun_phrase_key("my preferred language"), noun_phrase_key("my sister's name")
    ('user.language_preference', 'user.sister_name')
    >>> noun_phrase_key("the deadline of the project"), noun_phrase_key("our project's deadline")
    ('project.deadline', 'project.deadline')
    """
    phrase = _MODIFIED.sub("", _turned(_unified(phrase.strip())))
    prefix = prefix_of(phrase)
    bare = _OWNER.sub("", phrase).strip()
    if not attribute and (liked := liked_thing(bare)):
        return preference_key(liked, prefix)
    if prefix == PROJECT:
        bare = _without_project(bare, attribute)
    return key(prefix, bare, attribute)


def preference_key(thing: str, prefix: str = USER) -> str:
    """Return the key of what somebody prefers among things of a kind.

    >>> preference_key("programming languages")
    'user.language_preference'
    """
    bare = _OWNER.sub("", _MODIFIED.sub("", _turned(thing))).strip()
    found = [SAME_WORDS.get(word, word) for word in _key_words(bare)] or [_spelled_out(bare)]
    found[-1] = singular(found[-1])
    return key(prefix, *found, "preference")


def liked_thing(phrase: str) -> str | None:
    """Return the kind of thing in `favourite tea`, `tea of choice` or `tea preference`; None for other phrases."""
    for pattern in (_LIKED, _OF_CHOICE, _PREFERENCE):
        found = pattern.match(phrase)
        if found:
            return found.group(1)
    return None


def kind_of(thing: str) -> str | None:
    """Return the kind of a thing by its common name, or None.

    >>> kind_of("Elixir"), kind_of("Plimquart")
    ('language', None)
    """
    return KIND_OF.get(thing.strip().casefold())


def rule_key(clause: str) -> str:
    """Return the key of a rule: its first three meaningful words, without verbs that fit every rule.

    >>> rule_key("use tabs"), rule_key("deploy on Fridays")
    ('constraint.tab', 'constraint.deploy_friday')
    """
    clause = _IN_YOUR.sub("", clause)
    found = [base(singular(word)) for word in words(clause) if word not in _RULE_NOISE and word not in STOP_WORDS]
    return key(CONSTRAINT, *(found[:3] or words(clause)[:3] or [clause]))


def sentence_key(clause: str) -> str:
    """Return a key for a sentence that follows no rule: its first three meaningful words."""
    found = [word for word in words(expanded(clause)) if word not in STOP_WORDS]
    prefix = PROJECT if re.match(r"(?:we|our)\b", clause, re.IGNORECASE) else prefix_of(clause)
    return key(prefix, *(found[:3] or words(clause)[:3] or [clause]))


def as_words(topic: str) -> str:
    """Return a key as a reader would say it.

    >>> as_words("user.language_preference"), as_words("project.deadline")
    ('your language preference', "the project's deadline")
    """
    prefix, _, rest = topic.partition(".")
    said = rest.replace("_", " ").replace(".", " ") or topic
    owner, _, attribute = said.rpartition(" ")
    if prefix == USER and owner and attribute in _OWNED:
        said = f"{owner}'s {attribute}"
    return {USER: f"your {said}", PROJECT: f"the project's {said}"}.get(prefix, said)


_OWNED = frozenset(
    ["name", "birthday", "job", "location", "age", "employer", "origin", "nationality", "diet", "allergy"]
)


def prefix_of(phrase: str) -> str:
    """Say whose a thing is: the project's if it is `our` or of a project's kind, else the user's."""
    if re.match(r"our\b", phrase, re.IGNORECASE):
        return PROJECT
    found = words(phrase)
    if found and found[0] == "my":
        return PROJECT if "project" in found else USER
    return PROJECT if any(singular(word) in PROJECT_WORDS for word in found) else USER


_IN_YOUR = re.compile(
    r"\s+(?:(?:in|with|to|from) (?:your|my|our)|when(?:ever)? you|when(?:ever)? I)\b.*$", re.IGNORECASE
)
_RULE_NOISE = frozenset(
    [
        "use",
        "using",
        "used",
        "put",
        "add",
        "make",
        "write",
        "run",
        "allow",
        "let",
        "avoid",
        "never",
        "always",
        "keep",
        "want",
        "need",
        "before",
        "after",
        "during",
        "without",
        "instead",
        "only",
    ]
)


def _unified(phrase: str) -> str:
    for pattern, same in _SAME_PHRASES:
        phrase = pattern.sub(same, phrase)
    return phrase


def _turned(phrase: str) -> str:
    """Put the owner first: `the name of my dog` is `my dog name`."""
    found = _OF.match(phrase)
    return f"{_turned(found.group(2))} {_OWNER.sub('', found.group(1))}" if found else phrase


def _without_project(bare: str, attribute: str) -> str:
    """Drop `project` and `team` where something else is named."""
    rest = re.sub(r"\b(?:projects?|teams?)(?:['’]s?)?\s*", "", bare, flags=re.IGNORECASE).strip()
    return rest or ("" if attribute else bare)


def _key_words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    found = [word for word in words(plain) if word not in KEY_NOISE]
    return [part for word in found for part in _same(word).split("_") if part]


def _same(word: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", SAME_WORDS.get(word, word)).strip("_")


def _spelled_out(text: str) -> str:
    """Name a phrase of another script by its checksum: keys are ASCII."""
    return f"x{zlib.crc32(text.strip().casefold().encode()):08x}"
