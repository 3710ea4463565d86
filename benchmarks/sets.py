"""Whether the rows of the sets are right, and what a large set costs.

`python benchmarks/sets.py` writes 500 histories of 500 turns in LongMemEval's shape, and one chat of 10 million tokens
in BEAM's, runs them on fts5, and holds the runs against their goals: at most 1 GB, and 1,000 turns a second added.
`python benchmarks/sets.py RUN` reads the raw files of LoCoMo and BEAM from where memstory keeps them, ranks them by
BM25 (bm25s) and by MiniLM (numpy), scores both by pytrec_eval, and compares that with what a run in the folder RUN had
for `bm25` and `sqlite-vec`. Of memstory it uses the embedder alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

HISTORIES, SESSIONS, TURNS = 500, 50, 10
PLANS, BATCHES, MESSAGES, WORDS_EACH = 10, 10, 200, 385
"""Of a chat of 10 million tokens, as MiniLM counts them: 1.3 to a word."""
MOST_MB, LEAST_TURNS_A_SECOND, CLOSE = 1000, 1000, 0.001
DEPTH, CUTS = 30, (1, 5, 10, 30)
WORDS = [
    f"{first}{second}" for first in "bdfgklmnprstvz" for second in ("ala", "emi", "oru", "uti", "ino", "esta", "arko")
]

History = tuple[str, dict[str, str], list[tuple[str, str, list[str]]]]
"""The name of a history, its texts by id, and its questions: an id, a text, and the ids that answer it."""


def locomo(path: Path) -> Iterator[History]:
    """Yield the conversations by turn; of the questions those of categories 1 to 4 that have evidence."""
    for sample in json.loads(path.read_text("utf-8")):
        said, talk = {}, sample["conversation"]
        for key in sorted((key for key in talk if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:])):
            for turn in talk[key]:
                shared = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                said[turn["dia_id"]] = f"[{talk[f'{key}_date_time']}] {turn['speaker']}: {turn['text']}{shared}"
        asked = []
        for place, one in enumerate(sample["qa"]):
            found = re.findall(r"D:?(\d+):(\d+)", " ".join(map(str, one.get("evidence", []))))
            gold = [id_ for a, b in found if (id_ := f"D{int(a)}:{int(b)}") in said]
            if one["category"] in {1, 2, 3, 4} and gold:
                asked.append((f"{sample['sample_id']}#{place}", one["question"], gold))
        yield sample["sample_id"], said, asked


def beam(folder: Path) -> Iterator[History]:
    """Yield the chats by message; of the questions those that name messages, of an update the update alone."""
    for chat in sorted((one for one in folder.iterdir() if one.is_dir()), key=lambda one: int(one.name)):
        shortened = chat / "chat_trunecated.json"
        batches = json.loads((shortened if shortened.exists() else chat / "chat.json").read_text("utf-8"))
        said, date = {}, ""
        for batch in batches:
            messages = [message for group in batch["turns"] for message in group]
            anchor = next((one["time_anchor"] for one in messages if one.get("time_anchor")), None)
            date = _iso(anchor) if anchor else date
            for one in messages:
                content = re.sub(r"\s*->->\s*\d+\s*,\s*(N/A|\d[\d.,-]*|\([^)\n]*)\)?", "", one["content"])
                if content.strip():
                    said[str(one["id"])] = f"[{date}] {one['role']}: {content}"
        asked = []
        for ability, entries in json.loads((chat / "probing_questions/probing_questions.json").read_text()).items():
            for place, one in enumerate(entries):
                named = one.get("source_chat_ids")
                named = (named.get("updated_info") or named) if isinstance(named, dict) else named
                gold = [id_ for id_ in map(str, _flat(named)) if id_ in said]
                if gold and ability != "abstention":
                    asked.append((f"{chat.name}/{ability}#{place}", one["question"], gold))
        yield chat.name, said, asked


def longmemeval(path: Path) -> Iterator[History]:
    """Yield the histories by session; questions with `_abs` have no answer and are left out."""
    for one in json.loads(path.read_text("utf-8")):
        said = {}
        for id_, date, turns in zip(
            one["haystack_session_ids"], one["haystack_dates"], one["haystack_sessions"], strict=True
        ):
            said[id_] = "\n".join([f"[{date}]", *(f"{turn['role']}: {turn['content']}" for turn in turns)])
        asked = [(one["question_id"], one["question"], one["answer_session_ids"])]
        yield one["question_id"], said, [] if one["question_id"].endswith("_abs") else asked


def _iso(anchor: str) -> str:
    return datetime.strptime(anchor, "%B-%d-%Y").date().isoformat()  # noqa: DTZ007  (a day, of no zone)


def _flat(named: Any) -> list[int]:
    if isinstance(named, dict):
        named = list(named.values())
    if isinstance(named, list):
        return [one for part in named for one in _flat(part)]
    return [] if named is None else [int(named)]


def by_words(texts: Sequence[str], questions: Sequence[str]) -> list[list[int]]:
    """Return for each question the places of the texts, best first, as BM25 has them; no text without its words."""
    import bm25s  # noqa: PLC0415

    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(texts), show_progress=False), show_progress=False)
    found = []
    for question in questions:
        tokens = bm25s.tokenize(question, show_progress=False)
        places, scores = index.retrieve(tokens, k=min(DEPTH, len(texts)), show_progress=False)
        found.append([place for place, score in zip(places[0].tolist(), scores[0].tolist(), strict=True) if score > 0])
    return found


def by_vectors(embedder: Any) -> Callable[[Sequence[str], Sequence[str]], list[list[int]]]:
    """Return what ranks texts by the cosine of their vectors."""
    import numpy as np  # noqa: PLC0415

    def rank(texts: Sequence[str], questions: Sequence[str]) -> list[list[int]]:
        stored = np.asarray(asyncio.run(_embedded(embedder, texts, "document")), dtype=np.float32)
        asked = np.asarray(asyncio.run(_embedded(embedder, questions, "query")), dtype=np.float32)
        found: list[list[int]] = np.argsort(-(asked @ stored.T), axis=1, kind="stable")[:, :DEPTH].tolist()
        return found

    return rank


async def _embedded(embedder: Any, texts: Sequence[str], purpose: str) -> Any:
    vectors = await embedder.embed(list(texts), purpose)
    await embedder.close()
    return vectors


def independent_scores(
    histories: Iterator[History], rank: Callable[[Sequence[str], Sequence[str]], list[list[int]]]
) -> Mapping[str, float]:
    """Return the scores that pytrec_eval gives for a ranking of the histories, each a memory of its own."""
    import pytrec_eval  # noqa: PLC0415

    golds: dict[str, dict[str, int]] = {}
    runs: dict[str, dict[str, float]] = {}
    for _, said, asked in histories:
        ids = list(said)
        if not asked:
            continue
        for (question, _, gold), places in zip(
            asked, rank(list(said.values()), [text for _, text, _ in asked]), strict=True
        ):
            golds[question] = dict.fromkeys(gold, 1)
            runs[question] = {ids[place]: float(DEPTH - at) for at, place in enumerate(places)}
    cuts = ",".join(map(str, CUTS))
    measures = {f"recall.{cuts}", f"success.{cuts}", f"ndcg_cut.{cuts}", "recip_rank"}
    found = pytrec_eval.RelevanceEvaluator(golds, measures).evaluate(runs)
    # A question for which nothing came back is in no run, and counts as 0.
    names = {"recall": "recall", "success": "success", "ndcg": "ndcg_cut"}
    scores = {
        f"{name}@{cut}": fmean(found.get(one, {}).get(f"{theirs}_{cut}", 0.0) for one in golds)
        for name, theirs in names.items()
        for cut in CUTS
    }
    return scores | {"mrr": fmean(found.get(one, {}).get("recip_rank", 0.0) for one in golds)}


def differences(ours: Mapping[str, float], theirs: Mapping[str, float]) -> list[str]:
    """Return a line for each score in which a run and an independent computation differ."""
    return [
        f"{name}: {ours.get(name)} in the run, {value:.6f} by pytrec_eval"
        for name, value in theirs.items()
        if name not in ours or abs(ours[name] - value) > CLOSE
    ]


def compare(run: Path) -> int:
    """Compare a run with the independent computation; print both, and return 1 if they differ."""
    from memstory.datasets import set_copy  # noqa: PLC0415
    from memstory.targets.embedders import load_embedder  # noqa: PLC0415

    cases = {case["id"].rpartition("::")[2]: case for case in json.loads((run / "results.json").read_text())["cases"]}
    embedder, wrong, compared = load_embedder("minilm"), [], 0
    for name, story, read in (("locomo", "LOCOMO", locomo), ("beam", "BEAM", beam)):
        kept = set_copy(name)
        for target, rank in (("bm25", by_words), ("sqlite-vec", by_vectors(embedder))):
            case = cases.get(f"{story}[{target}-turn]")
            if case is None or kept is None:
                continue
            theirs = independent_scores(read(kept.path), rank)
            found = differences(case["metrics"], theirs)
            compared += 1
            wrong += [f"{story}[{target}-turn] {line}" for line in found]
            shown = ", ".join(
                f"{one} {case['metrics'][one]:.4f}/{theirs[one]:.4f}"
                for one in ("recall@5", "recall@10", "success@5", "ndcg@10", "mrr")
            )
            print(f"{story}[{target}-turn], the run / pytrec_eval: {shown}")
    print("\n".join(wrong) or f"{compared} rows are within {CLOSE} of pytrec_eval")
    return 1 if wrong or not compared else 0


def write_histories(path: Path, histories: int) -> None:
    """Write a file in LongMemEval's shape: each question asks for a word that one turn of its history has."""
    draw = Random(7)  # noqa: S311  (chance that can be repeated, not a secret)
    with path.open("w", encoding="utf-8") as file:
        for number in range(histories):
            gold = draw.randrange(SESSIONS)
            sessions = [
                [
                    {"role": ("user", "assistant")[turn % 2], "content": " ".join(draw.choices(WORDS, k=30))}
                    for turn in range(TURNS)
                ]
                for _ in range(SESSIONS)
            ]
            sessions[gold][0] |= {
                "content": f"The {WORDS[number % len(WORDS)]} of item {number} is blue.",
                "has_answer": True,
            }
            entry = {
                "question_id": f"q{number}", "question_type": "single-session-user", "answer": "blue",
                "question": f"Which colour is the {WORDS[number % len(WORDS)]} of item {number}?",
                "question_date": "2023/05/30 (Tue) 23:40", "answer_session_ids": [f"s{gold}"],
                "haystack_session_ids": [f"s{place}" for place in range(SESSIONS)],
                "haystack_dates": ["2023/05/20 (Sat) 02:21"] * SESSIONS, "haystack_sessions": sessions,
            }  # fmt: skip
            file.write(f"{',' if number else '['}\n{json.dumps(entry)}")
        file.write("\n]\n")


