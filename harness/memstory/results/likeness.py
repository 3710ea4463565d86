"""Whether runs may be compared: the same stories, data, k, trials and seeds, for any target."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from memstory.results.outcomes import CaseResult
from memstory.results.runs import NamedRun, by_key, natural, some
from memstory.tasks.perturbation import level_name

_DIGEST_SHOWN = 12
_FOLLOWS: Final[Mapping[str, Sequence[str]]] = {"text": ["k"], "seeds": ["trials"], "documents": ["data"]}
"""What differs wherever one of these does: it is the same cause, told once."""

Causes: TypeAlias = Mapping[str, str]
"""Kind of difference -> what differs, in words."""


def run_differences(runs: Sequence[NamedRun]) -> list[str]:
    """Return a line for each cause for which numbers may not be compared.

    A story that only one of the runs holds is not a difference; if no story is in two runs, that is the one difference.
    """
    held = [{case.name for case in named.run.cases} for named in runs]
    shared = {
        story for number, stories in enumerate(held) for story in stories if any(story in s for s in held[:number])
    }
    if len(runs) > 1 and not shared:
        return ["no story is in more than one of the runs"]
    return by_cause(differing_stories(runs))


def by_cause(differing: Mapping[str, Causes]) -> list[str]:
    """Return a line for each kind of difference, with the stories that have it."""
    kinds = by_key(
        (kind, (story, text)) for story in sorted(differing, key=natural) for kind, text in differing[story].items()
    )
    return [_line(dict(stories)) for stories in kinds.values()]


def differing_stories(runs: Sequence[NamedRun]) -> Mapping[str, Causes]:
    """Return the stories that are not alike in all runs that hold them, each with what differs."""
    found: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for named in runs:
        for case in named.run.cases:
            for kind, what, value in likeness_facts(case):
                told = found.setdefault((case.name, kind, what), {}).setdefault(value, [])
                if named.name not in told:
                    told.append(named.name)
    stories: dict[str, dict[str, str]] = {}
    for (story, kind, what), values in found.items():
        if len(values) > 1:
            said = ", ".join(f"{value} in {' and '.join(names)}" for value, names in values.items())
            # Of several levels the first stands for all.
            stories.setdefault(story, {}).setdefault(kind, f"{what}: {said}")
    return {story: _causes(kinds) for story, kinds in stories.items()}


def _causes(kinds: Causes) -> Causes:
    return {kind: text for kind, text in kinds.items() if not any(one in kinds for one in _FOLLOWS.get(kind, ()))}


def _line(texts: Mapping[str, str]) -> str:
    names, told = list(texts), dict.fromkeys(texts.values())
    example = "" if len(told) == 1 else f" ({names[0]})"
    return f"{some(names)}: another {next(iter(told))}{example}"


def likeness_facts(case: CaseResult) -> Iterator[tuple[str, str, str]]:
    """Yield `(kind, what, value)` of what has to be the same in runs that are compared.

    It is taken from cases, for a target that could not be asked has recorded no data.
    """
    yield "text", "text of the story", case.digest
    if case.trials:
        # Each trial has its own; a case that was run again has them again.
        seeds = [*dict.fromkeys(trial.recording.seed for trial in case.trials)]
        yield "trials", "number of trials", str(len(seeds))
        yield "seeds", "seed", json.dumps(seeds)
    for record in case.retrieval:
        at = f" at {name}" if (name := level_name(record.level)) else ""
        yield "data", f"data of '{record.name}'{at}", record.digest[:_DIGEST_SHOWN]
        yield "k", f"k of '{record.name}'{at}", str(record.k)
        yield "documents", f"number of documents of '{record.name}'{at}", str(record.documents)
