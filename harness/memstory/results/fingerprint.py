"""What a result was made with: enough to tell whether two results may be compared, and to make one again."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import groupby

from memstory.codec import encode
from memstory.results.outcomes import CaseResult
from memstory.results.recording import Recording
from memstory.target import Json


def make_fingerprint(
    results: Sequence[CaseResult],
    *,
    started: str | None = None,
    options: Mapping[str, Json] | None = None,
    shard: Json = None,
) -> Json:
    """Return the fingerprint of a run.

    Args:
        results: all cases of the run; story and data digests, trials and seeds are taken from them.
        started: when it began, ISO 8601, None if not known.
        options: what was chosen on the command line and changes results, such as `{"chat": "offline"}`.
        shard: which part of a run this is, as `memstory.pytest_plugin.sharding` says it; None for a whole run.
    """
    return {
        "memstory": version("memstory"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "started": started,
        "options": encode(options or {}),
        "targets": {name: _about(results, name) for name in sorted({case.target for case in results})},
        "stories": {name: fullest(map(_story, cases)) for name, cases in _by_name(results)},
        **({"shard": shard} if shard else {}),
    }


def fullest(facts: Iterable[Json]) -> Json:
    """Return of what several cases say of one story that which says most: a target may have ended before its data."""
    return max(facts, key=lambda fact: (fact["trials"], len(fact["retrieval"]), json.dumps(fact, sort_keys=True)))


def _by_name(results: Sequence[CaseResult]) -> Iterator[tuple[str, Iterator[CaseResult]]]:
    return groupby(sorted(results, key=_name), key=_name)


def _name(case: CaseResult) -> str:
    return f"{case.story}-{case.row}" if case.row else case.story


def _about(results: Sequence[CaseResult], target: str) -> Json:
    """Return all that a target said of itself, every distinct value once: stories may choose other embedders."""
    said: dict[str, set[str]] = {}
    for case in results:
        for trial in case.trials if case.target == target else ():
            for name, value in trial.recording.about.items():
                said.setdefault(name, set()).add(value)
    return {name: sorted(values) for name, values in sorted(said.items())}


def _story(case: CaseResult) -> Json:
    recordings = [trial.recording for trial in case.trials]
    return {
        "digest": case.digest,
        "trials": len(recordings),
        "seeds": [recording.seed for recording in recordings],
        "retrieval": _data(recordings[0]) if recordings else [],
    }


def _data(recording: Recording) -> Json:
    return [
        {
            "name": record.name,
            "digest": record.digest,
            "k": record.k,
            "documents": record.documents,
            "level": encode(record.level),
        }
        for record in recording.retrieval
    ]