def write_chat(folder: Path) -> None:
    """Write a chat in the shape of BEAM's longest: batches by plan, and a question of each plan for one message."""
    draw, questions = Random(7), []  # noqa: S311  (chance that can be repeated, not a secret)
    (folder / "1/probing_questions").mkdir(parents=True)
    with (folder / "1/chat.json").open("w", encoding="utf-8") as file:
        for plan in range(PLANS):
            batches = []
            for batch in range(BATCHES):
                first = (plan * BATCHES + batch) * MESSAGES
                messages = [
                    {
                        "role": ("user", "assistant")[place % 2], "id": first + place,
                        "content": " ".join(draw.choices(WORDS, k=WORDS_EACH)), "time_anchor": "March-15-2024",
                    }
                    for place in range(MESSAGES)
                ]  # fmt: skip
                batches.append({"batch_number": batch + 1, "turns": [messages]})
            told = batches[draw.randrange(BATCHES)]["turns"][0][0]
            told["content"] = f"The colour of harbour {plan} is blue."
            questions.append({"question": f"Which colour has harbour {plan}?", "source_chat_ids": [told["id"]]})
            file.write(f"{',' if plan else '['}\n{json.dumps({f'plan-{plan + 1}': batches})}")
        file.write("\n]\n")
    asked = {"information_extraction": questions}
    (folder / "1/probing_questions/probing_questions.json").write_text(json.dumps(asked), "utf-8")


