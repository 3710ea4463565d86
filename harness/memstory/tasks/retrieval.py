"""The values of a retrieval task: documents, queries and the labels that say which answers which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memstory.target import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text to be remembered, under the id by which labels name it; `outdated` are earlier texts, oldest first."""

    id: str
    text: str
    key: str | None = None
    kind: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    outdated: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One query with its gold document ids. `relevant=()` with `judged=True` means that nothing must be returned.

    `variants` ask the same in other words.
    """

    id: str
    text: str
    relevant: Sequence[str] = ()
    category: str | None = None
    judged: bool = True
    variants: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Documents that share one memory, and the questions that are asked of it."""

    id: str
    documents: Sequence[Document]
    questions: Sequence[Question]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalTask:
    """What a dataset loader returns. `apart` names categories that are reported but left out of the total.

    `unusable` lists labels that could not be read, as `question id: what was found`; they are never guessed.
    `digest` identifies the content, so that unlike runs are not compared.
    """

    name: str
    collections: Sequence[Collection]
    apart: Sequence[str] = ()
    unusable: Sequence[str] = ()
    digest: str = ""
