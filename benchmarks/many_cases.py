"""What a run of 10,000 cases costs: 500 stories on 20 targets that keep their memories in a dictionary.

The goals: below 600 MB, and a case of all takes at most 1.5 x the CPU of a case of a tenth of them, with both reports
written. Run it with `python benchmarks/many_cases.py [STORIES]`; 500 take about a minute.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

STORIES, TARGETS = 500, 20
MOST_MB, MOST_GROWTH = 600, 1.5
CONFTEST = f"""
from memstory.contract.target import Hit, Receipt, ReceiptItem, Target, TargetFactory


class Keeping(Target):
    async def open(self, env, clock):
        self._texts = []

    async def close(self):
        pass

    async def add(self, items, scope):
        self._texts += [item.text for item in items]
        return Receipt(items=tuple(ReceiptItem(id=item.text, text=item.text) for item in items))

    async def search(self, query, scope):
        return [Hit(id=text, text=text) for text in self._texts][: query.top_k]


class Factory(TargetFactory):
    def __init__(self, name):
        self.name = name

    def capabilities(self, options):
        return frozenset({{"add", "search"}})

    def target(self):
        return Keeping()


def pytest_memstory_targets(config):
    return {{f"memory-{{number:02}}": Factory(f"memory-{{number:02}}") for number in range({TARGETS})}}
"""
STORY = """\
story: N{number}
title: Text {number} is found, in every twentieth story first
tags: [topic{topic}]
steps:
  - add: ["The shelf {number} holds paint.", "The drawer {number} holds nails."]
  - search: The drawer {number}
    expect: {{hits: {{{check}: {{text: {{contains: nails}}}}}}}}
"""


def run(count: int) -> tuple[float, str, dict[str, int]]:
    """Run `count` stories in a separate process; return its seconds of CPU, its summary and the sizes of its files.

    Raises:
        RuntimeError: it did not run every case.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "conftest.py").write_text(CONFTEST)
        texts = [
            STORY.format(number=number, topic=number % 10, check="includes" if number % 20 else "first")
            for number in range(count)
        ]
        (folder / "many.story.yaml").write_text("---\n".join(texts))
        targets = [word for number in range(TARGETS) for word in ("--target", f"memory-{number:02}")]
        program = str(Path(sys.executable).with_name("memstory"))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(  # noqa: S603  (our own program)
            [program, "run", name, "-q", "--report", f"{name}/out", *targets],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = [line for line in done.stdout.splitlines() if line.startswith("memstory:")]
        failed = -(-count // 20) * TARGETS
        if said != [f"memstory: {count * TARGETS - failed} passed, {failed} failed"]:
            raise RuntimeError(f"not every case ran: {said or done.stdout + done.stderr}")
        sizes = {file.name: file.stat().st_size for file in sorted((folder / "out").glob("*.*"))}
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, said[0], sizes


def main() -> int:
    """Print what a case costs beyond the start; return 1 if it is more than the goals allow."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else STORIES
    start, _, _ = run(1)
    tenth = max(count // 10, 2)
    few, _, _ = run(tenth)
    seconds, said, sizes = run(count)
    cases = count * TARGETS
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    of_few, of_all = (1000 * (taken - start) / (TARGETS * (of - 1)) for taken, of in ((few, tenth), (seconds, count)))
    growth = of_all / of_few
    print(f"{said}; start {start:.1f} s of CPU")
    print(f"{cases} cases: {megabytes:.0f} MB (goal {MOST_MB}), {of_all:.1f} ms of CPU a case")
    print(f"  {growth:.2f} x a case of {tenth * TARGETS} (goal: at most {MOST_GROWTH:g} x)")
    print(f"  kB: {', '.join(f'{name} {size // 1000}' for name, size in sizes.items())}")
    return int(megabytes > MOST_MB or growth > MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
