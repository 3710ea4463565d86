"""`where:` of a retrieval: which documents and questions of the files take part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memstory.contract.target import Tree
from memstory.tasks.retrieval import Document, Question

FIELDS: Final = ("category", "wording", "kind", "key")
"""What `where` may name beside `metadata`."""

_ABSENT: Final = object()


def is_selected(row: Document | Question, where: Mapping[str, Tree]) -> bool:
    """Return whether a row takes part: no field that `where` names has another value in it.

    A field is one of `FIELDS` or of the row's `metadata`; a row that has no such field takes part.

    >>> turn = Document(id="t", text="…", metadata={"circle": 1})
    >>> is_selected(turn, {"circle": [1, 3], "wording": 2}), is_selected(turn, {"circle": 2})
    (True, False)
    """
    for name, wanted in where.items():
        found = _field(row, name)
        if found is not _ABSENT and found not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    return True


def fields_of(row: Document | Question) -> frozenset[str]:
    """Return the fields of this row that `where` could name."""
    return frozenset(name for name in FIELDS if _field(row, name) is not _ABSENT) | frozenset(row.metadata)


def _field(row: Document | Question, name: str) -> Tree:
    found = getattr(row, name, None) if name in FIELDS else None
    return row.metadata.get(name, _ABSENT) if found is None else found
