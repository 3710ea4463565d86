"""The long tests, part by part: `nox -s long -- kills fuzz --scale 0.1 --seed 7`, and what each part found in a report.

It is a program that runs pytest once for each part, and the plugin (`-p tests.long`) by which pytest tells it of every
test as it ends, so that an interrupted or crashed part has told what it did.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "reports/long.md"
LINES = 12
"""Of a failure, in the report; the terminal shows all of it."""
PATIENCE = 60.0
"""Seconds that an interrupted part may take to end."""
TOLD = "MEMSTORY_LONG_TOLD"
PART = "MEMSTORY_LONG_PART"


@dataclass(frozen=True)
class Part:
    """Words for pytest, and the full dose: numbers of the environment that `--scale` multiplies.

    Files without `mark` are not collected: to read them all takes longer than a small dose.
    """

    summary: str
    words: tuple[str, ...]
    dose: Mapping[str, float]
    mark: str = ""

    def files(self) -> list[str]:
        """Return the test files that have the mark; all of them where none is needed."""
        files = sorted((ROOT / "tests").rglob("test_*.py")) if self.mark else []
        return [str(file.relative_to(ROOT)) for file in files if f"mark.{self.mark}" in file.read_text("utf-8")]


PARTS = {
    "kills": Part("SIGKILL while writing", ("-m", "slow and doses", "-k", "kill"), {"MEMSTORY_DOSE": 1}, "doses"),
    "fuzz": Part(
        "damaged files to read, odd arguments to call with, crowds that call",
        ("-m", "slow and doses", "-k", "not kill and not damaged_file"),
        {"MEMSTORY_DOSE": 1},
        "doses",
    ),
    "flips": Part(
        "stores with damaged files", ("-m", "slow and doses", "-k", "damaged_file"), {"MEMSTORY_DOSE": 1}, "doses"
    ),
    "repeats": Part("tests that failed now and then once", ("-m", "repeats"), {"MEMSTORY_REPEATS": 100}, "repeats"),
    "properties": Part("properties, by new examples", ("-m", "hypothesis and not slow"), {"MEMSTORY_EXAMPLES": 20}),
    "slow": Part("all other slow tests", ("-m", "slow and not doses"), {"MEMSTORY_EXAMPLES": 1}),
}
FRACTIONS = {"MEMSTORY_DOSE", "MEMSTORY_EXAMPLES"}
"""They are factors; the others are counts, of one at least."""


@dataclass(kw_only=True)
class Result:
    """What a part has done so far."""

    name: str
    dose: Mapping[str, str]
    code: int | None = None
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, str]] = field(default_factory=list)
    skips: Counter[str] = field(default_factory=Counter)
    is_interrupted: bool = False

    @property
    def verdict(self) -> str:
        """Say how it ended, in a word or two."""
        if self.is_interrupted:
            return "interrupted"
        if self.failures:
            return "failed"
        if self.code == pytest.ExitCode.NO_TESTS_COLLECTED or not self.outcomes["passed"]:
            return "nothing ran"
        return "passed" if self.code == 0 else f"pytest ended with {self.code}"


def scaled(part: Part, scale: float) -> dict[str, str]:
    """Return the environment that gives this part its dose."""
    return {
        name: f"{full * scale:g}" if name in FRACTIONS else str(max(1, round(full * scale)))
        for name, full in part.dose.items()
    }


def run(name: str, scale: float, seed: int, workers: int) -> Result:
    """Run a part to its end, or to Ctrl-C."""
    part = PARTS[name]
    result = Result(name=name, dose=scaled(part, scale))
    words = ("-q", "--no-header", "--no-summary", "--tb=no", f"-n{workers}", f"--hypothesis-seed={seed}")
    # One test of the full dose of fuzzing takes most of an hour.
    command = [sys.executable, "-m", "pytest", "-p", "tests.long", "-o", "faulthandler_timeout=14400", *words]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "told.jsonl")
        told.touch()
        own = {TOLD: str(told), PART: name, "MEMSTORY_FUZZ_SEED": str(seed)}
        # In a session of its own: Ctrl-C reaches it through us, once, whoever was interrupted.
        process = subprocess.Popen(  # noqa: S603  (our own words)
            [*command, *part.files(), *part.words],
            cwd=ROOT,
            env={**os.environ, **result.dose, **own},
            start_new_session=True,
        )
        try:
            result.code = process.wait()
        except KeyboardInterrupt:
            result.is_interrupted = True
            result.code = _ended(process)
        result.seconds = time.monotonic() - began
        add_told(result, map(json.loads, told.read_text("utf-8").splitlines()))
    return result


def _ended(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(PATIENCE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def add_told(result: Result, told: Iterable[dict[str, object]]) -> None:
    """Count what pytest told of the phases of tests."""
    phases: dict[str, list[dict[str, object]]] = {}
    for one in told:
        phases.setdefault(str(one["test"]), []).append(one)
    for test, ended in phases.items():
        by_outcome = {one["outcome"]: one for one in ended}
        whole = ended[-1]["when"] in ("teardown", "collect")
        outcome = next((word for word in ("failed", "skipped") if word in by_outcome), "passed" if whole else "cut off")
        result.outcomes[outcome] += 1
        if outcome == "failed":
            result.failures += [
                (f"{test} ({one['when']})", str(one["text"])) for one in ended if one["outcome"] == "failed"
            ]
        elif outcome == "skipped":
            result.skips[str(by_outcome["skipped"]["text"])] += 1
        elif outcome == "passed":
            result.counts.update(ended[-1]["counts"])


def rendered(results: Iterable[Result], *, scale: float, seed: int, started: datetime, commit: str) -> str:
    """Return the report."""
    results = list(results)
    command = f"nox -s long -- {' '.join(one.name for one in results)} --scale {scale:g} --seed {seed}"
    left_out = [name for name in PARTS if name not in {one.name for one in results}]
    rows = [
        f"| {one.name} | {one.verdict} | {' '.join(f'{name}={value}' for name, value in one.dose.items())} "
        f"| {one.outcomes.total()} | {one.outcomes['passed']} | {one.outcomes['failed']} | {one.outcomes['skipped']} "
        f"| {one.outcomes['cut off']} | {', '.join(f'{count:,} {what}' for what, count in sorted(one.counts.items()))} "
        f"| {_clock(one.seconds)} |"
        for one in results
    ]
    lines = [
        "# Long tests",
        "",
        f"Written by `{command}`. Scale 1 is the full dose.",
        "",
        f"- **Started:** {started:%Y-%m-%d %H:%M} UTC",
        f"- **Commit:** {commit}",
        f"- **Python:** {platform.python_version()}",
        f"- **Machine:** {platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        f"- **Not run:** {', '.join(left_out) or 'nothing'}",
        "",
        "What was done is counted for tests that passed alone.",
        "",
        "| part | result | dose | tests | passed | failed | skipped | cut off | done | time |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *rows,
        "",
        "## Parts",
        "",
        *(f"- **{one.name}:** {PARTS[one.name].summary}" for one in results),
    ]
    for one in results:
        if one.skips:
            lines += [
                "",
                f"## Skipped in {one.name}",
                "",
                *(f"- {count} times: {why}" for why, count in one.skips.items()),
            ]
        for test, text in one.failures:
            lines += ["", f"## Failed in {one.name}: `{test}`", "", "```text", *_first_lines(text), "```"]
    return "\n".join(lines) + "\n"


def _first_lines(text: str) -> list[str]:
    said = [line for line in text.replace(f"{ROOT}/", "").splitlines() if line.strip()]
    told = [line for line in said if line.startswith("E ")] or said
    return [line.replace("```", "'''")[:200] for line in dict.fromkeys(told[:LINES] + said[-1:])]


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!reports/long.md")
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + (
        " and changes that were not committed" if changed else ""
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"long: {message}\n")


def _scale(text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if not 0 < scale < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no factor of the dose; give a number above 0, such as 0.1")
    return scale


def arguments(words: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = _Parser(prog="nox -s long --", description="Run the long tests, all parts or those named.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all of them if none is named")
    parser.add_argument("--scale", type=_scale, default=1.0, help="factor of the dose: 0.1 is a tenth")
    parser.add_argument(
        "--seed", type=int, default=None, help="of all that is drawn; another one in every run if not given"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes that run tests; 0 is pytest itself")
    parser.add_argument("--report", type=Path, default=REPORT, help="the file to write")
    found = parser.parse_args(words)
    unknown = [name for name in found.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}. Known: {', '.join(PARTS)}.")
    found.parts = [name for name in PARTS if not found.parts or name in found.parts]
    return found


def main(words: list[str] | None = None) -> int:
    """Run what is asked for; 0 where all passed, 1 where something failed or did not run, 2 after an interruption."""
    asked = arguments(words)
    seed = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    started, results = datetime.now(UTC), []
    commit = _commit()  # it may be another one at the end
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in asked.parts:
        result = run(name, asked.scale, seed, asked.workers)
        results.append(result)
        print(f"long: {name}: {result.verdict}, {_clock(result.seconds)}", flush=True)
        asked.report.parent.mkdir(parents=True, exist_ok=True)
        asked.report.write_text(
            rendered(results, scale=asked.scale, seed=seed, started=started, commit=commit), "utf-8"
        )
        if result.is_interrupted:
            break
    print(f"long: wrote {asked.report}")
    if results[-1].is_interrupted:
        return 2
    return int(any(one.verdict != "passed" for one in results))


class Progress:
    """Shows each test that has ended, and writes its phases down for the program that started pytest."""

    def __init__(self, part: str, told: Path) -> None:
        self.part, self.told = part, told
        self.began, self.total, self.ended = time.monotonic(), 0, 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str]:
        return ("" if report.passed and report.when != "call" else report.outcome), "", ""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.total = len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.total = len(ids)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell(report.nodeid, "collect", report, {})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        counts = Counter[str]()
        for name, value in report.user_properties:
            counts[name] += int(value)
        self._tell(report.nodeid, report.when, report, counts)
        if report.when == "teardown":
            self.ended += 1
            clock = _clock(time.monotonic() - self.began)
            print(f"{self.part}: {self.ended} of {self.total}, {clock}: {report.nodeid}", flush=True)

    def _tell(
        self, test: str, when: str | None, report: pytest.TestReport | pytest.CollectReport, counts: Mapping[str, int]
    ) -> None:
        text = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else report.longreprtext
        if report.failed:
            print(f"{self.part}: FAILED: {test} ({when})\n{text}", flush=True)
        line = {"test": test, "when": when, "outcome": report.outcome, "text": text, "counts": counts}
        with self.told.open("a", encoding="utf-8") as file:
            print(json.dumps(line), file=file)


def pytest_configure(config: pytest.Config) -> None:
    """Tell the program, where pytest runs the tests itself or gives them to workers; a worker tells pytest."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(os.environ[PART], Path(os.environ[TOLD])))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note the doses of a test."""
    for mark in item.iter_markers("doses"):
        item.user_properties.append((mark.args[0], item.callspec.params[mark.args[0]]))  # type: ignore[attr-defined]


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Note how many examples hypothesis gave it."""
    for count in re.findall(r"- (\d+) passing", getattr(item, "hypothesis_statistics", "")):
        item.user_properties.append(("examples", count))


if __name__ == "__main__":
    sys.exit(main())
