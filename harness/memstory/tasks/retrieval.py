"""The values of a retrieval task: documents, queries, labels that say which answers which, and a digest of them all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from json.encoder import encode_basestring_ascii as _text
from typing import Any, Final, Generic, TypeAlias, TypeVar

from memstory.contract.codec import encode_fields
from memstory.contract.target import Tree
from memstory.contract.values import quick_init

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class FileValues(Generic[Value]):
    """Values that are read from their file each time somebody goes through them: they are never all in memory."""

    count: int
    read: Callable[[], Iterator[Value]]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Value]:
        return self.read()


Many: TypeAlias = Sequence[Value] | FileValues[Value]


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text to be remembered, under the id by which labels name it; `outdated` are earlier texts, oldest first."""

    id: str
    text: str
    key: str | None = None
    kind: str | None = None
    metadata: Mapping[str, Tree] = field(default_factory=dict)
    outdated: Sequence[str] = ()


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One query with its gold document ids. `relevant=()` with `judged=True` means that nothing must be returned.

    `variants` ask the same in other words; `wording` says which of them this question is.
    `stale` are documents that were right once, before `relevant`. `cluster` names what its answer hangs on (a session):
    questions of one cluster are right or wrong together, which intervals take into account. `answer` is the right one
    in words, where the data have it; `audited` are the gold ids of somebody who examined the labels, where they differ.
    """

    id: str
    text: str
    relevant: Sequence[str] = ()
    category: str | None = None
    judged: bool = True
    variants: Sequence[str] = ()
    wording: int | None = None
    stale: Sequence[str] = ()
    asked_at: str | None = None
    cluster: str | None = None
    metadata: Mapping[str, Tree] = field(default_factory=dict)
    answer: str | None = None
    audited: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Documents that share one memory, and the questions that are asked of it."""

    id: str
    documents: Many[Document]
    questions: Sequence[Question]

    @property
    def is_dialogue(self) -> bool:
        """Whether its documents say who spoke, beside their text."""
        first = next(iter(self.documents), None)
        return first is not None and "speaker" in first.metadata


def as_turn(document: Document) -> Document:
    """Return a document with the words alone: without `[date] speaker: `, which its metadata say too.

    >>> as_turn(Document(id="1", text="[May 8] Ana: Hello!", metadata={"speaker": "Ana"})).text
    'Hello!'
    """
    if "speaker" not in document.metadata:
        return document
    head = re.compile(rf"(?:\[[^\]\n]*\] )?{re.escape(str(document.metadata['speaker']))}: ")
    bare = [head.sub("", text, count=1) if head.match(text) else text for text in (document.text, *document.outdated)]
    return replace(document, text=bare[0], outdated=tuple(bare[1:]))


