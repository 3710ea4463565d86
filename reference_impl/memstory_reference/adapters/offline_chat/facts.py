"""Facts in statements: `my preferred language is Elixir` is `user.language_preference` = `Elixir`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from memstory_reference.adapters.offline_chat import preferences
from memstory_reference.adapters.offline_chat.lexicon import PASSING, PASSING_STATES, PROJECT_WORDS, RELATIVES
from memstory_reference.adapters.offline_chat.predicates import NEGATION, attribute_of, trimmed
from memstory_reference.adapters.offline_chat.topics import PROJECT, USER, key, noun_phrase_key, sentence_key
from memstory_reference.adapters.offline_chat.wording import expanded, singular, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something said. `standing` facts are kept without being asked to; `said` is the clause as it was typed."""

    topic: str
    value: str
    said: str
    standing: bool = True


_VERB = (
    r"(?:is|are|am|was|were|will be|has|have|had|do not|does not|did not|no longer|never|always|usually|"
    r"lives?|works?|comes?|goes|speaks?|likes?|loves?|hates?|dislikes?|enjoys?|prefers?|uses?|moved|changed|switched|"
    r"takes? place|happens?|"
    r"plays?|drives?|drinks?|eats?|stud(?:y|ies)|teach(?:es)?|collects?|wears?|runs?|starts?|ends?|meets?|releases?|"
    r"agreed|decided|chose|picked|settled|keeps?|resides?|got)(?!s? (?:is|are|was|were)\b)"
)
_SUBJECT = re.compile(
    r"^(?P<s>(?:my|our) .+? and I|I|we|(?:my|our|the)\s.+?)\s+(?P<rest>(?:(?:now|currently|also|"
    rf"still)\s+)?{_VERB}\b.*)$",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"^(?P<s>I|we)\s+(?P<rest>.+)$", re.IGNORECASE)
_LABEL = re.compile(
    r"^(?:here (?:is|are) )?(?P<s>(?:my|our|the) (?:(?!\b(?:is|are|was|were|has|will)\b)[^:=]){2,60}?)\s*(?::\s|"
    r"=)\s*(?P<v>\S.*)$",
    re.IGNORECASE,
)
_CALL_ME = re.compile(
    r"^(?:(?:please|just|you (?:can|may|should|must)|people|friends|everyone|everybody|they)\s+)*"
    r"(?:call me|address me as|refer to me as) (?P<v>.+)$",
    re.IGNORECASE,
)
_LIKED_BEST = re.compile(
    r"^(?:the|my) (?P<x>.+?) (?:that |which )?I (?:like|love|prefer|enjoy)(?: the)?(?: best| most)? (?:is|are) "
    r"(?P<v>.+)$",
    re.IGNORECASE,
)
_REVERSED = re.compile(
    r"^(?P<v>(?!(?:my|our|the|it|that|this|today|tomorrow|now|here|there|he|she|they|i|we|you|what|who|"
    r"which|where|when|why|how|guess)\b).{1,60}?) "
    r"(?:is|are) "
    r"(?P<s>(?:my|our) .+)$",
    re.IGNORECASE,
)
_SET = re.compile(
    r"^(?:please )?(?:change|set|update|switch) (?P<s>(?:my|our|the) .+?) (?:from .+? )?to (?P<v>.+)$", re.IGNORECASE
)
_THERE_ARE = re.compile(r"^there (?:is|are) (?P<v>\w+ (?P<x>.+?)) (?:in|on) (?P<s>(?:my|our) .+)$", re.IGNORECASE)
_IS = re.compile(
    r"^(?P<verb>(?:(?:now|currently|also|still)\s+)?(?:is|are|was|were|will be|has been|have been)|"
    r"(?:has |have |is |was |got )?(?:being )?(?:changed|moved|switched|set|pushed(?: back)?|postponed|shifted)\s+"
    r"(?:from .+? )?(?:to|until|for)|"
    r"(?:starts?|ends?|meets?|takes? place|happens?) (?:at|on))\s+(?P<v>.+)$",
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"^(?:been )?(?:changed|moved|switched|set|pushed back|postponed|shifted) (?:from .+? )?(?:to|until|for) "
)
_GOAL = re.compile(r"^(?:want|plan|aim|intend|hope|would like|am planning|am hoping) to (?P<v>.+)$", re.IGNORECASE)
_NOT_BUT = re.compile(r"^(?P<be>is|are|am) not [^,]+,? (?:but|it is|they are|i am) (?=\w)", re.IGNORECASE)
REPORTED = re.compile(
    r"\b(?:says?|said|thinks?|thought|told|believes?|claims?|wants?|asked|asks|hopes?|if|because)\b", re.IGNORECASE
)
"""What somebody else says, and conditions, state no fact of the user's."""

