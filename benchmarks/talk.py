"""What `turns` finds in four kinds of talk, beside plain searches, and what each part of its ranking is worth.

Run it with `nox -s bench -- talk`, or `python benchmarks/talk.py --beam FOLDER --realtalk FOLDER --locomo FILE`. The
sets are the user's own copies, also named by MEMSTORY_LOCOMO (the file), MEMSTORY_REALTALK (the folder of its chats)
and MEMSTORY_BEAM (the folder of one size, with a folder for each chat); lifelines comes with memstory, of which circle
one is measured: circle two is asked by `--circle 2`, when nothing is left to choose. A set that is not there is named.
Where all four are, the tables go into docs/explanation/turns.md.

Each set counts alike, and each question of a set. What is searched is "speaker: text" of each turn. The interval is of
the difference in recall to `turns`, by resampling the sessions that hold the answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from memstory.bundled import bundled_stories
from memstory.contract.errors import Mark
from memstory.datasets import load_task
from memstory.language.story import Retrieval
from memstory.scoring.metrics import is_stale_first, mean, ndcg_at_k, recall_at_k, threshold_accuracy
from memstory.scoring.statistics import Interval, paired_bootstrap
from memstory.tasks.retrieval import Collection, Document, Question, collection_of_turns
from memstory_reference.composition.embedders import MINILM, make_embedder
from memstory_reference.composition.turns import turns_in_folder
from memstory_reference.ports import Embedder, Purpose
from memstory_reference.systems.turns import service
from memstory_reference.systems.turns.question import ENGLISH
from memstory_reference.systems.turns.question import Question as Asked
from memstory_reference.systems.turns.ranking import (
    CandidateScores,
    Numbers,
    Pool,
    Weights,
    merge_rankings,
    rank_turns,
    rarity,
    saturation,
    score_candidates,
    z_scores,
)
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.settings import TurnsSettings
from memstory_reference.systems.turns.turn import NewTurn, Turn
from memstory_reference.text.words import stems

K, OWNER, MARK, SEED = 10, "owner", Mark("benchmarks/talk.py", 1, 1), 7
PAGE = Path(__file__).parents[1] / "docs/explanation/turns.md"
UNGUARDED = TurnsSettings(secrets="keep")
"""What is compared is the search: 44 of BEAM's 2,536 messages hold what the guard takes for a secret."""

BEGIN, END = "<!-- benchmarks/talk.py -->", "<!-- end -->"
TURNS, DENSE, RRF = "turns", "dense", "RRF"
OUTDATED = ("as_of", "latest")
"""The categories of lifelines that ask for what holds, or held, at a moment."""

Ranking = Sequence[str]
Found = Mapping[str, Ranking]
"""Ids, best first, by the id of the question."""


@dataclass(frozen=True)
class Talk:
    """A set of conversations."""

    name: str
    collections: Sequence[Collection]

    def questions(self) -> Iterator[tuple[Collection, Question]]:
        """Yield the questions that have an answer."""
        return ((one, question) for one in self.collections for question in one.questions if question.relevant)


