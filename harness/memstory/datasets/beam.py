"""BEAM (Tavakoli et al., ICLR 2026): chats of 100 thousand to 10 million tokens, and questions on ten abilities.

A memory is one message, one round (a user's message and what follows it) or one session (the authors' batch), as the
story's `unit` says. Gold are the messages that the authors name as `source_chat_ids`. Of a knowledge update the
original is outdated and the update is gold; of a contradiction both sides are, so that `recall_all` tells whether both
were found; to an abstention nothing answers. Chats are read in pieces, for the longest have millions of words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.datasets.json_list import list_elements
from memstory.datasets.jsonl import HELD
from memstory.language.story import Retrieval
from memstory.tasks.retrieval import Collection, Document, FileValues, Question, RetrievalTask, digest_of

CHATS: Final = ("chat_trunecated.json", "chat.json")
"""The authors answer from the shortened chat where there is one, and spell it so."""

QUESTIONS: Final = Path("probing_questions", "probing_questions.json")
ABSTENTION: Final = "abstention"
_UPDATE, _ORIGINAL = "updated_info", "original_info"
_ANSWERS: Final = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
_LABEL: Final = re.compile(r"\s*->->\s*\d+\s*,\s*(?:N/A|\d[\d.,\-]*|\([^)\n]*)\)?")
"""What the generator left behind its main questions: it would tell which messages matter."""


def read_beam(path: Path, retrieval: Retrieval) -> RetrievalTask:
    """Return the task of a folder of numbered chats in BEAM's own form; anything else is a SetupError."""
    chats = sorted((one for one in path.iterdir() if one.name.isdigit()), key=lambda one: int(one.name))
    if not chats:
        raise SetupError(f"{path} holds no numbered folders of chats: name the folder of one size, such as chats/100K")
    collections = partial(_collections, chats, retrieval.unit)
    unusable: list[str] = []

    def count_unusable() -> Iterator[Collection]:
        for collection in collections():
            unusable.extend(
                f"{one.id}: no message is named as its source" for one in collection.questions if not one.judged
            )
            yield collection

    digest = digest_of(count_unusable())
    shortened = sum((chat / CHATS[0]).is_file() for chat in chats)
    return RetrievalTask(
        name=f"beam-{retrieval.unit}",
        collections=FileValues(len(chats), collections),
        apart=(ABSTENTION,),
        unusable=tuple(unusable),
        notes=(f"{shortened} of {len(chats)} chats are in the shortened form, from which the authors answer",),
        digest=digest,
    )


def without_label(text: str) -> str:
    """Return a message without what the generator left in it.

    >>> without_label("Plan my week ->-> 1,1"), without_label("Plan it ->-> 2,N/A")
    ('Plan my week', 'Plan it')
    """
    # Nearly all have none, and a search that begins with blanks is slow in the long ones.
    return _LABEL.sub("", text) if "->->" in text else text


def _collections(chats: Sequence[Path], unit: str) -> Iterator[Collection]:
    for folder in chats:
        name = next((name for name in CHATS if (folder / name).is_file()), None)
        if name is None or not (folder / QUESTIONS).is_file():
            raise SetupError(f"{folder} has no {CHATS[1]} or no {QUESTIONS}: fetch the set again, whole")
        try:
            yield _collection(folder, folder / name, unit)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            found = f"{type(error).__name__}: {error}"
            raise SetupError(f"{folder} does not have BEAM's format ({found}). Give the authors' own files.") from error


def _collection(folder: Path, chat: Path, unit: str) -> Collection:
    units: dict[int, tuple[str, str]] = {}
    count = 0
    for document, messages in _documents(chat, unit):
        count += 1
        units.update(dict.fromkeys(messages, (document.id, str(document.metadata["session"]))))
    asked = json.loads((folder / QUESTIONS).read_text("utf-8"))
    questions = [
        _question(f"{folder.name}/{ability}#{place}", ability, entry, units)
        for ability, entries in asked.items()
        for place, entry in enumerate(entries)
    ]
    read = partial(_only_documents, chat, unit)
    documents = FileValues(count, read) if count > HELD else tuple(read())
    return Collection(id=folder.name, documents=documents, questions=tuple(questions))


