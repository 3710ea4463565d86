"""The pipeline's values in the harness's words, and its formulas for `inspect: formula`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

from memstory.contract.errors import StoryError
from memstory.contract.target import Hit, ReceiptItem, Tree
from memstory_reference.systems.pipeline import importance as weighing
from memstory_reference.systems.pipeline.chunk import (
    ChunkReceipt,
    MemoryChunk,
    RecalledMemory,
    RecallResult,
)
from memstory_reference.systems.pipeline.ingest.importing import export_row
from memstory_reference.systems.pipeline.reading.cleaning import clean
from memstory_reference.systems.pipeline.reading.detectors import Detectors, memory_type_of
from memstory_reference.systems.pipeline.reading.preference_keys import preference_key
from memstory_reference.systems.pipeline.selection import blend, fit_budget
from memstory_reference.text.chunks import split_chunks
from memstory_reference.text.secret_guard import left_out
from memstory_reference.text.words import count_tokens

_OF_HITS = frozenset({"id", "text", "kind", "key", "created_at", "updated_at"})
"""What a hit has beside its metadata, or has not."""


def receipt_item(receipt: ChunkReceipt) -> ReceiptItem:
    """Return what happened to a chunk."""
    return ReceiptItem(
        id=receipt.memory.id if receipt.memory else None,
        text=receipt.content,
        outcome=str(receipt.outcome),
        reason="; ".join(filter(None, (receipt.reason, left_out(receipt.content)))),
        kind=str(receipt.memory_type),
        key=receipt.memory.key if receipt.memory else None,
        importance=receipt.importance,
    )


def hit(memory: MemoryChunk, score: float | None = None, explain: Mapping[str, Tree] | None = None) -> Hit:
    """Return a memory as a hit."""
    row = export_row(memory)
    return Hit(
        id=memory.id,
        text=memory.content,
        score=score,
        kind=row["kind"],
        key=memory.key,
        created_at=row["created_at"],
        metadata={name: value for name, value in row.items() if name not in _OF_HITS},
        explain=explain,
    )


def recalled_hit(one: RecalledMemory, rerank: str) -> Hit:
    """Return a recalled memory; `explain` says how it came to its place."""
    explain = {
        "similarity": one.similarity,
        "score": one.score,
        "rerank": rerank,
        "tokens": one.tokens,
        "importance": one.memory.importance,
    }
    return hit(one.memory, one.score, explain)


def result_data(result: RecallResult) -> dict[str, Tree]:
    """Return a whole result, with its totals."""
    rows = [
        {
            "id": one.memory.id,
            "text": one.memory.content,
            "kind": str(one.memory.memory_type),
            "score": one.score,
            "tokens": one.tokens,
        }
        for one in result.memories
    ]
    return {**asdict(replace(result, memories=())), "memories": rows}


def formula(args: Mapping[str, Tree]) -> Tree:
    """Return what a rule of the pipeline gives for each of the rows; `args` names one rule."""
    names = [name for name in args if name != "since"]
    if len(names) != 1 or names[0] not in _FORMULAS:
        raise StoryError(f"inspect: formula takes one of {', '.join(_FORMULAS)}; found {', '.join(names) or 'nothing'}")
    return [_FORMULAS[names[0]](row) for row in args[names[0]]]


def _novelty(row: Mapping[str, Tree]) -> float:
    return weighing.novelty(row["vector"], weighing.centroid(row.get("memories") or []))


def _signals(text: str) -> dict[str, Tree]:
    return asdict(Detectors().signals(text))


def _salience(text: str) -> float:
    return weighing.salience(Detectors().signals(text))


def _kind(text: str) -> str:
    return str(memory_type_of(text, Detectors()))


def _sizes(row: Sequence[int] | Mapping[str, int]) -> list[int]:
    """Return the sizes of the chunks of paragraphs of these sizes, or of one paragraph of so many sentences."""
    if isinstance(row, Mapping):
        sentence = " ".join(["Word", *["word"] * (row["tokens"] - 2)]) + "."
        text = " ".join([sentence] * row["sentences"])
    else:
        text = "\n\n".join(" ".join(["word"] * size) for size in row)
    return [count_tokens(chunk) for chunk in split_chunks(text)]


def _picks(row: Mapping[str, Tree]) -> list[int]:
    sizes = row["sizes"]
    return [sizes[place] for place in fit_budget(sizes, row["budget"], row["top_k"])]


_FORMULAS: Mapping[str, Callable[..., Tree]] = {
    "clean": clean,
    "chunks": split_chunks,
    "chunk_sizes": _sizes,
    "tokens": count_tokens,
    "importance": lambda row: weighing.importance(*row),
    "novelty": _novelty,
    "salience": _salience,
    "signals": _signals,
    "kind": _kind,
    "key": lambda text: preference_key(text, "hash"),
    "blend": lambda row: blend(*row),
    "picked": _picks,
}
