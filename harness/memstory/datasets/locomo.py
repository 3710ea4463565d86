"""LoCoMo (Maharana et al., ACL 2024): long conversations of two people, and questions with the turns that answer them.

A turn is a document, `[session date] speaker: text`, with ` [shares caption]` for an image. Evidence labels are read as
they are meant where that is plain and are listed as unusable otherwise; none is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Final

from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.language.story import Retrieval
from memstory.tasks.retrieval import Collection, Document, Question, RetrievalTask, digest_of

# Several harnesses have this map rotated; these are the numbers of the paper's own evaluation code.
CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
APART: Final = ("adversarial",)
"""Its evidence belongs to the other speaker, so a mean over all five categories would mix two meanings."""

TURN_ID: Final = re.compile(r"D:?(\d+):(\d+)")
DATE: Final = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d) (?P<half>[ap]m) on (?P<day>\d{1,2}) (?P<month>[a-z]+),? (?P<year>\d{4})",
    re.IGNORECASE,
)
MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
"""Not of the calendar module, whose names are those of the machine's own language."""
SESSION: Final = re.compile(r"session_(\d+)")
AUDITED_ID: Final = re.compile(r"locomo_(\d+)_qa(\d+)")
UNKNOWN: Final = "Nothing in the conversation answers this."
"""The answer to a question that the data answer only wrongly."""


Corrections = Mapping[tuple[int, int], Mapping[str, Tree]]
"""What an audit says of labels, by the places of the conversation and of the question in the file."""


def read_locomo(path: Path, retrieval: Retrieval | None = None, audit: Path | None = None) -> RetrievalTask:
    """Return the task of a file in LoCoMo's own format, with the labels of an `audit` beside; else a SetupError."""
    corrections = read_audit(audit) if audit else {}
    unit = retrieval.unit if retrieval else "turn"
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
        read = [_read_sample(sample, place, unit, corrections) for place, sample in enumerate(samples)]
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path} is not JSON: {error}. Give the dataset's own file, unchanged.") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise SetupError(
            f"{path} does not have LoCoMo's format ({type(error).__name__}: {error}). Give the dataset's own file."
        ) from error
    collections = tuple(collection for collection, _ in read)
    return RetrievalTask(
        name="locomo" if unit == "turn" else f"locomo-{unit}",
        collections=collections,
        apart=APART,
        unusable=tuple(label for _, unusable in read for label in unusable),
        # Of the texts and labels alone, which say all that the metadata say: digests of earlier versions still hold.
        digest=digest_of(
            replace(
                one,
                documents=[replace(each, metadata={}) for each in one.documents],
                questions=[replace(each, cluster=None) for each in one.questions],
            )
            for one in collections
        ),
    )


def read_audit(audit: Path) -> Corrections:
    """Return what a public audit says of the labels; SetupError for a file of another form."""
    try:
        entries = json.loads(audit.read_text(encoding="utf-8"))
        places = [AUDITED_ID.fullmatch(entry["question_id"]) for entry in entries]
        return {(int(found[1]), int(found[2])): entry for found, entry in zip(places, entries, strict=True) if found}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        found = f"{type(error).__name__}: {error}"
        raise SetupError(f"{audit} is not an audit of LoCoMo's labels ({found}). Give its own errors.json.") from error