def _question(id_: str, ability: str, entry: Mapping[str, Any], units: Mapping[int, tuple[str, str]]) -> Question:
    """Return a question; `units` has the memory and the session of each message."""
    named = entry.get("source_chat_ids")
    sides = named if isinstance(named, dict) else {}
    gold = [units[one] for one in _numbers(sides.get(_UPDATE) or named) if one in units]
    outdated = [units[one] for one in _numbers(sides.get(_ORIGINAL)) if one in units and sides.get(_UPDATE)]
    relevant = tuple(dict.fromkeys(unit for unit, _ in gold))
    abstains = ability == ABSTENTION
    return Question(
        id=id_,
        text=entry["question"],
        relevant=() if abstains else relevant,
        stale=tuple(unit for unit in dict.fromkeys(unit for unit, _ in outdated) if unit not in relevant),
        category=ability,
        judged=abstains or bool(relevant),
        cluster=f"{id_.partition('/')[0]}/{gold[0][1] if gold else ''}",
        answer=next((str(entry[name]) for name in _ANSWERS if entry.get(name)), None),
    )


def _numbers(named: Tree) -> list[int]:
    """Return the ids of messages in any of the forms that the files have, in order.

    >>> _numbers({"first_statement": [58], "second_statement": ["24", 60]}), _numbers(None)
    ([58, 24, 60], [])
    """
    if isinstance(named, Mapping):
        return [one for part in named.values() for one in _numbers(part)]
    if isinstance(named, list):
        return [one for part in named for one in _numbers(part)]
    if isinstance(named, str) and named.strip().isdigit():
        return [int(named)]
    return [named] if type(named) is int else []


def _only_documents(chat: Path, unit: str) -> Iterator[Document]:
    return (document for document, _ in _documents(chat, unit))


def _documents(chat: Path, unit: str) -> Iterator[tuple[Document, list[int]]]:
    """Yield the memories of a chat, each with the ids of its messages."""
    for session, date, messages in _batches(chat):
        for group in _groups(messages, unit):
            ids = [message["id"] for message in group]
            id_ = session if unit == "session" else str(ids[0])
            said = [f"{message['role']}: {without_label(message['content'])}" for message in group]
            metadata = {"session": session, **({"said_at": date} if date else {})}
            if unit == "turn":
                metadata["speaker"] = group[0]["role"]
            lines = "\n".join(said)
            gap = "\n" if unit == "session" else " "
            yield Document(id=id_, text=f"[{date}]{gap}{lines}" if date else lines, metadata=metadata), ids


def _groups(messages: Sequence[Mapping[str, Tree]], unit: str) -> Iterator[Sequence[Mapping[str, Tree]]]:
    if unit == "session":
        yield messages
        return
    group: list[Mapping[str, Tree]] = []
    for message in messages:
        if group and (unit == "turn" or message["role"] == "user"):
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _batches(chat: Path) -> Iterator[tuple[str, str | None, Sequence[Mapping[str, Tree]]]]:
    """Yield each batch: its name, its date in ISO 8601 or that of the batch before, and the messages with words."""
    date = None
    for plan, batch in _number_batches(chat):
        messages = [message for group in batch["turns"] for message in group if message["content"].strip()]
        anchor = next((message["time_anchor"] for message in messages if message.get("time_anchor")), None)
        date = _iso(anchor) or date if anchor else date
        if messages:
            yield f"{plan}b{batch['batch_number']}", date, messages


def _number_batches(chat: Path) -> Iterator[tuple[str, Mapping[str, Tree]]]:
    """Yield the batches of a file; the longest chats have them by plan: `[{"plan-1": [batch, …]}, …]`."""
    for element in list_elements(chat):
        if "turns" in element:
            yield "", element
        else:
            yield from ((f"{plan}/", batch) for plan, batches in element.items() for batch in batches or ())


def _iso(anchor: str) -> str | None:
    try:
        return datetime.strptime(anchor, "%B-%d-%Y").date().isoformat()  # noqa: DTZ007  (a day, of no zone)
    except ValueError:
        return None
