"""What a message is: facts to keep, a question, a wish to forget or to see everything, or talk.

A fact is a slot's value under its holder's key, what has changed, or what is only to be quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from memstory_reference.text.english import lexicon
from memstory_reference.text.english.lexicon import (
    ME,
    Holder,
    attribute_key,
    content_words,
    exemplar_table,
    expand_contractions,
    forms_of,
    is_name,
    is_number,
    key_in_words,
    parse_holder,
    pattern,
    phrase_pattern,
    plain_attribute,
    regular_stem,
    resolve_holder,
    sentence_key,
    singular_form,
    split_sentences,
    words,
    wordset,
)
from memstory_reference.text.secret_guard import secret_in
from memstory_reference.text.sentences import as_said


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
    aliases: tuple[str, ...] = ()
    of_the_world: bool = False


_ADVERBS = rf"(?: {phrase_pattern('adverbs')})*"
_VERBS = {"am": "(?:am|is|are)", "have": "(?:have|has)", "was": "(?:was|were)", "do": "(?:do|does|did)"}
_AUXILIARIES = frozenset([*_VERBS, "is", "are", "does", "did"])
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


def _exemplar_fits(table: str, clause: str) -> Iterator[Fit]:
    """Yield how `clause` follows exemplars of `table`, those with the most fixed words first."""
    said_words = clause.casefold()
    for label, kind, form, fixed in _patterns(table):
        # Most exemplars share no word with a clause: to look for their words is cheaper than to match.
        if not all(any(one in said_words for one in said) for said in fixed):
            continue
        match = form.fullmatch(clause)
        if match is None:
            continue
        said = {"who": "I", "thing": "", "value": "", **match.groupdict()}
        holder = parse_holder("I" if said["who"].casefold() == "the" else said["who"])
        if holder is not None:
            attribute = label.replace("{thing}", said["thing"])
            yield Fit(attribute=attribute, holder=holder, who=said["who"], value=said["value"], kind=kind)


@lru_cache(maxsize=64)
def _nearest_exemplar(sentence: str) -> tuple[str, float]:
    """Return what the nearest exemplar of whole messages means, and how much the two share, from 0 to 1."""
    said = _pairs(sentence)
    shares = [
        # One that shares only words such as `I am` is not near: `I am divorced` is no `I am tired`.
        (label, 2 * len(said & own) / (len(said) + len(own)) if said & telling or not telling else 0.0)
        for label, own, telling in _messages()
    ]
    return max(shares, key=lambda pair: pair[1])


@cache
def _messages() -> Sequence[tuple[str, frozenset[str], frozenset[str]]]:
    """Return the exemplars of whole messages: what they mean, their words and pairs, and their words that say what."""
    rows = [(label, text, _pairs(text)) for label, text in exemplar_table("meant")]
    return [(label, own, own & set(words(expand_contractions(text))) - lexicon.STOP_WORDS) for label, text, own in rows]


def _pairs(text: str) -> frozenset[str]:
    """Return the words of a text, and those that follow each other; its ends count as words."""
    found = ["", *words(expand_contractions(text)), ""]
    return frozenset([*found, *(f"{one} {two}" for one, two in pairwise(found))])


@cache
def _patterns(table: str) -> Sequence[tuple[str, str, re.Pattern[str], Sequence[Sequence[str]]]]:
    rows = [(label, form) for label, text in exemplar_table(table) for form in (text, *_indirect(text))]
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
            parts.append(_PARTS[head] + (_ADVERBS if head in {"I", "we"} and before not in _AUXILIARIES else ""))
        else:
            # After a subject a verb has all forms of the present.
            ending = "(?:s|es)?" if before in {"I", "we"} else ""
            parts.append(f"(?:{'|'.join(_VERBS.get(one, re.escape(one) + ending) for one in token.split('|'))})")
            fixed.append([form for one in token.casefold().split("|") for form in _forms(one)])
        before = token
    return kind, re.compile(" ".join(parts) + ("" if kind else _ANSWERED), re.IGNORECASE), fixed


def _forms(word: str) -> Sequence[str]:
    return _VERBS.get(word, word).strip("(?:)").split("|")


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
    about = next((fit for fit in _exemplar_fits("about", text) if not rule and _is_about(fit)), None)
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
    for fit in _exemplar_fits("stated", clause):
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
    is_liked = plain_attribute(fit.attribute) != fit.attribute
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
    for fit in _exemplar_fits("denied", clause):
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
    aliases = tuple(attribute_key(holder, one.attribute) for holder in forms_of(one.holder))
    holder = resolve_holder(one.holder, known)
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
    for fit in _exemplar_fits("asked", core):
        # A bare `my friend` may be anyone: only who is named has keys of other forms.
        holders = [resolve_holder(fit.holder, known), *forms_of(fit.holder)[:2]]
        yield from (attribute_key(holder, fit.attribute) for holder in holders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What was said before that this message may speak of."""

    last: StatedFact | None = None
    statement: str = ""
    known: Mapping[str, Holder] = field(default_factory=dict, hash=False)
    whole: tuple[StatedFact, ...] = ()
    """The latest statements that were kept whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a message means; `unsaved` are statements and wishes that are not kept, `talk` is a kind of small talk."""

    facts: Sequence[StatedFact] = ()
    unsaved: Sequence[str] = ()
    question: ParsedQuestion | None = None
    forget: str = ""
    lists: bool = False
    talk: str = ""


