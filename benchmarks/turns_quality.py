"""What each part of the ranking of `turns` is worth: recall and nDCG without it, and with wrong or no structure.

Run it with `python benchmarks/turns_quality.py`, or `nox -s bench -- turns_quality`. It measures circle one of
lifelines (the open one, each category alike) and LoCoMo where MEMSTORY_LOCOMO names the file (each question alike). The
goals: LoCoMo R@5 .72, R@10 .80, nDCG@10 .64; lifelines R@10 .08 above the best of BM25, vectors and plain hybrid;
without speakers, dates and sessions no worse than plain hybrid.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random

import numpy as np

from memstory.bundled import bundled_stories
from memstory.contract.errors import Mark
from memstory.datasets import load_task
from memstory.language.story import Retrieval
from memstory.scoring.metrics import mean, ndcg_at_k, recall_at_k
from memstory.tasks.retrieval import Collection, Document, Question, RetrievalTask, turns_of
from memstory_reference.composition.embedders import MINILM, make_embedder
from memstory_reference.composition.turns import open_sqlite_turns
from memstory_reference.ports import Embedder, Purpose
from memstory_reference.systems.turns.config import TurnsConfig
from memstory_reference.systems.turns.ranking.languages import ENGLISH
from memstory_reference.systems.turns.ranking.pool import Numbers, rarity, saturation
from memstory_reference.systems.turns.ranking.weighting import Weights
from memstory_reference.systems.turns.service import TurnsMemory
from memstory_reference.systems.turns.turn import NewTurn
from memstory_reference.text.stems import stems

K, OWNER, MARK = 10, "owner", Mark("benchmarks/turns_quality.py", 1, 1)
GOALS = {"R@5": 0.72, "R@10": 0.80, "nDCG@10": 0.64}
ABOVE_OTHERS = 0.08
PARTS: Mapping[str, Sequence[str]] = {
    "words": ["words"],
    "vectors": ["cosine"],
    "speaker": ["speaker"],
    "date": ["date"],
    "session": ["session"],
    "the turns beside": ["previous", "following"],
    "question and length": ["question", "length"],
    "age and change": ["recent", "change"],
    "updates": ["update"],
    "supersession": ["superseded"],
}
STRUCTURE = sorted({name for names in PARTS.values() for name in names} - {"words", "cosine"})


class Now:
    """A clock that stands at the day after the last turn of lifelines."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def sleep_until(self, moment: datetime) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Data:
    """A data set; `macro` counts each category alike."""

    name: str
    task: RetrievalTask
    macro: bool


Change = Callable[[Collection], Sequence[Document]]


def _as_turns(collection: Collection) -> Sequence[Document]:
    return list(turns_of(collection).documents)


async def main() -> int:
    """Print a table for each data set; return 1 if a goal is missed."""
    embedder, missed = make_embedder(MINILM, ollama_host=""), 0
    for data in _data():
        print(f"\n{data.name}\n{'':36}{'R@5':>7}{'R@10':>7}{'nDCG@10':>9}")
        others = {name: _scores(data, found) for name, found in (await _plain(data, embedder)).items()}
        for name, scores in others.items():
            _print(name, scores)
        async with _remembered(data, embedder) as memories:
            full = await _measured(data, memories, "turns, all parts", Weights())
            for name, parts in PARTS.items():
                await _measured(data, memories, f"  without {name}", replace(Weights(), **dict.fromkeys(parts, 0.0)))
            await _measured(data, memories, "  without cleaning", Weights(), cleaning=False)
            await _measured(
                data, memories, "  words and vectors alone", replace(Weights(), **dict.fromkeys(STRUCTURE, 0.0))
            )
        for name, change in {"  shuffled structure": _shuffled, "  structure in the text alone": _in_the_text}.items():
            async with _remembered(data, embedder, change) as memories:
                control = await _measured(data, memories, name, Weights())
        missed += _missed(data, full, control, others)
    await embedder.close()
    return 1 if missed else 0


def _data() -> Iterator[Data]:
    stories = bundled_stories()
    lifelines = Retrieval(
        mark=MARK,
        corpus="corpora/lifelines/turns.jsonl",
        queries="corpora/lifelines/questions.jsonl",
        where={"circle": 1},  # never circle two: nothing may be tuned on it
    )
    yield Data("lifelines, circle one, three wordings", load_task(lifelines, stories), macro=True)
    if os.environ.get("MEMSTORY_LOCOMO"):
        locomo = Retrieval(mark=MARK, dataset="locomo")
        yield Data("LoCoMo", load_task(locomo, stories), macro=False)
    else:
        print("LoCoMo is not measured: name your copy in MEMSTORY_LOCOMO")


def _judged(data: Data, collection: Collection) -> list[Question]:
    return [one for one in collection.questions if one.judged and one.relevant and one.category not in data.task.apart]


@asynccontextmanager
async def _remembered(data: Data, embedder: Embedder, change: Change = _as_turns) -> Iterator[list[TurnsMemory]]:  # type: ignore[misc]
    """Yield a memory for each collection, its documents told as turns with their ids for keys."""
    memories = []
    with tempfile.TemporaryDirectory() as folder:
        for collection in data.task.collections:
            store, numbers = open_sqlite_turns(Path(folder, collection.id), embedder.model), count()
            memory = TurnsMemory(store=store, embedder=embedder, clock=Now(), new_id=lambda: f"id{next(numbers)}")  # noqa: B023
            memories.append(memory)
            documents = change(collection)
            await memory.add(OWNER, [NewTurn(text=one.text, key=one.id, metadata=_fields(one)) for one in documents])
        try:
            yield memories
        finally:
            for memory in memories:
                await memory.close()


