"""The values of a retrieval task: documents, queries and the labels that say which answers which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from memstory.target import Tree

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text to be remembered, under the id by which labels name it; `outdated` are earlier texts, oldest first."""

    id: str
    text: str
    key: str | None = None
    kind: str | None = None
    metadata: Mapping[str, Tree] = field(default_factory=dict)
    outdated: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One query with its gold document ids. `relevant=()` with `judged=True` means that nothing must be returned.

    `variants` ask the same in other words; `wording` says which wording this is where each has a question of its own.
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
