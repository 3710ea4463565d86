"""How much memory the harness takes for a corpus of a million documents: at most 500 MB.

The target keeps nothing and gives an id to each document, so that what grows is the harness alone: reading, the digest,
adding in batches, and knowing which hit is which document. Run it with `python benchmarks/large_corpus.py [COUNT]`; a
million documents take about two minutes.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from memstory.case import Case
from memstory.contract.errors import Mark
from memstory.contract.target import Hit, Item, Query, Receipt, ReceiptItem, Scope, Target, TargetFactory
from memstory.language.story import Retrieval, Story
from memstory.running.runner import RunOptions, run

COUNT = 1_000_000
MOST_MB = 500


class Counting(Target):
    """Remembers how many documents it was given."""

    count = 0

    async def open(self, env: object, clock: object) -> None:
        pass

    async def close(self) -> None:
        pass

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        first, self.count = self.count, self.count + len(items)
        return Receipt(items=[ReceiptItem(id=f"memory-{first + place}", text="") for place in range(len(items))])

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [Hit(id=f"memory-{self.count - 1}", text="", score=1.0)]


class CountingFactory(TargetFactory):
    """Makes the target."""

    def capabilities(self, options: object) -> frozenset[str]:
        return frozenset({"add", "search"})

    def target(self) -> Target:
        return Counting()


def write(folder: Path, count: int) -> None:
    """Write a corpus of `count` documents with one question."""
    with (folder / "corpus.jsonl").open("w") as file:
        for number in range(count):
            text = (
                f"[2024-05-03] Ana: this is turn {number} of a very long talk about rents, boats, hens and the weather."
            )
            file.write(json.dumps({"id": f"turn-{number}", "text": text, "metadata": {"speaker": "Ana"}}) + "\n")
    row = {"id": "q", "text": "Which turn was last?", "relevant": [f"turn-{count - 1}"]}
    (folder / "queries.jsonl").write_text(json.dumps(row))


def main() -> int:
    """Print what a corpus costs; return 1 if it is too much."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, count)
        mark = Mark(str(folder / "s.yaml"), 1, 1)
        retrieval = Retrieval(mark=mark, corpus="corpus.jsonl", queries="queries.jsonl")
        case = Case(story=Story(id="large", title="", mark=mark, digest="", retrieval=retrieval), target="counting")
        recording = asyncio.run(run(case, CountingFactory(), folder / "work", RunOptions(base=folder)))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (record,) = recording.retrieval
    found = record.questions[0].retrieved[0]
    print(f"{record.documents:,} documents: {megabytes:.0f} MB at most, in {recording.seconds:.0f} s; found {found}")
    print(f"goal: at most {MOST_MB} MB: {'met' if megabytes <= MOST_MB else 'missed'}")
    return int(megabytes > MOST_MB)


if __name__ == "__main__":
    sys.exit(main())