def cost(name: str, path: Path, what: str) -> bool:
    """Run a synthetic set on fts5; print what that took, and return whether it meets the goals."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report")
        environ = {**os.environ, f"MEMSTORY_{name.upper().replace('-', '_')}": str(path)}
        memstory = str(Path(sys.executable).with_name("memstory"))
        command = [memstory, "run", name, "--target", "fts5", "--report", str(report), "-q", "-k", "turn"]
        begun = perf_counter()
        # Of this process alone: what an earlier run took would hide what this one takes.
        timed = [sys.executable, "-c", _PEAK, *command]
        peak = subprocess.run(timed, check=True, env=environ, cwd=folder, stdout=subprocess.PIPE).stdout  # noqa: S603
        seconds = perf_counter() - begun
        (case,) = json.loads((report / "results.json").read_text())["cases"]
        record = case["trials"][0]["recording"]["retrieval"][0]
    megabytes, a_second = int(peak.split()[-1]) / 1024, record["documents"] / record["seconds"]
    print(
        f"{what}, {record['documents']:,} turns in {seconds:.0f} s: {megabytes:.0f} MB at most, "
        f"{a_second:,.0f} turns added a second, recall@10 {case['metrics']['recall@10']:.3f}",
        flush=True,
    )
    return megabytes <= MOST_MB and a_second >= LEAST_TURNS_A_SECOND


_PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def costs() -> int:
    """Run both synthetic sets; return 1 if one misses a goal."""
    with TemporaryDirectory() as folder:
        histories, chats = Path(folder, "set.json"), Path(folder, "chats")
        write_histories(histories, HISTORIES)
        write_chat(chats)
        words = PLANS * BATCHES * MESSAGES * WORDS_EACH
        is_met = [
            cost("longmemeval", histories, f"{HISTORIES} histories"),
            cost("beam-10m", chats, f"a chat of {words / 1e6:.1f} million words"),
        ]
    return 0 if all(is_met) else 1


if __name__ == "__main__":
    sys.exit(compare(Path(sys.argv[1])) if len(sys.argv) > 1 else costs())
