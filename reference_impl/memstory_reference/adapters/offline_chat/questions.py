"""Questions: the topic keys that their answer may stand under, and the words to search for.

A question is turned into the statement that would answer it (`Where do I live?` into `I live in …`), and that goes through
the rules for statements: so what is stated and what is asked meet in the same key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memstory_reference.adapters.offline_chat.facts import parse_fact
from memstory_reference.adapters.offline_chat.lexicon import PREFERRED_KINDS, PROJECT_WORDS
from memstory_reference.adapters.offline_chat.topics import PROJECT, noun_phrase_key, preference_key, rule_key
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


_WH = r"(?:what|which|who|whom|whose|where|when|why|how)"
_AUX = r"(?:do|does|did|is|are|am|was|were|can|could|should|will|would|have|has|must|may|shall|might)"
_SUBJECT = r"(?:I|we|you|my|our|the|he|she|they|it|there|this|that|any|someone|anyone)"
_DIRECT = re.compile(
    rf"^(?:{_WH} {_AUX}\b|(?:what|which|whose|how) (?:[\w-]+ ){{1,3}}{_AUX}\b|(?:do|does|did|am|is|are|was|were|can|"
    rf"could|should|will|would|have|has|may|must) (?:not )?{_SUBJECT}\b)",
    re.IGNORECASE,
)
_WRAPPER = re.compile(
    r"^(?:(?:please|so|and|then|now|sorry|hey|ok|okay|well|again|but|just|quickly)[,\s]+|"
    r"(?:can|could|would|will) you (?:please |kindly |perhaps |maybe |quickly |by any chance )*(?:tell me|remind me|"
    r"say|recall|remember|let me know|look up|check|find out|help me (?:remember|recall))(?: again| once more)?(?: "
    r"of| about)?[,\s]+|"
    r"(?:do|did|would) you (?:happen to |still |by any chance |also )*(?:know|remember|recall|have any idea|have an "
    r"idea|have a record of|have it noted)(?: of)?[,\s]+|"
    r"(?:please )?(?:tell|remind|show) me (?:again |once more )?(?:of |about (?=my|our|what|which|who|where|when|"
    r"how))?|"
    r"i (?:wonder|am wondering|was wondering|forgot|have forgotten|forget|would like to know|want to know|need to "
    r"know|am not sure|am curious|can not remember|can not recall|do not remember|do not recall|keep "
    r"forgetting)[,:\s]+|"
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
    r"forget|(?:can not|do not) (?:remember|recall)|would like to know|want to know|need to know|am curious) "
    rf"(?:{_WH}|if|whether)\b|do you (?:know|remember|recall)\b|let me know\b|any idea {_WH}\b|(?:what|how) about "
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
    keys = [noun_phrase_key(f"our {_bare(decided.group('x'))}")] if decided else list(dict.fromkeys(_keys(core)))
    world = not decided and bool(_WORLD.match(core))
    return Question(text=sentence, query=core or sentence, keys=tuple(keys[:_MOST_KEYS]), search_first=world)


_WORLD = re.compile(
    rf"^(?:{_WH}|how \w+|(?:what|which) \w+) (?:is|are|was|were|do|does|did) the (?!(?:[\w'’-]+ "
    rf")*(?:{'|'.join(sorted(PROJECT_WORDS))})s?\b)(?!.*\b(?:my|our)\b)",
    re.IGNORECASE,
)
_MOST_KEYS = 2
"""Topics tried before searching: more would keep somebody waiting for guesses."""

_GAP = "Zzgap"
"""Stands for the answer in a statement made of a question; no key may hold it."""


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


def _keys(core: str) -> Iterator[str]:
    for candidate in _candidates(core):
        if candidate and _GAP.casefold() not in candidate:
            yield candidate


def _candidates(core: str) -> Iterator[str | None]:
    special = _special(core)
    if special:
        yield special
    kind = _KIND_ASKED.match(core)
    if kind:
        yield from _of_kind(kind)
    for statement in _statements(core):
        fact = parse_fact(statement)
        # Where the gap is only the end of the value, the statement was misread: `my son is born …` gives no value.
        if fact is not None and (_GAP not in statement or fact.value in {_GAP, f"on {_GAP}", f"at {_GAP}", fact.said}):
            yield fact.topic
    phrase = _noun_phrase(core)
    if phrase:
        topic = noun_phrase_key(phrase)
        yield from (topic, *_twins(topic, core)) if topic != "project.project" else ()


_SPECIAL = (
    (
        re.compile(
            r"^(?:who (?:am I|I am)|what (?:am I called|do (?:you|people) call me|I am called)|how (?:should|do|"
            r"must) (?:you|people) (?:call|address) me|what should you call me)$",
            re.IGNORECASE,
        ),
        "user.name",
    ),
    (
        re.compile(
            r"^(?:what|which job|which work)(?: work| job)? (?:do I do|I do)(?: for (?:a living|work|money))?$",
            re.IGNORECASE,
        ),
        "user.job",
    ),
    (
        re.compile(
            r"^(?:what|which) (?:languages? do I speak|languages? I speak|languages? can I speak)$", re.IGNORECASE
        ),
        "user.spoken_language",
    ),
    (re.compile(r"^(?:how old (?:am I|I am)|what age am I)$", re.IGNORECASE), "user.age"),
    (re.compile(r"^(?:how tall (?:am I|I am))$", re.IGNORECASE), "user.height"),
    (re.compile(r"^(?:do I have|have I(?: got)?) (?:any |an )?allerg(?:y|ies)$", re.IGNORECASE), "user.allergy"),
    (
        re.compile(
            r"^what (?:is my goal|do I (?:want|plan|aim|intend|hope) to .+|am I (?:planning|hoping) to .+)$",
            re.IGNORECASE,
        ),
        "user.goal",
    ),
)
_JOB_OF = re.compile(r"^what (?:does|do) (?P<s>my .+?) do(?: for (?:a living|work))?$", re.IGNORECASE)
_AGE_OF = re.compile(
    r"^how old (?:is|are) (?P<s>(?:my|our) .+)$|^how old (?P<t>(?:my|our) .+) (?:is|are)$", re.IGNORECASE
)
_QUALITY_OF = re.compile(
    r"^(?:what|which) (?P<x>[\w-]+(?: [\w-]+)?) (?:is|are|does|do) (?P<s>(?:my|our) (?!favou?rite|"
    r"preferred)[\w'’ -]+?)(?: have)?$",
    re.IGNORECASE,
)
_RULES = re.compile(
    r"^(?:what (?:is|are) (?:the|our|my|your) )?(?:rules?|polic(?:y|ies)|constraints?|conventions?) (?:about|for|on|"
    r"regarding|concerning|with) (?P<x>.+)$",
    re.IGNORECASE,
)
_IS_ALLOWED = re.compile(
    r"^(?:is|are) (?P<x>.+?) (?:allowed|permitted|forbidden|banned|ok|okay|fine|acceptable|off limits)$", re.IGNORECASE
)
_ALLOWED = re.compile(
    r"^(?:(?:may|can|should|must|shall|could) (?:I|we|one|people|anyone)|(?:may|should|must) you|(?:am I|are we|are "
    r"you) allowed to|is it (?:ok|okay|allowed|fine|forbidden|acceptable) (?:to|if (?:I|we|you)))(?: ever)? "
    r"(?P<x>.+)$",
    re.IGNORECASE,
)


def _special(core: str) -> str | None:
    for pattern, topic in _SPECIAL:
        if pattern.match(core):
            return topic
    job, age = _JOB_OF.match(core), _AGE_OF.match(core)
    if job:
        return noun_phrase_key(job.group("s"), attribute="job")
    if age:
        return noun_phrase_key(age.group("s") or age.group("t"), attribute="age")
    quality = _QUALITY_OF.match(core)
    if quality:
        return noun_phrase_key(quality.group("s"), attribute=quality.group("x"))
    rule = _RULES.match(core) or _ALLOWED.match(core) or _IS_ALLOWED.match(core)
    return rule_key(rule.group("x")) if rule else None


_KIND_ASKED = re.compile(
    r"^(?:what|which)(?: is the)?(?: (?:kind|sort|type|brand) of)? (?P<x>(?!is\b|are\b|was\b|do\b|did\b|"
    r"does\b)[\w-]+(?: [\w-]+){0,2}?)"
    r" (?:that )?(?:(?:do|does|did|should|will|would|shall|have|has|am|are|is|was|were) )?(?P<s>I|we|(?:my|our|the) "
    r"[\w' ’-]+?)"
    r"(?: (?:usually|always|really|still|currently|actually|finally|decide|want|choose|chose|agree|agreed|decided))*"
    r" (?P<verb>prefer|like|love|favou?r|enjoy|hate|use|using|decided?|choose|chose|chosen|picked?|pick|agreed?|"
    r"agree|settled?|settle|go|going|went|gone|"
    r"drive|play|work|wear|drink|eat|have|got|own|study|learn|support|follow|read|watch|run|build|adopt|adopted|"
    r"need|select|selected)s?\b(?P<rest>.*)$",
    re.IGNORECASE,
)


def _of_kind(found: re.Match[str]) -> Iterator[str]:
    """Yield the keys of `which editor do I use`: the kind of thing is said, the thing is asked for."""
    kind, subject, verb = found.group("x"), found.group("s"), found.group("verb").casefold()
    rest = found.group("rest").strip()
    person = subject.casefold()
    if verb in {"work", "wear"} and rest:
        return
    if verb in {"prefer", "like", "love", "favor", "favour", "enjoy"}:
        purpose = re.match(r"(?:for|when|in) (.+)$", rest, re.IGNORECASE)
        if purpose:
            yield preference_key(purpose.group(1))
        owner = _owner(subject)
        yield (
            preference_key(kind)
            if person == "i"
            else noun_phrase_key(subject, attribute=f"{kind} preference")
            if owner == "my"
            else preference_key(kind, PROJECT)
        )
        if person == "i":
            yield noun_phrase_key(f"my {kind}")
        return
    if person in {"i", "we"} or person in {"the team", "our team"}:
        yield noun_phrase_key(f"{'my' if person == 'i' else 'our'} {kind}")
        if person == "i":
            yield preference_key(kind)
    else:
        yield noun_phrase_key(subject, attribute=kind)


def _owner(subject: str) -> str:
    return subject.split(maxsplit=1)[0].casefold()


_S = r"(?P<s>I|we|(?:my|our|the) (?:(?!\b(?:is|are|was|were)\b)[\w'’ -])+?)"
_ASKED = re.compile(
    rf"^(?P<wh>{_WH}|how many (?P<n>[\w -]+?)|which [\w -]+?|what [\w -]+?|how often|how long|how much) (?P<aux>do|"
    rf"does|did|am|is|are|was|were|have|has|will) {_S}(?: (?P<rest>.+))?$",
    re.IGNORECASE,
)
_INDIRECT = re.compile(
    rf"^(?P<wh>{_WH}|how many (?P<n>[\w -]+?)|which [\w -]+?|what [\w -]+?|how often) {_S} (?P<rest>(?:am|is|are|"
    r"was|were|live|lives|work|works|prefer|like|speak|drive|drink|eat|play|study|use|have|has|come|comes|deploy|"
    r"meet|release|ship|launch|go|decided|wake|get|support|teach).*)$",
    re.IGNORECASE,
)
_POLAR = re.compile(
    rf"^(?P<aux>do|does|did|am|is|are|was|were|have|has|will)(?: not)? {_S} (?P<rest>.+)$", re.IGNORECASE
)


def _statements(core: str) -> Iterator[str]:
    """Yield statements that would answer the question, with a gap for what is asked."""
    found = _ASKED.match(core)
    indirect = None if found else _INDIRECT.match(core)
    polar = None if found or indirect else _POLAR.match(core)
    if found:
        statement = _joined(found)
        yield from _filled(found, statement) if statement else ()
    elif indirect:
        yield from _filled(indirect, f"{indirect.group('s')} {indirect.group('rest')}")
    elif polar:
        yield from _affirmed(polar)
    else:
        yield core


_BE = frozenset(["is", "are", "was", "were", "am"])
_PREDICATE_END = re.compile(
    r"^(?:\w+ly )?(?:called|named|known as|(?:come )?from|based(?: in)?|located(?: in)?|living(?: in)?|allergic to|"
    r"born(?: in| on)?|due|employed(?: as)?)"
    r"(?: (?:again|now))?$",
    re.IGNORECASE,
)


def _joined(found: re.Match[str]) -> str:
    aux, rest = found.group("aux").casefold(), found.group("rest") or ""
    if aux in _BE and found.group("s").casefold() not in {"i", "we"} and not _PREDICATE_END.match(rest):
        # `What is my dog's name` holds one noun phrase, and no verb after it.
        return ""
    return " ".join(
        part for part in (found.group("s"), "" if aux in {"do", "does", "did", "will"} else aux, rest) if part
    )


def _filled(found: re.Match[str], statement: str) -> Iterator[str]:
    if found.group("n"):
        yield f"{re.sub(r' have.*$', '', statement)} have 2 {found.group('n')}"
        yield f"there are 2 {found.group('n')} in {found.group('s')}"
        return
    yield f"{statement} {_GAP}"
    word = found.group("wh").split()[0].casefold()
    joints = {
        "where": ("in", "at", "from"),
        "when": ("on", "at"),
        "how": (),
        "which": ("in", "on"),
        "what": ("on", "at"),
    }
    for joint in joints.get(word, ()):
        yield f"{statement} {joint} {_GAP}"


def _affirmed(found: re.Match[str]) -> Iterator[str]:
    """Yield `I drink coffee` for `do I drink coffee`; what is asked of a subject of several words is cut at each."""
    aux = found.group("aux").casefold()
    if aux in {"do", "does", "did", "will"}:
        subject, rest = found.group("s"), found.group("rest")
        yield f"{subject} {rest}"
        yield f"{subject} {re.sub('^have (?:got )?', 'have some ', rest)}"
        return
    whole = f"{found.group('s')} {found.group('rest')}".split()
    if whole[0].casefold() in {"i", "we"}:
        yield f"{whole[0]} {aux} {' '.join(whole[1:])}"
        return
    for cut in range(2, min(len(whole), _LONGEST_SUBJECT) + 1):
        yield f"{' '.join(whole[:cut])} {aux} {' '.join(whole[cut:])}".strip()


_LONGEST_SUBJECT = 4
_IS_NP = re.compile(
    rf"^(?:{_WH}|how (?:much|long|big|large|many|often)|(?:what|which) (?:day|date|time|kind|sort|type|colour|"
    r"color))(?: (?:exactly|again))? (?:is|are|was|were|will|does|do)(?: (?:it|again))? (?P<np>(?:my|our|the) "
    r".+?)(?: (?:again|now|currently|these days|called|named|be|due|like|look like|spelled|start|begin|end|happen|"
    r"at|on|scheduled(?: for)?))*$",
    re.IGNORECASE,
)
_NP_IS = re.compile(
    rf"^(?:{_WH}|(?:what|which) (?:day|date|time)) (?P<np>(?:my|our|the) .+?) (?:is|are|was|were)(?: (?:again|now|"
    r"due|called|named|on|at))*$",
    re.IGNORECASE,
)
_NP_ONLY = re.compile(r"^(?:and |what about |how about )?(?P<np>(?:my|our) [\w'’ -]+)$", re.IGNORECASE)
_NP_WITHIN = re.compile(
    r"\b(?P<np>(?:my|our) (?:(?:favou?rite|preferred) )?[\w-]+(?:['’]s [\w-]+)?)\s*(?:is|was|are|again)?$",
    re.IGNORECASE,
)
_LIKED_IS = re.compile(
    r"^(?:what|which)(?: (?P<x>[\w-]+(?: [\w-]+)?))? (?:is|are) (?:my|our) (?:favou?rite|preferred)(?: one)?$|"
    r"^(?:what|which) (?P<y>[\w-]+(?: [\w-]+)?) (?:is|are) (?:my|our) (?:favou?rite|preferred)(?: one)?$",
    re.IGNORECASE,
)


def _noun_phrase(core: str) -> str | None:
    liked = _LIKED_IS.match(core)
    if liked and (liked.group("x") or liked.group("y")):
        return f"my favourite {liked.group('x') or liked.group('y')}"
    for pattern in (_IS_NP, _NP_IS, _NP_ONLY, _NP_WITHIN):
        found = pattern.match(core) if pattern is not _NP_WITHIN else pattern.search(core)
        if found:
            return found.group("np")
    return None


def _twins(topic: str, core: str) -> Iterator[str]:
    """Yield the other key under which the same fact may have been said."""
    prefix, _, thing = topic.partition(".")
    if thing.endswith("_name"):
        yield topic.removesuffix("_name")
    elif re.match(r"who\b", core, re.IGNORECASE) or re.search(r"\b(?:called|named)$", core):
        yield f"{topic}_name"
    elif thing.endswith("_preference"):
        yield topic.removesuffix("_preference")
    elif thing in PREFERRED_KINDS:
        yield f"{topic}_preference"
    elif re.match(r"when\b", core, re.IGNORECASE) and thing not in _TIMES:
        yield f"{prefix}.{thing}_date"


_TIMES = frozenset(
    ["deadline", "birthday", "date", "time", "standup", "meeting", "due", "anniversary", "retro", "project"]
)
