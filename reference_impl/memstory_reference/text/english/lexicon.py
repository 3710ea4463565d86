"""The English of `english.yaml` as the rules use it: words and their forms, whose a fact is and its key.

`My friend Bo lives in Rome` is `user.friend_bo_location`. The case and the script of what was said stay.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

_ENGLISH: dict[str, Any] = yaml.safe_load((files(__package__) / "english.yaml").read_text(encoding="utf-8"))


def exemplar_table(name: str) -> list[tuple[str, str]]:
    """Return exemplars, each with its label."""
    rows = [line.partition(": ") for line in _ENGLISH[name].strip().splitlines()]
    return [(label, text) for label, _, texts in rows for text in texts.split(". ")]


def wordset(name: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(_ENGLISH[name].split())


def alternatives(name: str) -> list[str]:
    """Return the alternatives of a list, one by one."""
    return str(_ENGLISH[name]).split(" | ")


def phrase_pattern(name: str) -> str:
    """Return the alternatives of a list as one pattern; each may be a pattern itself."""
    return f"(?:{'|'.join(alternatives(name))})"


def pattern(text: str) -> re.Pattern[str]:
    """Return a pattern that takes capitals and small letters alike."""
    return re.compile(text, re.IGNORECASE)


STOP_WORDS, PLAIN_WORDS, PROJECT_WORDS = wordset("stop_words"), wordset("plain_words"), wordset("project_words")
LIVING, STATES, NUMBERS = wordset("living"), wordset("states"), wordset("numbers")
OF_MANY = tuple(alternatives("of_many"))
KIND_OF: dict[str, str] = {name: kind for kind, names in _ENGLISH["kinds"].items() for name in names.split()}
SAME_WORDS: dict[str, str] = {word: same for same, words in _ENGLISH["same"].items() for word in words.split()}
PASTS: dict[str, str] = {past: row.split()[0] for row in _ENGLISH["pasts"].split(" | ") for past in row.split()[1:]}
REPLIES: dict[str, str] = _ENGLISH["replies"]
SINCE = pattern(
    rf"^{phrase_pattern('since')} (?:the |last |this |next )?(?:[\w.]+ ){{0,2}}?"
    rf"(?:\d[\w.:-]*|{phrase_pattern('months')}|{phrase_pattern('weekdays')}|yesterday|today|tomorrow|now|noon|midnight|"
    r"morning|week|month|year|spring|summer|autumn|winter)(?: on(?:wards)?)?,? "
    r"(?=(?:I|my|we|our|it|he|she|they)\b)"
)
"""From when on a statement holds, said before it; no part of what it is about."""
WHEN = rf"(?:the |every |next )?(?:\d|{phrase_pattern('months')}\b|{phrase_pattern('weekdays')}\b|noon|midnight)"

_EXPANSIONS = [(pattern(text), full) for text, full in _ENGLISH["expansions"]]
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|(?<=[。！？])|\s*\n+\s*")
_ABBREVIATION = re.compile(r"(?:\b(?:Dr|Mr|Mrs|Ms|Prof|St|No|vs|etc|approx|e\.g|i\.e|[A-Z])\.|\b\d+\.)$")
_WORD = re.compile(r"[\w+#]+(?:[-.:/@][\w+#]+)*")
_POSSESSIVE = re.compile(r"['’]s\b|(?<=s)['’](?=\s)")
_LONGEST_TEXT, _LONGEST_SENTENCE = 8_000, 800
"""Characters that are read of a message, and as one sentence: no pattern shall run for long."""

_SHORTEST_STEM, _SHARED_PREFIX = 4, 6


@lru_cache(maxsize=256)
def expand_contractions(text: str) -> str:
    """Return `text` with its contractions written out."""
    for short, full in _EXPANSIONS:
        text = short.sub(full, text)
    return text


def split_sentences(text: str) -> list[str]:
    """Cut as much of `text` as the rules read into sentences; abbreviations and ordinals do not end one."""
    found: list[str] = []
    pieces = (" ".join(piece.split()) for piece in _SENTENCE_END.split(text[:_LONGEST_TEXT]))
    for part in (part for piece in pieces for part in textwrap.wrap(piece, _LONGEST_SENTENCE)):
        cut = found and _ABBREVIATION.search(found[-1])
        if cut and (not cut[0][0].isdigit() or part[0].islower()):
            found[-1] = f"{found[-1]} {part}"
        else:
            found.append(part)
    return found


def words(text: str) -> list[str]:
    """Return the lower-case words, without the `'s` of owners."""
    return [word.casefold() for word in _WORD.findall(_POSSESSIVE.sub("", text))]


def content_words(text: str) -> list[str]:
    """Return the stems of the words that carry meaning, in order, each once."""
    return list(
        dict.fromkeys(regular_stem(word) for word in words(expand_contractions(text)) if word not in STOP_WORDS)
    )


def is_name(word: str) -> bool:
    """Say whether a word is written as a name; a script without capitals counts as one."""
    return word[:1].isalpha() and not word[:1].islower()


def key_letters(word: str) -> str:
    """Return a word in the letters that a key may have; no letter is dropped.

    >>> key_letters("Łukasz"), key_letters("Bjørn"), key_letters("Ólafur"), key_letters("민")
    ('lukasz', 'bjorn', 'olafur', 'min')
    """
    found = []
    for letter in unicodedata.normalize("NFKC", word).casefold():
        named = re.search(r"(?:LETTER|SYLLABLE) (?:SHARP )?([A-Z]+)|-([0-9A-F]+)$", unicodedata.name(letter, ""))
        plain = letter if letter.isascii() else (named[1] or named[2]).lower() if named else "_"
        found.append(plain if plain.isalnum() else "_")
    return "".join(found)


def singular_form(word: str) -> str:
    """Return a regular plural without its ending."""
    if len(word) < _SHORTEST_STEM or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses", "zes")) else word[:-1]


def plain_form(word: str) -> str:
    """Return the singular of a word, and of words of one meaning the same one."""
    bare = word.casefold()
    return SAME_WORDS.get(bare, SAME_WORDS.get(singular_form(bare), singular_form(bare)))


def regular_stem(word: str) -> str:
    """Return what regular forms of a word share, and words of the same meaning."""
    word = plain_form(word)
    word = PASTS.get(word, word)
    if word.endswith("ied") and len(word) > _SHORTEST_STEM:
        return f"{word[:-3]}y"
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > _SHORTEST_STEM + len(ending) - 1 and not word.endswith("thing"):
            word = word[: -len(ending)]
            return word[:-1] if word[-1] == word[-2] and word[-1] not in "lsz" else word
    return word[:-1] if word.endswith("e") and len(word) > _SHORTEST_STEM else word


def common_stems(wanted: Iterable[str], there: Sequence[str]) -> list[str]:
    """Return those stems of `wanted` that are in `there`, be it only with their first six letters."""
    heads = {other[:_SHARED_PREFIX] for other in there if len(other) >= _SHARED_PREFIX}
    return [word for word in wanted if word in there or word[:_SHARED_PREFIX] in heads]


Holder = tuple[str, ...]
"""The words of whom a fact is about: `()` is the user, `("friend", "Bo")` a friend; `("we",)` is the project."""

ME: Holder = ()
WE: Holder = ("we",)
USER, PROJECT, CONSTRAINT = "user", "project", "constraint"

_LONGEST_HOLDER, _LONGEST_KEY = 5, 7
_NO_HOLDER = STOP_WORDS | wordset("no_holder")
_KEY_NOISE = wordset("key_noise")
_OF_ANY_RULE = wordset("of_any_rule")
_LIKED = pattern(
    r"^(?:(?:two|three|all-time|absolute|most) )?(?:favou?rite|preferred|fav|fave|go-to) (.+)$|"
    r"^(.+?) (?:of choice|preference)$"
)
_MODIFIED = pattern(r"\b(?:programming|coding|text|code) (?=(?:language|editor)s?\b)|\bmobile (?=phone)")
_OF_WHAT = pattern(r"^(\w+(?: \w+)?) for (?:the |my |our )?([\w -]+)$")
_EMAIL = pattern(r"\be-?mail address(?:es)?\b")


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
    same = SAME_WORDS
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
    is_ours = holder[:1] == WE or (not holder and any(singular_form(word) in PROJECT_WORDS for word in found))
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
    found = [word for word in words(expand_contractions(sentence)) if word not in STOP_WORDS | _KEY_NOISE]
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
    return word[:1].isdigit() or word.casefold() in NUMBERS


def _key(prefix: str, parts: list[str]) -> str:
    found = [re.sub(r"_+", "_", key_letters(part)).strip("_") for part in parts]
    return f"{prefix}.{'_'.join([part for part in found if part][:_LONGEST_KEY]) or 'thing'}"