_OPENING = pattern(rf"^(?:{phrase_pattern('openings')}\s*[,:;!.–—-]+\s*)+(?=\S)")
_TAG = pattern(rf"[\s,;–—-]+{phrase_pattern('tags')}\s*[!.]*(?P<asks>\??)\s*$")
_WANT = rf"(?:{phrase_pattern('wanting')}[,\s]+)*"
_THAT = r"(?:that|it|this|them|those)"
_KEEP = phrase_pattern("keeping")
_KEEP_TAG = pattern(
    rf"[\s,;.:–—-]+{_WANT}(?:(?:{_KEEP}|keep) {_THAT}(?: down)?(?: for (?:me|later|next time))?|please remember|"
    r"(?:please )?do not forget|for (?:future reference|the record|later))(?:[,\s]+please)?[.!?]*$"
)
_WISH = re.compile(
    rf"^(?:{_WANT}(?P<verb>{_KEEP})\b(?:\s+(?:(?:{_THAT} )?down|also|of|for (?:me|later)|well|please|the fact|these|"
    r"this|two things|the following))*|for (?:future reference|the record|later)|fyi|reminder|you should know|"
    r"I want you to know|decision(?=:))(?P<joint>\s*[,:–—-]\s*|\s+that\b\s*:?\s*|\s+|$)(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_ALWAYS = pattern(
    rf"^(?:please,? )?{phrase_pattern('from_now_on')}[,:]? (.+)$|^(.+?),? {phrase_pattern('from_now_on')}$"
)
_NO_WISH = pattern(rf"^{phrase_pattern('no_wish')}\b")
_UNMARKED = pattern(r"save|store|record|log|write")
_FORGET = pattern(
    rf"^(?:(?:then|actually)[,\s]+)*{_WANT}(?P<verb>forget|unlearn|stop remembering|delete|remove|erase|wipe)\s+"
    r"(?P<told>(?!(?:it|that|about it)[.!]*$).+?)(?P<memory>,? from (?:your |the )?memory)?"
    r"(?:,? (?:please|thanks))?[.!?]*$"
)
_DELETES = ("delete", "remove", "erase", "wipe")
_OF_MEMORY = pattern(rf"^{phrase_pattern('of_memory')}")
_FORGOTTEN = pattern(rf"^(?:{phrase_pattern('forgotten')}\s+)+(?=\S)")
_RULE = pattern(rf"^(?:please )?{phrase_pattern('rules')}")
_MARK = pattern(rf"^(?:(?:{phrase_pattern('corrections')}|{phrase_pattern('mistakes')})\b\s*[,:;.!–—-]*\s*)+")
_MEANT = pattern(rf"^{phrase_pattern('meant_is')} (?P<v>.+?)(?: (?:instead|now))?$|^(?P<first>[^,]+), not [^,]+$")
_IT_IS = pattern(r"^(?:(?:it|that|he|she|they) (?:is|are|was|has (?:moved|changed) to)(?: now)? )?(?P<v>.+)$")
_STATE = rf"\b(?:am|is|are|was|were) (?:so |very |really )?(?:{'|'.join(sorted(lexicon.STATES))})[.!]*$"
_MOMENT = pattern(rf"\b{phrase_pattern('moments')}\b|^I {phrase_pattern('feelings')}\b|\bmy \w+ is \w+ing\b|{_STATE}")
_CHANGE = pattern(r"\b(?:used to|no longer|not .+ any ?more)\b.*\bnow\b")
_MISTAKE = pattern(rf"\b{phrase_pattern('mistakes')}\b")
_CHANGED = pattern(r",? \b(?:actually|now)\b")
_ADDS = pattern(rf"\b{phrase_pattern('adds')}\b")
_PRONOUN = pattern(r"he|she|they|it")
_VERB_WORDS = wordset("verbs")
_TALK = frozenset(["greet", "thank", "chat"])
_OF_LISTS = lexicon.wordset("of_lists")
_LEAST_WORDS, _SURE, _MOST_WHOLE = 3, 0.6, 16


