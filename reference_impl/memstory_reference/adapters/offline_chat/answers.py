"""Answers made of what was found, and of nothing else: the sentence that fits a question best, or that none does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memstory_reference.adapters.offline_chat.announced_tools import FoundMemory
from memstory_reference.text.english import lexicon
from memstory_reference.text.english.lexicon import (
    CONSTRAINT,
    ME,
    WE,
    content_words,
    expand_contractions,
    is_name,
    key_in_words,
    parse_holder,
    pattern,
    phrase_pattern,
    regular_stem,
    split_sentences,
    words,
)
from memstory_reference.text.english.statements import Context, ParsedQuestion, facts_in, is_lasting, read_message

UNKNOWN = "I don't know: I have no memory of that."
FORGOTTEN = "(forgotten on request)"
_OWN_WORDS, _TOLD = "I remember: ", "I remember that you told me: "
_CHANGED = pattern(rf"\b{phrase_pattern('changes')}\b")
_UNSURE = pattern(rf"\b{phrase_pattern('doubts')}\b")
_TIME = pattern(rf"\d|\b(?:{phrase_pattern('weekdays')}|{phrase_pattern('months')}|{phrase_pattern('times')})\b")
_PLACE = re.compile(rf"\b{phrase_pattern('before_places')} (?!(?:the )?(?:\d|{phrase_pattern('months')}\b))")
_NUMBER = pattern(rf"\d|\b(?:{'|'.join(sorted(lexicon.NUMBERS))})\b")
_ANSWERS_TO = (
    (pattern(r"^(?:when|(?:what|which) (?:day|date|time|year|month))\b"), _TIME),
    (pattern(r"^where\b"), _PLACE),
    (pattern(r"^how (?:many|much|old|long|big|far|tall|high)\b"), _NUMBER),
)
"""What a question asks for by its first words, and how a sentence shows that it says so."""

_ASKED_FOR, _VERBS = lexicon.wordset("asked_for"), lexicon.wordset("verbs")
_SAME_FACT, _HALF, _CLOSE = 3.0, 0.5, 0.12
_RELATED, _NEAR_ENOUGH, _VERY_NEAR = 0.4, 0.45, 0.6
"""Cosines of MiniLM: by itself it does not tell an answer from a neighbour (my dog's name, my cat's name: 0.59)."""
_MOST_QUOTED, _MOST_LISTED = 3, 15


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCandidate:
    """A sentence that may answer; `age` orders what says different things: in this talk, day, tells a change, rank."""

    text: str
    age: tuple[bool, str, bool, int]


def answer_candidates(findings: Iterable[FoundMemory], window: Sequence[str] = ()) -> list[AnswerCandidate]:
    """Return what was said first-hand; answers may repeat what has been corrected or forgotten since."""
    texts = [(text, (True, "", at)) for at, text in enumerate(window)][::-1]
    texts += [(finding.text, (False, finding.date, -finding.rank)) for finding in findings]
    unique: dict[str, AnswerCandidate] = {}
    for sentence, (here, day, at) in [(sentence, age) for text, age in texts for sentence in split_sentences(text)]:
        meant = read_message(sentence, Context())
        if not (meant.question or meant.forget or meant.lists or meant.talk):
            # Of a wish to remember what is to be remembered.
            said = meant.facts[0].said if meant.facts else sentence
            age = (here, day, bool(_CHANGED.search(said)), at)
            unique.setdefault(said.casefold().rstrip(".!"), AnswerCandidate(text=said, age=age))
    return list(unique.values())


def best_answers(
    question: ParsedQuestion, found: Sequence[AnswerCandidate], nearness: Mapping[str, float]
) -> list[AnswerCandidate]:
    """Return what answers `question`; `nearness` is the cosine of question and sentence, where there is an embedder."""
    scored = [(answer_score(question, one.text, nearness.get(one.text)), one) for one in found]
    fitting = sorted([pair for pair in scored if pair[0] > 0], key=lambda pair: -pair[0])
    if not fitting or question.open:
        return [one for _, one in fitting][:_MOST_QUOTED]
    close = [one for score, one in fitting if score >= fitting[0][0] - _CLOSE]
    if any(key.endswith(lexicon.OF_MANY) for key in question.keys):
        return close[:_MOST_QUOTED]
    holders = {tuple(word for word in re.findall(r"[\w-]+", one.text)[1:3] if is_name(word)) for one in close}
    if len(holders) == len(close) > 1 and len({words(one.text)[1] for one in close}) == 1:
        return close[:_MOST_QUOTED]
    chosen = max(close, key=lambda one: one.age)
    # What says that it changed repeats what it changed, and more: it is less near to the question.
    retold = [one for _, one in fitting if one.age[2] and {*content_words(chosen.text)} <= {*content_words(one.text)}]
    return [max([chosen, *retold], key=lambda one: one.age)]


def answer_score(question: ParsedQuestion, text: str, near: float | None) -> float:
    """Return how well a sentence answers a question; 0 if it does not.

    Names and what is `mine` in the question must be in the sentence, which must not be about somebody else; of the
    other words half. The cosine decides where words alone would not.
    """
    asked, near = question.query, near or 0.0 if near is not None else None
    wanted, common = content_words(asked), lexicon.common_stems(content_words(asked), content_words(text))
    meaning = [word for word in common if word not in lexicon.PLAIN_WORDS]
    if not question.open and _is_doubtful(question, text):
        return 0.0
    if any(not {fact.topic, *fact.aliases}.isdisjoint(question.keys) for fact in facts_in(text, {})):
        return _SAME_FACT
    if question.open:
        return (len(common) + 1) / (len(wanted) + 1) + (near or 0) if meaning or (near or 0) >= _NEAR_ENOUGH else 0.0
    musts, gives_name = _musts(question), _gives_name(asked, text)
    if not set(common).issuperset(musts) or _is_of_another(asked, text, wanted):
        return 0.0
    if not all(answers.search(text) for pattern, answers in _ANSWERS_TO if pattern.match(asked)):
        return 0.0
    kinds = {lexicon.KIND_OF[word] for word in words(text) if word in lexicon.KIND_OF}
    given = _ASKED_FOR | kinds | ({"name"} if gives_name else set())
    needed = [word for word in wanted if word not in given] or wanted
    share = len([word for word in needed if word in common]) / len(needed) if needed else 0.0
    if musts and set(common) <= set(musts) and len(needed) > len(musts) and not gives_name:
        fits = (near or 0) >= _VERY_NEAR
    else:
        is_clear = share > _HALF or (share == _HALF and (near is None or near >= _RELATED))
        fits = (bool(meaning) and is_clear) or ((near or 0) >= _NEAR_ENOUGH and bool(meaning or not musts))
    return share + (near or 0) if fits else 0.0


def quotation_answer(found: Sequence[AnswerCandidate]) -> str:
    """Return an answer that quotes what was found, as data."""
    said = "; ".join(f'"{one.text.rstrip(". ")}"' for one in found)
    return f"{_TOLD}{said}."


def topic_answer(topic: str, value: str, asked: str = "") -> str:
    """Return an answer from what a topic holds: a value, a rule, or a sentence of the user's."""
    if value == FORGOTTEN:
        return "I was asked to forget that."
    ending = "" if value.endswith((".", "!", "?", "。")) else "."
    if topic.startswith(f"{CONSTRAINT}."):
        return f"I remember this rule: {value}{ending}"
    return f'{_TOLD}"{value}".' if _is_clause(value) else f"{_OWN_WORDS}{key_in_words(topic, asked)} is {value}{ending}"


