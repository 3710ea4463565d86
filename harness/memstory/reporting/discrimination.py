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
from memstory.reporting.document import (
    DASH,
    TEXT_LIMIT,
    Document,
    Items,
    ListItem,
    Markup,
    Note,
    Part,
    Section,
    Sign,
    Table,
    Words,
    one_line,
    where_any,
)
from memstory.reporting.markdown import as_markdown
from memstory.reporting.sections.scores import is_no_better_than_chance, recall_name
from memstory.reporting.writing import REPORT_NAME
from memstory.results.folder.results_file import RESULTS_NAME, read_results
from memstory.results.folder.whole_files import write_text
from memstory.results.outcomes import CaseResult, Outcome
from memstory.results.runs import Run, quantity

KILLS: Final = 3
"""How many stories must find the fault of each broad mutant."""

PREFIX: Final = "control:"

_HOW_TO_READ: Final = Markup("""\
*nothing* acknowledges everything and remembers nothing; *random*, *grep* and *everything* remember faithfully and find
by chance, by substring, or all there is. The *oracle* is a perfect small memory, which in retrieval stories knows the
answers. The others are the oracle with one fault each; a story *kills* a mutant if the oracle passes it and the mutant
does not. A story may say what it means a control to do: `control: {nothing: pass, because: ...}`. A mutant with a
narrow fault runs the stories that name it so. A dash stands for a story that is not for this control, or that it
cannot run.""")

Outcomes = Mapping[str, Mapping[str, Outcome]]
"""Story -> control -> outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a run on the controls has shown, by story or mutant.

    `broken` are the rules that do not hold, each as a sentence; `kills` are the stories that find a mutant's fault,
    for each broad mutant and each narrow one that ran; `weak` are the baselines that pass a story;
    `expectations` has a case of each story that says what it means a control to do.
    """

    outcomes: Outcomes
    broken: Sequence[str]
    kills: Mapping[str, Sequence[str]]
    weak: Mapping[str, Sequence[str]]
    expectations: Mapping[str, CaseResult]
    unseen: Sequence[str]


def judge_controls(run: Run) -> Findings:
    """Return what the controls say of the stories of a run."""
    outcomes: dict[str, dict[str, Outcome]] = {}
    stories = {case.name: case for case in run.cases}
    for case in run.cases:
        outcomes.setdefault(case.name, {})[case.target.removeprefix(PREFIX)] = case.outcome
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
            *_broken_by_stories(outcomes, stories),
            *_survivors(kills),
            *(wrong for case in run.cases if (wrong := _score_fault(case))),
        ],
        kills=kills,
        weak={
            story: names for story, found in outcomes.items() if (names := _passed_by(found, stories[story].control))
        },
        expectations={name: case for name, case in stories.items() if case.control},
        unseen=[story for story, found in outcomes.items() if set(found.values()) == {"unsupported"}],
    )


def controls_document(found: Findings) -> Document:
    """Return the findings as a document."""
    unseen = one_line(", ".join(found.unseen), TEXT_LIMIT)
    return [
        Section(f"What the controls say of {quantity(len(found.outcomes), 'story')}", _verdict(found), level=1),
        Section("Mutants", _mutants(found)),
        Section("Stories that discriminate little", _weak(found)),
        Section("Meant so", _expectations(found)),
        Section("Stories that no control can run", [Note(unseen)] if unseen else []),
        Section("Stories on controls", [_matrix(found)]),
        Section("How to read this", [Note(_HOW_TO_READ)]),
    ]


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
    write_text(folder / REPORT_NAME, as_markdown(controls_document(found)))
    kills = (f"{name}: killed by {quantity(len(stories), 'story')}" for name, stories in found.kills.items())
    seen = f"{len(found.weak)} stories discriminate little, {len(found.unseen)} no control can run"
    sys.stdout.write("\n".join([*kills, seen, *found.broken, f"report: {folder / REPORT_NAME}", ""]))
    return 1 if found.broken else 0


def _kills(outcomes: Mapping[str, str], mutant: str) -> bool:
    return outcomes.get("oracle") == "passed" and outcomes.get(mutant) == "failed"


def _incomplete(outcomes: Outcomes) -> Iterator[str]:
    ran = {control for found in outcomes.values() for control in found}
    wanted = [name for name in CONTROLS if name not in FAULTS]
    yield from (f"control:{name} was not run: name it with --target" for name in wanted if name not in ran)


def _broken_by_stories(outcomes: Outcomes, stories: Mapping[str, CaseResult]) -> Iterator[str]:
    for story, found in outcomes.items():
        expected = stories[story].control
        if "invalid" in found.values():
            yield f"{story} cannot be run as written"
        if found.get("oracle") == "error":
            yield f"{story}: the oracle broke on it"
        if found.get("oracle") == "failed" and "oracle" not in expected:
            yield f"{story}: the oracle fails it, so no memory can be asked to pass; correct what it expects"
        if found.get("nothing") == "passed" and "nothing" not in expected:
            yield f"{story}: a memory that remembers nothing passes it; expect more, or say control: {{nothing: pass}}"
        for name, outcome in expected.items():
            if name in found and found[name] != outcome:
                yield f"{story} means control:{name} to have {outcome}, but it is {found[name]}"


def _survivors(kills: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for mutant, stories in kills.items():
        if mutant in BROAD and len(stories) < KILLS:
            count = f"only {len(stories)} of the stories find" if stories else "no story finds"
            yield f"control:{mutant}: {count} its fault; {KILLS} are needed"


def _score_fault(case: CaseResult) -> str | None:
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


def _verdict(found: Findings) -> Sequence[Part]:
    if not found.broken:
        text = (
            "**Every rule holds**: the oracle passes what it can do, *nothing* passes only what is meant so, and every"
            f" broad mutant is killed by at least {KILLS} stories, every narrow one by those that are meant to."
        )
        return [Note(Markup(text))]
    title = Markup(f"**Rules are broken, {len(found.broken)} times:**")
    return [Note(title), Items([ListItem(text) for text in found.broken])]


def _mutants(found: Findings) -> Sequence[Part]:
    rows = [[name, str(len(stories)), ", ".join(stories) or DASH] for name, stories in found.kills.items()]
    return where_any(Table(["Mutant", "Killed by", "Which"], rows, numbers=slice(1, 2)))


def _weak(found: Findings) -> Sequence[Part]:
    return where_any(Table(["Story", "Passed by"], [[story, ", ".join(names)] for story, names in found.weak.items()]))


def _expectations(found: Findings) -> Sequence[Part]:
    rows = [
        [story, ", ".join(f"{name} {outcome}" for name, outcome in case.control.items()), case.control_because or ""]
        for story, case in found.expectations.items()
    ]
    return where_any(Table(["Story", "Means", "Because"], rows))


def _matrix(found: Findings) -> Table:
    columns = [name for name in CONTROLS if name not in FAULTS]
    rows = [
        [story, *(_cell(outcomes.get(name)) for name in columns), _narrow(outcomes)]
        for story, outcomes in found.outcomes.items()
    ]
    return Table(["Story", *columns, "narrow faults that it finds"], rows)


def _narrow(outcomes: Mapping[str, str]) -> str:
    return ", ".join(name for name in FAULTS if _kills(outcomes, name)) or DASH


def _cell(outcome: Outcome | None) -> Words:
    return DASH if outcome is None or outcome == "unsupported" else [Sign(outcome), Markup(f" {outcome}")]


if __name__ == "__main__":
    sys.exit(main())
