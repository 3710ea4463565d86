"""The shards of one run -> the results document that the whole run would have given: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memstory.errors import SetupError
from memstory.reporting.comparing import Run, what_differs
from memstory.results.document import assemble
from memstory.results.fingerprint import fullest
from memstory.target import Json

_EQUAL: Final = ("memstory", "python", "options")
"""Parts of the fingerprint that are the same in all shards of one run, on whatever machine each ran."""

_SHOWN: Final = 20


def merged(runs: Sequence[Run]) -> Json:
    """Return one document of all cases, as a run without shards gives it; fields for times are those of the shards.

    Raises:
        SetupError: these are not all the shards of one run, each once; the message says what is wrong.
    """
    wrong = [*_no_shards(runs)] or [*_unlike(runs)] or [*_not_all_once(runs), *_overlaps(runs)] or _other_stories(runs)
    if wrong:
        more = len(wrong) - _SHOWN
        lines = [*wrong[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
        raise SetupError("these are not the shards of one run:\n" + "\n".join(f"  {line}" for line in lines))
    documents = [run.document for run in runs]
    cases = [case for document in documents for case in document["cases"]]
    fingerprint = _fingerprint([document["fingerprint"] for document in documents])
    return assemble(cases, fingerprint, complete=all(map(_is_whole, documents)))


def cut_short(runs: Sequence[Run]) -> list[str]:
    """Return the shards that did not come to their end, each with how far it came."""
    return [
        f"{run.name} has {len(run.document['cases'])} of its {run.document['fingerprint']['shard']['cases']} cases"
        for run in runs
        if not _is_whole(run.document)
    ]


def _is_whole(document: Json) -> bool:
    return bool(document["complete"] and len(document["cases"]) == document["fingerprint"]["shard"]["cases"])


def _no_shards(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        if "shard" not in run.document["fingerprint"]:
            yield (
                f"{run.name} is no shard: it was run without --shard, or was merged already, or its report was written"
                " after it was killed"
            )


def _unlike(runs: Sequence[Run]) -> Iterator[str]:
    shards = {run.name: run.document["fingerprint"]["shard"] for run in runs}
    yield from _differing("the number of shards", {name: shard["count"] for name, shard in shards.items()})
    selected = {name: f"{shard['of']} cases ({shard['digest'][:8]})" for name, shard in shards.items()}
    yield from _differing("what was selected", selected)
    for part in _EQUAL:
        yield from _differing(part, {run.name: run.document["fingerprint"][part] for run in runs})


def _differing(what: str, values: Mapping[str, Json]) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for name, value in values.items():
        told.setdefault(str(value), []).append(name)
    if len(told) > 1:
        yield f"{what} is " + ", ".join(f"{value} in {' and '.join(names)}" for value, names in told.items())


def _not_all_once(runs: Sequence[Run]) -> Iterator[str]:
    count = runs[0].document["fingerprint"]["shard"]["count"]
    found: dict[int, list[str]] = {}
    for run in runs:
        found.setdefault(run.document["fingerprint"]["shard"]["number"], []).append(run.name)
    for number in range(1, count + 1):
        names = found.get(number, [])
        if not names:
            yield f"shard {number} of {count} is missing"
        if len(names) > 1:
            yield f"shard {number} of {count} is there {len(names)} times: {', '.join(names)}"


def _overlaps(runs: Sequence[Run]) -> Iterator[str]:
    holders: dict[str, list[str]] = {}
    for run in runs:
        for case in run.document["cases"]:
            holders.setdefault(case["id"], []).append(run.name)
    for case_id, names in holders.items():
        if len(names) > 1:
            yield f"the case {case_id} is in {' and '.join(names)}"


def _other_stories(runs: Sequence[Run]) -> list[str]:
    # Stories that no other shard holds cannot differ, and shards need not share any.
    held = [run for run in runs if run.document["cases"]]
    return [line for line in what_differs(held) if ":" in line]


def _fingerprint(prints: Sequence[Json]) -> Json:
    stories: dict[str, list[Json]] = {}
    targets: dict[str, dict[str, set[str]]] = {}
    for one in prints:
        for name, fact in one["stories"].items():
            stories.setdefault(name, []).append(fact)
        for target, about in one["targets"].items():
            said = targets.setdefault(target, {})
            for name, values in about.items():
                said.setdefault(name, set()).update(values)
    return {
        **{name: value for name, value in prints[0].items() if name != "shard"},
        "platform": " and ".join(sorted({one["platform"] for one in prints})),
        "processors": prints[0]["processors"] if len({one["processors"] for one in prints}) == 1 else None,
        "started": min((one["started"] for one in prints if one["started"]), default=None),
        "targets": {
            target: {name: sorted(values) for name, values in sorted(said.items())}
            for target, said in sorted(targets.items())
        },
        "stories": {name: fullest(facts) for name, facts in sorted(stories.items())},
    }