class Now:
    """A clock that stands at the day after the last turn of lifelines."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def sleep_until(self, moment: datetime) -> None:
        raise NotImplementedError


async def main(given: argparse.Namespace) -> int:
    """Print the tables, write them to the page if all sets are there; return 1 if a set is missing."""
    talks, missing = _talks(given)
    for name, why in missing.items():
        print(f"{name} is not measured: {why}")
    embedder = make_embedder(MINILM, ollama_host="")
    rows: dict[str, dict[str, Found]] = {}
    sure: dict[str, dict[str, Mapping[str, float]]] = {}
    for talk in talks:
        for name, found in (await _plain(talk, embedder)).items():
            rows.setdefault(name, {})[talk.name] = found
        async with _remembered(talk, embedder) as memories:
            seen = await _found(talk, memories, TurnsSettings())
            whole = await _found(talk, memories, TurnsSettings(cleaning=False))
        sure[talk.name] = {TURNS: seen.answerable, DENSE: await _best_cosines(talk, embedder)}
        rows.setdefault(TURNS, {})[talk.name] = seen.found
        for name in Weights.__dataclass_fields__:
            weights = replace(Weights(), **{name: 0.0})
            rows.setdefault(f"without {name}", {})[talk.name] = _found_again(seen, weights)
        rows.setdefault("without cleaning", {})[talk.name] = whole.found
        print(f"{talk.name} is measured", file=sys.stderr, flush=True)
    await embedder.close()
    tables = "\n\n".join([_table(talks, rows), _table_of_time(talks, rows), _table_of_sureness(talks, sure)])
    print(f"\n{tables}")
    if missing or given.circle != 1:
        return 1 if missing else 0
    page = PAGE.read_text("utf-8")
    before, rest = page.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{tables}\n{END}{rest.split(END, 1)[1]}", "utf-8")
    print(f"\nwritten to {PAGE.name}")
    return 0


def _talks(given: argparse.Namespace) -> tuple[list[Talk], dict[str, str]]:
    """Return the sets that are there, and of the others why they are not."""
    talks, missing = list[Talk](), dict[str, str]()
    for name, place, read in (
        ("LoCoMo", given.locomo, _locomo),
        ("lifelines", str(bundled_stories()), lambda _: _lifelines(given.circle)),
        ("REALTALK", given.realtalk, _realtalk),
        ("BEAM", given.beam, _beam),
    ):
        if place is None:
            missing[name] = f"name your copy by --{name.lower()} or MEMSTORY_{name.upper()}"
        elif not Path(place).exists():
            missing[name] = f"there is nothing at {place}"
        else:
            talks.append(Talk(name, [collection_of_turns(one) for one in read(Path(place))]))
    return talks, missing


def _lifelines(circle: int) -> Sequence[Collection]:
    corpus, queries = "corpora/lifelines/turns.jsonl", "corpora/lifelines/questions.jsonl"
    task = load_task(Retrieval(mark=MARK, corpus=corpus, queries=queries, where={"circle": circle}), bundled_stories())
    return list(task.collections)


def _locomo(file: Path) -> Sequence[Collection]:
    task = load_task(Retrieval(mark=MARK, dataset="locomo"), bundled_stories(), environ={"MEMSTORY_LOCOMO": str(file)})
    return [
        replace(one, questions=[asked for asked in one.questions if asked.category not in task.apart])
        for one in task.collections
    ]


_EVIDENCE = re.compile(r"D\s*:?(\d+)\s*[:;]\s*(\d+)(?:\s*-\s*D\s*:?\d+\s*[:;]\s*(\d+))?")


def _realtalk(folder: Path) -> Sequence[Collection]:
    """Return the chats of REALTALK; evidence that names no message is left out, and so is a question without any."""
    return [
        _chat_of_people(json.loads(file.read_text("utf-8")), file.stem) for file in sorted(folder.glob("Chat_*.json"))
    ]


def _chat_of_people(chat: Mapping[str, Any], name: str) -> Collection:
    documents = [
        Document(
            id=told["dia_id"],
            text=" ".join([told.get("clean_text") or "", *(f"[shares {one}]" for one in _captions(told))]).strip(),
            metadata={
                "speaker": told["speaker"],
                "session": key,
                "said_at": datetime.strptime(told["date_time"], "%d.%m.%Y, %H:%M:%S").isoformat(),  # noqa: DTZ007
            },
        )
        for key in chat
        if re.fullmatch(r"session_\d+", key)
        for told in chat[key]
    ]
    known = {one.id for one in documents}
    return Collection(
        id=name,
        documents=[one for one in documents if one.text],
        questions=[
            Question(
                id=f"{name}/{place}",
                text=asked["question"],
                relevant=[one for one in _messages(asked["evidence"]) if one in known],
                category=str(asked["category"]),
                judged=any(one in known for one in _messages(asked["evidence"])),
            )
            for place, asked in enumerate(chat["qa"])
        ],
    )


def _captions(told: Mapping[str, Any]) -> Sequence[str]:
    captions = told.get("blip_caption") or []
    return [captions] if isinstance(captions, str) else [" ".join(captions)] if captions else []


def _messages(evidence: Sequence[str]) -> Sequence[str]:
    """Return the ids that are meant: `D1:2`, `D1:02`, `D 1;2`, and each of the range `D1:2-D1:5`."""
    found = [match for one in evidence for match in _EVIDENCE.findall(one)]
    return list(
        dict.fromkeys(
            f"D{int(session)}:{number}"
            for session, first, last in found
            for number in range(int(first), int(last or first) + 1)
        )
    )


def _beam(folder: Path) -> Sequence[Collection]:
    task = load_task(
        Retrieval(mark=MARK, dataset="beam", unit="turn"), bundled_stories(), environ={"MEMSTORY_BEAM": str(folder)}
    )
    return list(task.collections)


@asynccontextmanager
async def _remembered(talk: Talk, embedder: Embedder) -> Any:
    """Yield a memory for each collection, its documents told as turns with their ids for keys."""
    memories = []
    with tempfile.TemporaryDirectory() as folder:
        for collection in talk.collections:
            store, numbers = turns_in_folder(Path(folder, collection.id), embedder.model), count()
            memory = TurnsService(
                store=store,
                embedder=embedder,
                clock=Now(),
                new_id=lambda: f"id{next(numbers)}",  # noqa: B023
                config=UNGUARDED,
            )
            memories.append(memory)
            told = [NewTurn(text=one.text, key=one.id, metadata=_fields(one)) for one in collection.documents]
            await memory.add(OWNER, told)
        try:
            yield memories
        finally:
            for memory in memories:
                await memory.close()


def _fields(document: Document) -> Mapping[str, Any]:
    return {name: document.metadata[name] for name in ("speaker", "session", "said_at") if name in document.metadata}


@dataclass(frozen=True)
class Seen:
    """What was found, how sure the memory was that there is an answer, and what it ranked, by questions."""

    found: dict[str, Ranking]
    answerable: dict[str, float]
    ranked: dict[str, list[tuple[Pool, Asked]]]
    turns: dict[str, Mapping[int, Turn]]


async def _found(talk: Talk, memories: Sequence[TurnsService], config: TurnsSettings) -> Seen:
    seen = Seen({}, {}, {}, {})
    for memory, collection in zip(memories, talk.collections, strict=True):
        memory.config = config
        turns = dict(enumerate(await memory.list_turns(OWNER), start=1))
        for question in _answered_or_not(collection):
            ranked: list[tuple[Pool, Asked]] = []

            def score(pool: Pool, asked: Asked, weights: Weights, kept: list[Any] = ranked) -> CandidateScores:
                kept.append((pool, asked))
                return score_candidates(pool, asked, weights)

            with patch.object(service, "score_candidates", score):
                hits = await memory.search(OWNER, question.text, K)
            seen.found[question.id] = [hit.turn.key or "" for hit in hits]
            seen.answerable[question.id] = max(hit.answerable for hit in hits)
            seen.ranked[question.id], seen.turns[question.id] = ranked, turns
    return seen


def _found_again(seen: Seen, weights: Weights) -> Found:
    """Rank the same pools by other weights."""
    found = {}
    for question, ranked in seen.ranked.items():
        lists = []
        for pool, asked in ranked:
            first, turns = score_candidates(pool, asked, weights), seen.turns[question]
            read = {int(row): turns[int(pool.numbers[row])] for row in first.to_read(K, -1.0)}
            lists.append(rank_turns(first, read, size=K))
        found[question] = [one.turn.key or "" for one in merge_rankings(lists)[:K]]
    return found


def _answered_or_not(collection: Collection) -> Sequence[Question]:
    return [one for one in collection.questions if one.relevant or one.judged]


async def _plain(talk: Talk, embedder: Embedder) -> dict[str, Found]:
    """Rank the whole texts by vectors, by stemmed BM25, and by both: reciprocal ranks, and the sum of z-scores."""
    ways: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
        DENSE: lambda near, _: near,
        "BM25": lambda _, words: words,
        RRF: lambda near, words: 1 / (61 + _ranks(near)) + 1 / (61 + _ranks(words)),
        "z-scores": lambda near, words: z_scores(near) + Weights().words * z_scores(words),
    }
    found: dict[str, dict[str, Ranking]] = {name: {} for name in ways}
    for collection in talk.collections:
        texts = [_text(one) for one in collection.documents]
        ids, words = [one.id for one in collection.documents], [stems(text) for text in texts]
        questions = [one for one in collection.questions if one.relevant]
        near = await _cosines(texts, questions, embedder)
        for question, cosines in zip(questions, near, strict=True):
            wanted = [one for one in dict.fromkeys(stems(question.text)) if one not in ENGLISH.empty]
            by_words = _bm25(words, wanted)
            for name, score in ways.items():
                best = np.argsort(-score(cosines, by_words), kind="stable")[:K]
                found[name][question.id] = [ids[place] for place in best]
    return dict(found)


async def _best_cosines(talk: Talk, embedder: Embedder) -> Mapping[str, float]:
    best: dict[str, float] = {}
    for collection in talk.collections:
        questions = _answered_or_not(collection)
        near = await _cosines([_text(one) for one in collection.documents], questions, embedder)
        best |= {one.id: float(cosines.max()) for one, cosines in zip(questions, near, strict=True)}
    return best


async def _cosines(texts: Sequence[str], questions: Sequence[Question], embedder: Embedder) -> Numbers:
    asked = await embedder.embed([one.text for one in questions], Purpose.QUERY)
    return np.asarray(asked @ (await embedder.embed(texts, Purpose.DOCUMENT)).T, float)


def _bm25(documents: Sequence[Sequence[str]], wanted: Sequence[str]) -> Numbers:
    times = np.array([[words.count(stem) for words in documents] for stem in wanted]).reshape(len(wanted), -1)
    lengths = np.array([len(words) for words in documents])
    rare = np.array([rarity(int(has), len(documents)) for has in (times > 0).sum(axis=1)])
    return rare @ saturation(times, lengths, float(lengths.mean()))


def _text(document: Document) -> str:
    return f"{document.metadata['speaker']}: {document.text}"


def _ranks(scores: Numbers) -> Numbers:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return ranks


def _recalls(talk: Talk, found: Found) -> Sequence[float]:
    return [recall_at_k(found[question.id], question.relevant, K) for _, question in talk.questions()]


def _gains(talk: Talk, found: Found) -> Sequence[float]:
    return [ndcg_at_k(found[question.id], question.relevant, K) for _, question in talk.questions()]


def _ahead(talk: Talk, found: Found, of_turns: Found) -> Interval:
    """Return how far `turns` is ahead, by resampling the sessions that hold the first answer."""
    sessions = {
        (collection.id, one.id): str(one.metadata.get("session"))
        for collection in talk.collections
        for one in collection.documents
    }
    clusters = [f"{one.id}/{sessions[one.id, question.relevant[0]]}" for one, question in talk.questions()]
    return paired_bootstrap(_recalls(talk, found), _recalls(talk, of_turns), seed=SEED, clusters=clusters)


def _table(talks: Sequence[Talk], rows: Mapping[str, Mapping[str, Found]]) -> str:
    """Return R@10/nDCG@10 of each way of searching on each set, and how far `turns` is ahead, with its interval."""
    names = " | ".join(talk.name for talk in talks)
    lines = [f"| R@10/nDCG@10 | {names} | mean |", "|---" * (len(talks) + 2) + "|"]
    for name, found in rows.items():
        scores = [(mean(_recalls(talk, found[talk.name])), mean(_gains(talk, found[talk.name]))) for talk in talks]
        cells = [f"{recall:.3f}/{gain:.3f}" for recall, gain in (*scores, tuple(np.mean(scores, axis=0)))]
        lines.append(f"| {name} | {' | '.join(cells)} |".replace("0.", "."))
    lines += ["", f"| `turns` ahead, R@10 | {names} |", "|---" * (len(talks) + 1) + "|"]
    for name, found in rows.items():
        if name != TURNS:
            ahead = [_ahead(talk, found[talk.name], rows[TURNS][talk.name]) for talk in talks]
            cells = [f"{one.value:+.3f} ({one.low:+.3f} to {one.high:+.3f})" for one in ahead]
            lines.append(f"| {name.replace('without', 'of')} | {' | '.join(cells)} |".replace("0.", "."))
    return "\n".join(lines)


def _table_of_time(talks: Sequence[Talk], rows: Mapping[str, Mapping[str, Found]]) -> str:
    """Return what is found of lifelines where a question asks for what holds at a moment."""
    talk = next(one for one in talks if one.name == "lifelines")
    lines = [f"| lifelines, R@10 | {' | '.join(OUTDATED)} | outdated first |", "|---|---|---|---|"]
    for name in (DENSE, "BM25", RRF, "z-scores", TURNS, "without recent", "without update", "without date"):
        found = rows[name][talk.name]
        asked = [question for _, question in talk.questions()]
        cells = [
            mean(recall_at_k(found[one.id], one.relevant, K) for one in asked if one.category == category)
            for category in OUTDATED
        ]
        stale = mean(is_stale_first(found[one.id], one.relevant, one.stale) for one in asked if one.stale)
        lines.append(f"| {name} | {' | '.join(f'{cell:.3f}' for cell in (*cells, stale))} |".replace("0.", "."))
    return "\n".join(lines)


def _table_of_sureness(talks: Sequence[Talk], sure: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Return how well a number tells whether there is an answer, at a threshold that other questions chose."""
    lines = ["| is there an answer? | set | right |", "|---|---|---|"]
    for talk in talks:
        asked = [one for collection in talk.collections for one in _answered_or_not(collection)]
        for name, numbers in sure[talk.name].items():
            answered, other = ([numbers[one.id] for one in asked if bool(one.relevant) is has] for has in (True, False))
            if (accuracy := threshold_accuracy(answered, other)) is not None:
                label = "`answerable`" if name == TURNS else "best cosine"
                lines.append(f"| {label} | {talk.name} | {accuracy:.3f} |".replace("0.", "."))
    return "\n".join(lines)


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    for name in ("locomo", "realtalk", "beam"):
        parser.add_argument(f"--{name}", default=os.environ.get(f"MEMSTORY_{name.upper()}"), metavar="PATH")
    parser.add_argument("--circle", type=int, choices=(1, 2), default=1, help="which half of lifelines is asked")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(_arguments(sys.argv[1:]))))