_FRONTED = re.compile(
    r"^for (?!(?:me|us|now|once|example|instance|years?|months?|weeks?|days?|a|an|some|that|this|it|what)\b)"
    r"(?P<x>(?:our |the |my )?[\w-]+(?: [\w-]+){0,2}?),? (?P<c>(?:we|I|the team) .+)$",
    re.IGNORECASE,
)
"""`For logging we picked structlog` says the purpose first."""

_LET_US = re.compile(r"^let us (?=(?:use|go with|adopt|pick|choose)\b)", re.IGNORECASE)
_DECIDED_THAT = re.compile(
    r"^(?:(?:we|the team) (?:have |had |all )?(?:decided|agreed) that|(?:decision|decided|agreed):) (?P<c>.+)$",
    re.IGNORECASE,
)
_ANIMATE_WE = re.compile(r"^(?:the team|our team|the group|everyone)$", re.IGNORECASE)


def parse_fact(clause: str) -> Fact | None:
    """Return the fact that `clause`, one main clause, states; None if it follows none of the forms.

    >>> fact = parse_fact("My sister's name is Ana.")
    >>> fact.topic, fact.value, fact.standing
    ('user.sister_name', 'Ana', True)
    """
    said = clause.strip().rstrip(".!;, ")
    text = expanded(said)
    for form in _FORMS:
        found = form(text)
        if found is not None:
            value = trimmed(found.value) if found.said == "" else said
            return replace(found, value=value, said=said) if value else None
    return None


def unparsed_fact(clause: str) -> Fact:
    """Return a fact for what somebody asks to keep, whatever its form: the whole clause under a key of its words."""
    said = clause.strip().rstrip(".!;, ")
    goal = _GOAL.match(expanded(said).removeprefix("I "))
    if goal:
        return Fact(topic="user.goal", value=trimmed(goal.group("v")), said=said)
    bare = parse_fact(f"the {said}")
    if bare is not None:
        # `Rent is due on the 1st` has a subject without an article.
        return replace(
            bare, said=said, value=bare.value.removeprefix("the ") if bare.value == bare.said else bare.value
        )
    return Fact(topic=sentence_key(said), value=said, said=said)


def _valued(topic: str, value: str, *, standing: bool = True) -> Fact:
    return Fact(topic=topic, value=value, said="", standing=standing)


def _whole(topic: str, *, standing: bool = True) -> Fact:
    """Return a fact whose value is the clause as it was said: what is denied or done has no shorter value."""
    return Fact(topic=topic, value="", said="whole", standing=standing)


def _called(text: str) -> Fact | None:
    found = _CALL_ME.match(text)
    return _valued("user.name", found.group("v")) if found else None


def _liked_best(text: str) -> Fact | None:
    found = _LIKED_BEST.match(text)
    return _valued(preferences.kind_key(found.group("x")), found.group("v")) if found else None


def _labelled(text: str) -> Fact | None:
    found = _SET.match(text) or _LABEL.match(text)
    if not found:
        return None
    return _valued(noun_phrase_key(found.group("s")), found.group("v"), standing=_is_standing(found.group("s")))


def _counted(text: str) -> Fact | None:
    found = _THERE_ARE.match(text)
    return _valued(noun_phrase_key(found.group("s"), attribute=found.group("x")), found.group("v")) if found else None


def _agreed(text: str) -> Fact | None:
    found = _DECIDED_THAT.match(text)
    inner = found and (parse_fact(found.group("c")) or parse_fact(f"the {re.sub('^all ', '', found.group('c'))}"))
    if not inner:
        return None
    return _valued(f"{PROJECT}.{inner.topic.partition('.')[2]}", inner.value)


