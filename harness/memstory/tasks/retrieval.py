"""The values of a retrieval task: documents, queries and the labels that say which answers which."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypeVar

from memstory.contract.target import Tree
from memstory.contract.values import made_quickly

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Reread(Generic[Value]):
    """Values that are read from their file each time somebody goes through them: they are never all in memory."""

    count: int
    read: Callable[[], Iterator[Value]]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Value]:
        return self.read()


Many: TypeAlias = Sequence[Value] | Reread[Value]


@made_quickly
@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text to be remembered, under the id by which labels name it; `outdated` are earlier texts, oldest first."""

    id: str
    text: str
    key: str | None = None
    kind: str | None = None
    metadata: Mapping[str, Tree] = field(default_factory=dict)
    outdated: Sequence[str] = ()


@made_quickly
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One query with its gold document ids. `relevant=()` with `judged=True` means that nothing must be returned.

    `variants` ask the same in other words; `wording` says which of them this question is.
    `stale` are documents that were right once, before `relevant`. `cluster` names what its answer hangs on (a session):
    questions of one cluster are right or wrong together, which intervals take into account.
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


def turns_of(collection: Collection) -> Collection:
    """Return a collection whose dialogue is given as turns; other documents stay as they are."""
    documents = collection.documents
    if isinstance(documents, Reread):
        return replace(collection, documents=Reread(documents.count, lambda: map(as_turn, documents.read())))
    return replace(collection, documents=tuple(map(as_turn, documents)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalTask:
    """What a dataset loader returns. `apart` names categories that are reported but left out of the total.

    `unusable` lists labels that could not be read, as `question id: what was found`; they are never guessed.
    `digest` identifies the content, so that unlike runs are not compared.
    """

    name: str
    collections: Many[Collection]
    apart: Sequence[str] = ()
    unusable: Sequence[str] = ()
    digest: str = ""
