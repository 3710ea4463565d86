"""A hash of a retrieval task's data, so that runs on different data are not compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from itertools import islice
from json.encoder import encode_basestring_ascii as _text
from typing import Any, Final

from memstory.contract.codec import encode_fields
from memstory.tasks.retrieval import Collection, Document

# The default ASCII output can carry lone surrogates, which UTF-8 cannot.
_ENCODER: Final = json.JSONEncoder(default=encode_fields, sort_keys=True, separators=(",", ":"), check_circular=False)

_BATCH: Final = 1000

LATER: Final = frozenset({"wording", "stale", "asked_at", "cluster", "metadata"})
"""Fields of questions that came later: they count where they say something, so that older digests still hold."""


def digest_of(collections: Iterable[Collection]) -> str:
    """Return the sha256 of all documents, questions and labels; layout and field order of the files do not count.

    >>> digest_of([])[:8]
    '4f53cda1'
    """
    found = sha256(b"[")
    for place, collection in enumerate(collections):
        found.update(b',{"documents":[' if place else b'{"documents":[')
        _add(found, collection.documents, _documents)
        found.update(f'],"id":{_ENCODER.encode(collection.id)},"questions":['.encode())
        _add(found, (_said(encode_fields(question)) for question in collection.questions), _rows)
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


def _documents(documents: Sequence[Document]) -> str:
    """Return what `_rows` does, at a third of its time where documents are an id and a text, as most are."""
    return ",".join(
        f'{{"id":{_text(one.id)},"key":null,"kind":null,"metadata":{{}},"outdated":[],"text":{_text(one.text)}}}'
        if one.key is None and one.kind is None and not one.metadata and not one.outdated
        else _ENCODER.encode(one)
        for one in documents
    )


def _said(fields: Any) -> Any:
    return {name: value for name, value in fields.items() if value or name not in LATER}