def overview_answer(kept: Mapping[str, str], found: Sequence[AnswerCandidate]) -> str:
    """Return all that is known: what topics hold, and sentences that say more."""
    known = [
        f'"{value}"' if _is_clause(value) else f"{key_in_words(topic)} is {value}" for topic, value in kept.items()
    ]
    known = [one for one in known if FORGOTTEN not in one]
    stated = {one.text: facts_in(one.text, {}) for one in sorted(found, key=lambda one: one.age)}
    newest = {fact.topic: fact.value for one in stated.values() for fact in one} | dict(kept)
    for text in [one.text for one in found if stated[one.text] or is_lasting(one.text)]:
        current = [one for one in stated[text] if one.topic.endswith(lexicon.OF_MANY) or newest[one.topic] == one.value]
        if bool(current) == bool(stated[text]) and not any(value in text for value in kept.values()):
            known.append(f'"{text.rstrip(". ")}"')
    return f"{_OWN_WORDS}{'; '.join(known[:_MOST_LISTED])}." if known else UNKNOWN


def _musts(question: ParsedQuestion) -> list[str]:
    """Return the stems that a sentence must have: names, and what is `mine`."""
    text = expand_contractions(question.query)
    named = [one for one in re.findall(r"(?<=[\w,'’] )[\w-]+|^[\w-]+(?=['’]s)", text) if is_name(one) and one != "I"]
    most = 0 if re.search(r"\b(?:do|does|did) (?:my|our)\b", text) else 2
    owned = re.findall(rf"\b(?:my|our) ([\w'’-]+(?: (?!(?:is|are|was|on|at|in|for)\b)[\w'’-]+){{0,{most}}})", text)
    found = [
        regular_stem(word) for group in [*named, *owned] for word in words(group) if word not in lexicon.STOP_WORDS
    ]
    return [word for word in dict.fromkeys(found) if word not in lexicon.PLAIN_WORDS]


