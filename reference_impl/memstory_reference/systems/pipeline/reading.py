"""What the pipeline reads in a text: its clean form, preferences and their keys, facts, and what gives it weight.

All are rules that look at words alone, each a plain function, and `Detectors` takes any other (PF-19). They know
English; in scripts without capitals no name is found, and such texts are kept for their novelty. What a sentence
states is read by `text.english`, as for every memory; here is what the types of the specification need beside it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from memstory_reference.systems.pipeline.chunk import ChunkType
from memstory_reference.text.chunks import blocks, prose
from memstory_reference.text.english.lexicon import alternatives, expand_contractions
from memstory_reference.text.english.statements import Context, read_message
from memstory_reference.text.sentences import sentences
from memstory_reference.text.words import STOP_WORDS, count_tokens

Detector = Callable[[str], bool]

_LINE_END = re.compile(r"\r\n?")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    r"""Return a text without needless blank lines, in Unicode's form C; in a fence only line ends change (P-02, PF-1).

    >>> clean("  e\u0301\n\n\n\n**b**  "), clean("a\nb"), clean("\ufb01")
    ('é\n\n**b**', 'a\nb', 'ﬁ')
    """
    # A lone surrogate or a NUL cannot be written to a file or read by a tokenizer.
    text = _UNWRITABLE.sub("\ufffd", _LINE_END.sub("\n", text)).strip()
    parts: list[str] = []
    for block in blocks(text):
        parts.append(block.text if block.is_fence else _tidy(block.text, follows_fence=bool(parts)))
    return "".join(parts).strip()


def _tidy(text: str, *, follows_fence: bool) -> str:
    # A fence ends with its own newline: the first one here already makes a blank line.
    joined = _BLANK_LINES.sub("\n\n", f"\n{text}" if follows_fence else text)
    return unicodedata.normalize("NFC", joined.removeprefix("\n") if follows_fence else joined)


LONGEST_STATEMENT = 40
"""Tokens; what is longer tells more than a preference or a fact."""

NOW = r"(?:(?:now|currently|usually|generally|really|still)\s+)?"
PREFERENCE = re.compile(rf"\b(?:I\s+{NOW}(?:prefer|always|hate)|my\s+favou?rite)\b", re.IGNORECASE)
_QUOTED = re.compile(
    r"\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb|\u2018[^\u2019]*\u2019(?!\w)|(?<!\w)'[^']*'(?!\w)",
    re.DOTALL,
)
_REPORTED = re.compile(
    r"\b(?!I\b)[^\W\d]+\s+(?:said|says|told|tells|asked|asks|wrote|writes|thinks|thought|claims|claimed|answered|replied|"
    r"shouted|goes)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"\b(?:if|whether|unless|when|suppose|imagine)\s+$", re.IGNORECASE)
_PAST_FORMS = [form for verb in alternatives("pasts") for form in verb.split()[1:]]
_PAST_FORM = rf"(?:was|were|had|did|knew|thought|felt|got|told|said|sat|stood|{'|'.join(_PAST_FORMS)}|[a-z]{{2,}}ed)\b"
_PAST = re.compile(rf"always\s+{_PAST_FORM}", re.IGNORECASE)
_OF_SOMETHING_PAST = re.compile(r"my\s+favou?rite\b[^.,;!?]*?\s(?:was|were)\b", re.IGNORECASE)
_ABOUT_NOTHING = re.compile(
    r"\b(?:it|that|this|these|those|they|he|she)(?:\s+(?:is|are)|['\u2019](?:s|re))\s+(?:\w+\s+){0,2}$", re.IGNORECASE
)


def states_preference(text: str) -> bool:
    """Say whether the text is a short statement of what its speaker prefers, always does, hates or likes best.

    The signal of a preference counts for importance wherever it occurs; only a statement, not asked, not quoted, not of
    the past, becomes a procedural memory, which comes first in every prompt (P-11, P-19).

    >>> [states_preference(text) for text in ("I prefer tabs", "Do I prefer tabs?", "He told me 'I hate tabs'")]
    [True, False, False]
    """
    if count_tokens(text) > LONGEST_STATEMENT:
        return False
    return any(map(_states, sentences(_QUOTED.sub(" \u2026 ", text))))


def _states(sentence: str) -> bool:
    if sentence.rstrip("\"')\u2019\u201d ").endswith("?"):
        return False
    said = _REPORTED.sub("", sentence)
    if _PAST.search(said) or _OF_SOMETHING_PAST.search(said):
        return False
    found = PREFERENCE.search(said)
    if found is None:
        return False
    before = said[: found.start()]
    return not _CONDITION.search(before) and not _ABOUT_NOTHING.search(before)


_PREFERRED = re.compile(
    rf"\bI\s+{NOW}(?P<verb>prefer|always|hate)\b\s*(?P<what>.*)"
    r"|\bmy\s+favou?rite\s+(?P<thing>[\w-]+(?:[ \t][\w-]+){0,3}?)\s?(?:\s(?:is|are|was|would\s+be)\b|:|=).*",
    re.IGNORECASE | re.DOTALL,
)
_REVERSED = re.compile(r"\bmy\s+favou?rite\s+(?P<thing>[\w-]+(?:\s[\w-]+){0,2})", re.IGNORECASE)
_RIVAL = re.compile(r"\s+(?:over|to|instead\s+of|rather\s+than|than)\s+", re.IGNORECASE)
_OCCASION = re.compile(r"\s+(?P<link>for|when|in|as|on|at|during|with)\s+(?P<occasion>.+)", re.IGNORECASE | re.DOTALL)
_PART = re.compile(r"[^\W_]+(?:[-+#.'][^\W_]+)*[+#]*")
_CLAUSE_END = re.compile(r"[.,;!?\n]")
_FILLER_TOKENS = 6
_LONGEST_THING = 3

_CHOICES = {
    "indentation": "tab space",
    "hot drink": "tea coffee cocoa espresso",
    "pet": "cat dog",
    "contact": "email call text chat",
    "transport": "train plane bus bike car",
    "programming language": "python rust elixir java javascript typescript kotlin swift ruby golang scala haskell c++",
}
"""Things of which one is chosen, named alone."""
_QUALITIES = {
    "shade": "dark light",
    "place": "window aisle middle",
    "length": "short long brief detailed",
    "size": "small big large",
    "temperature": "hot warm cold iced",
    "tone": "formal informal casual",
    "hour": "morning noon evening night",
    "units": "metric imperial celsius fahrenheit kilometre mile",
}
"""Words that exclude each other where they are said of one and the same thing."""
_CHOICE_OF = {word: choice for choice, words in _CHOICES.items() for word in words.split()}
_QUALITY_OF = {word: quality for quality, words in _QUALITIES.items() for word in words.split()}
_SHADED = ("mode", "theme")
_PLACEHOLDERS = ("one", "ones")
_DROPPED = STOP_WORDS | frozenset({"please", "really", "always", "usually", "much", "lot", "instead", "now"})


def preference_key(text: str, content_hash: str) -> str:
    """Return `signal:attribute`, or `content:HASH` where no attribute is stated or the text says more than this.

    Two preferences share a key only where they exclude each other, as window seats and aisle seats, not leather seats.

    Last write wins for each key, so a text that holds more than one preference keeps its own key: what else it
    says must not be lost to a later word on one part.

    >>> preference_key("I prefer tabs", "h") == preference_key("Hi! I prefer spaces over tabs.", "h")
    True
    >>> preference_key("My favourite colour is blue", "h"), preference_key("I hate meetings at noon. I prefer tea", "h")
    ('favorite:colour', 'content:h')
    """
    attribute = _only_attribute(prose(text))
    return attribute or f"content:{content_hash}"


def _only_attribute(text: str) -> str | None:
    said = sentences(text)
    stated = [sentence for sentence in said if _PREFERRED.search(sentence) or _REVERSED.search(sentence)]
    beside = sum(count_tokens(sentence) for sentence in said if sentence not in stated)
    if len(stated) != 1 or beside > _FILLER_TOKENS:
        return None
    found = _PREFERRED.search(stated[0])
    if found and found["verb"]:
        attribute = _attribute(found["verb"].lower(), found["what"])
        return None if attribute is None else f"{found['verb'].lower()}:{attribute}"
    thing = found["thing"] if found else (_REVERSED.search(stated[0]) or {"thing": ""})["thing"]
    names = _names(thing)[:_LONGEST_THING]
    return f"favorite:{' '.join(names)}" if names else None


def _attribute(verb: str, what: str) -> str | None:
    """Return what the preference is about: a known choice, two rivals, a kind of thing, and the occasion if any."""
    what = _CLAUSE_END.split(what, maxsplit=1)[0]
    if verb == "hate":
        return " ".join(_names(what)) or None
    if verb == "always":
        return None  # habits go together: tea in the morning, tea at noon
    occasion = _OCCASION.search(what)
    thing = _OCCASION.sub("", what)
    topic = _topic(thing)
    when = " ".join(_names(occasion["occasion"])) if occasion else ""
    if topic is None:
        # "for" names what is chosen for; a time or place alone may host many preferences.
        return when or None if occasion and occasion["link"].lower() == "for" else None
    return topic if when in ("", topic) else f"{topic}, {when}"


def _topic(thing: str) -> str | None:
    chosen, *rivals = _RIVAL.split(thing, maxsplit=1)
    names, others = _singular(chosen), _singular(" ".join(rivals))
    topic, dimension = _choice(names)
    if not rivals:
        return topic
    if topic and dimension in {_CHOICE_OF.get(one) or _QUALITY_OF.get(one) for one in others}:
        return topic
    return " or ".join(sorted((" ".join(names), " ".join(others))))


def _choice(names: list[str]) -> tuple[str | None, str | None]:
    """Return what is chosen, and the kind of choice: a thing named alone, or a quality with what it is said of."""
    if len(names) == 1:
        (name,) = names
        choice = _CHOICE_OF.get(name) or _QUALITY_OF.get(name)
        return ("theme" if choice == "shade" else choice), choice
    if len(names) == 2 and (quality := _QUALITY_OF.get(names[0])):  # noqa: PLR2004  (a quality and its thing)
        is_theme = quality == "shade" and names[1] in _SHADED
        return ("theme" if is_theme else f"{names[1]} by {quality}"), quality
    return None, None


def _singular(text: str) -> list[str]:
    """Return the names without the s of a plural.

    >>> _singular("buses, seats and glass")
    ['bus', 'seat', 'glass']
    """
    names = [name for name in _names(text) if name not in _PLACEHOLDERS]
    return [re.sub(r"(?<=s)es$|(?<=[^s]{2})(?<!u)s$", "", name) for name in names]


def _names(text: str) -> list[str]:
    return [name for name in _PART.findall(text.casefold()) if name not in _DROPPED]


_VERBS = """
is are has have works lives owns uses likes loves prefers speaks runs needs wants knows studies plays teaches costs
contains includes belongs depends supports means requires believes drives drinks eats builds leads manages writes reads
comes hates keeps makes sells wears weighs stands lies starts ends opens closes
"""
_FACT_VERBS = frozenset(_VERBS.split())
_LASTING = """
moved married divorced quit joined left founded built bought sold adopted graduated retired died became won lost broke
learned learnt inherited owned lived worked
"""
"""What these say about a third person holds from then on; about the first person they report an event."""
_TOLD_OF_ONESELF = "moved married divorced quit joined bought sold adopted graduated retired became"

_ADVERB = r"(?:(?:also|now|usually|often|really|still|both|only|already)\s+)?"
_NAME = r"[^\W\d_a-z]\w*(?:\s+(?:of|de|von|van|the)?\s*[^\W\d_a-z]\w*){0,3}"
_OWNED = r"(?:my|our|his|her|their|the|user's|[A-Z]\w*'s)(?:\s+[\w'-]+){1,3}"
_SUBJECT = rf"(?:(?-i:{_NAME})|(?:the\s+)?user|{_OWNED})"
_STATED = re.compile(
    rf"(?:{_SUBJECT})\s+{_ADVERB}(?:{'|'.join(_FACT_VERBS)})\s+\S"
    rf"|(?!(?:I|we)\b)(?:{_SUBJECT})\s+{_ADVERB}(?:{'|'.join(_LASTING.split())})\b"
    rf"|(?:I|we)\s+{_ADVERB}(?:{'|'.join(_TOLD_OF_ONESELF.split())})\s+\S",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(
    r"(?:it|this|that|there|here|these|those|what|who|which|how|why|where|when|if|he|she|they|you|yes|no|so|then)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"(?:\b(?:do|does) )?\b(?:not|never|no longer)\b", re.IGNORECASE)
_EVENT = re.compile(rf"\b{_PAST_FORM}", re.IGNORECASE)
_BULLET = re.compile(r"[-*\u2022]\s+")


def holds_facts(text: str) -> bool:
    """Say whether at least half of the sentences state a fact: what holds now, or a change that lasts (P-11).

    A question states none.

    >>> holds_facts("Alice works at Acme"), holds_facts("We talked about the trip"), holds_facts("Is Alice at Acme?")
    (True, False, False)
    """
    said = [_BULLET.sub("", sentence, count=1) for sentence in sentences(text)]
    stated = sum(map(_states_a_fact, said))
    return stated > 0 and stated * 2 >= len(said)


def _states_a_fact(sentence: str) -> bool:
    meant = read_message(sentence, Context())
    if meant.talk or meant.question or meant.lists or meant.forget:
        return False
    if any(not one.is_quote for one in meant.facts):
        return True
    # What somebody asks to remember, or how something is not, is stated all the same.
    said = " ".join(_DENIAL.sub("", expand_contractions(meant.facts[0].said if meant.facts else sentence)).split())
    if meant.facts and not _EVENT.search(said) and count_tokens(said) <= LONGEST_STATEMENT:
        return True
    return not _NO_SUBJECT.match(said) and bool(_STATED.match(said))


_PRESENT = re.compile(
    r"\b(?:right\s+now|for\s+now|just\s+now|at\s+the\s+moment|at\s+present|currently|(?:this|the\s+current)\s+session)\b"
    r"|\b(?:am|are|is|'m|'re)\s+now\b|^now\b(?!\s+(?:and\s+)?(?:then|again)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_CALENDAR = """
