"""Stories that only measure: categories by target, for the terminal and for report.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Final

from tabulate import tabulate

from memstory.reporting.escaping import inline, shorten, table, visible
from memstory.results.outcomes import CaseResult, Score
from memstory.results.recording import RetrievalRecord
from memstory.results.runs import Run, counted
from memstory.tasks.perturbation import level_name

HEADLINES: Final = ("macro_recall@", "recall@", "abstention")
"""What stands for a whole case, the first of these that it has; its k belongs behind an @."""

TOTALS: Final[Mapping[str, str]] = {
    "macro_recall@": "ALL, each category alike",
    "macro_ndcg@": "... and ranked high (nDCG)",
    "recall_all@": "... with all its memories found",
    "stale_share": "old value above the new (less is better)",
    "abstention_accuracy": "knows when it has no answer (.5 is chance)",
    "context_tokens": "tokens that came back for a question",
}
"""Metrics over all questions, and what the table calls them; the k of a story belongs behind an @."""

EXPLAINED: Final = (
    "A number is the part of the memories answering a question that is among the first {k} that came back: 1 is best, "
    "chance is {chance:.3f}. It is the mean over the questions of that kind, their number in brackets; where nothing "
    "answers, the part of the questions for which nothing came back. Nothing is asked for here, so nothing has passed."
)

_WIDTH: Final = 120


_NARROWEST: Final = 5
"""Characters of a column of scores: a number and the mark for chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One story: a row for each category, a column for each target, the best first.

    `categories` says how many rows are categories; the totals follow them.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    categories: int = 0


def headline(case: CaseResult) -> str:
    """Return what a case came to in a few words."""
    name = next((name for name in _named(HEADLINES, case) if name in case.metrics), None)
    return f"{name} {case.metrics[name]:.3f}" if name else case.reason or "nothing"


def measured_text(run: Run) -> str:
    """Return the tables for a terminal; empty if nothing was only measured."""
    return "\n\n".join(
        "\n".join([visible(board.title), _laid_out(board), *(fill(visible(note), _WIDTH) for note in board.notes)])
        for board in boards(run)
    )