@lru_cache(maxsize=256)
def read_message(text: str, context: Context) -> Reading:
    """Read a message, sentence by sentence; what was said a moment ago is not read again."""
    found = Reading()
    for sentence in split_sentences(text):
        one = read_sentence(sentence, context)
        found = Reading(
            facts=[*found.facts, *one.facts],
            unsaved=[*found.unsaved, *one.unsaved],
            question=found.question or one.question,
            forget=found.forget or one.forget,
            lists=found.lists or one.lists,
            talk=found.talk or one.talk,
        )
        context = next_context(context, sentence, one)
    return found


def wants_list(text: str) -> bool:
    """Say whether a message asks for all that is remembered, and for nothing else.

    >>> wants_list("What do you know about me?"), wants_list("What do you know about Oslo?")
    (True, False)
    """
    asked = split_sentences(text)
    return len(asked) == 1 and _wants_list(expand_contractions(_OPENING.sub("", asked[0]).strip()))


def next_context(context: Context, sentence: str, reading: Reading) -> Context:
    """Return what is known once `sentence` has been said."""
    named = re.findall(r"\b(?:[Mm]y|[Oo]ur) ([a-z-]+(?: [a-z-]+)?),? ([^\W\d_][\w-]*)", sentence)
    people = [(owner.split(), name) for owner, name in named if is_name(name) and not name.isupper()]
    known = {name: (*owner, name) for owner, name in people if owner[-1] in lexicon.LIVING}
    last = context.last
    if reading.facts:
        last = reading.facts[-1]
    elif reading.question is not None and reading.question.keys:
        last = StatedFact(topic=reading.question.keys[0], value="", said="")
    is_statement = not (reading.question or reading.forget or reading.lists or reading.talk)
    statement = sentence if is_statement else context.statement
    whole = (*context.whole, *(one for one in reading.facts if one.is_quote and not one.ends))[-_MOST_WHOLE:]
    return Context(last=last, statement=statement, known={**context.known, **known}, whole=whole)


def correction_in(sentence: str) -> str:
    """Return what follows the words of a correction and a mark; empty where there is none. `Actually` alone is none.

    >>> correction_in("Sorry, I got it wrong: I live in Delft."), correction_in("Actually, I live in Delft.")
    ('I live in Delft.', '')
    """
    mark = _MARK.match(sentence)
    is_one = (
        mark is not None and re.search(r"[,:;.!–—-]\s*$", mark[0]) and mark[0].strip(" ,:").casefold() != "actually"
    )
    return sentence[mark.end() :] if mark and is_one else ""