january february april june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
"""
_NUMERALS = """
yesterday tomorrow two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy
eighty ninety hundred thousand million billion dozen
"""
_NUMBER = re.compile(rf"\d|\b(?:{'|'.join((_CALENDAR + _NUMERALS).split())})\b", re.IGNORECASE)

_WORD = re.compile(r"[^\W\d_][\w'\u2019&+#-]*")
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_AT_START = re.compile(r"(?:\A|[.!?:]|\n)[\s\-*\u2022#>\d.)(\"'\u201c]*\Z")
_LOOK_BACK = 24
_OPENERS = """
i'm i've i'd i'll it's that's let's don't ok okay yes yeah hello hi hey thanks thank please sorry sure well so and
but maybe today now then nothing everything something someone everyone anyone nobody let may march
favorite favourite prefer hate always
"""
_NOT_NAMES = STOP_WORDS | frozenset((_OPENERS + _CALENDAR).split())

_TECHNICAL_FORM = re.compile(r"\w[._/:]\w|_\w|\w\(|::|\w\d\w|^--?\w|\$\w")
_TOKEN = re.compile(r"[A-Za-z][\w./:()$-]*")
_RARE_AVERAGE = 0.35
_SHORT_WORD, _LONG_WORD = 4, 12
_EVERYDAY_WORDS = """
yesterday tomorrow morning evening afternoon something everything anything nothing everyone someone together another
different important beautiful wonderful interesting actually probably definitely usually sometimes remember
understand favourite favorite because children birthday breakfast restaurant question questions holiday vacation
weekend thought talked talking working meeting meetings remembered happened happening wanted
"""
_EVERYDAY = STOP_WORDS | frozenset(_EVERYDAY_WORDS.split())


def has_entity(text: str) -> bool:
    """Say whether a person, place, organisation or product seems to be named, by its capital.

    A first word counts only where its form or what follows tells a name from the mere start of a sentence.

    >>> has_entity("we met Alice"), has_entity("Berlin is cold"), has_entity("The trip was long")
    (True, True, False)
    """
    if not any(sign.islower() for sign in text):
        return False  # all capitals tell nothing
    words = list(_WORD.finditer(text))
    for number, word in enumerate(words):
        if _INNER_CAPITAL.search(word[0]):
            return True
        if not _is_capitalised(word[0]):
            continue
        if not _AT_START.search(text[max(0, word.start() - _LOOK_BACK) : word.start()]):
            return True
        follower = words[number + 1][0] if number + 1 < len(words) else ""
        if word[0].endswith(("'s", "\u2019s")) or _is_capitalised(follower) or follower in _FACT_VERBS:
            return True
    return False


def has_number(text: str) -> bool:
    """Say whether a number or a date is in the text, in digits of any script or spelled out."""
    return bool(_NUMBER.search(text))


def has_preference(text: str) -> bool:
    """Say whether the text has one of the four signals of a preference.

    >>> has_preference("Oh, MY FAVOURITE colour!"), has_preference("AI prefers data")
    (True, False)
    """
    return bool(PREFERENCE.search(text))


def is_technical(text: str) -> bool:
    """Say whether the words of the text are rare on average: long, or of a form that only technical terms have.

    >>> is_technical("the kubernetes ingress misbehaves"), is_technical("we talked about the trip")
    (True, False)
    """
    rarities = [_rarity(token) for token in _TOKEN.findall(text)]
    return bool(rarities) and sum(rarities) / len(rarities) > _RARE_AVERAGE


def is_about_now(text: str) -> bool:
    """Say whether the text is explicitly about the present or this session."""
    return bool(_PRESENT.search(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What a text holds; each counts once, however often it occurs."""

    has_entity: bool = False
    has_number: bool = False
    has_preference: bool = False
    is_technical: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectors:
    """The detectors in use. All but `technical` are shown the text without its fenced code."""

    entity: Detector = has_entity
    number: Detector = has_number
    preference: Detector = has_preference
    statement: Detector = states_preference
    technical: Detector = is_technical
    present: Detector = is_about_now
    fact: Detector = holds_facts

    def signals(self, text: str, *, is_from_user: bool = True) -> Signals:
        """Return the signals of salience; another voice than the user's states no preference of the user."""
        said = prose(text)
        return Signals(
            has_entity=self.entity(said),
            has_number=self.number(said),
            has_preference=is_from_user and self.preference(said),
            is_technical=self.technical(text),
        )


def memory_type_of(text: str, detectors: Detectors, *, is_from_user: bool = True) -> ChunkType:
    """Return the type of a chunk that came without a hint (P-11); only a statement of a preference is procedural.

    >>> [memory_type_of(text, Detectors()).value for text in ("I prefer tabs right now", "We talked about the trip")]
    ['procedural', 'episodic']
    """
    said = prose(text)
    if is_from_user and detectors.statement(said):
        return ChunkType.PROCEDURAL
    if detectors.present(said):
        return ChunkType.WORKING
    if detectors.fact(said):
        return ChunkType.SEMANTIC
    return ChunkType.EPISODIC


def _is_capitalised(word: str) -> bool:
    return len(word) > 1 and word[0].isupper() and word.lower() not in _NOT_NAMES


def _rarity(token: str) -> float:
    """Return 0 for an everyday word and up to 1 for a rare one: length stands in for a table of frequencies."""
    if token.lower() in _EVERYDAY:
        return 0.0
    if _TECHNICAL_FORM.search(token) or _INNER_CAPITAL.search(token):
        return 1.0
    return min(1.0, max(0.0, (len(token) - _SHORT_WORD) / (_LONG_WORD - _SHORT_WORD)))