def _fields(document: Document) -> Mapping[str, object]:
    return {name: document.metadata[name] for name in ("speaker", "session", "said_at") if name in document.metadata}


async def _measured(
    data: Data, memories: Sequence[TurnsMemory], name: str, weights: Weights, *, cleaning: bool = True
) -> dict[str, float]:
    config = TurnsConfig(weights=weights, cleaning=cleaning)
    found: dict[Question, Sequence[str]] = {}
    for memory, collection in zip(memories, data.task.collections, strict=True):
        memory.config = config
        for question in _judged(data, collection):
            hits = await memory.search(OWNER, question.text, K)
            found[question.id] = [hit.turn.key or "" for hit in hits]
    scores = _scores(data, found)
    _print(name, scores)
    return scores


def _scores(data: Data, found: Mapping[str, Sequence[str]]) -> dict[str, float]:
    by_category: dict[str, list[tuple[float, float, float]]] = {}
    for collection in data.task.collections:
        for question in _judged(data, collection):
            ids, gold = found[question.id], question.relevant
            row = recall_at_k(ids, gold, 5), recall_at_k(ids, gold, K), ndcg_at_k(ids, gold, K)
            by_category.setdefault(str(question.category) if data.macro else "", []).append(row)
    means = [np.mean(rows, axis=0) for rows in by_category.values()]
    latest = {name: np.mean(rows, axis=0)[1] for name, rows in by_category.items() if name in ("latest", "as_of")}
    stale = [
        _first(found[one.id], one.stale) < _first(found[one.id], one.relevant)
        for collection in data.task.collections
        for one in _judged(data, collection)
        if one.stale
    ]
    share = {"stale": mean(stale)} if stale else {}
    return {**dict(zip(GOALS, np.mean(means, axis=0), strict=True)), **latest, **share}


def _first(found: Sequence[str], wanted: Container[str]) -> int:
    return next((place for place, one in enumerate(found) if one in wanted), len(found))


def _print(name: str, scores: Mapping[str, float]) -> None:
    rest = "".join(f"   {key} {value:.3f}" for key, value in scores.items() if key not in GOALS)
    print(f"{name:36}{scores['R@5']:7.3f}{scores['R@10']:7.3f}{scores['nDCG@10']:9.3f}{rest}", flush=True)


async def _plain(data: Data, embedder: Embedder) -> dict[str, dict[str, Sequence[str]]]:
    """Rank the whole texts by stemmed BM25, by vectors, and by reciprocal ranks of both: what everybody has."""
    found: dict[str, dict[str, Sequence[str]]] = {"BM25": {}, "vectors": {}, "plain hybrid": {}}
    for collection in data.task.collections:
        documents, questions = list(collection.documents), _judged(data, collection)
        vectors = await embedder.embed([one.text for one in documents], Purpose.DOCUMENT)
        asked = await embedder.embed([one.text for one in questions], Purpose.QUERY)
        words = [stems(one.text) for one in documents]
        for question, vector in zip(questions, asked, strict=True):
            wanted = [one for one in dict.fromkeys(stems(question.text)) if one not in ENGLISH.empty]
            by_words, by_vectors = _ranks(_bm25(words, wanted)), _ranks(vectors @ vector)
            fused = 1 / (61 + by_words) + 1 / (61 + by_vectors)
            for name, keys in (("BM25", -by_words), ("vectors", -by_vectors), ("plain hybrid", fused)):
                best = np.argsort(-keys, kind="stable")[:K]
                found[name][question.id] = [documents[place].id for place in best]
    return found


def _bm25(documents: Sequence[Sequence[str]], wanted: Sequence[str]) -> Numbers:
    times = np.array([[words.count(stem) for words in documents] for stem in wanted]).reshape(len(wanted), -1)
    lengths = np.array([len(words) for words in documents])
    rare = np.array([[rarity(int(has), len(documents))] for has in (times > 0).sum(axis=1)]).reshape(-1, 1)
    return np.sum(rare * saturation(times, lengths, float(lengths.mean())), axis=0)


def _ranks(scores: Numbers) -> Numbers:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return ranks


def _shuffled(collection: Collection) -> Sequence[Document]:
    """Give each turn speaker, session and date of another."""
    documents = _as_turns(collection)
    metadata = [one.metadata for one in documents]
    Random(7).shuffle(metadata)  # noqa: S311  (chance that can be repeated, not a secret)
    return [replace(one, metadata=other) for one, other in zip(documents, metadata, strict=True)]


def _in_the_text(collection: Collection) -> Sequence[Document]:
    """Add every turn as plain text, as for memories without speaker, session or date."""
    return [replace(one, metadata={}) for one in collection.documents]


def _missed(
    data: Data, full: Mapping[str, float], bare: Mapping[str, float], others: Mapping[str, Mapping[str, float]]
) -> int:
    goals = dict(GOALS) if not data.macro else {"R@10": ABOVE_OTHERS + max(one["R@10"] for one in others.values())}
    wrong = [f"{name} {full[name]:.3f}, not {goal:.3f}" for name, goal in goals.items() if full[name] < goal]
    if bare["R@10"] < others["plain hybrid"]["R@10"]:
        wrong.append(f"without structure {bare['R@10']:.3f}, below plain hybrid")
    print(f"missed: {'; '.join(wrong)}" if wrong else "goals met")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
