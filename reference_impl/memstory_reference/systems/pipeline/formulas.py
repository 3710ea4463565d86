"""The formulas of the pipeline for `inspect: formula`: what each of its rules gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from memstory.contract.errors import StoryError
from memstory.contract.target import Tree
from memstory_reference.systems.pipeline.ingest import centroid, importance, novelty, salience
from memstory_reference.systems.pipeline.reading import Detectors, clean, memory_type_of, preference_key
from memstory_reference.systems.pipeline.recall import blend, fit_budget
from memstory_reference.text.chunks import split_chunks
from memstory_reference.text.words import count_tokens


def formula(args: Mapping[str, Tree]) -> Tree:
    """Return what a rule of the pipeline gives for each of the rows; `args` names one rule."""
    names = [name for name in args if name != "since"]
    if len(names) != 1 or names[0] not in _FORMULAS:
        raise StoryError(f"inspect: formula takes one of {', '.join(_FORMULAS)}; found {', '.join(names) or 'nothing'}")
    return [_FORMULAS[names[0]](row) for row in args[names[0]]]


def _novelty(row: Mapping[str, Tree]) -> float:
    return novelty(row["vector"], centroid(row.get("memories") or []))


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
    "importance": lambda row: importance(*row),
    "novelty": _novelty,
    "salience": lambda text: salience(Detectors().signals(text)),
    "signals": lambda text: asdict(Detectors().signals(text)),
    "kind": lambda text: str(memory_type_of(text, Detectors())),
    "key": lambda text: preference_key(text, "hash"),
    "blend": lambda row: blend(*row),
    "picked": _picks,
}
