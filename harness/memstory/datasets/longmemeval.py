"""LongMemEval (Wu et al., ICLR 2025): questions to an assistant, each with its own history of sessions.

A memory is one turn, `[date] role: text`, or one session, as the story's `unit` says. Gold turns are those that the
authors mark `has_answer`, gold sessions those in `answer_session_ids`; turns of the assistant are remembered and count
too. Questions whose id ends with `_abs` have no answer: they are the category `abstention`, which is counted apart.
The file is read one question at a time: the larger ones have gigabytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.datasets.json_list import list_elements
from memstory.language.story import Retrieval
from memstory.tasks.retrieval import Collection, Document, FileValues, Question, RetrievalTask, digest_of

ABSTENTION: Final = "abstention"


def read_longmemeval(path: Path, retrieval: Retrieval) -> RetrievalTask:
    """Return the task of a file in LongMemEval's own format; a file of another shape is a SetupError."""
    collections = partial(_collections, path, retrieval.unit)
    unusable: list[str] = []
    count: Counter[str] = Counter()

    def count_unusable() -> Iterator[Collection]:
        for collection in collections():
            count["collections"] += 1
            unusable.extend(
                f"{question.id}: no {retrieval.unit} is marked as its answer"
                for question in collection.questions
                if not question.judged
            )
            yield collection

    digest = digest_of(count_unusable())
    return RetrievalTask(
        name=f"longmemeval-{retrieval.unit}",
        collections=FileValues(count["collections"], collections),
        apart=(ABSTENTION,),
        unusable=tuple(unusable),
        digest=digest,
    )


def _collections(path: Path, unit: str) -> Iterator[Collection]:
    try:
        for entry in list_elements(path):
            yield _collection(entry, unit)
    except UnicodeDecodeError as error:
        raise SetupError(f"{path} is not UTF-8: {error}. Give the dataset's own file, unchanged.") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        found = f"{type(error).__name__}: {error}"
        raise SetupError(
            f"{path} does not have LongMemEval's format ({found}). Give the dataset's own file."
        ) from error


def _collection(entry: Mapping[str, Tree], unit: str) -> Collection:
    id_ = entry["question_id"]
    found = list(_documents(entry, unit))
    gold = tuple(document.id for document, is_gold in found if is_gold)
    abstains = id_.endswith("_abs")
    question = Question(
        id=id_,
        text=entry["question"],
        relevant=() if abstains else gold,
        category=ABSTENTION if abstains else entry["question_type"],
        judged=abstains or bool(gold),
        asked_at=entry.get("question_date"),
        cluster=id_,
        answer=str(entry["answer"]) if "answer" in entry else None,
    )
    return Collection(id=id_, documents=tuple(document for document, _ in found), questions=(question,))


def _documents(entry: Mapping[str, Tree], unit: str) -> Iterator[tuple[Document, bool]]:
    """Yield the memories of a history, and whether each is gold; a session that comes twice has a number behind it."""
    answering = frozenset(entry["answer_session_ids"])
    seen: Counter[str] = Counter()
    histories = (entry["haystack_session_ids"], entry["haystack_dates"], entry["haystack_sessions"])
    for session, date, turns in zip(*histories, strict=True):
        seen[session] += 1
        id_ = session if seen[session] == 1 else f"{session}~{seen[session]}"
        if unit == "session":
            text = "\n".join([f"[{date}]", *map(_line, turns)])
            yield Document(id=id_, text=text, metadata={"said_at": date}), session in answering
        else:
            yield from _turns(id_, date, turns)


def _turns(session: str, date: str, turns: Sequence[Mapping[str, Tree]]) -> Iterator[tuple[Document, bool]]:
    for number, turn in enumerate(turns, start=1):
        if turn["content"].strip():
            metadata = {"session": session, "speaker": turn["role"], "said_at": date}
            document = Document(id=f"{session}_{number}", text=f"[{date}] {_line(turn)}", metadata=metadata)
            yield document, bool(turn.get("has_answer"))


def _line(turn: Mapping[str, Tree]) -> str:
    return f"{turn['role']}: {turn['content']}"
