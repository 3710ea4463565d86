"""What a message is: facts to keep, a question, a wish to forget or to see everything, or talk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memstory_reference.text.english import lexicon
from memstory_reference.text.english.lexicon import pattern, phrase_pattern
from memstory_reference.text.english.statements import StatedFact, facts_in, plain_value, whole_statement
from memstory_reference.text.english.topic_naming import (
    Holder,
    attribute_key,
    exemplar_fits,
    forms_of,
    is_number,
    key_in_words,
    nearest_exemplar,
    resolve_holder,
)
from memstory_reference.text.english.wording import (
    content_words,
    expand_contractions,
    is_name,
    split_sentences,
    words,
)
from memstory_reference.text.secret_guard import secret_in


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What was said before that this message may speak of."""

    last: StatedFact | None = None
    statement: str = ""
    known: Mapping[str, Holder] = field(default_factory=dict)


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
_MARK = pattern(rf"^(?:{phrase_pattern('corrections')}\b\s*[,:;.!–—-]*\s*)+")
_MEANT = pattern(rf"^{phrase_pattern('meant_is')} (?P<v>.+?)(?: (?:instead|now))?$|^(?P<first>[^,]+), not [^,]+$")
_IT_IS = pattern(r"^(?:(?:it|that|he|she|they) (?:is|are|was|has (?:moved|changed) to)(?: now)? )?(?P<v>.+)$")
_STATE = rf"\b(?:am|is|are|was|were) (?:so |very |really )?(?:{'|'.join(sorted(lexicon.STATES))})[.!]*$"
_MOMENT = pattern(rf"\b{phrase_pattern('moments')}\b|^I {phrase_pattern('feelings')}\b|\bmy \w+ is \w+ing\b|{_STATE}")
_CHANGE = pattern(r"\b(?:used to|no longer|not .+ any ?more)\b.*\bnow\b")
_TALK = frozenset(["greet", "thank", "chat"])
_OF_LISTS = lexicon.wordset("of_lists")
_LEAST_WORDS, _SURE = 3, 0.6


def read_message(text: str, context: Context) -> Reading:
    """Read a message, sentence by sentence."""
    found = Reading()
    for sentence in split_sentences(text):
        one = _read_sentence(sentence, context)
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
    return Context(last=last, statement=statement, known={**context.known, **known})


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
    (label, near), found = nearest_exemplar(text), text.split()
    is_moment = (near >= _SURE and label in {*_TALK, "moment"}) or (_MOMENT.search(text) and not _CHANGE.search(text))
    if len(found) < _LEAST_WORDS or is_moment:
        return False
    if re.match(r"(?:I|my|our|we|the|every|all|each|nobody|no one|none|both)\b", text, re.IGNORECASE):
        return not re.search(r"^I .*\b(?:your|you|this)\b", text)
    is_subject = is_name(found[0]) and any(map(str.isupper, found[0])) and words(found[0])[0] not in lexicon.STOP_WORDS
    verb = r"is|are|was|were|has|have|had|can|does|do|\w+(?:s|ed)|got|went|beat"
    return is_subject and any(re.fullmatch(verb, word) for word in found[1:5])


def _read_sentence(sentence: str, context: Context) -> Reading:
    bare = _OPENING.sub("", sentence).strip()
    text, said = expand_contractions(bare), _tagless(bare)
    forgotten = what_to_forget(text)
    if forgotten:
        return Reading(forget=_FORGOTTEN.sub("", forgotten))
    wish = _wish(bare)
    if wish is not None:
        return _read_wish(wish, context)
    label, near = nearest_exemplar(text)
    if label == "list" and near >= _SURE and _OF_LISTS.issuperset(content_words(text)):
        return Reading(lists=True)
    if is_question(said):
        return Reading(question=parse_question(said, context.known))
    corrected = _correction(said, context)
    return Reading(facts=corrected) if corrected else _read_statement(said, label if near >= _SURE else "", context)


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
    if words(before) and not is_question(before) and not re.fullmatch(_WANT, f"{before} ", re.IGNORECASE):
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