def collection_of_turns(collection: Collection) -> Collection:
    """Return a collection whose dialogue is given as turns; other documents stay as they are."""
    documents = collection.documents
    if isinstance(documents, FileValues):
        return replace(collection, documents=FileValues(documents.count, lambda: map(as_turn, documents.read())))
    return replace(collection, documents=tuple(map(as_turn, documents)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalTask:
    """What a dataset loader returns. `apart` names categories that are reported but left out of the total.

    `unusable` lists labels that could not be read, as `question id: what was found`; they are never guessed. `notes`
    say what a reader of scores must know of the data. `digest` identifies the content, so that unlike runs are not
    compared. `drawn_from` is the number of questions that those here are a sample of.
    """

    name: str
    collections: Many[Collection]
    apart: Sequence[str] = ()
    unusable: Sequence[str] = ()
    notes: Sequence[str] = ()
    digest: str = ""
    drawn_from: int | None = None


# The default ASCII output can carry lone surrogates, which UTF-8 cannot.
_ENCODER: Final = json.JSONEncoder(default=encode_fields, sort_keys=True, separators=(",", ":"), check_circular=False)

_BATCH: Final = 1000

LATER: Final = frozenset({"wording", "stale", "asked_at", "cluster", "metadata", "audited"})
"""Fields of questions that came later: they count where they say something, so that older digests still hold."""

UNASKED: Final = "answer"
"""The field that no score of a ranking rests on."""


def digest_of(collections: Iterable[Collection]) -> str:
    """Return the sha256 of all documents, questions and labels; layout and field order of the files do not count.

    >>> digest_of([])[:8]
    '4f53cda1'
    """
    found = sha256(b"[")
    for place, collection in enumerate(collections):
        found.update(b',{"documents":[' if place else b'{"documents":[')
        _add(found, collection.documents, _plain_documents)
        found.update(f'],"id":{_ENCODER.encode(collection.id)},"questions":['.encode())
        _add(found, (_given_fields(encode_fields(question)) for question in collection.questions), _rows)
        found.update(b"]}")
    found.update(b"]")
    return found.hexdigest()


def _add(found: Any, values: Iterable[Any], encoded: Callable[[Sequence[Any]], str]) -> None:
    """Add values as one list of JSON, some at a time: there may be more than fit into memory."""
    remaining, comma = iter(values), ""
    while batch := list(islice(remaining, _BATCH)):
        found.update(f"{comma}{encoded(batch)}".encode())
        comma = ","


def _rows(values: Sequence[Any]) -> str:
    return _ENCODER.encode(values)[1:-1]


def _plain_documents(documents: Sequence[Document]) -> str:
    """Return what `_rows` does, at a third of its time where documents are an id and a text, as most are."""
    return ",".join(
        f'{{"id":{_text(one.id)},"key":null,"kind":null,"metadata":{{}},"outdated":[],"text":{_text(one.text)}}}'
        if one.key is None and one.kind is None and not one.metadata and not one.outdated
        else _ENCODER.encode(one)
        for one in documents
    )


def _given_fields(fields: Any) -> Any:
    return {name: value for name, value in fields.items() if name != UNASKED and (value or name not in LATER)}


def sample_of(task: RetrievalTask, count: int) -> RetrievalTask:
    """Return the task with `count` of its collections, the same in every run; all of them where there are no more.

    They are drawn by the hashes of their ids, so that a larger sample holds every smaller one.
    """
    ids = [collection.id for collection in task.collections]
    if count >= len(ids):
        return task
    drawn = frozenset(sorted(ids, key=lambda id_: sha256(id_.encode()).digest())[:count])

    def read() -> Iterator[Collection]:
        return (collection for collection in task.collections if collection.id in drawn)

    note = f"a sample: {count} of {len(ids)} histories"
    return replace(
        task,
        collections=FileValues(count, read),
        notes=(*task.notes, note),
        digest=sha256(f"{task.digest}/{count}".encode()).hexdigest(),
    )


def sample_questions(task: RetrievalTask, count: int, seed: int) -> RetrievalTask:
    """Return the task with `count` of its questions, and the collections that these are asked of.

    They are the same in every run of the same seed, and a larger sample holds every smaller one. Where there are no
    more, all of them are asked, and the notes say so.
    """
    ids = [(collection.id, question.id) for collection in task.collections for question in collection.questions]
    if count >= len(ids):
        note = f"all {len(ids)} questions: a sample of {count} was asked for, and there are no more"
        return replace(task, notes=(*task.notes, note))
    drawn = frozenset(sorted(ids, key=lambda one: sha256(repr((seed, *one)).encode()).digest())[:count])
    asked = {collection for collection, _ in drawn}

    def part(collection: Collection) -> Collection:
        questions = tuple(one for one in collection.questions if (collection.id, one.id) in drawn)
        return replace(collection, questions=questions)

    def read() -> Iterator[Collection]:
        return (part(collection) for collection in task.collections if collection.id in asked)

    note = f"a sample: {count} of {len(ids)} questions, drawn with the seed {seed}"
    return replace(
        task,
        collections=FileValues(len(asked), read),
        notes=(*task.notes, note),
        digest=sha256(f"{task.digest}/questions/{count}/{seed}".encode()).hexdigest(),
        drawn_from=len(ids),
    )
