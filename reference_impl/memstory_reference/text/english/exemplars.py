"""The patterns made of the exemplars of `english.yaml`, how a clause follows them, and which is nearest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from memstory_reference.text.english import lexicon
from memstory_reference.text.english.topic_naming import Holder, parse_holder
from memstory_reference.text.english.wording import expand_contractions, words

_ADVERBS = rf"(?: {lexicon.phrase_pattern('adverbs')})*"
_VERBS = {"am": "(?:am|is|are)", "have": "(?:have|has)", "was": "(?:was|were)", "do": "(?:do|does|did)"}
_AUX = frozenset([*_VERBS, "is", "are", "does", "did"])
_PARTS = {
    "I": r"(?P<who>[^\W\d_][\w'’., -]*?)",
    "we": r"(?P<who>we|the team)",
    "my": r"(?P<who>[^\W\d_][\w'’., -]*['’]s?|my|our|the)",
    "{": r"(?P<thing>[\w'’#-]+(?: [\w'’#-]+){0,5}?)",
    "[": r"(?P<value>.+?)",
}
_ANSWERED = r"(?: (?:again|now|currently|exactly|then|these days|called))*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A clause that follows an exemplar: whose fact it is, which attribute, and the words in a slot of some kind."""

    attribute: str
    holder: Holder
    who: str
    value: str
    kind: str


def exemplar_fits(table: str, clause: str) -> Iterator[Fit]:
    """Yield how `clause` follows exemplars of `table`, those with the most fixed words first."""
    said_words = clause.casefold()
    for label, kind, pattern, fixed in _patterns(table):
        # Most exemplars share no word with a clause: to look for their words is cheaper than to match.
        if not all(any(one in said_words for one in forms) for forms in fixed):
            continue
        match = pattern.fullmatch(clause)
        if match is None:
            continue
        said = {"who": "I", "thing": "", "value": "", **match.groupdict()}
        holder = parse_holder("I" if said["who"].casefold() == "the" else said["who"])
        if holder is not None:
            attribute = label.replace("{thing}", said["thing"])
            yield Fit(attribute=attribute, holder=holder, who=said["who"], value=said["value"], kind=kind)


def nearest_exemplar(sentence: str) -> tuple[str, float]:
    """Return what the nearest exemplar of whole messages means, and how much the two share, from 0 to 1."""
    said = _pairs(sentence)
    shares = [(label, 2 * len(said & own) / (len(said) + len(own))) for label, own in _messages()]
    return max(shares, key=lambda pair: pair[1])


@cache
def _messages() -> Sequence[tuple[str, frozenset[str]]]:
    return [(label, _pairs(text)) for label, text in lexicon.exemplar_table("meant")]


def _pairs(text: str) -> frozenset[str]:
    """Return the words of a text, and those that follow each other; its ends count as words."""
    found = ["", *words(expand_contractions(text)), ""]
    return frozenset([*found, *(f"{one} {two}" for one, two in pairwise(found))])


@cache
def _patterns(table: str) -> Sequence[tuple[str, str, re.Pattern[str], Sequence[Sequence[str]]]]:
    rows = [(label, form) for label, text in lexicon.exemplar_table(table) for form in (text, *_indirect(text))]
    made = [(label, *_compile(text)) for label, text in rows]
    return sorted(made, key=lambda one: -len(one[3]))


def _indirect(question: str) -> Iterator[str]:
    """Yield a question in the form that it has inside another: `where I live`, `what my name is`."""
    done = re.fullmatch(r"(.*wh.+?|how .+?) (?:do|did|does) ((?:I|we)\b.*)", question)
    turned = re.fullmatch(r"(wh.+?|how .+?) (am|is|was|is\|are\|was) (I|my (?:\{\w+\}|[\w|]+))(.*)", question)
    yield from [f"{done[1]} {done[2]}"] if done else []
    yield from [f"{turned[1]} {turned[3]} {turned[2]}{turned[4]}"] if turned else []


def _compile(text: str) -> tuple[str, re.Pattern[str], Sequence[Sequence[str]]]:
    """Return the kind of the slot, the pattern, and its fixed words, each as the forms of which one has to be said."""
    kind, parts, fixed, before = "", list[str](), list[Sequence[str]](), ""
    for token in re.findall(r"\[[^\]]+\]|\{\w+\}|\S+", text):
        head = token[0] if token[0] in "[{" else token.split("|")[0]
        if head == "[":
            kind = "number" if token[1].isdigit() else "name" if token[1].isupper() else "words"
        if head == "my" and parts and "(?P<who>" in " ".join(parts):
            parts.append("(?:my|his|her|our|their)")
        elif head in _PARTS:
            parts.append(_PARTS[head] + (_ADVERBS if head in {"I", "we"} and before not in _AUX else ""))
        else:
            # After a subject a verb has all forms of the present.
            ending = "(?:s|es)?" if before in {"I", "we"} else ""
            parts.append(f"(?:{'|'.join(_VERBS.get(one, re.escape(one) + ending) for one in token.split('|'))})")
            fixed.append([form for one in token.casefold().split("|") for form in _forms(one)])
        before = token
    return kind, re.compile(" ".join(parts) + ("" if kind else _ANSWERED), re.IGNORECASE), fixed


def _forms(word: str) -> Sequence[str]:
    return _VERBS.get(word, word).strip("(?:)").split("|")
