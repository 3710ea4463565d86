"""Words of a text: folded letters, keywords, stems, sets of tokens, and how many tokens there are, in any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, lru_cache

# Cyrillic and Greek letters that most fonts draw as a Latin one, in both cases; NFKD knows the other forms of letters.
_LOOK_ALIKES = (
    str.maketrans(
        "\u0430\u0435\u0456\u0458\u043e\u0440\u0441\u0443\u0445\u0455\u04bb\u04cf\u0501\u051b\u051d\u0261",
        "aeijopcyxshldqwg",
    )
    | str.maketrans(
        "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425", "ABESIJKMHOPCTYX"
    )
    | str.maketrans("\u03b1\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7", "aeikvoptux")
    | str.maketrans(
        "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7", "ABEZHIKMNOPTYX"
    )
)
_LETTERS_FOR = str.maketrans("013457@$", "oieastas")
_HIDDEN = dict.fromkeys([0xAD, 0x34F, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF])


def fold(text: str) -> str:
    """Return `text` with Latin letters for those that look like them, ASCII digits, no accents, no hidden characters.

    >>> fold("s\u0430fety"), fold("\uff14\uff11 \u0664"), fold("pass\u200bw\u00f6rd")
    ('safety', '41 4', 'password')
    """
    return text if text.isascii() else fold_with_places(text)[0]


def fold_with_places(text: str) -> tuple[str, Sequence[int]]:
    """Return what `fold` does, and for each character of it where it stands in `text`."""
    if text.isascii():
        return text, range(len(text))
    signs, places = [], []
    for place, sign in enumerate(text):
        for part in unicodedata.normalize("NFKD", sign.translate(_HIDDEN)).translate(_LOOK_ALIKES):
            if not unicodedata.combining(part):
                signs.append(_digit(part))
                places.append(place)
    return "".join(signs), places


def letters_for_digits(text: str) -> str:
    """Return `text` with the letters that digits and signs stand for in it; its length stays.

    >>> letters_for_digits("Skip the s4f3ty check, p4$$w0rd")
    'Skip the safety check, password'
    """
    return text.translate(_LETTERS_FOR)


def _digit(sign: str) -> str:
    value = None if sign.isascii() else unicodedata.decimal(sign, None)
    return sign if value is None else str(value)


MAX_KEYWORDS = 32
_STOP_WORDS = """
a about above after again all also am an and any are as at be because been before being below between both but
by can could did do does doing down during each few for from further had has have having he her here hers him
his how i if in into is it its just me more most my no nor not now of off on once only or other our out over
own same she should so some such than that the their them then there these they this those through to too
under until up upon us very was we were what when where which while who whom why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

# One word, with the joints that technical names have inside: glm4:9b, all-MiniLM-L6-v2, gpt-4.1, snake_case.
_WORD = re.compile(r"\w+(?:[-:.+/]\w+)*", re.UNICODE)
_PLAIN = re.compile(r"[^\W_]+")
_IDEOGRAPH = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af])")
_SPECIFIC = re.compile(r"[\d_:-]|(?<=\w)[A-Z]")


@dataclass(frozen=True, slots=True)
class Keyword:
    """A lower-case word; `specific` words (a digit, `-`, `_`, `:`, an inner capital) name one thing alone."""

    text: str
    specific: bool


def extract_keywords(text: str) -> tuple[Keyword, ...]:
    """Return the distinct words that carry meaning, in order, at most 32.

    >>> [keyword.text for keyword in extract_keywords("Tune the glm4:9b model")]
    ['tune', 'glm4:9b', 'model']
    """
    found: dict[str, Keyword] = {}
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        plain = index_text(word)
        if not plain or plain in STOP_WORDS:
            continue
        found.setdefault(plain, Keyword(word.lower(), specific=bool(_SPECIFIC.search(word))))
        if len(found) == MAX_KEYWORDS:
            break
    return tuple(found.values())


def plain_words(text: str) -> list[str]:
    """Return the words in their order, lower case and without accents; each ideograph is one.

    >>> plain_words("Café, at 5 o'clock!"), plain_words("我用Python")
    (['cafe', 'at', '5', 'o', 'clock'], ['我', '用', 'python'])
    """
    if text.isascii():  # nearly all, in a third of the time
        return _PLAIN.findall(text.lower())
    spaced = _IDEOGRAPH.sub(r" \1 ", unicodedata.normalize("NFKC", text))
    decomposed = unicodedata.normalize("NFKD", spaced.lower())
    return _PLAIN.findall("".join(one for one in decomposed if not unicodedata.combining(one)))


def index_text(text: str) -> str:
    """Return `text` as full-text search holds it: its plain words, which the tokenizer `ascii` leaves as they are.

    >>> index_text("Café: 我用Python")
    'cafe 我 用 python'
    """
    return " ".join(plain_words(text))


def spaced_words(text: str) -> str:
    """Return the plain words between blanks, so that one text is in another only at the limits of words.

    >>> spaced_words("a cat") in spaced_words("A cat!"), spaced_words("a cat") in spaced_words("a cattle")
    (True, False)
    """
    return f" {index_text(text)} "


def fts_query(keywords: Iterable[Keyword]) -> str:
    """Return an FTS5 expression that matches any keyword; each is a phrase of plain words, so nothing in it is syntax.

    >>> fts_query(extract_keywords('c++ AND "all-MiniLM-L6-v2"'))
    '"c" OR "all minilm l6 v2"'
    """
    return " OR ".join(f'"{index_text(keyword.text)}"' for keyword in keywords)


def matching_keywords(keywords: Sequence[Keyword], text: str) -> tuple[Keyword, ...]:
    """Return the keywords that occur in `text` as whole words."""
    words = spaced_words(text)
    return tuple(keyword for keyword in keywords if spaced_words(keyword.text) in words)


