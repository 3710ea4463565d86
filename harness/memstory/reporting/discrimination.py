"""What the controls show about a suite: which stories prove nothing, and which faults no story finds.

`python -m memstory.reporting.discrimination FOLDER` judges the results.json of a run on all controls, writes
report.md beside it, and exits with 1 where a rule is broken.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memstory.contract.errors import SetupError
from memstory.controls import BASELINES, BROAD, CONTROLS, FAULTS, MUTANTS
from memstory.reporting import views
from memstory.reporting.escaping import inline, table
from memstory.reporting.measured import is_no_better_than_chance, recall_name
from memstory.reporting.writing import REPORT_NAME
from memstory.results.folder.results_file import RESULTS_NAME, read_results
from memstory.results.folder.whole_files import write_text
from memstory.results.outcomes import CaseResult, Outcome
from memstory.results.runs import Run, counted

KILLS: Final = 3
"""How many stories must find the fault of each broad mutant."""

PREFIX: Final = "control:"

_HOW_TO_READ: Final = """\
*nothing* acknowledges everything and remembers nothing; *random*, *grep* and *everything* remember faithfully and find
by chance, by substring, or all there is. The *oracle* is a perfect small memory, which in retrieval stories knows the
answers. The others are the oracle with one fault each; a story *kills* a mutant if the oracle passes it and the mutant
does not. A story may say what it means a control to do: `control: {nothing: pass, because: ...}`. A mutant with a
narrow fault runs the stories that name it so. A dash stands for a story that is not for this control, or that it
cannot run."""

Outcomes = Mapping[str, Mapping[str, Outcome]]
"""Story -> control -> outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a run on the controls has shown, by story or mutant.

    `broken` are the rules that do not hold, each as a sentence; `kills` are the stories that find a mutant's fault,
    for each broad mutant and each narrow one that ran; `weak` are the baselines that pass a story;
    `declarations` are the outcomes that a story itself declares for controls, and why; `unseen` are the stories that no
    control can run.
    """

    outcomes: Outcomes
    broken: Sequence[str]
    kills: Mapping[str, Sequence[str]]
    weak: Mapping[str, Sequence[str]]
    declarations: Mapping[str, tuple[str, str]]
    unseen: Sequence[str]


def judge_controls(run: Run) -> Findings:
    """Return what the controls say of the stories of a run."""
    outcomes: dict[str, dict[str, Outcome]] = {}
    expected: dict[str, Mapping[str, str]] = {}
    declarations: dict[str, tuple[str, str]] = {}
    for case in run.cases:
        expected[case.name] = case.control
        outcomes.setdefault(case.name, {})[case.target.removeprefix(PREFIX)] = case.outcome
        if case.control:
            declarations[case.name] = _declaration(case)
    ran = {control for found in outcomes.values() for control in found}
    kills = {
        mutant: [story for story, found in outcomes.items() if _kills(found, mutant)]
        for mutant in MUTANTS
        if mutant in BROAD or mutant in ran
    }
    return Findings(
        outcomes=outcomes,
        broken=[
            *_incomplete(outcomes),
            *_broken_by_stories(outcomes, expected),
            *_survivors(kills),
            *(wrong for case in run.cases if (wrong := _wrongly_measured(case))),
        ],
        kills=kills,
        weak={story: passed for story, found in outcomes.items() if (passed := _passed_by(found, expected[story]))},
        declarations=declarations,
        unseen=[story for story, found in outcomes.items() if set(found.values()) == {"unsupported"}],
    )


def render_controls(found: Findings) -> str:
    """Return the page as markdown."""
    sections = [
        f"# What the controls say of {counted(len(found.outcomes), 'story')}",
        _verdict(found),
        f"## Mutants\n\n{_mutants(found)}",
        _section("Stories that discriminate little", _weak(found)),
        _section("Meant so", _declarations(found)),
        _section("Stories that no control can run", inline(", ".join(found.unseen))),
        f"## Stories on controls\n\n{_matrix(found)}",
        f"## How to read this\n\n{_HOW_TO_READ}",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the run in a folder; return 0, 1 where a rule is broken, or 2 where there is nothing to judge."""
    parser = argparse.ArgumentParser(
        prog="python -m memstory.reporting.discrimination", description="Judge the stories by a run on all controls."
    )
    parser.add_argument("folder", type=Path, help="the --report folder of that run")
    folder: Path = parser.parse_args(arguments).folder
    try:
        found = judge_controls(read_results(folder / RESULTS_NAME))
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    write_text(folder / REPORT_NAME, render_controls(found))
    kills = (f"{name}: killed by {counted(len(stories), 'story')}" for name, stories in found.kills.items())
    seen = f"{len(found.weak)} stories discriminate little, {len(found.unseen)} no control can run"
    sys.stdout.write("\n".join([*kills, seen, *found.broken, f"report: {folder / REPORT_NAME}", ""]))
    return 1 if found.broken else 0


