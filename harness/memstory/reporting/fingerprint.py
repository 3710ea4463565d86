"""What a result was made with: enough to tell whether two results may be compared, and to make one again."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from memstory.codec import encode
from memstory.recording import Recording
from memstory.results import CaseResult
from memstory.target import Json


def make_fingerprint(
    results: Sequence[CaseResult], *, started: str | None = None, options: Mapping[str, Json] | None = None
) -> Json:
    """Return the fingerprint of a run.

    Args:
        results: all cases of the run; story and data digests, trials and seeds are taken from them.
        started: when it began, ISO 8601, None if not known.
        options: what was chosen on the command line and changes results, such as `{"chat": "offline"}`.
    """
    return {
        "memstory": version("memstory"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "started": started,
        "options": encode(options or {}),
        "targets": {name: _about(results, name) for name in sorted({case.target for case in results})},
        "stories": {_name(case): _story(case) for case in sorted(results, key=_name)},
    }


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
