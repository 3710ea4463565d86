"""A hash of what a retrieval task holds, so that runs over unlike data are not compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final

from memstory.codec import encode_fields
from memstory.tasks.retrieval import Collection

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
        for text in _separated(_text(encode_fields(document)) for document in collection.documents):
            found.update(text)
        found.update(b'],"id":' + _text(collection.id) + b',"questions":[')
        for text in _separated(_text(_said(encode_fields(question))) for question in collection.questions):
            found.update(text)
        found.update(b"]}")
    found.update(b"]")
    return found.hexdigest()


def _said(fields: Any) -> Any:
    return {name: value for name, value in fields.items() if value or name not in LATER}


def _text(value: Any) -> bytes:
    # The default ASCII output can carry lone surrogates, which UTF-8 cannot.
    return json.dumps(value, default=encode_fields, sort_keys=True, separators=(",", ":")).encode()


def _separated(texts: Iterable[bytes]) -> Iterator[bytes]:
    for place, text in enumerate(texts):
        yield b"," + text if place else text
