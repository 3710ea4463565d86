"""What reading a large run costs: parts are made, merged, and the report is looked at.

Each part has small cases of two steps. The goals: a merge of 100 parts of 10,000 cases below 500 MB, and a page of at
most 20 MB that Chromium, where there is one, paints within a second. Run it with
`python benchmarks/large_runs.py [PARTS] [CASES OF A PART] [FOLDER]`; 10 parts of 10,000 take about three minutes.
"""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from memstory.reporting.large_runs import CASES_FOLDER
from memstory.results.folder.recordings_file import RECORDINGS_NAME, write_recordings
from memstory.results.folder.results_file import RESULTS_NAME, write_results
from memstory.results.outcomes import CaseResult, Outcome, TrialResult, Verdict
from memstory.results.recording import Recording, StepRecord
from memstory.results.runs import Part, make_fingerprint, make_run

PARTS, CASES, ROWS = 10, 10_000, 1_000
FIRST = "p0001"
MOST_MB, MOST_PAGE_MB, MOST_PAINT_SECONDS = 500, 20, 1.0


def case(number: int) -> CaseResult:
    """Return a case of two steps of the first part: a story has a thousand rows, each hundredth case failed."""
    passed = number % 100 != 0
    story, row = f"N{number // ROWS}", f"{FIRST}-{number % ROWS}"
    text = f"The shelf {number} of {FIRST} holds paint of the colour {number * 7919 % 1000}."
    hit = {"id": f"{FIRST}-{number}", "text": text, "score": 0.5}
    about = {"user": "ann", "session": None, "at": "2026-01-01T12:00:00+00:00", "seconds": 0.002}
    steps = [
        StepRecord(path=(0,), op="add", args={"items": [text]}, result={"items": [hit]}, **about),
        StepRecord(path=(1,), op="search", args={"query": f"shelf {number}"}, result=[hit], **about),
    ]
    reason = f"no hit contains 'paint {number}'"
    verdict = Verdict(
        passed=passed, field="hits", check="includes", where="many.yaml:9:9", step=(1,), reason=reason,
        expected="'paint'", actual=text,
    )  # fmt: skip
    recording = Recording(story=story, target="fts5", steps=steps, about={"store": "memory"}, seconds=0.004)
    outcome: Outcome = "passed" if passed else "failed"
    trial = TrialResult(outcome=outcome, reason=None, verdicts=(verdict,), scores=(), recording=recording)
    return CaseResult(
        id=f"{story}[{row}][fts5]", story=story, row=row, title=f"Shelf {number // ROWS} is found", target="fts5",
        where="many.yaml:1:1", digest=f"{number:016x}", outcome=outcome, trials=(trial,), tags=("recall",),
        reason=None if passed else f"many.yaml:9:9: {reason}", needs=("add", "search"), seconds=0.004,
    )  # fmt: skip


def make_parts(folder: Path, parts: int, cases: int) -> list[Path]:
    """Write each shard, every second one gzipped, and return their folders.

    All are the first with another name in every row: to make each by itself takes longer than to merge them.
    """
    found = [case(number) for number in range(cases)]
    shard = Part(number=1, count=parts, cases=cases, of=parts * cases, digest="d" * 32)
    run = make_run(found, make_fingerprint(found, shard=shard))
    write_results(folder / RESULTS_NAME, run)
    write_recordings(folder / RECORDINGS_NAME, run.cases)
    made = []
    for number in range(1, parts + 1):
        one = folder / f"part-{number}"
        one.mkdir()
        for name in (RESULTS_NAME, RECORDINGS_NAME):
            text = (folder / name).read_bytes().replace(FIRST.encode(), f"p{number:04}".encode())
            text = text.replace(b'"number": 1,', f'"number": {number},'.encode())
            if number % 2:
                (one / f"{name}.gz").write_bytes(gzip.compress(text, 1))
            else:
                (one / name).write_bytes(text)
        made.append(one)
    return made


def measure(*words: str | Path) -> tuple[float, float, float]:
    """Type a command of memstory; return its seconds, those of the CPU, and its peak of memory in MB."""
    program = Path(sys.executable).with_name("memstory")
    begun = perf_counter()
    child = subprocess.Popen([program, *words])  # noqa: S603  (our own program)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise RuntimeError(f"memstory {words[0]} failed")
    return perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def paint_seconds(page: Path) -> float | None:
    """Return when Chromium first painted the page; None where there is no Chromium to ask."""
    with suppress(ImportError):
        from playwright.sync_api import sync_playwright  # noqa: PLC0415  (only the group `browser` has it)

        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            shown = browser.new_page()
            shown.goto(page.as_uri())
            found = shown.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            browser.close()
            return float(found) / 1000
    return None


def megabytes(*paths: Path) -> float:
    """Return how much these files take."""
    return sum(path.stat().st_size for path in paths) / 1e6


def main(parts: int = PARTS, cases: int = CASES, folder: str = "") -> int:
    """Print what was measured; return 1 where a goal was missed."""
    with TemporaryDirectory(dir=folder or None) as name:
        made = make_parts(Path(name), parts, cases)
        print(
            f"{parts} parts of {cases:,} cases, made with {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB"
        )
        output, peaks = Path(name) / "whole", []
        for words in (["merge", *made, "--output", output], ["report", output]):
            seconds, cpu, peak = measure(*words)
            peaks.append(peak)
            each = 1e6 * cpu / (parts * cases)
            print(f"memstory {words[0]}: {seconds:.0f} s, CPU {cpu:.0f} s ({each:.0f} µs a case), peak {peak:.0f} MB")
        page, beside = output / "report.html", sorted((output / CASES_FOLDER).glob("*.html"))
        print(
            f"report.html {megabytes(page):.1f} MB, report.md {megabytes(output / 'report.md'):.1f} MB, "
            f"{len(beside)} pages beside it with {megabytes(*beside):.0f} MB, the largest "
            f"{max(map(megabytes, beside), default=0):.1f} MB; results.json {megabytes(output / RESULTS_NAME):.0f} MB"
        )
        painted, size = paint_seconds(page), megabytes(page)
        print("first paint: " + ("no Chromium was asked" if painted is None else f"{painted:.2f} s"))

    return int(max(peaks) > MOST_MB or size > MOST_PAGE_MB or (painted or 0) > MOST_PAINT_SECONDS)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3]), *sys.argv[3:]))
