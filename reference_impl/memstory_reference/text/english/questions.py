"""Questions: what they ask for under their courtesies, the keys that may hold it, and the words to search for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memstory_reference.text.english.exemplars import exemplar_fits
from memstory_reference.text.english.lexicon import pattern, phrase_pattern
from memstory_reference.text.english.topic_naming import Holder, attribute_key, forms_of, resolve_holder
from memstory_reference.text.english.wording import expand_contractions


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuestion:
    """A question. `keys` are looked up, `query` is searched for; an `open` one asks for all about something."""

    text: str
    query: str
    keys: Sequence[str] = ()
    open: bool = False


_AUX = r"(?:do|does|did|is|are|am|was|were|can|could|should|will|would|have|has|must|may)"
_WH = r"(?:what|which|whose|who|whom|where|when|why|how)"
_ASKS = pattern(
    rf"^(?:{_WH}\b(?: [\w-]+){{0,3}}? {_AUX}|{_AUX} (?:not )?(?:I|we|you|my|our|the|he|she|they|it|there|any|some))\b"
)
_OPEN = pattern(rf"^{phrase_pattern('open_questions')} (?:about|of|on|concerning) (?P<rest>.+)$")
_COURTESY = pattern(rf"^{phrase_pattern('courtesies')}[,:]?(?= )")
_ENDING = pattern(rf"[\s,–—-]*\b{phrase_pattern('endings')}\b[\s?.!]*$")
_OWNED = pattern(r"^(?:my|our|[A-Z][\w-]*['’]s) [\w'’ -]+$")


def is_question(sentence: str) -> bool:
    """Say whether a sentence asks something."""
    text = expand_contractions(sentence.strip())
    if text.endswith("?") or _ASKS.match(text) or _OPEN.match(text):
        return True
    core = _bare(text)
    is_core = _OWNED.match(core) or re.match(rf"{_WH}\b|if\b|whether\b", core, re.IGNORECASE)
    return bool(_COURTESY.match(text) and is_core)


def parse_question(sentence: str, known: Mapping[str, Holder]) -> ParsedQuestion:
    """Return what a sentence asks; `known` are the holders by their names."""
    text = expand_contractions(sentence.strip().rstrip("?!. "))
    asked = _OPEN.match(text)
    if asked:
        return ParsedQuestion(text=sentence, query=asked["rest"], open=True)
    core = _bare(text)
    core = f"what is {core}" if _OWNED.match(core) or core.startswith("the ") else core
    return ParsedQuestion(text=sentence, query=core, keys=tuple(dict.fromkeys(_keys(core, known))))


def _bare(text: str) -> str:
    """Return a question without the courtesies around it."""
    before = ""
    while text != before:
        before, text = text, _ENDING.sub("", _COURTESY.sub("", text).strip()).rstrip("?!., ") or text
    return text


def _keys(core: str, known: Mapping[str, Holder]) -> Iterator[str]:
    for fit in exemplar_fits("asked", core):
        # A bare `my friend` may be anyone: only who is named has keys of other forms.
        holders = [resolve_holder(fit.holder, known), *forms_of(fit.holder)[:2]]
        yield from (attribute_key(holder, fit.attribute) for holder in holders)
