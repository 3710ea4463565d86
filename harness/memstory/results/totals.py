"""The totals of a case's trials: mean scores, how often it passed, warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from memstory.results.outcomes import NO_HITS, OF_ANOTHER, CaseResult, Harm, Rate, Score, TrialResult
from memstory.results.runs import by_key
from memstory.scoring.metrics import mean
from memstory.scoring.statistics import pass_at_k, pass_hat_k, wilson_interval

_SEVERAL = 2


def with_totals(case: CaseResult) -> CaseResult:
    """Return `case` with the fields that follow from its trials."""
    if not case.trials:
        return case
    scores = _mean_scores(case.trials)
    return replace(
        case,
        metrics=_over_all(scores),
        scores=scores,
        rate=_rate(case.trials),
        leaked=_has_leaked(case.trials),
        harm=_harm(case),
        warnings=_warnings(case),
        # The first that ended as the case did.
        shown=next((place for place, trial in enumerate(case.trials) if trial.outcome == case.outcome), 0),
    )


def run_again(before: CaseResult, now: CaseResult) -> CaseResult:
    """Return the one result of a case that somebody ran again, pytest-rerunfailures say: it ends as its worst run.

    It has the trials of all runs, each numbered as in its own.
    """
    worst = min(before, now, key=lambda case: case.severity)
    reason = worst.reason
    if before.outcome != now.outcome and not (worst is before and _was_run_again(before)):
        reason = f"flaky: {before.outcome} first, {now.outcome} when run again: {worst.reason}"
    return with_totals(
        replace(
            worst,
            reason=reason,
            trials=(*before.trials, *now.trials),
            seconds=before.seconds + now.seconds,
            redacted=Counter(before.redacted) + Counter(now.redacted),
        )
    )


def _was_run_again(case: CaseResult) -> bool:
    return len({trial.recording.trial for trial in case.trials}) < len(case.trials)


def _has_leaked(trials: Sequence[TrialResult]) -> bool | None:
    judged = [verdict for trial in trials for verdict in trial.verdicts if verdict.field == "forbid"]
    return not all(verdict.passed for verdict in judged) if judged else None


def _harm(case: CaseResult) -> Harm | None:
    failing = [one for trial in case.trials for one in trial.verdicts if not one.passed]
    if any(one.check == OF_ANOTHER for one in failing):
        return "leak"
    gave_nothing = bool(failing) and all(one.kind == NO_HITS for one in failing)
    return "loss" if case.harm == "leak" and gave_nothing else case.harm


def _warnings(case: CaseResult) -> tuple[str, ...]:
    warnings = dict.fromkeys(warning for trial in case.trials for warning in trial.warnings)
    if case.outcome == "passed" and not any(trial.verdicts for trial in case.trials):
        warnings["passed without a single check: the story expects nothing"] = None
    return tuple(warnings)


def _mean_scores(trials: Sequence[TrialResult]) -> tuple[Score, ...]:
    """Return each score once, as its mean over the trials that have it."""
    groups = by_key(
        ((score.metric, score.category, *sorted((name, str(value)) for name, value in score.level.items())), score)
        for trial in trials
        for score in trial.scores
    )
    return tuple(group[0] if len(group) == 1 else _mean_score(group) for group in groups.values())


def _mean_score(scores: Sequence[Score]) -> Score:
    # The interval of one trial is none of their mean.
    value, questions = mean(one.value for one in scores), max(one.questions for one in scores)
    return replace(scores[0], value=value, questions=questions, low=None, high=None)


def _over_all(scores: Iterable[Score]) -> Mapping[str, float]:
    """Return the scores over all categories, of the first level where a story has several."""
    totals: dict[str, float] = {}
    for score in scores:
        if score.category is None:
            totals.setdefault(score.metric, score.value)
    return totals


def _rate(trials: Sequence[TrialResult]) -> Rate | None:
    judged = [trial for trial in trials if trial.outcome in {"passed", "failed"}]
    if len(trials) < _SEVERAL or not judged:
        return None
    passed, count = sum(trial.outcome == "passed" for trial in judged), len(judged)
    interval = wilson_interval(passed, count)
    return Rate(
        passed=passed,
        trials=count,
        low=interval.low,
        high=interval.high,
        flaky=0 < passed < count,
        pass_at=tuple(pass_at_k(passed, count, k) for k in range(1, count + 1)),
        pass_hat=tuple(pass_hat_k(passed, count, k) for k in range(1, count + 1)),
    )