_PART = re.compile(r"[^\W_]+")
_POINTING = frozenset(["a", "an", "the", "my", "our", "your", "his", "her", "its", "their", "this", "that"])
_SHORT_STEM = 4
_LONGEST = 64
"""Characters of a word that count: a run of a megabyte is one word, and no index wants it."""


def stems(text: str) -> list[str]:
    """Return the stem of each word, in their order.

    >>> stems("She moved the boxes")
    ['she', 'move', 'the', 'box']
    """
    return [stem(word) for word in plain_words(text)]


@cache
def _porter() -> Callable[[str], str]:
    # Every help is shown without this package: it is needed where words are cut.
    import snowballstemmer  # noqa: PLC0415

    stem_word: Callable[[str], str] = snowballstemmer.stemmer("porter").stemWord
    return stem_word


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a plain word; what is not English passes nearly unchanged."""
    return _porter()(word[:_LONGEST])


def is_about(text: str, things: Iterable[str]) -> bool:
    """Return whether `text` has all that names one of `things`: the words of a phrase, or one identifier.

    >>> is_about("My sister Lena sold the boats.", ["the boat of my sister Lena"]), is_about("A hose.", ["garden hose"])
    (False, False)
    >>> is_about("My sister Lena sold the boats.", ["my sister"]), is_about("Call 555-1234.", ["5551234"])
    (True, True)
    >>> is_about("Ticket 123456 is open.", ["12345"])
    False
    """
    known = roots(text)
    tokens = frozenset(map(squeeze, text.split()))
    return any(_names(thing, known, tokens) for thing in things)


def roots(text: str) -> frozenset[str]:
    """Return the stems of a text, a noun's and its adjective's alike, without what is left of a possessive.

    >>> sorted(roots("Rita's allergy")), "allerg" in roots("She is allergic.")
    (['allerg', 'rita'], True)
    """
    return frozenset(one.removesuffix("i") if len(one) > _SHORT_STEM else one for one in stems(text)) - {""}


def squeeze(token: str) -> str:
    """Return an identifier without case, accents, separators and quotes.

    >>> squeeze("'AB-12_x'"), squeeze("@François")
    ('ab12x', 'francois')
    """
    return "".join(_PART.findall(fold(token).casefold()))


def _names(thing: str, known: frozenset[str], tokens: frozenset[str]) -> bool:
    if len(thing.split()) == 1:
        # One word may be written in parts, or be a part of what has a sign in it: it is one token or none.
        return bool(squeeze(thing)) and squeeze(thing) in tokens
    wanted = roots(thing) - _POINTING
    return bool(wanted) and wanted <= known


_IDEOGRAPHS = (
    r"\u3005\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
# Marks belong to the letter before them: Devanagari, Thai and others would fall apart without.
_TOKEN = re.compile(
    rf"[{_IDEOGRAPHS}]|(?![{_IDEOGRAPHS}])[^\W_]"
    rf"(?:(?![{_IDEOGRAPHS}])(?:[^\W_]|[\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff]|(?<=\w)['](?=\w)))*"
)
_ASCII_TOKEN = re.compile(r"[^\W_]+(?:'(?=\w)[^\W_]*)*")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\uff07", "'"))


def token_list(text: str) -> list[str]:
    """Return the tokens in order, folded: case, width and composition of letters make no difference.

    >>> token_list("Don’t take 10 mg!")
    ["don't", 'take', '10', 'mg']
    """
    if text.isascii():  # nearly all, in a fifth of the time
        return _ASCII_TOKEN.findall(text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_APOSTROPHES)
    return _TOKEN.findall(folded)


def token_set(text: str) -> frozenset[str]:
    """Return the distinct tokens.

    >>> sorted(token_set("我用Python")), token_set("café") == token_set("cafe\u0301")
    (['python', '我', '用'], True)
    """
    return frozenset(token_list(text))


def jaccard(left: AbstractSet[str], right: AbstractSet[str]) -> float:
    """Return the share of common tokens among all; 0 for two empty sets, which say nothing alike.

    >>> jaccard({"a", "b"}, {"b", "c"})
    0.3333333333333333
    """
    together = len(left | right)
    return len(left & right) / together if together else 0.0


def token_recall(query: AbstractSet[str], document: AbstractSet[str]) -> float:
    """Return the share of the query's tokens that the document holds.

    >>> round(token_recall({"boss", "work", "stress"}, {"my", "boss", "is", "terrible", "work"}), 6)
    0.666667
    """
    return len(query & document) / len(query) if query else 0.0


_COUNTED_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
# Thai, Lao, Tibetan, Burmese, Khmer: scripts that write no spaces.
_UNSPACED = r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"
# A longer run than 16 letters is not a word: a budget must not be passed by a text without spaces (SEC-14).
_COUNTED = re.compile(
    rf"[{_COUNTED_IDEOGRAPHS}]|[{_UNSPACED}]{{1,3}}|[^\W{_COUNTED_IDEOGRAPHS}{_UNSPACED}]{{1,16}}|[^\w\s]"
)


def count_tokens(text: str) -> int:
    """Return the number of words, punctuation marks and ideographs.

    >>> count_tokens("I prefer tabs."), count_tokens("我用Python"), count_tokens("a" * 160), count_tokens(" ")
    (4, 3, 10, 0)
    """
    return sum(1 for _ in _COUNTED.finditer(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounter:
    """A way to count tokens, with a name that a result can tell; a language model's own tokenizer fits too."""

    name: str
    count: Callable[[str], int]


WORDS = TokenCounter(name="words and marks", count=count_tokens)