def what_to_forget(sentence: str) -> str:
    """Return what somebody wishes forgotten, in their words; empty where a sentence is no such wish.

    What is to be deleted or removed must be called something that is remembered, for most of it is elsewhere.

    >>> what_to_forget("Please forget my job."), what_to_forget("Remove Bob's ladder from your memory, please.")
    ('my job', "Bob's ladder")
    >>> what_to_forget("Remove Bob's ladder from the garage.")
    ''
    """
    found = _FORGET.match(_OPENING.sub("", sentence).strip())
    if found is None:
        return ""
    told = _tagless(found["told"]).rstrip(".,!? ")
    is_elsewhere = found["verb"].casefold() in _DELETES and not (found["memory"] or _OF_MEMORY.match(told))
    return "" if is_elsewhere else told


def is_lasting(sentence: str) -> bool:
    """Say whether a statement holds for longer than a moment: `I play the cello`, not `I am tired`."""
    text = expand_contractions(sentence)
    (label, near), found = _nearest_exemplar(text), text.split()
    is_moment = (near >= _SURE and label in {*_TALK, "moment"}) or (_MOMENT.search(text) and not _CHANGE.search(text))
    if len(found) < _LEAST_WORDS or is_moment:
        return False
    if re.match(r"(?:I|my|our|we|the|every|all|each|nobody|no one|none|both)\b", text, re.IGNORECASE):
        return not re.search(r"^I .*\b(?:your|you|this)\b", text)
    is_subject = is_name(found[0]) and any(map(str.isupper, found[0])) and words(found[0])[0] not in lexicon.STOP_WORDS
    verb = r"is|are|was|were|has|have|had|can|does|do|\w+(?:s|ed)|got|went|beat"
    return is_subject and any(re.fullmatch(verb, word) for word in found[1:5])


def read_sentence(sentence: str, context: Context) -> Reading:
    """Read one sentence."""
    bare = _OPENING.sub("", sentence).strip()
    text, said = expand_contractions(bare), _tagless(bare)
    forgotten = what_to_forget(text)
    if forgotten:
        return Reading(forget=_FORGOTTEN.sub("", forgotten))
    wish = _wish(bare)
    if wish is not None:
        return _read_wish(wish, context)
    label, near = _nearest_exemplar(text)
    if _wants_list(text):
        return Reading(lists=True)
    if is_question(said):
        return Reading(question=parse_question(said, context.known))
    corrected = _correction(said, context)
    return Reading(facts=corrected) if corrected else _read_statement(said, label if near >= _SURE else "", context)


def _wants_list(text: str) -> bool:
    label, near = _nearest_exemplar(text)
    return label == "list" and near >= _SURE and _OF_LISTS.issuperset(content_words(text))


def _tagless(sentence: str) -> str:
    tag = _TAG.search(sentence)
    rest = sentence[: tag.start()].rstrip(" ,;") if tag else ""
    return sentence if not tag or not rest else f"{rest}?" if tag["asks"] and is_question(rest) else rest


def _wish(sentence: str) -> StatedFact | str | None:
    """Return what somebody asks to remember, a rule as a fact; None where nobody asks."""
    text = re.sub(r"\bI['’]d\b", "I would", re.sub(r"\b([Dd])on['’]?t\b", r"\1o not", sentence)).strip()
    always = _ALWAYS.match(text.rstrip(".!"))
    if always:
        return whole_statement(_tagless(always[1] or always[2]), rule=True)
    tag = _KEEP_TAG.search(text)
    before = text[: tag.start()].strip() if tag else ""
    if before and words(before) and not is_question(before) and not re.fullmatch(_WANT, f"{before} ", re.IGNORECASE):
        return _wish(before) or before
    found = _WISH.match(text)
    rest = _tagless(found["rest"].strip()).rstrip(".!? ") if found else ""
    if not found or _NO_WISH.match(rest):
        return None
    is_marked = re.search(r"that|[:,–—-]", found["joint"]) or not found["verb"]
    has_verb = re.search(r"\b(?:is|are|am|was|likes?|ha(?:s|ve))\b", rest)
    if not is_marked and ((text.endswith("?") and not has_verb) or _UNMARKED.fullmatch(found["verb"])):
        return None
    return re.sub(r"^to (?=\w)", "", rest, flags=re.IGNORECASE)