def _is_of_another(asked: str, text: str, wanted: Sequence[str]) -> bool:
    """Say whether a sentence is about somebody of whom a question about the user does not speak."""
    first = re.match(r"(?:my|our) (\w+)|([^\W\d_][\w-]*)", text, re.IGNORECASE)
    if re.match(r"(?:he|she|they|it)\b", text, re.IGNORECASE):
        return True
    if not first or not re.search(r"\b(?:I|my|me|we|our)\b", asked, re.IGNORECASE):
        return False
    about = [
        regular_stem(word.casefold()) for word in re.findall(r"[\w-]+", text)[:3] if is_name(word) or word == first[1]
    ]
    owner = (first[1] or "").casefold()
    is_relative = lexicon.plain_form(owner) in lexicon.LIVING
    is_named = not first[1] and parse_holder(first[2]) not in {None, ME, WE} and not re.search(r"\b(?:I|my|me)\b", text)
    return (is_relative or is_named) and not lexicon.common_stems(about, wanted)


def _is_doubtful(question: ParsedQuestion, text: str) -> bool:
    """Say whether a sentence has a doubt that the question does not share."""
    doubts = {regular_stem(word) for found in _UNSURE.findall(expand_contractions(text)) for word in words(found)}
    is_past = re.search(r"\bused to\b.*\bnow\b", text, re.IGNORECASE)
    return (
        bool(doubts) and not is_past and doubts.isdisjoint(map(regular_stem, words(expand_contractions(question.text))))
    )


def _gives_name(asked: str, text: str) -> bool:
    """Say whether a question for a name gets one that it does not hold."""
    asks_name = re.search(r"\b(?:names?|called|who)\b", asked, re.IGNORECASE)
    return bool(asks_name) and any(is_name(word) and word not in asked for word in text.split()[1:])


def _is_clause(value: str) -> bool:
    """Say whether a value is a whole sentence that the user said."""
    found = words(expand_contractions(value))
    return len(found) > 2 and (found[0] in {"i", "we", "my", "our", "the"} or not _VERBS.isdisjoint(found))  # noqa: PLR2004
