"""LoCoMo (Maharana et al., ACL 2024): long conversations of two people, and questions with the turns that answer them.

A turn is a document, `[session date] speaker: text`, with ` [shares caption]` for an image. Evidence labels are read as
they are meant where that is plain and are listed as unusable otherwise; none is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
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


def read_locomo(path: Path, _retrieval: Retrieval | None = None) -> RetrievalTask:
    """Return the task of a file in LoCoMo's own format; a file of another shape is a SetupError."""
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
        read = [_read_sample(sample) for sample in samples]
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path} is not JSON: {error}. Give the dataset's own file, unchanged.") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise SetupError(
            f"{path} does not have LoCoMo's format ({type(error).__name__}: {error}). Give the dataset's own file."
        ) from error
    collections = tuple(collection for collection, _ in read)
    return RetrievalTask(
        name="locomo",
        collections=collections,
        apart=APART,
        unusable=tuple(label for _, unusable in read for label in unusable),
        # Of the texts alone, which say all that the metadata say: digests of earlier versions still hold.
        digest=digest_of(
            replace(one, documents=[replace(each, metadata={}) for each in one.documents]) for one in collections
        ),
    )


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


def moment_of(date: str) -> str | None:
    """Return the date of a session in ISO 8601, None if it is not written as in LoCoMo.

    >>> moment_of("1:56 pm on 8 May, 2023"), moment_of("some day")
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


def _read_sample(sample: Mapping[str, Tree]) -> tuple[Collection, tuple[str, ...]]:
    name = sample["sample_id"]
    documents = tuple(_documents(sample["conversation"]))
    known = frozenset(document.id for document in documents)
    questions, unusable = [], []
    # Some questions are asked twice, so that only the place in the list tells them apart.
    for index, entry in enumerate(sample["qa"]):
        relevant, unread = gold_ids(entry.get("evidence", ()), known)
        label = f"{name}#{index}"
        unusable += [f"{label}: {found!r} names no turn" for found in unread]
        if not relevant and not unread:
            unusable.append(f"{label}: no evidence is given")
        questions.append(
            Question(
                id=label,
                text=entry["question"],
                relevant=relevant,
                category=CATEGORIES[entry["category"]],
                judged=bool(relevant),
            )
        )
    return Collection(id=name, documents=documents, questions=tuple(questions)), tuple(unusable)


def _documents(conversation: Mapping[str, Tree]) -> Iterator[Document]:
    numbers = (int(found[1]) for found in map(SESSION.fullmatch, conversation) if found)
    for number in sorted(numbers):
        date = conversation[f"session_{number}_date_time"]
        said_at = {"said_at": moment} if (moment := moment_of(date)) else {}
        for turn in conversation[f"session_{number}"]:
            caption = turn.get("blip_caption")
            shared = f" [shares {caption}]" if caption else ""
            text = f"[{date}] {turn['speaker']}: {turn['text']}{shared}"
            # Beside the text, which says it all: a memory of turns is given the parts, any other the text.
            metadata = {"speaker": turn["speaker"], "session": f"session_{number}", **said_at}
            yield Document(id=turn["dia_id"], text=text, metadata=metadata)
