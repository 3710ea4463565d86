"""Answers made of what was found, and of nothing else: the sentence that fits a question best, or that none does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memstory_reference.adapters.offline_chat.facts import parse_fact
from memstory_reference.adapters.offline_chat.lexicon import PLAIN_ATTRIBUTES
from memstory_reference.adapters.offline_chat.questions import Question, is_question
from memstory_reference.adapters.offline_chat.requests import remembering, without_opening
from memstory_reference.adapters.offline_chat.tool_results import Finding
from memstory_reference.adapters.offline_chat.topics import CONSTRAINT, as_words
from memstory_reference.adapters.offline_chat.wording import content_words, expanded, sentences, shared, stem, words

UNKNOWN = "I don't know: I have no memory of that."
_OWN_WORDS = "I remember: "
_TOLD = "I remember that you told me: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A sentence that may answer. `second_hand`: it is what was answered to an earlier question."""

    text: str
    date: str = ""
    order: int = 0
    second_hand: bool = False
    recent: bool = False


def candidates(findings: Iterable[Finding], window: Sequence[str] = ()) -> list[Candidate]:
    """Return the sentences that may answer: what was said, then answers to earlier questions; echoes are left out.

    `window` are earlier messages of this conversation: they are newer than any memory.
    """
    found = [candidate for finding in findings for candidate in _of_finding(finding)]
    said = [
        Candidate(text=sentence, order=-1 - age, recent=True)
        for age, text in enumerate(reversed(window))
        for sentence in sentences(text)
        if not is_question(sentence)
    ]
    unique: dict[str, Candidate] = {}
    for candidate in sorted([*said, *found], key=lambda one: one.second_hand):
        unique.setdefault(candidate.text.casefold(), candidate)
    return list(unique.values())


def best(question: Question, found: Sequence[Candidate], nearness: Mapping[str, float]) -> list[Candidate]:
    """Return what answers `question`: one sentence, or up to three for an open one; nothing if none fits.

    `nearness` is the cosine of question and sentence, by sentence; empty without an embedder.
    """
    scored = [(support(question, candidate, nearness.get(candidate.text)), candidate) for candidate in found]
    fitting = sorted(((score, one) for score, one in scored if score > 0), key=lambda pair: -pair[0])
    if not fitting:
        return []
    first_hand = [pair for pair in fitting if not pair[1].second_hand] or fitting
    top = first_hand[0][0]
    close = [one for score, one in first_hand if score >= top - _CLOSE]
    if question.open:
        return _without_stale([one for _, one in first_hand])[:_MOST_SENTENCES]
    return [max(close, key=_newness)] if _contradict(close) else [close[0]]


