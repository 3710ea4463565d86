"""The exam of `memstory explore`: how many of the narrow faults of the controls it finds blind, and whom it accuses.

`nox -s exam` runs it and writes docs/explanation/explore-exam.md; what is in build/exam already is not run again.
Seconds are those of the processor, so that a busy machine changes nothing. A random half of the faults is kept back:
whoever changes what is drawn looks at the other half alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from memstory.contract.target import Request, Target, TargetFactory
from memstory.controls import FAULTS, Oracle, OracleFactory
from memstory.exploring import Exploration, Limits, search
from memstory.exploring.model import PROMISES
from memstory.exploring.programs import RULES
from memstory.exploring.search import FAILS
from memstory.language.stories import load_stories
from memstory.language.story import Story
from memstory.targets.discovery import load_targets

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "build/exam"
PAGE = ROOT / "docs/explanation/explore-exam.md"
SOUND = ("fts5", "sqlite-vec", "topics", "observations", "manager", "layers", "pipeline", "turns")
PATIENCE = 15.0
"""Wall seconds for each second of the processor; a busy machine is not waited for any longer."""
VOCABULARY = frozenset({"add", "list", "get.id", "get.key", "add.exact", "scope.session"}).union(
    *RULES.values(), *(promise.needs for promise in PROMISES.values())
)
"""What programs and promises can use of a memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of one exploration of a target; `seconds` and those of the first failure are of the processor.

    `missing` are the capabilities that every bundled story of the fault needs and no program uses. `causes` are names
    of findings; `story` is what became of the first one's story. `engine_share` is how much of the time was explore's.
    """

    target: str
    seed: int
    budget: float
    missing: Sequence[str] = ()
    examples: int = 0
    operations: int = 0
    seconds: float = 0.0
    causes: Sequence[str] = ()
    first_seconds: float = 0.0
    first_operations: int = 0
    shrink_seconds: float = 0.0
    story: str = ""
    is_cut: bool = False
    engine_share: float = 0.0


def is_kept_back(fault: str) -> bool:
    """Return whether a fault is in the half that nobody looks at who changes what is drawn."""
    rng = random.Random("kept back")  # noqa: S311  (draws, not secrets)
    return fault in rng.sample(sorted(FAULTS), len(FAULTS) // 2)


def missing_words() -> dict[str, list[str]]:
    """Return for each fault what all stories that find it need and explore has no word for; none: it should find it."""
    lacking: dict[str, list[list[str]]] = {}
    for path in sorted((ROOT / "stories").rglob("*.yaml")):
        for story in load_stories(path):
            if isinstance(story, Story):
                for control, outcome in story.control.items():
                    if control in FAULTS and outcome == "failed":
                        lacking.setdefault(control, []).append(sorted(story.needs - VOCABULARY))
    return {fault: min(stories, key=len) for fault, stories in lacking.items()}


async def examine(factory: TargetFactory, name: str, seed: int, budget: float, *, stop: bool) -> Answer:
    """Explore one target until its first finding, if it is to stop there, or its budget is spent."""
    seen: list[Exploration] = []
    limits = Limits(seconds=budget, findings=1 if stop else None)
    options = {"embedder": "words"} if name in SOUND and name != "fts5" else {}
    is_cut, TimedOracle.seconds = False, 0.0
    try:
        async with asyncio.timeout(budget * PATIENCE):
            await search(factory, name=name, options=options, seed=seed, limits=limits, notice=seen.append,
                         timer=process_time)  # fmt: skip
    except TimeoutError:
        is_cut = True
    found = seen[-1]
    first = found.findings[0] if found.findings else None
    return Answer(
        target=name, seed=seed, budget=budget, examples=found.examples, operations=sum(found.operations.values()),
        seconds=round(found.seconds, 1), causes=[one.name for one in found.findings], is_cut=is_cut,
        first_seconds=round(first.seconds, 1) if first else 0.0, first_operations=first.operations if first else 0,
        shrink_seconds=round(first.shrink_seconds, 1) if first else 0.0, story=first.written if first else "",
        engine_share=round(1 - TimedOracle.seconds / found.seconds, 2),
    )  # fmt: skip


class TimedOracle(Oracle):
    """An oracle that counts how long it was at work, in seconds of the processor."""

    seconds = 0.0

    async def perform(self, request: Request[Any]) -> Any:
        begun = process_time()
        try:
            return await super().perform(request)
        finally:
            TimedOracle.seconds += process_time() - begun


class TimedOracleFactory(OracleFactory):
    """Makes oracles that count their time."""

    def target(self) -> Target:
        return TimedOracle()


def page(answers: Mapping[str, Answer]) -> str:
    """Return the page of what was examined."""
    faults = [answers[f"control:{fault}"] for fault in FAULTS if f"control:{fault}" in answers]
    sound = [answers[name] for name in ("control:oracle", *SOUND) if name in answers]
    found = [one for one in faults if one.causes]
    excluded = [one for one in faults if one.missing]
    missed = [one for one in faults if not one.causes and not one.missing]
    budget = max((one.budget for one in faults), default=0)
    lines = [
        _HEAD.format(
            faults=len(FAULTS), examined=len(faults), budget=budget,
            system=platform.system(), machine=platform.machine(),
            cores=os.cpu_count(), python=platform.python_version(),
        ),
        _table(
            ("half", "faults", "found", "share", "within its words", "found of these"),
            [
                _row(label, [one for one in faults if half in (None, is_kept_back(_fault(one)))])
                for label, half in (("open", False), ("kept back", True), ("all", None))
            ],
        ),
        *([_times(found)] if found else []),
        f"## Missed\n\nWithin its words, and not found: {len(missed)}.\n",
        _table(
            ("fault", "seed", "seconds", "examples", "operations"),
            [(_fault(one), one.seed, _spent(one), f"{one.examples:,}", f"{one.operations:,}") for one in missed],
        ),
        _WITHOUT.format(count=len(excluded)),
        _table(("fault", "what is missing"), [(_fault(one), ", ".join(one.missing)) for one in excluded]),
        _SOUND_HEAD,
        _table(
            ("memory", "seed", "seconds", "examples", "operations", "findings"),
            [
                (one.target, one.seed, _spent(one), f"{one.examples:,}", f"{one.operations:,}", len(one.causes))
                for one in sound
            ],
        ),
        *(f"On the oracle, {one.engine_share:.0%} of the time was explore's own.\n" for one in sound[:1]),
        "## Found\n\nThe name of a finding is promise, operation, features.\n",
        _table(
            ("fault", "half", "seed", "as", "seconds", "operations", "shrunk in", "story"),
            [
                (_fault(one), "kept back" if is_kept_back(_fault(one)) else "open", one.seed, one.causes[0],
                 one.first_seconds, f"{one.first_operations:,}", one.shrink_seconds, one.story.partition(":")[0])
                for one in found
            ],
        ),
    ]  # fmt: skip
    return "\n".join(lines)


_HEAD = """# The exam of explore