def _kills(outcomes: Mapping[str, str], mutant: str) -> bool:
    return outcomes.get("oracle") == "passed" and outcomes.get(mutant) == "failed"


def _incomplete(outcomes: Outcomes) -> Iterator[str]:
    ran = {control for found in outcomes.values() for control in found}
    wanted = [name for name in CONTROLS if name not in FAULTS]
    yield from (f"control:{name} was not run: name it with --target" for name in wanted if name not in ran)


def _broken_by_stories(outcomes: Outcomes, expected: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for story, found in outcomes.items():
        expectation = expected[story]
        if "invalid" in found.values():
            yield f"{story} cannot be run as written"
        if found.get("oracle") == "error":
            yield f"{story}: the oracle broke on it"
        if found.get("oracle") == "failed" and "oracle" not in expectation:
            yield f"{story}: the oracle fails it, so no memory can be asked to pass; correct what it expects"
        if found.get("nothing") == "passed" and "nothing" not in expectation:
            yield f"{story}: a memory that remembers nothing passes it; expect more, or say control: {{nothing: pass}}"
        for name, outcome in expectation.items():
            if name in found and found[name] != outcome:
                yield f"{story} means control:{name} to have {outcome}, but it is {found[name]}"


def _survivors(kills: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for mutant, stories in kills.items():
        if mutant in BROAD and len(stories) < KILLS:
            count = f"only {len(stories)} of the stories find" if stories else "no story finds"
            yield f"control:{mutant}: {count} its fault; {KILLS} are needed"


def _wrongly_measured(case: CaseResult) -> str | None:
    """Return what is wrong with the scores of a story that only measures, on a control whose scores are known."""
    name = recall_name(case)
    if case.outcome != "measured" or name not in case.metrics:
        return None
    value, control = case.metrics[name], case.target.removeprefix(PREFIX)
    if control == "nothing" and value > 0:
        return f"{case.name}: a memory that remembers nothing has {name} {value:.3f}, not 0"
    if control == "oracle" and value < 1:
        return f"{case.name}: the oracle has {name} {value:.3f}, not 1: gold is missing from the corpus, or exceeds k"
    if control == "random" and not is_no_better_than_chance(case):
        return f"{case.name}: chance alone has {name} {value:.3f}: there is too little to find among"
    return None


def _passed_by(outcomes: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    return [name for name in BASELINES if outcomes.get(name) == "passed" and name not in expected]


def _declaration(case: CaseResult) -> tuple[str, str]:
    return ", ".join(f"{name} {outcome}" for name, outcome in case.control.items()), case.control_because or ""


def _verdict(found: Findings) -> str:
    if not found.broken:
        return (
            "**Every rule holds**: the oracle passes what it can do, *nothing* passes only what is meant so, and every"
            f" broad mutant is killed by at least {KILLS} stories, every narrow one by those that are meant to."
        )
    listed = "\n".join(f"- {inline(text)}" for text in found.broken)
    return f"**Rules are broken, {len(found.broken)} times:**\n\n{listed}"


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _mutants(found: Findings) -> str:
    rows = [[name, str(len(stories)), inline(", ".join(stories)) or "-"] for name, stories in found.kills.items()]
    return table(["Mutant", "Killed by", "Which"], rows, right=[1])


def _weak(found: Findings) -> str:
    rows = [[inline(story), ", ".join(passed)] for story, passed in found.weak.items()]
    return table(["Story", "Passed by"], rows) if rows else ""


def _declarations(found: Findings) -> str:
    rows = [[inline(story), inline(outcomes), inline(why)] for story, (outcomes, why) in found.declarations.items()]
    return table(["Story", "Means", "Because"], rows) if rows else ""


def _matrix(found: Findings) -> str:
    columns = [name for name in CONTROLS if name not in FAULTS]
    rows = [
        [inline(story), *(_cell(outcomes.get(name)) for name in columns), _narrow(outcomes)]
        for story, outcomes in found.outcomes.items()
    ]
    return table(["Story", *columns, "narrow faults that it finds"], rows)


def _narrow(outcomes: Mapping[str, str]) -> str:
    return ", ".join(name for name in FAULTS if _kills(outcomes, name)) or "-"


def _cell(outcome: Outcome | None) -> str:
    return "-" if outcome is None or outcome == "unsupported" else f"{views.SYMBOLS[outcome]} {outcome}"


if __name__ == "__main__":
    sys.exit(main())