def _of_subject(text: str) -> Fact | None:
    text = _FRONTED.sub(r"\g<c> for \g<x>", _LET_US.sub("we decided to ", text))
    found = _PRONOUN.match(text) or _SUBJECT.match(text)
    if not found or REPORTED.search(found.group("s")):
        return None
    subject, rest = _without_apposition(found.group("s")), _NOT_BUT.sub(r"\g<be> ", found.group("rest"))
    if _ANIMATE_WE.match(subject) and not re.match(r"(?:is|are)\b", rest):
        subject = "we"
    positive = NEGATION.sub("", rest, count=1)
    fact = _of_predicate(subject, positive)
    if fact is None or positive == rest:
        return fact
    # What is denied keeps its whole clause: the value alone would say the opposite.
    return _whole(fact.topic, standing=fact.standing)


def _of_predicate(subject: str, rest: str) -> Fact | None:
    person = subject.casefold()
    attribute = attribute_of(rest, speaker=person == "i", living=_is_living(subject))
    if attribute is not None:
        topic = (
            key(USER, attribute.name) if person in {"i", "we"} else noun_phrase_key(subject, attribute=attribute.name)
        )
        standing = person in {"i", "we"} or _is_standing(subject)
        return (
            _whole(topic, standing=standing) if attribute.whole else _valued(topic, attribute.value, standing=standing)
        )
    liking = preferences.parse(subject, rest)
    if liking is not None:
        standing = person in {"i", "we"} or _is_standing(subject)
        return (
            _valued(liking.topic, liking.value, standing=standing)
            if liking.value
            else _whole(liking.topic, standing=standing)
        )
    return None if person in {"i", "we"} else _noun_is(subject, rest)


def _noun_is(subject: str, rest: str) -> Fact | None:
    found = _IS.match(rest)
    if not found:
        return None
    value = _MOVED.sub("", found.group("v"))
    due = re.match(r"due (?:(?:on|by|in) )?(.+)$", value, re.IGNORECASE)
    if due:
        return _valued(noun_phrase_key(subject, attribute="deadline"), due.group(1), standing=_is_standing(subject))
    past = re.match(r"(?:was|were)\b", found.group("verb"), re.IGNORECASE) and value == found.group("v")
    standing = _is_standing(subject) and not past and not _is_passing(value)
    return _valued(noun_phrase_key(subject), value, standing=standing)


def _reversed(text: str) -> Fact | None:
    found = _REVERSED.match(text)
    if not found:
        return None
    kind = preferences.kind_key(found.group("s")) if preferences.is_liked(found.group("s")) else None
    return _valued(kind or noun_phrase_key(found.group("s")), found.group("v"), standing=_is_standing(found.group("s")))


_FORMS: tuple[Callable[[str], Fact | None], ...] = (
    _called,
    _liked_best,
    _agreed,
    _labelled,
    _counted,
    _of_subject,
    _reversed,
)


def _without_apposition(subject: str) -> str:
    """Return `my sister` for `my sister Ana`, and `I` for `my wife and I`."""
    if re.search(r"\band I$", subject):
        return "I"
    # `my customer ID` names no customer.
    return re.sub(r"^((?:[Mm]y|[Oo]ur) [a-z-]+),? (?![A-Z]{2})[^\Wa-z\d_]\w+,?$", r"\1", subject)


def _is_living(subject: str) -> bool:
    found = words(subject)
    return found[:1] in (["i"], ["we"]) or bool(found and found[-1] in RELATIVES)


def _is_standing(subject: str) -> bool:
    """Say whether what is said of `subject` is kept unasked: of mine, ours and the project's, not of the world."""
    found = [singular(word) for word in words(subject)]
    if not found or found[-1] in PASSING:
        return False
    return "my" in found or "our" in found or any(word in PROJECT_WORDS for word in found)


def _is_passing(value: str) -> bool:
    found = words(value)
    meaning = [
        word for word in found if word not in {"so", "very", "really", "a", "bit", "quite", "too", "all", "still"}
    ]
    return (
        not meaning or meaning[0] in PASSING_STATES or (len(meaning[0]) > len("being") and meaning[0].endswith("ing"))
    )