def _read_wish(wish: StatedFact | str, context: Context) -> Reading:
    """Keep what somebody asks to remember: values, else the whole sentence; say so where there is nothing to keep."""
    if isinstance(wish, StatedFact):
        return Reading(facts=[wish])
    if re.fullmatch(rf"(?:(?:all )?{_THAT})?", wish, re.IGNORECASE):
        said = context.statement
        return (
            Reading(facts=facts_in(said, context.known) or [whole_statement(said)])
            if words(said)
            else Reading(unsaved=[wish])
        )
    if len(words(wish)) < _LEAST_WORDS and re.match(rf"(?:the|a|an|my|our|{_THAT})\b|\S+$", wish, re.IGNORECASE):
        return Reading(unsaved=[wish])
    if _RULE.match(expand_contractions(wish)):
        return Reading(facts=[whole_statement(wish, rule=True)])
    return Reading(facts=facts_in(wish, context.known) or [whole_statement(wish)])


def _correction(sentence: str, context: Context) -> list[StatedFact]:
    """Return what a correction of what was said last states, or nothing."""
    full, last = expand_contractions(sentence).rstrip(".!"), context.last
    text = lexicon.SINCE.sub("", full)
    mark = _MARK.match(text)
    rest = text[mark.end() :] if mark else text
    if mark and last is not None and rest.casefold().startswith(f"the {last.attribute} ".casefold()):
        rest = f"my{rest[3:]}"
    meant = _MEANT.match(rest)
    given = meant["v"] or meant["first"] if meant else _IT_IS.sub(r"\g<v>", rest)
    named = facts_in(given if meant else rest, context.known) if mark or meant else []
    named = [replace(one, correction=one.value) for one in named]
    if not named and (mark or _CHANGED.search(rest)):
        named = _restatement(given if meant else rest, context, is_mistake=bool(mark and _MISTAKE.search(mark[0])))
    is_new = given != rest and (" now" in rest or text != full)
    if named or last is None or not (meant or mark or is_new):
        return named
    given = re.sub(r"^(?:in|at|on|for|now) |,? (?:and )?not .*$|\banymore\b.*", "", given)
    value, said = plain_value(given, "any"), sentence.strip().rstrip(".!")
    is_one_kind = lexicon.KIND_OF.get(given) == lexicon.KIND_OF.get(last.value, "-")
    is_alike = not set(content_words(given)).isdisjoint(content_words(last.value))
    if value is None and (meant or is_one_kind or is_alike) and len(given.split()) < _LEAST_WORDS:
        value = plain_value(given, "words")
    form, old = ((is_name(one), is_number(one)) for one in (value or "", last.value))
    if (
        not value
        or (last.is_quote and not (meant or is_alike or any(form)))
        or not (last.is_quote or not last.value or form == old)
    ):
        return []
    told = said if last.is_quote else f"{key_in_words(last.topic)} is {value}"
    return [replace(last, value=said if last.is_quote else value, said=told, correction=value)]


def _restatement(said: str, context: Context, *, is_mistake: bool) -> list[StatedFact]:
    """Return the statement that is said otherwise now: of the same subject and attribute, with another such value.

    Where the speaker owns up to a mistake a value that is no name, number or moment takes the place of the old one,
    too. What adds to a statement leaves it as it is; so does an event with another name, as both may have happened.
    """
    who, verb, value = _parts(_CHANGED.sub("", said))
    kind, is_event = _kind(value), verb.casefold() in lexicon.PASTS or verb.endswith("ed")
    for one in reversed(context.whole if verb and not _ADDS.search(said) else ()):
        subject, attribute, old = _parts(expand_contractions(one.said))
        is_they = _PRONOUN.fullmatch(who) and _is_meant(who, subject, one, context)
        if kind and _kind(old):
            is_sure = kind == _kind(old) and (is_mistake or not (is_event and kind.is_name))
        else:
            is_sure = bool(is_mistake and value and verb not in _VERB_WORDS)
        if regular_stem(verb) == regular_stem(attribute) and is_sure and (is_they or _is_same(who, subject)):
            now = f"{subject} {said[len(who) :].strip()}" if is_they else said
            return [replace(one, value=now, said=now, correction=value)]
    return []


