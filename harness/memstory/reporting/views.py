"""Plain rows out of a run, which the markdown and the terminal report both lay out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memstory.contract.values import STAND_IN
from memstory.results.outcomes import CaseResult, Outcome, Score
from memstory.results.runs import Run
from memstory.tasks.perturbation import level_name

SYMBOLS: Final[Mapping[str, str]] = {
    "passed": "✅",
    "failed": "❌",
    "measured": "📏",
    "unsupported": "⬜",
    "error": "💥",
    "invalid": "⚠️",
}
SCORE_COLUMNS: Final = {
    "recall@5": "R@5", "recall@10": "R@10", "ndcg@5": "nDCG@5", "ndcg@10": "nDCG@10", "mrr": "MRR",
}  # fmt: skip
ABSTENTION: Final = "abstention"
UNREADABLE: Final = "(could not be read)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One line of the retrieval table: a story on a target, at one level, for one category of questions."""

    story: str
    target: str
    level: str
    category: str | None
    apart: bool
    questions: int
    scores: Mapping[str, float]


def targets_of(run: Run) -> list[str]:
    """Return every target that was asked, sorted; a story that could not be read was for none of them."""
    return sorted({case.target for case in run.cases if case.target})


def matrix(run: Run) -> dict[tuple[str, str], dict[str, Outcome]]:
    """Return `(story, title) -> target -> outcome`, in the run's order; an absent pair was not asked for.

    A story that could not be read has its outcome under every target.
    """
    rows: dict[tuple[str, str], dict[str, Outcome]] = {}
    for case in run.cases:
        asked = [case.target] if case.target else targets_of(run)
        row = rows.setdefault((case.name, case.title or f"{UNREADABLE} {case.where}"), {})
        row.update(dict.fromkeys(asked, case.outcome))
    return rows


def with_outcome(run: Run, outcome: Outcome) -> list[CaseResult]:
    """Return the cases that ended so."""
    return [case for case in run.cases if case.outcome == outcome]


def headline(run: Run) -> str:
    """Return the counts in words; those that are zero are left out, except passed and failed."""
    said = [f"{count} {name}" for name, count in run.summary.items() if count or name in {"passed", "failed"}]
    return ", ".join(said)


def score_rows(case: CaseResult) -> Iterator[ScoreRow]:
    """Yield the retrieval scores of a case: for each level the total, the categories, then those kept apart."""
    apart = {name for record in case.retrieval for name in record.apart}
    groups: dict[tuple[str, str | None], list[Score]] = {}
    for score in case.scores:
        groups.setdefault((level_name(score.level), score.category), []).append(score)
    levels = list(dict.fromkeys(level for level, _ in groups))
    for (level, category), scores in sorted(groups.items(), key=lambda item: _place(item[0], levels, apart)):
        yield ScoreRow(
            story=case.name,
            target=case.target,
            level=level,
            category=category,
            apart=category in apart,
            questions=_denominator(scores),
            scores={score.metric: score.value for score in scores},
        )


def score_cells(row: ScoreRow, columns: Sequence[str]) -> list[str]:
    """Return the scores of `row` under `columns` with three digits; a score that was not taken is a dash."""
    return [f"{row.scores[name]:.3f}" if name in row.scores else "-" for name in columns]


def score_columns(rows: Sequence[ScoreRow]) -> dict[str, str]:
    """Return the metrics to show with their heading: the usual ones and abstention, where a row has them."""
    usual = SCORE_COLUMNS | {ABSTENTION: ABSTENTION}
    return {name: title for name, title in usual.items() if any(name in row.scores for row in rows)}


def folded(rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Return the rows with targets that scored alike in one, `layers, topics`; a story's rows stay together."""
    targets: dict[tuple[object, ...], list[str]] = {}
    for row in rows:
        targets.setdefault(_alike(row), []).append(row.target)
    seen: dict[tuple[object, ...], ScoreRow] = {}
    for row in rows:
        seen.setdefault(_alike(row), replace(row, target=", ".join(targets[_alike(row)])))
    return list(seen.values())


def _alike(row: ScoreRow) -> tuple[object, ...]:
    scores = tuple((name, f"{value:.3f}") for name, value in sorted(row.scores.items()))
    return row.story, row.level, row.category, row.questions, scores


def said_of_itself(run: Run, name: str) -> dict[str, Sequence[str]]:
    """Return what each target said about `name` (`embedder`, `chat` …), for the targets that said anything."""
    return {target: about[name] for target, about in run.fingerprint.targets.items() if about.get(name)}


def shard_name(run: Run) -> str:
    """Return `shard 2 of 5` for a part of a run, nothing for a whole one."""
    return str(run.fingerprint.shard or "")


def stand_ins(run: Run) -> list[str]:
    """Return the chat models that are not language models, by their own word."""
    models = {model for said in said_of_itself(run, "chat").values() for model in said}
    return sorted(model for model in models if STAND_IN in model.lower())


def step_number(path: Sequence[int]) -> str:
    """Return a step's path as people count.

    >>> step_number([1, 0])
    '2.1'
    """
    return ".".join(str(index + 1) for index in path)


def _denominator(scores: Sequence[Score]) -> int:
    """Return the number of questions behind the usual ones; abstention has separate questions."""
    counts = {score.metric: score.questions for score in scores}
    usual = [counts[metric] for metric in SCORE_COLUMNS if metric in counts]
    return max(usual or counts.values())


def _place(group: tuple[str, str | None], levels: Sequence[str], apart: set[str]) -> tuple[int, bool, bool, str]:
    level, category = group
    return (levels.index(level), category is not None, category in apart, category or "")
