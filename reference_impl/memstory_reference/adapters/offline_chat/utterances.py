"""What a message is: things to remember, a correction, a question, a wish to forget, a statement, or small talk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from memstory_reference.adapters.offline_chat import conduct, requests
from memstory_reference.adapters.offline_chat.clauses import clauses
from memstory_reference.adapters.offline_chat.corrections import correct
from memstory_reference.adapters.offline_chat.facts import Fact, parse_fact, unparsed_fact
from memstory_reference.adapters.offline_chat.questions import Question, is_question, parse_question
from memstory_reference.adapters.offline_chat.wording import content_words, sentences, shortened


class Kind(StrEnum):
    """What somebody wants with a message that asks nothing and saves nothing."""

    STATEMENT = "statement"
    SMALL_TALK = "small talk"
    COURTESY = "courtesy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A message as it was understood.

    `informs` is what it tells about the world, said without a wish to keep it; `mentions` is the topic that a later
    correction may be about.
    """

    facts: Sequence[Fact] = ()
    question: Question | None = None
    forget: str | None = None
    kind: Kind = Kind.STATEMENT
    informs: str | None = None
    mentions: str | None = None


def read(text: str, earlier: Sequence[str] = (), talked_about: str | None = None) -> Reading:
    """Read a message; `earlier` are the speaker's messages before it, `talked_about` the topic that the last was on.

    >>> read("Please remember my preferred language is Elixir.").facts[0].topic
    'user.language_preference'
    >>> read("I remember my school days fondly.").facts
    ()
    """
    facts: list[Fact] = []
    question: Question | None = None
    forget: str | None = None
    informs: list[str] = []
    mentions: str | None = None
    said = sentences(shortened(text))
    for sentence in said:
        part = _read_sentence(sentence, earlier, facts[-1].topic if facts else talked_about)
        facts = [fact for fact in facts if all(fact.topic != newer.topic for newer in part.facts)]
        facts += {fact.topic: fact for fact in part.facts}.values()
        question = part.question or (question and _asked_again(sentence)) or question
        forget = part.forget or forget
        mentions = part.mentions or mentions
        informs += [part.informs] if part.informs else []
    kind = _kind(shortened(text))
    return Reading(
        facts=tuple(facts),
        question=question,
        forget=forget,
        kind=kind,
        informs=" ".join(informs) or None,
        mentions=mentions,
    )


def _read_sentence(sentence: str, earlier: Sequence[str], talked_about: str | None) -> Reading:
    bare = requests.without_opening(sentence)
    if _is_small_talk(bare):
        return Reading(kind=Kind.SMALL_TALK)
    forget = requests.forgetting(bare)
    if forget is not None:
        return Reading(forget=forget)
    wish = requests.remembering(bare)
    if wish is not None:
        return Reading(facts=_asked_to_keep(wish, earlier))
    corrected = correct(bare, talked_about)
    if corrected:
        return Reading(facts=corrected)
    plain = requests.without_tag(bare)
    if is_question(plain):
        return Reading(question=parse_question(plain))
    found = _facts(plain)
    facts = tuple(fact for fact in found if fact.standing)
    passing = next((fact.topic for fact in found if _MENTIONED.match(plain)), None)
    return Reading(facts=facts, informs=None if facts or not _is_informative(plain) else plain, mentions=passing)


def _asked_to_keep(wish: requests.Wish, earlier: Sequence[str]) -> tuple[Fact, ...]:
    content = wish.content
    if not content:
        # `Remember that.` speaks of the message before.
        content = next((text for text in reversed(earlier) if not is_question(text)), "")
    if not content:
        return ()
    if wish.always:
        rest = [parse_fact(clause) or conduct.wanted_from_now_on(clause) for clause in clauses(content)]
        return tuple(rest)
    return tuple(
        conduct.parse_rule(clause)
        or parse_fact(clause)
        or (conduct.wanted_from_now_on(clause) if conduct.is_setting(clause) else unparsed_fact(clause))
        for clause in clauses(content)
    )


def _facts(sentence: str) -> list[Fact]:
    found = [conduct.parse_rule(clause) or parse_fact(clause) for clause in clauses(sentence)]
    return [fact for fact in found if fact is not None]


_I_MEAN = re.compile(r"^(?:sorry,? )?i mean(?:t)?,? (?P<x>(?:my|our|the) [^,]+?)[.!]*$", re.IGNORECASE)


def _asked_again(sentence: str) -> Question | None:
    """Return the question that `I mean my shoe size` puts in the place of the one before it."""
    found = _I_MEAN.match(requests.without_opening(sentence))
    return parse_question(f"What is {found.group('x')}?") if found else None


_GREETING = re.compile(
    r"^(?:hi|hello|hey|hiya|howdy|yo|good (?:morning|afternoon|evening|night|day)|bye|goodbye|see you.*|cheers|"
    r"thanks?.*|"
    r"thank you.*|ok(?:ay)?|great|cool|nice|perfect|wonderful|awesome|sure|yes|yep|no|nope|no thanks?|lol|haha.*|wow|"
    r"never ?mind.*|forget (?:it|about it)|no (?:problem|worries).*|don['’]t worry.*|you['’]re welcome|got it|i see|"
    r"sounds good|well done|good (?:job|luck|point).*|that['’]s (?:all|fine|great|ok|nice|funny|right|good|cool).*)"
    r"(?:[,]? (?:there|all|everyone|again|then|my friend|friend|so much|a lot))*[.!… ]*$",
    re.IGNORECASE,
)
_CHAT = re.compile(
    r"^(?:how have (?:you|things) been\b.*|"
    r"how (?:are|is|was) (?:you|it going|things|life|your day)\b.*|how (?:do|did) you (?:do|feel|sleep)\b.*|"
    r"what['’]?s up.*|"
    r"what is up.*|are you (?:there|ok|okay|ready|real|a (?:bot|robot|human|machine|computer)|human|alive)\b.*|who "
    r"are you.*|"
    r"what are you.*|what can you do.*|(?:what is|what['’]s) your name.*|can you help(?: me)?\??|is (?:anyone|"
    r"anybody) there.*|"
    r"do you like me.*|tell me (?:a|another|something|some)\b.*|sing .*|how['’]s (?:it going|life|things|your day).*)$",
    re.IGNORECASE,
)


def _is_small_talk(sentence: str) -> bool:
    return bool(_GREETING.match(sentence) or _CHAT.match(sentence))


def _kind(text: str) -> Kind:
    if re.match(r"^(?:thanks?|thank you|cheers)\b", text, re.IGNORECASE):
        return Kind.COURTESY
    return (
        Kind.SMALL_TALK
        if all(_is_small_talk(requests.without_opening(part)) for part in sentences(text))
        else Kind.STATEMENT
    )


_MENTIONED = re.compile(r"^(?i:the) .*(?:\d|(?<=\w )[A-Z])")
"""A thing of the world with a number, a day or a name: `The meeting is on Friday` may be corrected."""

_OF_THE_MOMENT = re.compile(
    r"^(?:i|you|it|that|this|these|those|what|there|he|she|they|we|let|please|can|could|would|write|make|give|show|"
    r"explain|"
    r"translate|summari[sz]e|my|lovely|nice)\b",
    re.IGNORECASE,
)
_LEAST_MEANING = 3


def _is_informative(sentence: str) -> bool:
    """Say whether a sentence tells something about the world that a later question may be about."""
    return not _OF_THE_MOMENT.match(sentence) and len(content_words(sentence)) >= _LEAST_MEANING