def _parts(said: str) -> tuple[str, str, str]:
    """Return the subject, the verb and the rest of a statement."""
    found = lexicon.SINCE.sub("", said).split()
    who = subject_in(found)
    verb, *rest = found[len(who.split()) :] if who else ("",)
    return who, verb, " ".join(rest)


class _Kind(NamedTuple):
    """What may stand in the place of a value: a name, or else a number or a moment, after the same preposition."""

    preposition: str
    is_name: bool


def _kind(value: str) -> _Kind | None:
    """Return the kind of a name, a number or a moment; None for other values."""
    found = re.match(r"(?:in|at|on|for) ", value)
    preposition = found[0] if found else ""
    bare = value.removeprefix(preposition)
    if plain_value(bare, "any") is None:
        return None
    return _Kind(preposition, plain_value(bare, "name") is not None)


def _is_meant(pronoun: str, subject: str, one: StatedFact, context: Context) -> bool:
    """Say whether a pronoun may be the subject of this statement: only questions were said since."""
    is_latest = one is context.whole[-1] and context.last is not None and (context.last == one or not context.last.said)
    is_living = not lexicon.LIVING.isdisjoint(words(subject))
    fits = {"it": not is_living, "they": True}.get(pronoun.casefold(), is_living or is_name(subject))
    return is_latest and fits


def _is_same(who: str, other: str) -> bool:
    """Say whether two subjects are one: in the same words, or by the same name, as `my colleague Meera` and `Meera`."""
    short, long = sorted((who, other), key=len)
    is_mine = re.match(r"(?:my|our) ", long, re.IGNORECASE) is not None
    return who.casefold() == other.casefold() or (is_mine and is_name(short) and long.endswith(f" {short}"))


def subject_in(found: Sequence[str]) -> str:
    """Return those of a statement's words that stand before its verb, empty where no verb is found."""
    first = found[0].lower() if found else ""
    if first in ("i", "we"):
        return found[0]
    is_owned = first in ("my", "our", "the")
    for at in range(2 if is_owned else 1, min(len(found), 6)):
        before, word = found[at - 1], found[at].lower()
        is_noun = at == 2 and is_owned and before.isalpha()  # noqa: PLR2004  (my parents live)
        is_plural = is_noun and singular_form(before) != before
        if is_plural or word in _VERB_WORDS or word in lexicon.PASTS or re.fullmatch(r"[a-z]+(?:[^s']s|ed)", found[at]):
            return " ".join(found[:at])
    return ""


def _read_statement(sentence: str, label: str, context: Context) -> Reading:
    """Read a statement: its values, else all of it if it holds for longer than a moment, and is about somebody."""
    if _RULE.match(expand_contractions(sentence)):
        return Reading(facts=[whole_statement(sentence, rule=True)])
    sentence = correction_in(sentence) or sentence
    text = expand_contractions(sentence)
    found = facts_in(sentence, context.known)
    if not found and label == "ask":
        return Reading(question=parse_question(sentence, context.known))
    if secret_in(sentence) is not None:
        return Reading(talk="secret")
    if not found and is_lasting(sentence):
        first = {*words(text)[:4]}
        is_ours = not first.isdisjoint(lexicon.PROJECT_WORDS | {"my", "our"}) or not text.casefold().startswith("the ")
        found = [replace(whole_statement(sentence), of_the_world=not is_ours)]
    is_talk = not found and label in _TALK
    return Reading(facts=found, unsaved=[] if found or is_talk else [sentence.strip()], talk=label if is_talk else "")
