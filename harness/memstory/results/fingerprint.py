"""What a result was made with: enough to identify it and to reproduce it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from memstory.contract.target import Tree
from memstory.results.outcomes import CaseResult
from memstory.results.runs import Fingerprint, Part


def make_fingerprint(
    results: Sequence[CaseResult],
    *,
    started: str | None = None,
    options: Mapping[str, Tree] | None = None,
    shard: Part | None = None,
) -> Fingerprint:
    """Return the fingerprint of a run.

    Args:
        results: all cases of the run; what the targets said of themselves is taken from them.
        started: when it began, ISO 8601, None if not known.
        options: what was chosen on the command line and changes results, such as `{"chat": "offline"}`.
        shard: which part of a run this is; None for a whole run.
    """
    return Fingerprint(
        memstory=version("memstory"),
        python=platform.python_version(),
        platform=platform.platform(),
        processors=os.cpu_count(),
        started=started,
        options=options or {},
        targets={name: _about(results, name) for name in sorted({case.target for case in results})},
        shard=shard,
    )


def _about(results: Sequence[CaseResult], target: str) -> Mapping[str, Sequence[str]]:
    """Return all that a target said about itself, every distinct value once: stories may choose other embedders."""
    said: dict[str, set[str]] = {}
    for case in results:
        for trial in case.trials if case.target == target else ():
            for name, value in trial.recording.about.items():
                said.setdefault(name, set()).add(value)
    return {name: sorted(values) for name, values in sorted(said.items())}
