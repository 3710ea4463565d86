"""The rows of the sets equal what pytrec_eval says of a ranking made without memstory, on small synthetic files."""

import asyncio
import json
import runpy
from pathlib import Path
from random import Random

import pytest

from memstory.contract.errors import Mark
from memstory.language.story import Retrieval, Story
from memstory.playing import play
from memstory.running.runner import RunOptions
from memstory.targets.discovery import load_targets
from memstory.targets.embedders import load_embedder

OWN = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "sets.py"))
WORDS = OWN["WORDS"][:60]


@pytest.fixture
def draw():
    return Random(3)  # noqa: S311  (chance that can be repeated, not a secret)


def words(draw):
    return " ".join(draw.choices(WORDS, k=8))


def write_locomo(path, draw):
    def sample(number):
        sessions = {}
        for session in range(1, 5):
            sessions[f"session_{session}_date_time"] = f"1:56 pm on {session} May, 2023"
            sessions[f"session_{session}"] = [
                {"speaker": draw.choice(["Ann", "Bob"]), "dia_id": f"D{session}:{turn}", "text": words(draw)}
                for turn in range(1, 11)
            ]
        qa = [
            {"question": words(draw), "answer": "x", "category": draw.randint(1, 5),
             "evidence": [f"D{draw.randint(1, 4)}:{draw.randint(1, 10)}" for _ in range(draw.randint(1, 3))]}
            for _ in range(20)
        ]  # fmt: skip
        return {"sample_id": f"conv-{number}", "conversation": sessions, "qa": qa}

    path.write_text(json.dumps([sample(number) for number in range(3)]))


def write_beam(path, draw):
    for chat in (1, 2):
        ids = iter(range(1000))
        batches = [
            {"batch_number": batch, "turns": [[
                {"role": role, "id": next(ids), "content": f"{words(draw)} ->-> {batch},{turn}",
                 **({"time_anchor": f"May-0{batch}-2024"} if not turn and role == "user" else {})}
                for turn in range(6) for role in ("user", "assistant")
            ]]}
            for batch in (1, 2, 3)
        ]  # fmt: skip
        asked = {
            "knowledge_update": [{"question": words(draw), "answer": "x",
                                  "source_chat_ids": {"original_info": [2], "updated_info": [20, 21]}}],
            "contradiction_resolution": [{"question": words(draw), "ideal_answer": "x",
                                          "source_chat_ids": {"first_statement": [4], "second_statement": [9]}}],
            "information_extraction": [{"question": words(draw), "answer": "x", "source_chat_ids": [place, place + 9]}
                                       for place in range(8)],
            "abstention": [{"question": words(draw), "ideal_response": "x"}],
        }  # fmt: skip
        folder = path / str(chat)
        (folder / "probing_questions").mkdir(parents=True)
        (folder / "chat.json").write_text(json.dumps(batches))
        (folder / "probing_questions" / "probing_questions.json").write_text(json.dumps(asked))


def write_longmemeval(path, draw):
    entries = [
        {"question_id": f"q{number}{'_abs' if number == 7 else ''}", "question_type": "multi-session", "answer": "x",
         "question": words(draw), "question_date": "2023/05/30 (Tue) 23:40",
         "answer_session_ids": [f"s{number}", f"s{number + 3}"],
         "haystack_session_ids": [f"s{place}" for place in range(12)],
         "haystack_dates": ["2023/05/20 (Sat) 02:21"] * 12,
         "haystack_sessions": [[{"role": "user", "content": words(draw)}] for _ in range(12)]}
        for number in range(8)
    ]  # fmt: skip
    path.write_text(json.dumps(entries))


WRITTEN = {
    "locomo": ("turn", write_locomo), "beam": ("turn", write_beam), "longmemeval": ("session", write_longmemeval),
}  # fmt: skip


@pytest.mark.parametrize("target", ["bm25", "sqlite-vec"])
@pytest.mark.parametrize("dataset", WRITTEN)
async def test_a_row_equals_an_independent_computation(tmp_path, draw, dataset, target):
    unit, write = WRITTEN[dataset]
    path = tmp_path / dataset
    write(path, draw)
    (factory,) = load_targets([target]).values()
    retrieval = Retrieval(mark=Mark("q.yaml", 1, 1), dataset=dataset, path=dataset, unit=unit, k=10, cuts=(1, 5, 30))
    story = Story(id="S", title="t", mark=retrieval.mark, digest="d", retrieval=retrieval, measure=True)
    options = RunOptions(base=tmp_path, target={})
    result = await play(story, factory, tmp_path / "work", options=options)
    assert result.outcome == "measured", result.reason
    rank = OWN["by_words"] if target == "bm25" else OWN["by_vectors"](load_embedder("minilm"))
    theirs = await run_apart(OWN["independent_scores"], OWN[dataset](path), rank)
    assert 0 < theirs["recall@5"] < 1
    assert OWN["differences"](result.metrics, theirs) == []


async def run_apart(compute, *words):
    """Run what starts an event loop of its own."""
    return await asyncio.to_thread(compute, *words)
