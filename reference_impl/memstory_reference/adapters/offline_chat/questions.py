"""Questions: how one is told, what it asks for under its courtesies, and the words to search for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memstory_reference.adapters.offline_chat.lexicon import PROJECT_WORDS
from memstory_reference.adapters.offline_chat.question_keys import WH, keys_of
from memstory_reference.adapters.offline_chat.topics import noun_phrase_key
from memstory_reference.adapters.offline_chat.wording import expanded


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question. `keys` are tried in order; `query` is searched for; an `open` one asks for all about something.

    `search_first` holds for things of the world, which are rarely kept under a topic.
    """

    text: str
    query: str
    keys: Sequence[str] = ()
    open: bool = False
    search_first: bool = False


_AUX = r"(?:do|does|did|is|are|am|was|were|can|could|should|will|would|have|has|must|may|shall|might)"
_SUBJECT = r"(?:I|we|you|my|our|the|he|she|they|it|there|this|that|any|someone|anyone)"
_DIRECT = re.compile(
    rf"^(?:{WH} {_AUX}\b|(?:what|which|whose|how) (?:[\w-]+ ){{1,3}}{_AUX}\b|(?:do|does|did|am|is|are|was|were|can|"
    rf"could|should|will|would|have|has|may|must) (?:not )?{_SUBJECT}\b)",
    re.IGNORECASE,
)
_NEEDING = r"i (?:need|am looking for|require)"
_NEEDED = (
    rf"{_NEEDING} (?:my|our) (?:[\w'’-]+ ){{0,4}}(?:number|code|pin|password|address|date|time|id|birthday|name|link|"
    r"url|key|size|deadline)s?[.!]*$"
)
"""`I need my locker number` asks for what is on record; `I need my coffee` does not."""

_WOULD_BE_GOOD = (
    r"it would (?:really )?be (?:\w+ )?(?:great|nice|good|helpful|useful|lovely|handy) (?:to (?:know|hear)|"
    r"if you (?:could |would |can )?(?:tell|told|remind|reminded) me)"
)
_WRAPPER = re.compile(
    r"^(?:(?:please|so|and|then|now|sorry|hey|ok|okay|well|again|but|just|quickly)[,\s]+|"
    r"(?:can|could|would|will) you (?:please |kindly |perhaps |maybe |quickly |by any chance )*(?:tell me|remind me|"
    r"say|recall|remember|let me know|look up|check|find out|help me (?:remember|recall))(?: again| once more)?(?: "
    r"of| about)?[,\s]+|"
    r"(?:do|did|would) you (?:happen to |still |by any chance |also )*(?:know|remember|recall|have any idea|have an "
    r"idea|have a record of|have it noted)(?: of)?[,\s]+|"
    r"(?:please )?(?:tell|remind|show) me(?:\b[:,])? (?:again |once more )?(?:of |about (?=my|our|what|which|who|"
    r"where|when|"
    r"how))?|"
    r"i (?:wonder|am wondering|was wondering|forgot|have forgotten|forget|would like to know|want to know|need to "
    r"know|am not sure|am curious|(?:can not|do not)(?: seem to)? (?:remember|recall|think of)|keep forgetting|"
    r"have lost track of|am trying to (?:remember|recall)|would (?:love|like|be (?:glad|happy|curious)) to (?:know|"
    r"hear)|need you to tell me)[,:\s]+|"
    rf"{_WOULD_BE_GOOD}[,:\s]+|i mean[,\s]+|guess (?={WH}\b)|{_NEEDING} (?=my\b|our\b)|"
    r"i (?:am|was) wondering about (?=my\b|our\b|the\b)|"
    r"(?:any|have you any|got any) (?:idea|clue|chance you know|memory of)[,\s]+|let me know[,\s]+|"
    r"(?:have|did) i (?:ever )?(?:told|tell|mentioned|mention|said|say)(?: to)?(?: you)? (?:that |about (?=what|"
    r"which|who|where|when|how))?|"
    r"is it (?:true|right|correct) that |(?:what|which|who|where|when|how) did i (?:say|tell you|mention) (?=(?:my|"
    r"our|the) .+ (?:is|was|are|were)\b)|"
    r"what was it again[,\s]+|if (?=i\b|my\b|we\b|our\b)|whether )",
    re.IGNORECASE,
)
_ASKING_WORDS = re.compile(
    r"^(?:(?:please )?(?:tell|remind) me (?!a\b|another\b|something\b|some\b|that\b|to\b)|(?:can|could|would|will) "
    r"you (?:please |kindly )?(?:tell|remind) me\b|i (?:wonder|am wondering|was wondering|forgot|have forgotten|"
    r"forget|(?:can not|do not)(?: seem to)? (?:remember|recall|think of)|"
    r"would (?:love|like|be (?:glad|happy|curious)) to (?:know|hear)|"
    r"want to know|need to know|am curious|have lost track of|am trying to (?:remember|recall)) "
    rf"(?:{WH}|if|whether)\b|i (?:can not|do not)(?: seem to)? (?:remember|recall|think of) "
    rf"(?:my|our)\b|guess {WH}\b|{_NEEDED}|{_WOULD_BE_GOOD} (?:{WH}|if|whether|my|our)\b|"
    r"i (?:am|was) wondering about (?:my|our|the)\b|"
    r"do you (?:know|remember|recall)\b|let me know\b|any idea {WH}\b|(?:what|how) about "
    r"(?:my|our|the)\b)",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"^(?:(?:what|which things|how much|anything|something|everything)(?: else| all| exactly)? ?"
    r"(?:(?:do|did|can|could|have|has|would) (?:you|i|we)(?: still| already| ever)?|i|you|we)? ?"
    r"(?:know|remember|recall|tell you|told you|tell me|say|said|mention|mentioned|talk|talked|discuss|discussed|"
    r"save|saved|store|stored|learned?|noted?|have)?"
    r"(?: to you| to me| with you| you| me| in memory| in your memory| on record| so far| earlier| before| last time)*|"
    r"(?:have|did) (?:i|we) (?:ever )?(?:told|tell|mentioned|mention|said|say|talked|talk|spoken|speak)(?: to)?(?: "
    r"you)?(?: anything| something)?)"
    r"\s*\b(?:about|on|regarding|concerning|of)\s+(?P<x>.+)$",
    re.IGNORECASE,
)
_TELL_ABOUT = re.compile(
    r"^(?:please )?tell me (?:everything |something |more |what you (?:know|remember) )?about (?P<x>.+)$", re.IGNORECASE
)
_DECIDED = re.compile(
    r"^what (?:did|have|had) (?:we|the team) (?:decided?|agreed?|settled?|chosen?|choose|picked?)(?: to do)? "
    r"(?:about|on|for|as|regarding|upon) (?P<x>.+)$",
    re.IGNORECASE,
)