def measured_short(run: Run, width: int) -> str:
    """Return one table of categories by target, at most `width` wide; empty if nothing was measured by category.

    Of several it is the last: for lifelines the group of people on which no memory is tuned.
    """
    everything = list(boards(run))
    several = [board for board in everything if board.categories > 1]
    if not several:
        return ""
    board = several[-1]
    rows = [[visible(cell) for cell in row] for row in board.rows[: board.categories + 1]]
    first = max(len(row[0]) for row in [*rows, board.header])
    room = width - first
    count = max(1, min(len(board.header) - 1, room // (_NARROWEST + 2)))
    names = [visible(name) for name in board.header[1 : count + 1]]
    column = min(max(_NARROWEST, room // count - 2), max(_NARROWEST, *map(len, names)))
    # Where their beginnings are alike (`control:…`), the ends tell columns apart.
    ends = len({name[: column - 1] for name in names}) < len(names)
    short = [f"…{name[1 - column :]}" if ends else f"{name[: column - 1]}…" for name in names]
    shown = [name if len(name) <= column else cut for name, cut in zip(names, short, strict=True)]
    # Without the interval, which is in the whole table.
    cells = [[row[0], *(cell.partition(" ")[0] for cell in row[1 : count + 1])] for row in rows]
    lines = [
        "  ".join([row[0].ljust(first), *(cell.rjust(column) for cell in row[1:])])
        for row in [[board.header[0], *shown], *cells]
    ]
    notes = list(board.notes)
    left_out = len(board.header) - 1 - count
    if left_out:
        notes.append(f"{left_out} more target{'s' * (left_out > 1)} in the report.")
    if len(everything) > 1:
        others = len(everything) - 1
        notes.append(f"{others} more table{'s' * (others > 1)} of this kind with -v, and in the report.")
    return "\n".join([fill(visible(board.title), width), *lines, *(fill(visible(note), width) for note in notes)])


def measured_page(run: Run) -> str:
    """Return the tables as markdown; empty if nothing was only measured."""
    return "\n\n".join(
        "\n\n".join(
            [
                f"**{inline(board.title)}**",
                table(
                    [inline(cell) for cell in board.header],
                    [[inline(cell) for cell in row] for row in board.rows],
                    right=range(1, len(board.header)),
                ),
                *(inline(note, 600) for note in board.notes),
            ]
        )
        for board in boards(run)
    )


def boards(run: Run) -> Iterator[Board]:
    """Yield the table of each story that was measured, and of each of its levels."""
    stories: dict[tuple[str, str], list[CaseResult]] = {}
    for case in run.cases:
        if case.outcome == "measured" and case.scores:
            for level in dict.fromkeys(level_name(score.level) for score in case.scores):
                stories.setdefault((case.name, level), []).append(case)
    for (_, level), cases in stories.items():
        yield _board(level, sorted(cases, key=lambda case: -_scored(case, level)))
    if steps := [case for case in run.cases if case.outcome == "measured" and not case.retrieval]:
        yield _steps_board(steps)


def recall_name(case: CaseResult) -> str:
    """Return the recall of a case among all that came back; empty if it retrieved nothing."""
    return f"recall@{case.retrieval[0].k}" if case.retrieval else ""


def is_no_better_than_chance(case: CaseResult, level: str = "") -> bool:
    """Return whether a memory found no more than one that draws memories at random, by the low end of its interval."""
    score = next((one for one in _of(case, level, None) if one.metric == recall_name(case)), None)
    return score is not None and (score.value if score.low is None else score.low) <= _chance(case, level)


def _board(level: str, cases: Sequence[CaseResult]) -> Board:
    record = _record(cases[0], level)
    by_chance = [case.target for case in cases if is_no_better_than_chance(case, level)]
    categories = sorted({score.category for case in cases for score in _of(case, level) if score.category})
    kinds = _not_empty(_category_row(category, level, cases) for category in categories)
    totals = [row for begin, title in TOTALS.items() if any((row := _total_row(begin, title, level, cases))[1:])]
    notes = [EXPLAINED.format(k=record.k, chance=_chance(cases[0], level))]
    if by_chance:
        notes.append(f"* no better than chance: {', '.join(by_chance)}")
    said = f", {level}" if level and level != "plain" else ""
    return Board(
        title=f"{cases[0].name}: {cases[0].title}{said} ({counted(record.documents, 'memory')})",
        header=["questions", *(f"{case.target}{'*' if case.target in by_chance else ''}" for case in cases)],
        rows=[*kinds, *_not_empty(totals)],
        notes=notes,
        categories=len(kinds),
    )


def _not_empty(rows: Iterable[list[str]]) -> list[list[str]]:
    return [row for row in rows if any(cell not in {"", "-"} for cell in row[1:])]


def _steps_board(cases: Sequence[CaseResult]) -> Board:
    """Return how many expectations held in stories that measure by steps."""
    targets = sorted({case.target for case in cases})
    held = {
        (case.title, case.target): [one.passed for trial in case.trials for one in trial.verdicts] for case in cases
    }
    titles = list(dict.fromkeys(case.title for case in cases))
    rows = [[title, *(_held(held.get((title, target), [])) for target in targets)] for title in titles]
    everything = [
        _held([one for (_, own), some in held.items() if own == target for one in some]) for target in targets
    ]
    return Board(
        title="What held of what stories tell to an agent and expect of it later",
        header=["story", *targets],
        rows=[*rows, ["ALL", *everything]],
        notes=["A cell is how many expectations held, of how many. Nothing is asked for here, so nothing has passed."],
    )


def _held(verdicts: Sequence[bool]) -> str:
    return f"{sum(verdicts)}/{len(verdicts)}" if verdicts else "-"


def _category_row(category: str, level: str, cases: Sequence[CaseResult]) -> list[str]:
    recall = recall_name(cases[0])
    found = [{one.metric: one for one in _of(case, level, category)} for case in cases]
    metric = recall if any(recall in scores for scores in found) else "abstention"
    count = max((scores[metric].questions for scores in found if metric in scores), default=0)
    return [f"{category.replace('_', ' ')} ({count})", *(_cell(scores.get(metric)) for scores in found)]


def _total_row(begin: str, title: str, level: str, cases: Sequence[CaseResult]) -> list[str]:
    (name,) = _named([begin], cases[0])
    found = [next((one for one in _of(case, level, None) if one.metric == name), None) for case in cases]
    return [title, *map(_cell, found)]


def _cell(score: Score | None) -> str:
    if score is None:
        return "-"
    value = f"{score.value:.0f}" if score.metric == "context_tokens" else f"{score.value:.2f}"
    return value if score.low is None or not score.metric.startswith("macro_recall") else (
        f"{value} [{score.low:.2f}, {score.high:.2f}]")  # fmt: skip


def _of(case: CaseResult, level: str, *category: str | None) -> list[Score]:
    return [
        one for one in case.scores if level_name(one.level) == level and (not category or one.category == category[0])
    ]


def _scored(case: CaseResult, level: str) -> float:
    totals = {one.metric: one.value for one in _of(case, level, None)}
    return next((totals[name] for name in _named(HEADLINES, case) if name in totals), 0.0)


def _named(metrics: Iterable[str], case: CaseResult) -> list[str]:
    """Return names of metrics with the k of a case behind the @ with which some end."""
    k = case.retrieval[0].k if case.retrieval else 0
    return [f"{name}{k}" if name.endswith("@") else name for name in metrics]


def _record(case: CaseResult, level: str) -> RetrievalRecord:
    return next(one for one in case.retrieval if level_name(one.level) == level)


def _chance(case: CaseResult, level: str) -> float:
    record = _record(case, level)
    return min(1.0, record.k / max(record.documents, 1))


def _laid_out(board: Board) -> str:
    rows = [[shorten(visible(cell), 60) for cell in row] for row in board.rows]
    align = ["left", *["right"] * (len(board.header) - 1)]
    return tabulate(rows, headers=[visible(cell) for cell in board.header], disable_numparse=True, colalign=align)
