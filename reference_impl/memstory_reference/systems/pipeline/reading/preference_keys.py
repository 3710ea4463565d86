"""Under which key a preference is kept, so that the later word on one thing replaces the earlier (PF-16)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memstory_reference.text.fences import prose
from memstory_reference.text.keywords import STOP_WORDS
from memstory_reference.text.sentences import sentences
from memstory_reference.text.tokens import count_tokens

_STATED = re.compile(
    r"\bI\s+(?P<verb>prefer|always|hate)\b\s*(?P<what>.*)"
    r"|\bmy\s+favou?rite\s+(?P<thing>[\w-]+(?:[ \t][\w-]+){0,3}?)\s?(?:\s(?:is|are|was|would\s+be)\b|:|=).*",
    re.IGNORECASE | re.DOTALL,
)
_REVERSED = re.compile(r"\bmy\s+favou?rite\s+(?P<thing>[\w-]+(?:\s[\w-]+){0,2})", re.IGNORECASE)
_RIVAL = re.compile(r"\s+(?:over|to|instead\s+of|rather\s+than|than)\s+", re.IGNORECASE)
_OCCASION = re.compile(r"\s+(?P<link>for|when|in|as|on|at|during|with)\s+(?P<occasion>.+)", re.IGNORECASE | re.DOTALL)
_NAME = re.compile(r"[^\W_]+(?:[-+#.'][^\W_]+)*[+#]*")
_CLAUSE_END = re.compile(r"[.,;!?\n]")
_FILLER_TOKENS = 6
_LONGEST_THING = 3

_KNOWN = {
    "indentation": "tabs spaces",
    "theme": "dark light",
    "hot drink": "tea coffee cocoa espresso",
    "pet": "cats dogs",
    "time of day": "mornings evenings nights",
    "units": "metric imperial celsius fahrenheit kilometres miles",
    "tone": "formal informal casual",
    "contact": "email calls texts chat",
    "transport": "trains planes buses bikes cars",
}
_ATTRIBUTE_OF = {word: attribute for attribute, words in _KNOWN.items() for word in words.split()}
_DROPPED = STOP_WORDS | frozenset({"please", "really", "always", "usually", "much", "lot", "instead"})


def preference_key(text: str, content_hash: str) -> str:
    """Return `signal:attribute`, or `content:HASH` where no attribute is told or the text says more than this.

    Last write wins for each key, so a text that holds more than one preference keeps a key of its own: what else it
    says must not be lost to a later word on one part.

    >>> preference_key("I prefer tabs", "h") == preference_key("Hi! I prefer spaces over tabs.", "h")
    True
    >>> preference_key("My favourite colour is blue", "h"), preference_key("I hate meetings at noon. I prefer tea", "h")
    ('favorite:colour', 'content:h')
    """
    attribute = _only_attribute(prose(text))
    return attribute or f"content:{content_hash}"


def _only_attribute(text: str) -> str | None:
    said = sentences(text)
    stated = [sentence for sentence in said if _STATED.search(sentence) or _REVERSED.search(sentence)]
    beside = sum(count_tokens(sentence) for sentence in said if sentence not in stated)
    if len(stated) != 1 or beside > _FILLER_TOKENS:
        return None
    found = _STATED.search(stated[0])
    if found and found["verb"]:
        attribute = _attribute(found["verb"].lower(), found["what"])
        return None if attribute is None else f"{found['verb'].lower()}:{attribute}"
    thing = found["thing"] if found else (_REVERSED.search(stated[0]) or {"thing": ""})["thing"]
    names = _names(thing)[:_LONGEST_THING]
    return f"favorite:{' '.join(names)}" if names else None


def _attribute(verb: str, what: str) -> str | None:
    """Return what the preference is about: a known choice, two rivals, a kind of thing, and the occasion if any."""
    what = _CLAUSE_END.split(what, maxsplit=1)[0]
    if verb == "hate":
        return " ".join(_names(what)) or None
    if verb == "always":
        return None  # habits stand beside each other: tea in the morning, tea at noon
    occasion = _OCCASION.search(what)
    thing = _OCCASION.sub("", what)
    topic = _topic(thing)
    when = " ".join(_names(occasion["occasion"])) if occasion else ""
    if topic is None:
        # "for" names what is chosen for; a time or place alone may host many preferences.
        return when or None if occasion and occasion["link"].lower() == "for" else None
    return topic if when in ("", topic) else f"{topic}, {when}"


def _topic(thing: str) -> str | None:
    chosen, *rivals = _RIVAL.split(thing, maxsplit=1)
    known = next(_known([*_names(chosen), *_names(" ".join(rivals))]), None)
    if known:
        return known
    if rivals:
        return " or ".join(sorted((" ".join(_names(chosen)), " ".join(_names(rivals[0])))))
    names = _names(thing)
    return names[-1] if 1 < len(names) <= _LONGEST_THING else None


def _known(names: list[str]) -> Iterator[str]:
    return (_ATTRIBUTE_OF[name] for name in names if name in _ATTRIBUTE_OF)


def _names(text: str) -> list[str]:
    return [name for name in _NAME.findall(text.casefold()) if name not in _DROPPED]
