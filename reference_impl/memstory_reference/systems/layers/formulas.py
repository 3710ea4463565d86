"""The pure parts of the layers by worked numbers, for `inspect: formula`."""

from __future__ import annotations

from collections.abc import Mapping

from memstory.contract.errors import StoryError
from memstory.contract.target import Tree
from memstory_reference.systems.layers.config import LayersConfig
from memstory_reference.systems.layers.operations.dedup import compare_texts
from memstory_reference.systems.layers.recall.rrf import fuse, rrf_score
from memstory_reference.systems.layers.records.entries import format_working_memory_entries
from memstory_reference.text.token_sets import token_recall, token_set

KNOWN = "rrf (rows of ranks), fuse (lists), recall ([query, document] pairs), tokens (texts), jaccard (pairs), lines"


def formula(args: Mapping[str, Tree], config: LayersConfig) -> Tree:
    """Return what one part makes of the rows that a story gives."""
    match dict(args):
        case {"rrf": rows}:
            return [rrf_score(row) for row in rows]
        case {"fuse": lists}:
            return fuse(lists)
        case {"recall": pairs}:
            return [token_recall(token_set(query), token_set(document)) for query, document in pairs]
        case {"tokens": texts}:
            return [sorted(token_set(text)) for text in texts]
        case {"jaccard": pairs}:
            found = [compare_texts(left, right, config.duplicate) for left, right in pairs]
            return {"index": [one.index for one in found], "likeness": [str(one.likeness) for one in found]}
        case {"lines": entries}:
            return format_working_memory_entries(entries)
        case _:
            raise StoryError(f"inspect: formula takes one of {KNOWN}")
