"""What one of 100 shards of a million cases costs, collected and run: a story whose rows are in a file of JSON Lines.

The goals: at most 30 s of CPU and 300 MB for the process that collects shard 7/100, what it collects is its share, and
to run it takes at most 12 ms of CPU a case and 300 MB, report and all. The target is an oracle that keeps a file for
each user. Run it with `python benchmarks/shard_share.py [ROWS] [SHARDS]`; a million rows take some four minutes.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROWS, SHARDS, OWN = 1_000_000, 100, 7
MOST_SECONDS, MOST_MB, MOST_CASE_MS = 30, 300, 12
STORY = """\
story: R1
title: The ${thing} is found
parametrize: {file: rows.jsonl}
steps:
  - add: ["The ${thing} is on shelf ${shelf}.", "The ladder is in the yard."]
  - search: ${thing}
    expect: {hits: {includes: {text: {contains: "shelf ${shelf}"}}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """How many cases a process had, its seconds of CPU, and the most memory that it or an earlier one held."""

    cases: int
    cpu_seconds: float
    megabytes: float


def measure(folder: Path, counted: str, *options: str) -> Cost:
    """Have a separate process play or collect the story; `counted` finds in its last lines how many cases it had.

    Raises:
        RuntimeError: it did not.
    """
    program = str(Path(sys.executable).with_name("memstory"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(  # noqa: S603  (our own program)
        [program, "run", str(folder), "--target", "control:oracle", *options],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = re.search(counted, done.stdout)
    if found is None or done.returncode:
        raise RuntimeError(f"it did not end well: {(done.stdout + done.stderr)[-2000:]}")
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cases=int(found[1]), cpu_seconds=seconds, megabytes=after.ru_maxrss / 1024)


def main() -> int:
    """Print what the shard costs; return 1 if it is more than the goals allow."""
    rows, shards = (int(word) for word in (*sys.argv[1:3], *map(str, (ROWS, SHARDS)[len(sys.argv) - 1 :])))
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "big.story.yaml").write_text(STORY)
        with (folder / "rows.jsonl").open("w") as file:
            file.writelines(json.dumps({"thing": f"thing {n}", "shelf": n % 977}) + "\n" for n in range(rows))
        size = (folder / "rows.jsonl").stat().st_size
        shard = f"{min(OWN, shards)}/{shards}"
        collecting = measure(folder, r"big\.story\.yaml: (\d+)", "--collect-only", "-qq", "--shard", shard)
        running = measure(folder, r"(\d+) passed in", "-q", "--shard", shard)
    print(f"shard {shard} of {rows} rows ({size / 1e6:.0f} MB): {collecting.cases} cases")
    print(f"  collecting: {collecting.cpu_seconds:.1f} s of CPU (goal {MOST_SECONDS}), "
          f"{collecting.megabytes:.0f} MB (goal {MOST_MB})")  # fmt: skip
    case_ms = (running.cpu_seconds - collecting.cpu_seconds) / running.cases * 1000
    print(
        f"  running: {case_ms:.1f} ms of CPU a case (goal {MOST_CASE_MS}), {running.megabytes:.0f} MB, with its report"
    )
    is_share = rows // shards <= collecting.cases == running.cases <= -(-rows // shards)
    is_cheap = collecting.cpu_seconds <= MOST_SECONDS and case_ms <= MOST_CASE_MS and running.megabytes <= MOST_MB
    return int(not (is_share and is_cheap))


if __name__ == "__main__":
    sys.exit(main())