`nox -s exam` writes this page. [`memstory explore`](../how-to/explore.md) knows nothing of the {faults} narrow faults
in `controls/faults`, each of which is a perfect memory with one mistake out of a bug report. It is given each of them
blind, until its first finding or for {budget:.0f} seconds; {examined} were examined. The bundled stories find all
{faults}, since they were written for them one by one (`nox -s controls`).

A random half was kept back: who changed what explore draws looked at the other half alone. Names and stories of both
halves are in the repository, so that this is a habit and no proof.

Seconds are those of the processor, so that other work on the machine changes nothing; what got less than a fifteenth
of the processor was cut off earlier, which is said. Each fault ran once, with one seed. Machine: {system} {machine},
{cores} cores, Python {python}.
"""


_SOUND_HEAD = """## Memories without a fault

Each finding here would be a false one. Promises that accused one of these in earlier runs were tied to what it
declares, so that this is no blind test.
"""
_WITHOUT = """## Without a word

Every bundled story that finds one of these {count} needs something that no program of explore does. They were not
explored, and count as not found.
"""


def _times(found: Sequence[Answer]) -> str:
    seconds, operations = median(one.first_seconds for one in found), median(one.first_operations for one in found)
    shrunk, shown = median(one.shrink_seconds for one in found), sum(one.story == FAILS for one in found)
    return (
        f"The first failure was met after {seconds:.1f} seconds and {operations:,.0f} operations in the median, and "
        f"shrunk in {shrunk:.1f}. {shown} of the {len(found)} stories ({shown / len(found):.0%}) fail on the faulty "
        "memory in the step that the finding names, and pass on the oracle.\n"
    )


def _fault(one: Answer) -> str:
    return one.target.removeprefix("control:")


def _spent(one: Answer) -> str:
    return f"{one.seconds:.0f} (cut off)" if one.is_cut else f"{one.seconds:.0f}"


def _row(label: str, faults: Sequence[Answer]) -> tuple[object, ...]:
    found, able = sum(bool(one.causes) for one in faults), sum(not one.missing for one in faults)
    return label, len(faults), found, f"{found / max(len(faults), 1):.0%}", able, f"{found / max(able, 1):.0%}"


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in lines) + "\n"


def read_answers() -> dict[str, Answer]:
    """Return what was examined before, by target."""
    rows = [json.loads(path.read_text("utf-8")) for path in sorted(RECORDS.glob("*.json"))]
    return {row["target"]: Answer(**row) for row in rows}


def is_due(name: str, budget: float) -> bool:
    """Return whether a target was not examined yet, or found nothing in less time than it may have now."""
    path = record_of(name)
    if not path.is_file():
        return True
    before = Answer(**json.loads(path.read_text("utf-8")))
    return not before.causes and before.budget < budget and not before.missing


def record_of(name: str) -> Path:
    """Return where the answer of a target is kept: a kill loses the one alone that was at work."""
    return RECORDS / f"{name.replace(':', '-')}.json"


def run(chosen: argparse.Namespace) -> None:
    """Examine the faults of the halves that are chosen, then the sound memories; say of each how it went."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    words = missing_words()
    mine, parts = map(int, chosen.part.split("/"))
    for fault in [*FAULTS][mine - 1 :: parts] if chosen.seconds else ():
        name = f"control:{fault}"
        if chosen.half not in ("both", "kept-back" if is_kept_back(fault) else "open"):
            continue
        if words[fault]:
            write_answer(Answer(target=name, seed=chosen.seed, budget=0.0, missing=words[fault]))
        elif is_due(name, chosen.seconds):
            answer = asyncio.run(examine(FAULTS[fault](), name, chosen.seed, chosen.seconds, stop=True))
            write_answer(answer, is_hidden=is_kept_back(fault))
    for name in ("control:oracle", *SOUND)[mine - 1 :: parts] if chosen.sound else ():
        if is_due(name, chosen.sound):
            factory = TimedOracleFactory() if name == "control:oracle" else load_targets([name])[name]
            write_answer(asyncio.run(examine(factory, name, chosen.seed, chosen.sound, stop=False)))


def write_answer(one: Answer, *, is_hidden: bool = False) -> None:
    """Keep an answer, and say how it was; of a fault that is kept back, nothing."""
    path = record_of(one.target)
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(asdict(one), indent=1), "utf-8")
    draft.replace(path)
    if not one.missing:
        what = one.causes or "nothing"
        print("(kept back)" if is_hidden else f"{one.target}: {what}, {one.seconds} s, {one.story}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the processor, for each fault; 0: none")
    parser.add_argument("--sound", type=float, default=300.0, help="of the processor, for each sound memory; 0: none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=("open", "kept-back", "both"), default="both")
    parser.add_argument("--part", default="1/1", help="K/N: every Nth from the Kth on, where several run at once")
    given = parser.parse_args()
    run(given)
    PAGE.write_text(page(read_answers()), "utf-8")
