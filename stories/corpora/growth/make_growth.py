"""Writes 1,000, 10,000 and 100,000 memories and 50 questions, each the very text of one of the first 1,000.

`python make_growth.py` writes the same files every time; they are made when they are needed, and not kept in git. A
larger file begins with all of the smaller one, so that only the number of memories differs.
"""  # noqa: INP001  (a script beside its data, no package)

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
SIZES = (1_000, 10_000, 100_000)
QUESTIONS = 50
SEED = 20261123

WHO = ("Aksel", "Bruna", "Chidi", "Dorota", "Fenna", "Gustavo", "Hanne", "Ilkka", "Jovana", "Leda", "Marit", "Nuno")
DOES = ("bought", "lost", "painted", "repaired", "sold", "borrowed", "returned", "cleaned", "measured", "ordered")
WHAT = ("a boat", "the old desk", "two chairs", "a lamp", "the kitchen clock", "a bicycle", "the green tent", "a drum")
WHERE = ("Turku", "Bergamo", "Leiden", "Cork", "Aarhus", "Girona", "Graz", "Tartu", "Braga", "Namur", "Split", "Basel")
WHEN = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November")


def memories(count: int) -> Iterator[dict[str, str]]:
    """Yield memories of which no two have the same text, for each has its number."""
    draw = Random(SEED)  # noqa: S311  (chance that can be repeated, not a secret)
    for number in range(count):
        who, does, what, where, when = map(draw.choice, (WHO, DOES, WHAT, WHERE, WHEN))
        text = f"Order {number:06}: {who} {does} {what} in {where} for {draw.randrange(10, 990)} euros in {when}."
        yield {"id": f"m{number:06}", "text": text}


def write(name: str, rows: Iterator[dict[str, object]] | Iterator[dict[str, str]]) -> None:
    """Write one row a line."""
    (HERE / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    for size in SIZES:
        write(f"{size}.jsonl", memories(size))
    known = list(memories(SIZES[0]))[:: SIZES[0] // QUESTIONS]
    write("queries.jsonl", ({"id": f"q-{one['id']}", "text": one["text"], "relevant": [one["id"]]} for one in known))