def is_question(sentence: str) -> bool:
    """Say whether a sentence asks.

    >>> is_question("What language do I prefer"), is_question("When it rains I stay home.")
    (True, False)
    """
    text = expanded(sentence.strip())
    return text.endswith(("?", "？", "؟")) or bool(_DIRECT.match(text) or _ASKING_WORDS.match(text))


def parse_question(sentence: str) -> Question:
    """Return what a question asks for.

    >>> parse_question("Could you tell me which editor I like?").keys[0]
    'user.editor_preference'
    """
    text = expanded(sentence.strip().rstrip("?!.？؟ ")).strip()
    told = _TELL_ABOUT.match(text)
    core = _unwrapped(text)
    about = told or _OPEN.match(core) or _OPEN.match(text)
    if about:
        return Question(text=sentence, query=_about(about.group("x")), open=True)
    decided = _DECIDED.match(core)
    keys = [noun_phrase_key(f"our {_bare(decided.group('x'))}")] if decided else list(dict.fromkeys(keys_of(core)))
    world = not decided and bool(_WORLD.match(core))
    return Question(text=sentence, query=core or sentence, keys=tuple(keys[:_MOST_KEYS]), search_first=world)


_WORLD = re.compile(
    rf"^(?i:{WH}|how \w+|(?:what|which) \w+) (?i:is|are|was|were|do|does|did) the (?=.*(?:\bof\b|[A-Z]))"
    rf"(?!(?:[\w'’-]+ )*(?i:{'|'.join(sorted(PROJECT_WORDS))})s?\b)(?!.*\b(?i:my|our)\b)"
)
_MOST_KEYS = 2
"""Topics tried before searching: more would keep somebody waiting for guesses."""


def _unwrapped(text: str) -> str:
    previous = None
    while previous != text:
        previous = text
        text = _WRAPPER.sub("", text, count=1).strip(" ,:")
    return text or previous


def _about(thing: str) -> str:
    thing = thing.strip(" ,.")
    return "the user: me, my, I" if thing.casefold() in {"me", "myself", "us"} else thing


def _bare(phrase: str) -> str:
    return re.sub(r"^(?:my|our|the|a|an|any|some|to)\s+", "", phrase.strip(), flags=re.IGNORECASE)
