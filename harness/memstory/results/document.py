"""results.json: everything that a run found out, as plain data; all other reports are made from it alone.

The same run gives the same document, but for the fields named `seconds`, `embedding_seconds` and `started`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final, get_args

from memstory.codec import encode
from memstory.results.outcomes import CaseResult, Outcome, Score, TrialResult
from memstory.results.recording import RetrievalRecord, StepRecord
from memstory.results.secret_values import REDACTED
from memstory.scoring.metrics import mean
from memstory.scoring.statistics import pass_at_k, pass_hat_k, wilson_interval
from memstory.target import Json

SCHEMA: Final = "memstory.results/1"
OUTCOMES: Final[Sequence[str]] = get_args(Outcome)
DIGITS: Final = 6
"""Numbers are rounded to this many digits: the last bits of a score depend on the machine."""


def build(results: Sequence[CaseResult], fingerprint: Mapping[str, Json], *, complete: bool = True) -> Json:
    """Return the document of `results`, ordered by story, target and row; `complete=False` says that a run was cut."""
    return _rounded(assemble(list(map(_case, results)), fingerprint, complete=complete))


def assemble(cases: Sequence[Json], fingerprint: Mapping[str, Json], *, complete: bool) -> Json:
    """Return the document that has just these cases of documents, in their order and counted."""
    counts: Counter[str] = Counter(case["outcome"] for case in cases)
    return {
        "schema": SCHEMA,
        "complete": complete,
        "fingerprint": dict(fingerprint),
        "summary": {outcome: counts[outcome] for outcome in OUTCOMES},
        "redacted": _redacted(cases, fingerprint),
        "cases": sorted(cases, key=_place),
    }


def natural(text: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key that puts S9 before S10.

    >>> sorted(["S10", "S9", "S9b"], key=natural)
    ['S9', 'S9b', 'S10']
    """
    parts = re.findall(r"\d+|\D+", text)
    return tuple((0, int(part)) if part.isascii() and part.isdigit() else (1, part) for part in parts)


def evidence(case: Mapping[str, Json], trial: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return where the steps, verdicts and retrieval of `trial` stand: in the case itself for the one it shows."""
    return case if trial["trial"] == case["shown"] else trial


def _place(case: Mapping[str, Json]) -> tuple[Json, ...]:
    return natural(case["story"]), case["target"], natural(case["row"] or ""), case["id"]


def _case(case: CaseResult) -> Json:
    shown = _shown(case)
    scores = _mean_scores(case.trials)
    return {
        "id": case.id,
        "story": case.story,
        "title": case.title,
        "target": case.target,
        "row": case.row,
        "where": case.where,
        "digest": case.digest,
        "tags": list(case.tags),
        "covers": list(case.covers),
        "needs": list(case.needs),
        "options": encode(case.options),
        "control": {**case.control, "because": case.control_because} if case.control else {},
        "outcome": case.outcome,
        "reason": case.reason,
        "seconds": case.seconds,
        "warnings": _warnings(case),
        "redacted": dict(case.redacted),
        "metrics": _totals(scores),
        "scores": [encode(score) for score in scores],
        "rate": _rate(case.trials),
        "shown": shown,
        "trials": [_trial(number, trial, whole=number != shown) for number, trial in enumerate(case.trials)],
        **(_evidence(case.trials[shown]) if case.trials else {"steps": [], "verdicts": [], "retrieval": []}),
    }


def _redacted(cases: Sequence[Json], fingerprint: Mapping[str, Json]) -> dict[str, int]:
    """Return how many values were taken out of the cases and of the options of the run, each kind even if none was."""
    total = Counter({"secrets": json.dumps(fingerprint.get("options", {})).count(REDACTED), "texts": 0})
    for case in cases:
        total.update(case.get("redacted", {}))
    return dict(total)


def _shown(case: CaseResult) -> int:
    """Return the trial that stands for the case: the first that ended as the case did."""
    return next((number for number, trial in enumerate(case.trials) if trial.outcome == case.outcome), 0)


def _trial(number: int, trial: TrialResult, *, whole: bool) -> Json:
    return {
        "trial": number,
        "seed": trial.recording.seed,
        "outcome": trial.outcome,
        "reason": trial.reason,
        "seconds": trial.recording.seconds,
        "metrics": _totals(trial.scores),
        **(_evidence(trial) if whole else {}),
    }


def _evidence(trial: TrialResult) -> dict[str, Json]:
    recording = trial.recording
    return {
        "about": dict(recording.about),
        "failure": encode(recording.failure),
        "steps": [_step(step) for step in recording.steps],
        "verdicts": encode(list(trial.verdicts)),
        "retrieval": [_retrieval(record) for record in recording.retrieval],
    }


def _step(step: StepRecord) -> Json:
    # The names saved so far serve evaluation; in every step again they would be most of the file.
    return {name: value for name, value in encode(step).items() if name != "names"}


def _retrieval(record: RetrievalRecord) -> Json:
    renamed = {"add_seconds": "seconds", "add_embedding_seconds": "embedding_seconds"}
    return {renamed.get(name, name): value for name, value in encode(record).items()}


def _warnings(case: CaseResult) -> list[str]:
    warnings = dict.fromkeys(warning for trial in case.trials for warning in trial.warnings)
    if case.outcome == "passed" and not any(trial.verdicts for trial in case.trials):
        warnings["passed without a single check: the story expects nothing"] = None
    return list(warnings)


def _mean_scores(trials: Sequence[TrialResult]) -> list[Score]:
    """Return each score once, as its mean over the trials that have it."""
    groups: dict[Json, list[Score]] = {}
    for trial in trials:
        for score in trial.scores:
            level = tuple(sorted((name, str(value)) for name, value in score.level.items()))
            groups.setdefault((score.metric, score.category, level), []).append(score)
    return [
        Score(
            metric=group[0].metric,
            value=mean(score.value for score in group),
            questions=max(score.questions for score in group),
            category=group[0].category,
            level=group[0].level,
        )
        for group in groups.values()
    ]


def _totals(scores: Sequence[Score]) -> dict[str, float]:
    """Return the scores over all categories, of the first level where a story has several."""
    totals: dict[str, float] = {}
    for score in scores:
        if score.category is None:
            totals.setdefault(score.metric, score.value)
    return totals


def _rate(trials: Sequence[TrialResult]) -> Json:
    """Return how often a case passed that ran several times; trials that could not be judged do not count."""
    judged = [trial for trial in trials if trial.outcome in {"passed", "failed"}]
    if len(trials) < 2 or not judged:  # noqa: PLR2004  (several)
        return None
    passed, count = sum(trial.outcome == "passed" for trial in judged), len(judged)
    interval = wilson_interval(passed, count)
    return {
        "passed": passed,
        "trials": count,
        "low": interval.low,
        "high": interval.high,
        "flaky": 0 < passed < count,
        "pass_at": [pass_at_k(passed, count, k) for k in range(1, count + 1)],
        "pass_hat": [pass_hat_k(passed, count, k) for k in range(1, count + 1)],
    }


def _rounded(value: Json) -> Json:
    if isinstance(value, float):
        # JSON has no word for these; a text keeps them visible. Adding 0.0 turns -0.0 into 0.0.
        return round(value, DIGITS) + 0.0 if isfinite(value) else str(value)
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value
