"""Writes distractors.jsonl: 10,000 turns of people who have nothing to do with lifelines, for the curve of its bench.

`python make_turns.py` writes the same file every time; it is made when it is needed, and not kept in git.
"""  # noqa: INP001  (a script beside its data, no package)

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).parent
COUNT = 10_000
SEED = 20260102
BEGIN, DAYS = datetime(2024, 1, 1, 8, tzinfo=UTC), 730
OPENINGS = (
    "",
    "Before I forget: ",
    "You asked me, so here it is. ",
    "By the way, ",
    "Oh, and ",
    "Did you hear? ",
    "So, ",
)
CLOSINGS = (
    "",
    " That is all I know.",
    " Can you believe it?",
    " More on the phone.",
    " What do you think?",
    " So it goes.",
)


def turns() -> Iterator[dict[str, Any]]:
    """Yield the rows; no two say the same."""
    script = runpy.run_path(str(HERE.parent / "make_distractors.py"))
    draw = Random(SEED)  # noqa: S311  (chance that can be repeated, not a secret)
    taken = frozenset((HERE / "names.txt").read_text("utf-8").split())
    sentences, people = (
        script["memories"](draw),
        [name for name in script["PEOPLE"].split() if name.lower() not in taken],
    )
    seen: set[str] = set()
    while len(seen) < COUNT:
        said = f"{draw.choice(OPENINGS)}{next(sentences)} {next(sentences)}{draw.choice(CLOSINGS)}"
        if said in seen or taken & set(re.findall(r"\w+", said.lower())):
            continue
        seen.add(said)
        moment = BEGIN + timedelta(days=draw.randrange(DAYS), minutes=draw.randrange(840))
        speaker = draw.choice(people)
        metadata = {"session": f"other-{moment:%Y-%m-%d}", "speaker": speaker, "said_at": f"{moment:%Y-%m-%dT%H:%M:%S}"}
        text = f"[{moment:%Y-%m-%d}] {speaker}: {said}"
        yield {"id": f"turn.{len(seen):05}", "text": text, "metadata": metadata}


if __name__ == "__main__":
    lines = "".join(f"{json.dumps(row)}\n" for row in turns())
    (HERE / "distractors.jsonl").write_text(lines, encoding="utf-8")
