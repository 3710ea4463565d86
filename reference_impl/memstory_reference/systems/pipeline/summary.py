"""What is asked of a model that summarises a session, and the summary by rules where there is no model (P-23)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from memstory_reference.systems.pipeline.reading.cleaning import clean
from memstory_reference.systems.pipeline.reading.detectors import has_entity, has_number
from memstory_reference.text.chunks import split_chunks
from memstory_reference.text.fences import prose
from memstory_reference.text.keywords import STOP_WORDS, extract_keywords, plain_words
from memstory_reference.text.sentences import sentences
from memstory_reference.text.stems import stem, stems

PURPOSE = "summarise"
SENTENCES = 3
_ENDS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f")
_CLOSING = "\"'*_`)]}\u201d\u2019\u00bb \n"

_PROMPT = """\
Summarize the following conversation into 2-3 sentences capturing key facts,
decisions, and topics discussed. Be specific and preserve names, numbers, and
technical details. Do not include pleasantries.
Conversation:
{session_content}"""


def summary_prompt(contents: Sequence[str]) -> str:
    """Return the prompt for the contents of one session, in their order; braces in them stay braces (PF-20)."""
    return _PROMPT.replace("{session_content}", "\n".join(contents))


def usable_summary(reply: str, contents: Sequence[str], *, max_tokens: int, count: Callable[[str], int]) -> str:
    """Return a model's reply cleaned and cut to the size of a chunk; empty where it is no summary of `contents`.

    A summary hides what it sums up. One that breaks off, or has no word of it, as a refusal has none, must not.
    """
    text = clean(reply)
    is_whole = text.rstrip(_CLOSING).endswith(_ENDS)
    return _cut(text, max_tokens, count) if is_whole and _telling(text) & _telling(" ".join(contents)) else ""


def _telling(text: str) -> set[str]:
    """Return the stems of the words that carry meaning; of a text that has none, of all its words."""
    return {stem(word) for word in plain_words(text) if word not in STOP_WORDS} or set(stems(text))


def summary_by_rules(contents: Sequence[str], *, max_tokens: int, count: Callable[[str], int]) -> str:
    """Return the sentences that carry most, in their order: frequent words, names and numbers weigh.

    >>> from memstory_reference.text.tokens import count_tokens
    >>> summary_by_rules(["Hi there!", "Ilse moves to Graz on 3 May."], max_tokens=20, count=count_tokens)
    'Hi there! Ilse moves to Graz on 3 May.'
    """
    told = [one for content in contents for one in sentences(prose(content))] or list(contents)
    told = list(dict.fromkeys(told))
    words = [{keyword.text for keyword in extract_keywords(sentence)} for sentence in told]
    frequency = Counter(word for found in words for word in found)
    weights = [_weight(sentence, found, frequency) for sentence, found in zip(told, words, strict=True)]
    best = sorted(range(len(told)), key=lambda number: (-weights[number], number))[:SENTENCES]
    chosen = " ".join(told[number] for number in sorted(best))
    return _cut(clean(chosen), max_tokens, count)


def _cut(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    return split_chunks(text, max_tokens=max_tokens, min_tokens=max_tokens, count=count)[0]


def _weight(sentence: str, words: set[str], frequency: Counter[str]) -> float:
    shared = sum(frequency[word] for word in words) / len(words) if words else 0.0
    return shared + 2.0 * has_number(sentence) + 2.0 * has_entity(sentence)