def support(question: Question, candidate: Candidate, near: float | None) -> float:
    """Return how well a sentence answers a question; 0 if it does not.

    What states the very fact asked for has most. Else words count: names and what is `mine` in the question must be in
    the sentence, and half of its other words; the cosine decides where words alone would not.
    """
    fact = parse_fact(_statement(candidate.text))
    if fact is not None and fact.topic in question.keys:
        return _SAME_FACT
    wanted = content_words(question.query)
    there = content_words(candidate.text)
    common = shared(wanted, there)
    share = len(common) / len(wanted) if wanted else 0.0
    if _WHEN.match(question.query) and not _TIME.search(candidate.text):
        return 0.0
    fits = _fits_open if question.open else _fits
    names = _named(question.query)
    kind = _KIND.match(question.query)
    asked = [word for word in wanted if word not in content_words(kind.group("x"))] if kind else wanted
    if not fits(Evidence(wanted=wanted, common=common, names=names, near=near, asked=asked)):
        return 0.0
    return share + (near or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a question and a sentence share: stems, those of them that name something, and the cosine.

    `asked` is `wanted` without the kind of thing asked for: of `which airline do I prefer`, the answer says `prefer`.
    """

    wanted: Sequence[str]
    common: Sequence[str]
    names: Sequence[str]
    near: float | None
    asked: Sequence[str]

    @property
    def share(self) -> float:
        """Return how much of the question the sentence has, from 0 to 1."""
        return len(self.common) / len(self.wanted) if self.wanted else 0.0


def _fits(evidence: Evidence) -> bool:
    near = evidence.near
    if any(name not in evidence.common for name in evidence.names):
        return False
    if evidence.names and set(evidence.common) <= set(evidence.names) and len(evidence.wanted) > len(evidence.names):
        # `Marta's phone number` is not answered by all that is known of Marta.
        return near is not None and near >= _VERY_NEAR
    meaning = [word for word in evidence.common if word not in PLAIN_ATTRIBUTES]
    if meaning and (evidence.share >= _MOST_WORDS or (evidence.share >= _HALF and (near is None or near >= _RELATED))):
        return True
    if near is None:
        return False
    if evidence.asked and near >= _RELATED and all(word in evidence.common for word in evidence.asked):
        return True
    return near >= _NEAR_ENOUGH and bool(meaning or not evidence.names)


def _fits_open(evidence: Evidence) -> bool:
    if evidence.names:
        return any(name in evidence.common for name in evidence.names)
    meaning = [word for word in evidence.common if word not in PLAIN_ATTRIBUTES]
    return bool(meaning) or (evidence.near is not None and evidence.near >= _NEAR_ENOUGH)


_KIND = re.compile(
    r"^(?:what|which) (?P<x>(?:[\w-]+ ){1,3}?)(?:do|does|did|should|have|has|am|are|is)\b", re.IGNORECASE
)
_WHEN = re.compile(r"^(?:when|(?:what|which) (?:day|date|time|year|month|weekday))\b", re.IGNORECASE)
_TIME = re.compile(
    r"\d|\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)?days?|jan(?:uary)?|feb(?:ruary)?|march|april|may|june?|july?|"
    r"aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|spring|summer|autumn|fall|winter|today|"
    r"tomorrow|yesterday|tonight|noon|midnight|mornings?|evenings?|afternoons?|nights?|weeks?|weekends?|months?|years?|"
    r"every|each|daily|weekly|monthly|next|last|ago|since|until|till|before|after|during|when|while|once|twice|always|"
    r"never|soon|early|late|eve|christmas|easter|o['’]clock|end|beginning|half|quarter|(?:twen|thir)ty|ten|eleven|"
    r"twelve|(?:at|past|by) (?:one|two|three|four|five|six|seven|eight|nine))\b",
    re.IGNORECASE,
)
"""What answers `when` says a time: `I was born in Bergen` does not."""

_SAME_FACT = 3.0
_HALF, _MOST_WORDS = 0.5, 0.6
_RELATED, _NEAR_ENOUGH, _VERY_NEAR = 0.4, 0.45, 0.6
"""Cosines of MiniLM: by itself it does not tell an answer from a neighbour (my dog's name, my cat's name: 0.59)."""

_CLOSE = 0.15
_MOST_SENTENCES = 3


def quoted(found: Sequence[Candidate]) -> str:
    """Return an answer that quotes what was found, as data."""
    said = "; ".join(f'"{candidate.text.rstrip(". ")}"' for candidate in found)
    second_hand = all(candidate.second_hand for candidate in found)
    return f"{_OWN_WORDS if second_hand else _TOLD}{said}."


def of_topic(topic: str, value: str) -> str:
    """Return an answer from what a topic holds.

    >>> of_topic("user.language_preference", "Elixir")
    'I remember: your language preference is Elixir.'
    """
    ending = "" if value.endswith((".", "!", "?", "。")) else "."
    if topic.startswith(f"{CONSTRAINT}."):
        return f"I remember this rule: {value}{ending}"
    if _is_clause(value):
        return f'{_TOLD}"{value}".'
    return f"{_OWN_WORDS}{as_words(topic)} is {value}{ending}"


def confirmed(topic: str, value: str) -> str:
    """Return a confirmation of what was saved under a topic.

    >>> confirmed("user.language_preference", "Elixir")
    'I will remember that your language preference is Elixir.'
    """
    ending = "" if value.endswith((".", "!", "?", "。")) else "."
    if topic.startswith(f"{CONSTRAINT}."):
        return f"I will remember this rule: {value}{ending}"
    if _is_clause(value):
        return confirmed_in_their_words(value)
    return f"I will remember that {as_words(topic)} is {value}{ending}"


def confirmed_in_their_words(said: str) -> str:
    """Return a confirmation of what was saved as it was said."""
    return f'I will remember what you said: "{said}".'


def _of_finding(finding: Finding) -> Iterator[Candidate]:
    for sentence in sentences(finding.text):
        if not _asks(sentence):
            yield Candidate(text=sentence, date=finding.date, order=finding.rank)
    if finding.answer and _asks(sentences(finding.text)[-1] if finding.text.strip() else "?"):
        for sentence in sentences(finding.answer):
            if not _says_nothing(sentence):
                said = _quotation(sentence)
                yield Candidate(text=said, date=finding.date, order=finding.rank, second_hand=True)


def _asks(sentence: str) -> bool:
    bare = without_opening(sentence)
    return is_question(bare) and remembering(bare) is None


_NO_ANSWER = re.compile(
    r"\b(?:(?:do not|don['’]t|did not|can ?not|can['’]t|could not) (?:know|remember|recall|have|find)|no (?:memory|"
    r"memories|information|record|idea)|"
    r"not (?:sure|certain|aware)|nothing about|unknown to me|memory is unavailable|memory unavailable|could not "
    r"reach)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'^I remember(?: that you told me| this rule)?: "?(?P<said>.+?)"?\.?$')


def _says_nothing(sentence: str) -> bool:
    return bool(_NO_ANSWER.search(sentence)) or is_question(sentence)


def _quotation(sentence: str) -> str:
    """Return what an earlier answer of this model quoted, so that an answer never quotes a quotation."""
    found = _QUOTED.match(sentence)
    return found.group("said") if found else sentence


def _statement(sentence: str) -> str:
    bare = without_opening(sentence)
    wish = remembering(bare)
    return wish.content if wish is not None and wish.content else bare


_CAPITAL = re.compile(
    r"(?<=[\w,] )(?!I\b)[^\Wa-z\d_][\w-]*|^(?!(?:What|Which|Who|Whose|Where|When|Why|How|Do|Does|Did|Is|Are|Am|Was|"
    r"Can|My)\b)[A-Z][\w-]+(?=['’]s)"
)
_OWNER = re.compile(r"\b[\w-]+(?=['’]s\s)")
_MINE = re.compile(
    r"\b(?:my|our)\s+((?:(?!(?:is|are|was|were|do|does|did|live|work|called|named|in|on|at|for|from|to|of|"
    r"again)\b)[\w'’-]+\s*){1,3})"
)


def _named(query: str) -> list[str]:
    """Return the stems of what a question names: by a capital, as an owner, or as `mine`."""
    text = expanded(query)
    found = [*_CAPITAL.findall(text), *_OWNER.findall(text), *_MINE.findall(text)]
    return [
        word
        for word in dict.fromkeys(stem(word) for name in found for word in content_words(name))
        if word not in PLAIN_ATTRIBUTES
    ]


_CHANGED = re.compile(
    r"\b(?:actually|now|no longer|any ?more|instead|changed|moved|switched|correction|meant|updated?|not .+ but|"
    r"oops|wrong|mistaken?|misspoke)\b",
    re.IGNORECASE,
)


def _newness(candidate: Candidate) -> tuple[bool, str, bool, int]:
    return (candidate.recent, candidate.date[:10], bool(_CHANGED.search(candidate.text)), -candidate.order)


def _contradict(close: Sequence[Candidate]) -> bool:
    """Say whether sentences give different values for one thing: the same fact, or nearly the same words."""
    if len(close) < 2:  # noqa: PLR2004  (a contradiction takes two)
        return False
    topics = [fact.topic if (fact := parse_fact(_statement(one.text))) else None for one in close]
    if topics[0] is not None:
        return topics.count(topics[0]) > 1
    return _same_beginning(close[0].text, close[1].text)


_LEAST_SHARED = 0.6


def _same_beginning(first: str, second: str) -> bool:
    one, other = content_words(first), content_words(second)
    return bool(one and other) and len(shared(one, other)) / min(len(one), len(other)) >= _LEAST_SHARED


def _without_stale(found: Sequence[Candidate]) -> list[Candidate]:
    """Return the sentences without those that a newer one on the same fact replaces."""
    newest: dict[str, Candidate] = {}
    for candidate in found:
        fact = parse_fact(_statement(candidate.text))
        name = fact.topic if fact else candidate.text
        if name not in newest or _newness(candidate) > _newness(newest[name]):
            newest[name] = candidate
    return [candidate for candidate in found if candidate in newest.values()]


def _is_clause(value: str) -> bool:
    """Say whether a value is a sentence of its own, said by the user."""
    found = words(expanded(value))
    return (bool(found) and found[0] in {"i", "we", "my", "our", "the"} and parse_fact(value) is not None) or found[
        :1
    ] == ["i"]
