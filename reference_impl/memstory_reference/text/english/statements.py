"""Facts in statements: a slot's value under its holder's key, what has changed, and what is only to be quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memstory_reference.text.asking import as_said
from memstory_reference.text.english import lexicon, topic_naming
from memstory_reference.text.english.lexicon import pattern, phrase_pattern, wordset
from memstory_reference.text.english.topic_naming import (
    ME,
    Fit,
    Holder,
    attribute_key,
    exemplar_fits,
    is_number,
    sentence_key,
)
from memstory_reference.text.english.wording import expand_contractions, is_name, singular_form, words


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFact:
    """Something to keep: the `attribute` of a `holder`, by its key `topic`.

    `value` is what a slot held, or the sentence `said`; then `is_quote` holds, and there may be no attribute. `ends` is
    a value that is over: the quote goes under `topic` only if that value is stored there. `correction` is the value of
    a fact that corrects an earlier one. `aliases` are the keys that it has where its holder is named in another way.
    `of_the_world` is what nobody has: `The capital of …`.
    """

    topic: str
    value: str
    said: str
    holder: Holder = ME
    attribute: str = ""
    is_quote: bool = False
    ends: str = ""
    correction: str = ""
    aliases: Sequence[str] = ()
    of_the_world: bool = False


_HEDGES = pattern(rf"\b{phrase_pattern('hedges')}\b")
_JOINT = pattern(r"\s*;\s*|\s*,\s*(?:(?:and|but|so)\s+)?|\s+(?:and|but)\s+|\s+[–—-]\s+")
_DENIAL = pattern(r"\b(?:no longer|not|never|used to)\b")
_DENIED_VERB = pattern(r"\b(?:do|does|did) not |\b(?:no longer|not|used to) ")
_NOW = pattern(r"^(?:(?:but|and|now|it is|I am|he is|she is|they are|is|in|at|for|with|called) )+")
_VERB_FIRST = pattern(r"(?:lives?|works?|am|is|are|have|has|comes?|speaks?|moved|joined|teach(?:es)?)\b")
_CLAUSE = pattern(rf"{phrase_pattern('clause_starts')}\b|(?:[\w-]+(?:['’]s [\w-]+)? )?{_VERB_FIRST.pattern}")
_FROM_TO = pattern(r"\b(moved|changed|pushed|postponed|switched|migrated)(?: back)? from .+? to\b")
_TRAILING = pattern(rf"(?:,?\s+{phrase_pattern('trailing')})+$")
_NOT_THIS = pattern(r"(?:,\s*(?:and\s+)?|\s+and\s+)not\s+[^,]+$|\s+(?:rather than|instead of)\s+.+$")
_BEFORE = pattern(rf"(?:(?:now|also|still) )?(?:(?:at|on|by|in) (?={lexicon.WHEN}))?")
_NO_VALUE, _IN_NAMES, _WITH_WORDS = wordset("no_value"), wordset("in_names"), wordset("with_words")
_OF_PEOPLES, _PASSING = wordset("of_peoples"), wordset("passing")
_JOBS, _NO_JOBS, _PEOPLES = wordset("jobs"), wordset("no_jobs"), wordset("peoples")
_JOB_ENDINGS = ("er", "or", "ist", "eer", "smith", "wright")
_PEOPLE_ENDINGS = ("ish", "ese", "ian", "ean", "can", "man", "ist", "ic", "ant", "ing")
_VALUES = frozenset(lexicon.alternatives("common"))
_LONGEST_VALUE, _LONGEST_NAME, _OLDEST = 7, 3, 130
_SENTENCE = "sentence"
"""The kind of a value that is told with more about it: the sentence is kept whole."""
_AND_WHERE = re.compile(r",| (?:at|for|in|with)\b")
"""Where somebody has a job, and when."""


def facts_in(sentence: str, known: Mapping[str, Holder]) -> list[StatedFact]:
    """Return the facts with a value in `sentence`; `known` are the holders by their names, as said before.

    >>> [(fact.topic, fact.value) for fact in facts_in("I no longer work at Acme, I'm at Birch now.", {})]
    [('user.employer', 'Birch')]
    """
    said = as_said(sentence).rstrip(".!;, ")
    text = _FROM_TO.sub(r"\1 to", lexicon.SINCE.sub("", expand_contractions(said)))
    if _HEDGES.search(text) or said.endswith("?"):
        return []
    found, ended, who, is_whole = list[Fit](), list[Fit](), "", False
    for clause in (_with_subject(clause, who) for clause in _clauses(text)):
        over = _read_ending(clause)
        stated = None if over else _read_claim(clause) or _read_replacement(clause, ended)
        found += [stated] if stated else []
        ended += [over] if over else []
        is_whole = is_whole or not (stated or over)
        who = next((_subject(one) for one in (stated, over) if one), "")
    kept = [_fact(one, said, known) for one in found]
    gone = [one for one in (_fact(over, said, known) for over in ended) if one.topic not in {new.topic for new in kept}]
    kept += [replace(one, value=said, is_quote=True, ends=one.value) for one in gone]
    return [*kept, whole_statement(said)] if kept and is_whole else kept


def whole_statement(said: str, *, rule: bool = False) -> StatedFact:
    """Return `said` as a quotation, under the key of the thing that it is about, or else of the words themselves."""
    said = said.strip().rstrip(".!;, ")
    text = lexicon.SINCE.sub("", expand_contractions(said))
    about = next((fit for fit in exemplar_fits("about", text) if not rule and _is_about(fit)), None)
    if about is None:
        return StatedFact(
            topic=sentence_key(lexicon.SINCE.sub("", said), rule=rule), value=said, said=said, is_quote=True
        )
    topic = attribute_key(about.holder, about.attribute)
    return StatedFact(topic=topic, value=said, said=said, holder=about.holder, attribute=about.attribute, is_quote=True)


def plain_value(text: str, kind: str) -> str | None:
    """Return what a slot of `kind` holds, without what surrounds it in speech; None if it holds no such value."""
    value, before = text.strip().rstrip(".!?;, "), ""
    while value != before:
        before, value = value, _NOT_THIS.sub("", _TRAILING.sub("", value)).strip(' ,;."“”')
    value = _BEFORE.sub("", value, count=1)
    found = value.split()
    if not 0 < len(found) <= _LONGEST_VALUE or not _NO_VALUE.isdisjoint(words(expand_contractions(value))):
        return None
    if kind == "words":
        return value if value.casefold() not in lexicon.STATES else None
    bare = found[1:] if found[0].casefold() in {"a", "an", "the"} else found
    if bare and (is_number(bare[0]) or re.match(lexicon.WHEN, value, re.IGNORECASE) or value[0] in "+€$£#"):
        return value if kind != "name" else None
    is_named = bool(bare) and is_name(bare[0])
    is_all = all(is_name(word) or word in _IN_NAMES or word[0].isdigit() for word in bare)
    return value if is_named and is_all and kind in {"name", "any"} else None


def _clauses(text: str) -> Iterator[str]:
    """Yield the clauses of `text`; a joint parts two where the right one can begin there, or the left one is over."""
    rest = text
    while not _read_claim(rest):
        joints = [(rest[: joint.start()], rest[joint.end() :]) for joint in _JOINT.finditer(rest)]
        parts = next((pair for pair in joints if pair[0] and (_CLAUSE.match(pair[1]) or _read_ending(pair[0]))), None)
        if parts is None or re.fullmatch(r"I|we|(?:my|our) \w+", parts[0], re.IGNORECASE):
            break
        yield parts[0]
        rest = parts[1]
    yield rest


def _with_subject(clause: str, who: str) -> str:
    """Fill in the subject that a clause takes over from the one before."""
    clause = re.sub(r"^now,? (?=I|we|he|she|they|my)", "", clause, flags=re.IGNORECASE)
    if who and _VERB_FIRST.match(clause):
        return f"{who} {clause}"
    return re.sub(r"^(?:he|she|they)\b", who, clause, flags=re.IGNORECASE) if who not in {"", "I"} else clause


def _subject(fit: Fit) -> str:
    """Return the subject for the next clause: who did something, or whose name was told; of a thing it is unclear."""
    owner = re.fullmatch(r"(?:my|our|the|(.+)['’]s?)", fit.who, re.IGNORECASE)
    return fit.who if not owner else (owner[1] or "") if fit.attribute == "name" else ""


def _read_claim(clause: str) -> Fit | None:
    if _DENIAL.search(_NOT_THIS.sub("", clause)):
        return None
    for fit in exemplar_fits("stated", clause):
        value = _value(fit)
        if value is not None:
            of_kind = lexicon.KIND_OF.get(value.casefold(), "")
            kind = _SENTENCE if fit.attribute == "job" and _AND_WHERE.search(fit.value) else fit.kind
            return replace(
                fit, value=value, attribute=of_kind if fit.attribute == "of kind" else fit.attribute, kind=kind
            )
    me = re.fullmatch(r"I am (.+)", clause)
    found = me[1].split() if me else []
    if not me or not 0 < len(found) <= _LONGEST_NAME or not all(map(is_name, found)) or _is_people(found[0]):
        return None
    return Fit(attribute="name", holder=ME, who="I", value=me[1], kind="name")


def _value(fit: Fit) -> str | None:
    """Return the value of a fit, if its attribute may have it."""
    thing, value = words(fit.attribute), fit.value
    if fit.attribute in {"of kind", "job", "age"}:
        value = plain_value(_AND_WHERE.split(value)[0] if fit.attribute == "job" else value, "words") or ""
        is_kind = value.casefold() in lexicon.KIND_OF
        is_right = {"of kind": is_kind, "job": _is_job(value), "age": _is_age(fit.holder, value)}[fit.attribute]
        return value if is_right else None
    if not _is_thing(fit):
        return None
    if fit.kind != "number" or fit.attribute == "birthday":
        return plain_value(value, fit.kind)
    is_liked = topic_naming.plain_attribute(fit.attribute) != fit.attribute
    has_words = is_liked or singular_form(thing[-1]) in _WITH_WORDS
    has_words = has_words and (thing[-1] != "name" or " " not in value.strip())
    found = plain_value(value, "any") or (plain_value(value, "words") if has_words else None)
    return None if found and _is_people(found) and thing[-1] not in _OF_PEOPLES and not is_liked else found


def _is_thing(fit: Fit) -> bool:
    """Say whether the attribute is a noun phrase; with `the` only things of the project are."""
    thing = [word.casefold() for word in fit.attribute.split()]
    named = [word for word in fit.attribute.split()[1:] if is_name(word) and not word.isupper()]
    if named or not thing or not _NO_VALUE.isdisjoint(thing) or singular_form(thing[-1]) in _PASSING:
        return False
    return fit.who.casefold() != "the" or any(singular_form(word) in lexicon.PROJECT_WORDS for word in thing)


def _is_about(fit: Fit) -> bool:
    """Say whether a fit is about one thing, which one sentence tells; of a person there is more to tell."""
    thing = {singular_form(word) for word in words(fit.attribute)}
    is_unclear = _DENIAL.search(fit.value) or _HEDGES.search(fit.value)
    # How a name is pronounced must not take its place.
    is_value = attribute_key((), fit.attribute).partition(".")[2] in _VALUES
    return not (is_unclear or is_value) and thing.isdisjoint(_NO_VALUE | _PASSING | lexicon.LIVING | {"favourite"})


def _is_job(value: str) -> bool:
    *_, head = words(value) or [""]
    is_one = head in _JOBS or (head.endswith(_JOB_ENDINGS) and head not in _NO_JOBS)
    return is_one and len(words(value)) <= _LONGEST_NAME


def _is_age(holder: Holder, value: str) -> bool:
    is_one = not holder or not lexicon.LIVING.isdisjoint(holder) or any(map(is_name, holder))
    return is_one and (value.casefold() in lexicon.NUMBERS or (value.isdecimal() and int(value) <= _OLDEST))


def _is_people(value: str) -> bool:
    """Say whether a word names a people or a belief, as `Danish` does."""
    found = value.casefold()
    return value.istitle() and " " not in found and (found in _PEOPLES or found.endswith(_PEOPLE_ENDINGS))


def _read_ending(clause: str) -> Fit | None:
    """Return what a clause says is not, or no longer, so."""
    for fit in exemplar_fits("denied", clause):
        value = plain_value(fit.value, "name")
        if value:
            return replace(fit, value=value)
    if not _DENIAL.search(clause) or re.search(r"\bnever\b", clause, re.IGNORECASE):
        return None
    affirmed = re.sub(r"\s*\banymore\b", "", _DENIED_VERB.sub("", clause, count=1)).strip()
    return _read_claim(affirmed) or _read_claim(f"{affirmed} now")


def _read_replacement(clause: str, ended: Sequence[Fit]) -> Fit | None:
    """Return the new value of what has just been said to be over: `it's Rob`, `in Linz now`."""
    bare = _NOW.sub("", clause)
    kind = "any" if ended and ended[-1].kind == "number" else "name"
    value = plain_value(bare, kind) if ended and bare != clause else None
    return replace(ended[-1], value=value) if value else None


def _fact(one: Fit, said: str, known: Mapping[str, Holder]) -> StatedFact:
    aliases = [attribute_key(holder, one.attribute) for holder in topic_naming.forms_of(one.holder)]
    holder = topic_naming.resolve_holder(one.holder, known)
    topic, is_quote = attribute_key(holder, one.attribute), one.kind == _SENTENCE
    return StatedFact(
        topic=topic,
        value=said if is_quote else one.value,
        said=said,
        holder=holder,
        attribute=one.attribute,
        aliases=aliases,
        is_quote=is_quote,
    )
