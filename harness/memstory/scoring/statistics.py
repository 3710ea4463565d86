"""How reliable a number is: intervals for rates and differences, and statistics of repeated trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, sqrt
from random import Random
from statistics import NormalDist, fmean


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with the interval that holds it at `confidence`."""

    value: float
    low: float
    high: float
    confidence: float = 0.95


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Return the score interval of a rate, which stays honest for few trials and for rates near 0 and 1.

    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 1927.

    >>> interval = wilson_interval(4, 5)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.3755, 0.9638)
    """
    _check_counts(successes, trials)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate, spread = successes / trials, z * z / trials
    centre = (rate + spread / 2) / (1 + spread)
    half = sqrt(rate * (1 - rate) * spread + spread * spread / 4) / (1 + spread)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(value=rate, low=low, high=high, confidence=confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Values with what each belongs to: values of one cluster vary together; strata weigh the same, however large."""

    values: Sequence[float]
    clusters: Sequence[str]
    strata: Sequence[str]


def stratified_mean(sample: Sample) -> float:
    """Return the mean of the means of the strata.

    >>> stratified_mean(Sample(values=[1, 1, 1, 0], clusters="abcd", strata="xxxy"))
    0.5
    """
    sums: dict[str, list[float]] = {}
    for value, stratum in zip(sample.values, sample.strata, strict=True):
        sums.setdefault(stratum, []).append(value)
    return fmean(map(fmean, sums.values()))


def cluster_bootstrap(sample: Sample, *, seed: int, resamples: int = 1000, confidence: float = 0.95) -> Interval:
    """Return the stratified mean with its percentile interval, from drawing whole clusters with replacement.

    Questions on one session are right or wrong together: drawn one by one, they would make the interval too narrow.
    Davison & Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8.

    >>> cluster_bootstrap(Sample(values=[0.5, 0.5], clusters="aa", strata="xx"), seed=1)
    Interval(value=0.5, low=0.5, high=0.5, confidence=0.95)
    """
    places = {cluster: place for place, cluster in enumerate(dict.fromkeys(sample.clusters))}
    sums: dict[str, list[float]] = {}
    counts: dict[str, list[int]] = {}
    for value, cluster, stratum in zip(sample.values, sample.clusters, sample.strata, strict=True):
        sums.setdefault(stratum, [0.0] * len(places))[places[cluster]] += value
        counts.setdefault(stratum, [0] * len(places))[places[cluster]] += 1
    columns = [(sums[stratum], counts[stratum]) for stratum in sums]
    means = sorted(_mean_of(columns, drawn) for drawn in _draws(len(places), seed, resamples))
    return _percentiles(stratified_mean(sample), means, confidence)


@lru_cache(maxsize=16)
def _draws(places: int, seed: int, resamples: int) -> Sequence[Sequence[int]]:
    """Return which places each resample draws: the same for every metric of the same questions."""
    draw = Random(seed)  # noqa: S311  (resampling, not secrets)
    return [draw.choices(range(places), k=places) for _ in range(resamples)]


def _mean_of(columns: Iterable[tuple[Sequence[float], Sequence[int]]], drawn: Sequence[int]) -> float:
    """Return the mean over the strata of what the drawn clusters have; a column holds the sum or count of each."""
    parts = [(sum(map(own.__getitem__, drawn)), sum(map(count.__getitem__, drawn))) for own, count in columns]
    return fmean(own / count for own, count in parts if count)


def paired_bootstrap(
    before: Sequence[float],
    after: Sequence[float],
    *,
    seed: int,
    clusters: Sequence[str] | None = None,
    resamples: int = 2000,
    confidence: float = 0.95,
) -> Interval:
    """Return mean(after - before) with its percentile interval; the n-th of both is the same question.

    With `clusters`, whole clusters of questions are drawn. Efron & Tibshirani, "An Introduction to the Bootstrap",
    1993, chapter 13. The same seed gives the same interval.

    >>> paired_bootstrap([0.0, 0.5], [0.5, 1.0], seed=1)
    Interval(value=0.5, low=0.5, high=0.5, confidence=0.95)
    """
    if len(before) != len(after) or not before:
        raise ValueError(f"pairs are needed: {len(before)} values before, {len(after)} after")
    differences = [later - earlier for earlier, later in zip(before, after, strict=True)]
    if clusters is not None:
        sample = Sample(values=differences, clusters=clusters, strata=[""] * len(differences))
        return cluster_bootstrap(sample, seed=seed, resamples=resamples, confidence=confidence)
    draw = Random(seed)  # noqa: S311  (resampling, not secrets)
    means = sorted(fmean(draw.choices(differences, k=len(differences))) for _ in range(resamples))
    return _percentiles(fmean(differences), means, confidence)


def sign_test(losses: int, wins: int) -> float:
    """Return how likely so many losses or more are among all that changed, if a loss is as likely as a win.

    >>> sign_test(5, 0)
    0.03125
    """
    changed = losses + wins
    as_many: int = sum(comb(changed, number) for number in range(losses, changed + 1))
    return as_many / (1 << changed)


def _percentiles(value: float, means: Sequence[float], confidence: float) -> Interval:
    tail = (1 - confidence) / 2
    return Interval(
        value=value,
        low=means[int(tail * len(means))],
        high=means[min(len(means) - 1, int((1 - tail) * len(means)))],
        confidence=confidence,
    )


def pass_at_k(successes: int, trials: int, k: int) -> float:
    """Return the chance that at least one of k trials passes, without bias from the trials that were run.

    Chen et al., "Evaluating Large Language Models Trained on Code", 2021, equation 1.

    >>> pass_at_k(1, 5, 2)
    0.4
    """
    _check_counts(successes, trials, k)
    return 1 - comb(trials - successes, k) / comb(trials, k)


def pass_hat_k(successes: int, trials: int, k: int) -> float:
    """Return pass^k, the chance that all of k trials pass: what somebody who relies on it k times in a row sees.

    Yao et al., "tau-bench", 2024, section 3.

    >>> pass_hat_k(4, 5, 2)
    0.6
    """
    _check_counts(successes, trials, k)
    return comb(successes, k) / comb(trials, k)


def _check_counts(successes: int, trials: int, k: int = 1) -> None:
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} successes of {trials} trials is impossible")
    if not 1 <= k <= trials:
        raise ValueError(f"k is {k}, allowed is 1 to {trials}, the number of trials")
