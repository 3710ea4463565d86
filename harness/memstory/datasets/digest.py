"""A hash of what a retrieval task holds, so that runs over unlike data are not compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

from memstory.codec import encode_fields
from memstory.tasks.retrieval import Collection


def digest_of(collections: Sequence[Collection]) -> str:
    """Return the sha256 of all documents, questions and labels; layout and field order of the files do not count.

    >>> digest_of([])[:8]
    '4f53cda1'
    """
    # The default ASCII output can carry lone surrogates, which UTF-8 cannot.
    text = json.dumps(list(collections), default=encode_fields, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()