def gold_ids(evidence: Sequence[Tree], known: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the turns that labels name, and what in them names none.

    One text may hold several ids, and slips such as `D:11:26` and `D30:05` are read.

    >>> gold_ids(["D8:6; D9:17", "D:1:02", "D30:05", "D", "D7:99"], frozenset({"D8:6", "D9:17", "D1:2", "D30:5"}))
    (('D8:6', 'D9:17', 'D1:2', 'D30:5'), ('D', 'D7:99'))
    """
    usable: dict[str, None] = {}
    unusable = []
    for label in map(str, evidence):
        turns = [f"D{int(session)}:{int(turn)}" for session, turn in TURN_ID.findall(label)]
        unusable += [turn for turn in turns if turn not in known] if turns else [label]
        usable.update((turn, None) for turn in turns if turn in known)
    return tuple(usable), tuple(unusable)


def session_date(date: str) -> str | None:
    """Return the date of a session in ISO 8601, None if it is not written as in LoCoMo.

    >>> session_date("1:56 pm on 8 May, 2023"), session_date("some day")
    ('2023-05-08T13:56:00', None)
    """
    found = DATE.fullmatch(date.strip())
    if found is None or found["month"].lower() not in MONTHS:
        return None
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    try:
        month = MONTHS.index(found["month"].lower()) + 1
        return datetime(int(found["year"]), month, int(found["day"]), hour, int(found["minute"])).isoformat()  # noqa: DTZ001
    except ValueError:
        return None


def _read_sample(
    sample: Mapping[str, Tree], place: int, unit: str, corrections: Corrections
) -> tuple[Collection, tuple[str, ...]]:
    name = sample["sample_id"]
    turns = tuple(_documents(sample["conversation"]))
    sessions = {turn.id: str(turn.metadata["session"]) for turn in turns}
    known = frozenset(sessions)
    questions, unusable = [], []
    # Some questions are asked twice, so that only the place in the list tells them apart.
    for index, entry in enumerate(sample["qa"]):
        found, unread = gold_ids(entry.get("evidence", ()), known)
        label = f"{name}#{index}"
        unusable += [f"{label}: {one!r} names no turn" for one in unread]
        if not found and not unread:
            unusable.append(f"{label}: no evidence is given")
        correction = corrections.get((place, index))
        question = Question(
            id=label,
            text=entry["question"],
            relevant=_of_unit(found, unit, sessions),
            category=CATEGORIES[entry["category"]],
            judged=bool(found),
            cluster=f"{name}/{sessions[found[0]]}" if found else None,
            answer=str(entry["answer"]) if "answer" in entry else UNKNOWN,
        )
        if correction is not None:
            question = _correct(question, correction, unit, sessions)
        questions.append(question)
    documents = turns if unit == "turn" else tuple(_sessions(turns))
    return Collection(id=name, documents=documents, questions=tuple(questions)), tuple(unusable)


def _correct(question: Question, correction: Mapping[str, Tree], unit: str, sessions: Mapping[str, str]) -> Question:
    """Return a question with the evidence of an audit beside its own, where that names another."""
    if correction["question"].strip() != question.text.strip():
        raise SetupError(f"the audit is of another version of LoCoMo: {question.id} is another question there")
    found, _ = gold_ids(correction.get("correct_evidence") or (), frozenset(sessions))
    audited = _of_unit(found, unit, sessions)
    return replace(question, audited=audited) if audited and set(audited) != set(question.relevant) else question


def _of_unit(turns: Sequence[str], unit: str, sessions: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(turns) if unit == "turn" else tuple(dict.fromkeys(sessions[turn] for turn in turns))


def _sessions(turns: Iterable[Document]) -> Iterator[Document]:
    """Yield each session as one memory: its date, then a line for each turn."""
    for session, told in groupby(turns, key=lambda turn: str(turn.metadata["session"])):
        lines = list(told)
        date = lines[0].text.partition("] ")[0]
        text = "\n".join([f"{date}]", *(line.text.partition("] ")[2] for line in lines)])
        said_at = {name: lines[0].metadata[name] for name in ("said_at",) if name in lines[0].metadata}
        yield Document(id=session, text=text, metadata=said_at)


def _documents(conversation: Mapping[str, Tree]) -> Iterator[Document]:
    numbers = (int(found[1]) for found in map(SESSION.fullmatch, conversation) if found)
    for number in sorted(numbers):
        date = conversation[f"session_{number}_date_time"]
        said_at = {"said_at": moment} if (moment := session_date(date)) else {}
        for turn in conversation[f"session_{number}"]:
            caption = turn.get("blip_caption")
            shared = f" [shares {caption}]" if caption else ""
            text = f"[{date}] {turn['speaker']}: {turn['text']}{shared}"
            # Beside the text, which says it all: a memory of turns is given the parts, any other the text.
            metadata = {"speaker": turn["speaker"], "session": f"session_{number}", **said_at}
            yield Document(id=turn["dia_id"], text=text, metadata=metadata)
