"""Under which key a preference is kept, so that the later word on one thing replaces the earlier (PF-16)."""

from __future__ import annotations

import re

from memstory_reference.systems.pipeline.reading.preference_statements import NOW
from memstory_reference.text.chunks import prose
from memstory_reference.text.sentences import sentences
from memstory_reference.text.words import STOP_WORDS, count_tokens

_STATED = re.compile(
    rf"\bI\s+{NOW}(?P<verb>prefer|always|hate)\b\s*(?P<what>.*)"
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

_CHOICES = {
    "indentation": "tab space",
    "hot drink": "tea coffee cocoa espresso",
    "pet": "cat dog",
    "contact": "email call text chat",
    "transport": "train plane bus bike car",
    "programming language": "python rust elixir java javascript typescript kotlin swift ruby golang scala haskell c++",
}
"""Things of which one is chosen, named alone."""
_QUALITIES = {
    "shade": "dark light",
    "place": "window aisle middle",
    "length": "short long brief detailed",
    "size": "small big large",
    "temperature": "hot warm cold iced",
    "tone": "formal informal casual",
    "hour": "morning noon evening night",
    "units": "metric imperial celsius fahrenheit kilometre mile",
}
"""Words that exclude each other where they are said of one and the same thing."""
_CHOICE_OF = {word: choice for choice, words in _CHOICES.items() for word in words.split()}
_QUALITY_OF = {word: quality for quality, words in _QUALITIES.items() for word in words.split()}
_SHADED = ("mode", "theme")
_PLACEHOLDERS = ("one", "ones")
_DROPPED = STOP_WORDS | frozenset({"please", "really", "always", "usually", "much", "lot", "instead", "now"})


def preference_key(text: str, content_hash: str) -> str:
    """Return `signal:attribute`, or `content:HASH` where no attribute is stated or the text says more than this.

    Two preferences share a key only where they exclude each other, as window seats and aisle seats, not leather seats.

    Last write wins for each key, so a text that holds more than one preference keeps its own key: what else it
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
        return None  # habits go together: tea in the morning, tea at noon
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
    names, others = _singular(chosen), _singular(" ".join(rivals))
    topic, dimension = _choice(names)
    if not rivals:
        return topic
    if topic and dimension in {_CHOICE_OF.get(one) or _QUALITY_OF.get(one) for one in others}:
        return topic
    return " or ".join(sorted((" ".join(names), " ".join(others))))


def _choice(names: list[str]) -> tuple[str | None, str | None]:
    """Return what is chosen, and the kind of choice: a thing named alone, or a quality with what it is said of."""
    if len(names) == 1:
        (name,) = names
        choice = _CHOICE_OF.get(name) or _QUALITY_OF.get(name)
        return ("theme" if choice == "shade" else choice), choice
    if len(names) == 2 and (quality := _QUALITY_OF.get(names[0])):  # noqa: PLR2004  (a quality and its thing)
        is_theme = quality == "shade" and names[1] in _SHADED
        return ("theme" if is_theme else f"{names[1]} by {quality}"), quality
    return None, None


def _singular(text: str) -> list[str]:
    """Return the names without the s of a plural.

    >>> _singular("buses, seats and glass")
    ['bus', 'seat', 'glass']
    """
    names = [name for name in _names(text) if name not in _PLACEHOLDERS]
    return [re.sub(r"(?<=s)es$|(?<=[^s]{2})(?<!u)s$", "", name) for name in names]


def _names(text: str) -> list[str]:
    return [name for name in _NAME.findall(text.casefold()) if name not in _DROPPED]
