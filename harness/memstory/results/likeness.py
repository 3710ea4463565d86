"""Whether runs may be compared: the same stories, data, k, trials and seeds, whatever the target was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from memstory.results.outcomes import CaseResult
from memstory.results.runs import NamedRun
from memstory.tasks.perturbation import level_name

_DIGEST_SHOWN = 12


def what_differs(runs: Sequence[NamedRun]) -> list[str]:
    """Return a line for each thing that has to be equal before numbers may be compared, and is not.

    A story that only one of the runs holds is no difference; if no story is in two runs, that is the one difference.
    """
    held = [{case.name for case in named.run.cases} for named in runs]
    shared = {
        story for number, stories in enumerate(held) for story in stories if any(story in s for s in held[:number])
    }
    if len(runs) > 1 and not shared:
        return ["no story is in more than one of the runs"]
    return [line for lines in differing_stories(runs).values() for line in lines]


def differing_stories(runs: Sequence[NamedRun]) -> Mapping[str, Sequence[str]]:
    """Return the stories that are not alike in all runs that hold them, each with what differs."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for named in runs:
        for case in named.run.cases:
            for what, value in _facts(case):
                told = found.setdefault((case.name, what), {}).setdefault(value, [])
                if named.name not in told:
                    told.append(named.name)
    lines: dict[str, list[str]] = {}
    for (story, what), values in found.items():
        if len(values) > 1:
            said = ", ".join(f"{value} in {' and '.join(names)}" for value, names in values.items())
            lines.setdefault(story, []).append(f"{story}: {what} is {said}")
    return lines


def _facts(case: CaseResult) -> Iterator[tuple[str, str]]:
    """Yield what a case was about; taken from cases, for a target that could not be asked has recorded no data."""
    yield "the story's digest", case.digest
    if case.trials:
        yield "the number of trials", str(len(case.trials))
        yield "the seeds", json.dumps([trial.recording.seed for trial in case.trials])
    for record in case.retrieval:
        at = f" at {name}" if (name := level_name(record.level)) else ""
        yield f"the data of '{record.name}'{at}", record.digest[:_DIGEST_SHOWN]
        yield f"k of '{record.name}'{at}", str(record.k)
        yield f"the number of documents of '{record.name}'{at}", str(record.documents)
