"""What the stand-in makes of sentences: 262 rows that it was built by, and 50 that were kept closed until it was done.

When `closed.yaml` was read for the first time, 44 of its 50 rows held, 1 value was wrong (a brother-in-law's job became
the user's), 2 values were only quoted where the row wanted the value, and 3 of 49 questions found no answer; none got a
wrong one. The cause of the wrong value and three other causes, which were general, have been mended since.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "ş": "s", "æ": "ae", "đ": "d", "ß": "s"})
_LEAST_QUOTED = 3
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is wrong with a row, in words; `wrong` are values that are not so."""

    wrong: Sequence[str] = ()
    missed: Sequence[str] = ()
    unanswered: Sequence[str] = ()


def rows(name: str) -> list[Row]:
    """Return the rows of a file."""
    return list(yaml.safe_load((HERE / name).read_text("utf-8")))


async def outcome(row: Row, start: Any) -> Outcome:
    """Say the sentences of a row in one session, and ask its questions in another each."""
    talk = start()
    replies = [await talk.say(text) for text in row["say"]]
    kept, heard = dict(talk.topics), [word for text in row["say"] for word in _words(text)]
    wrong = [f"{topic} = {value!r}" for topic, value in kept.items() if not _is_right(row, topic, value, heard)]
    missed = [f"{words}: {value}" for words, value in row.get("kept", {}).items() if not _holds(kept, words, value)]
    missed += [f"saved {kept}"] if row.get("nothing") and kept else []
    missed += [f"{text!r} is still stored" for text in map(str, row.get("gone", ())) if text in _stored_of(talk, row)]
    missed += [f"replied {replies}"] if not re.search(row.get("reply", ""), " ".join(replies), re.IGNORECASE) else []
    unanswered = []
    for question, wanted in row.get("ask", {}).items():
        talk.new_session()
        answer = await talk.say(question)
        unanswered += _faults(row, question, wanted, answer)
    return Outcome(wrong=tuple(wrong), missed=tuple(missed), unanswered=tuple(unanswered))


def _faults(row: Row, question: str, wanted: Any, answer: str) -> list[str]:
    if wanted == "?":
        return [] if "don't know" in answer else [f"{question} -> {answer}"]
    texts = wanted if isinstance(wanted, list) else [wanted]
    is_right = all(text in answer for text in texts) and not any(text in answer for text in row.get("never", ()))
    return [] if is_right else [f"{question} -> {answer}"]


def _stored_of(talk: Any, row: Row) -> str:
    """Return what is stored, without the wish to forget itself."""
    return talk.stored.replace(row["say"][-1], "")


def _is_right(row: Row, topic: str, value: str, heard: Sequence[str]) -> bool:
    """A value is right where the row says so, or where it is a sentence of the user's and no value."""
    never = [*row.get("never_kept", ()), *row.get("nothing_like", ())]
    if value in never or (topic == "user.name" and value in row.get("never_name", ())):
        return False
    if any(
        _holds({topic: value}, words, wanted) for words, wanted in (row.get("kept", {}) | row.get("also", {})).items()
    ):
        return True
    said = _words(value)
    return len(said) >= _LEAST_QUOTED and f" {' '.join(said)} " in f" {' '.join(heard)} "


def _holds(kept: Mapping[str, str], words: str, wanted: str) -> bool:
    """Say whether a key with all of `words` has the value; what begins with ~ is a part of it."""
    parts = [_folded(word) for word in words.split()]
    for topic, value in kept.items():
        if all(part in _folded(topic) for part in parts):
            if wanted.startswith("~") and wanted[1:].casefold() in value.casefold():
                return True
            if value.casefold() == wanted.casefold():
                return True
    return False


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def _words(text: str) -> list[str]:
    return re.findall(r"[\w'’.-]*\w", text.casefold())


OPEN, CLOSED = rows("open.yaml"), rows("closed.yaml")


@pytest.fixture
def start(talk_with) -> Callable[[Row], Callable[[], Any]]:
    """Return what starts the conversation of a row: with tools to forget where it forgets."""
    return lambda row: lambda: talk_with("forgetting" if "gone" in row else "single")


@pytest.mark.parametrize("row", OPEN, ids=[" ".join(row["say"])[:60] for row in OPEN])
async def test_what_is_said_is_kept_and_answers(start, row):
    assert await outcome(row, start(row)) == Outcome()


async def test_closed_sentences_have_no_wrong_value_and_few_are_missed(start):
    read = [await outcome(row, start(row)) for row in CLOSED]
    assert [value for one in read for value in one.wrong] == []
    assert sum(one != Outcome() for one in read) <= 2
