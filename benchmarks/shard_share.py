"""What collecting one of 100 shards of a million cases costs: a story whose rows are in a file of JSON Lines.

The goals: at most 30 s of CPU and 300 MB for the process that collects shard 7/100, and what it collects is its share.
Run it with `python benchmarks/shard_share.py [ROWS] [SHARDS]`; a million rows take about half a minute.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROWS, SHARDS, OWN = 1_000_000, 100, 7
MOST_SECONDS, MOST_MB = 30, 300
STORY = """\
story: R1
title: The ${thing} is found
parametrize: {file: rows.jsonl}
steps:
  - add: ["The ${thing} is on shelf ${shelf}.", "The ladder is in the yard."]
  - search: ${thing}
    expect: {hits: {includes: {text: {contains: "shelf ${shelf}"}}}}
"""


def collect(folder: Path, *options: str) -> tuple[float, int]:
    """Collect in a separate process; return its seconds of CPU and how many cases it has.

    Raises:
        RuntimeError: it did not collect.
    """
    program = str(Path(sys.executable).with_name("memstory"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(  # noqa: S603  (our own program)
        [program, "run", str(folder), "--collect-only", "-qq", "--target", "control:oracle", *options],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = re.fullmatch(r"big\.story\.yaml: (\d+)", done.stdout.strip())
    if found is None:
        raise RuntimeError(f"nothing was collected: {(done.stdout + done.stderr)[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(found[1])


def main() -> int:
    """Print what the shard costs; return 1 if it is more than the goals allow."""
    rows, shards = (int(word) for word in (*sys.argv[1:3], *map(str, (ROWS, SHARDS)[len(sys.argv) - 1 :])))
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "big.story.yaml").write_text(STORY)
        with (folder / "rows.jsonl").open("w") as file:
            file.writelines(json.dumps({"thing": f"thing {n}", "shelf": n % 977}) + "\n" for n in range(rows))
        size = (folder / "rows.jsonl").stat().st_size
        seconds, cases = collect(folder, "--shard", f"{min(OWN, shards)}/{shards}")
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"shard {min(OWN, shards)}/{shards} of {rows} rows ({size / 1e6:.0f} MB): {cases} cases")
    print(f"  {seconds:.1f} s of CPU (goal {MOST_SECONDS}), {megabytes:.0f} MB (goal {MOST_MB})")
    is_share = rows // shards <= cases <= -(-rows // shards)
    return int(seconds > MOST_SECONDS or megabytes > MOST_MB or not is_share)


if __name__ == "__main__":
    sys.exit(main())
