"""The summary at the end of a run in a terminal: what was measured, a line for each target, and with -v all tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import Final

from tabulate import tabulate

from memstory.reporting import views
from memstory.reporting.comparing.columns import columns_of
from memstory.reporting.escaping import shorten, visible
from memstory.reporting.measured import measured_short, measured_text
from memstory.reporting.overview.case_changes import changes_by_target, changes_since
from memstory.reporting.overview.causes import short_reason
from memstory.reporting.overview.target_totals import target_totals
from memstory.reporting.overview.unlocks import unlocks_in_words
from memstory.results.outcomes import KEPT_NOTHING, OUTCOMES
from memstory.results.runs import NamedRun, Run, counted
from memstory.results.secrecy.redaction import told

ALL_ROWS: Final = 40
"""Up to this many stories are all listed; of more, those that neither passed nor were measured everywhere."""

ALL_COLUMNS: Final = 12
"""Up to this many targets have a column each; of more, the outcomes of a story are counted."""

REASONS: Final = 8
"""Reasons for unsupported cases that are listed, most frequent first."""

TITLE_LIMIT: Final = 60

ALL_TARGETS: Final = 20
"""Up to this many targets have a line each."""

WORSE: Final = 10
"""Cases that are named because they passed in the last run and do not now."""

ALL_ERRORS: Final = 5
"""Reasons for errors that are shown, the most frequent first."""

_HINT: Final = 300

LEAST_NAME: Final = 12
"""Characters of a target's name that are shown in the narrowest terminal."""

_GOOD: Final = frozenset({"passed", "measured"})


def terminal_summary(run: Run, *, last: Run | None = None, verbose: bool = False, width: int = 80) -> str:
    """Return the summary as plain text without control characters.

    A line for each target, with what changed since `last`, below one table of scores by category if there are any;
    `verbose` puts all tables before it. Without it lines are at most `width` characters wide.
    """
    return "\n\n".join(part for part in _parts(run, last, verbose=verbose, width=width) if part)


def _parts(run: Run, last: Run | None, *, verbose: bool, width: int) -> Iterator[str]:
    if verbose:
        yield from (_matrix(run), _scores(run), measured_text(run), "\n".join(unsupported_reasons(run)))
    else:
        yield measured_short(run, width)
    yield "\n".join(_flaky(run))
    yield "\n".join(fill(line, width) for line in _notices(run))
    yield "\n".join([*_target_lines(run, last, width), f"memstory: {views.headline(run)}"])


def _notices(run: Run) -> Iterator[str]:
    models = [f"'{_plain(model)}'" for model in views.stand_ins(run)]
    if models:
        yield f"No language model was used: {', '.join(models)} chose tools and words by fixed rules."
    lost = sum(KEPT_NOTHING in warning for case in run.cases for warning in case.warnings)
    if lost:
        yield f"Adds of which nothing was kept after the memory had asked its model: {lost}. See Warnings in report.md."
    if any(run.redacted.values()):
        yield f"Redacted from all that was written: {told(run.redacted)}."
    if hint := unlocks_in_words(run):
        yield _plain(hint, _HINT)


def _target_lines(run: Run, last: Run | None, width: int) -> Iterator[str]:
    """Yield a line for each target: counts, recall, what changed; those of more than some targets are in the report."""
    totals = target_totals(columns_of([NamedRun(name="", run=run)]))
    changes, words = changes_since(last, run), changes_by_target(last, run)
    shown = [name for name in OUTCOMES if name == "passed" or any(one.counts[name] for one in totals)]
    rows = []
    for one in totals[:ALL_TARGETS]:
        cells = [f"{one.counts[name]} {name}" for name in shown]
        cells.append(f"R@5 {one.recall:.2f}" if one.recall is not None else "")
        if last is not None:
            cells.append(f"{words[one.name]} since the last run")
        rows.append(cells)
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))] if rows else []
    room = max(LEAST_NAME, width - sum(widths) - 2 * len(widths))
    names = [_cut(one.name, room) for one in totals[:ALL_TARGETS]]
    name_width = max(map(len, names), default=0)
    for name, row in zip(names, rows, strict=True):
        cells = [cell.rjust(wide) for cell, wide in zip(row, widths, strict=True)]
        yield "  ".join([name.ljust(name_width), *cells]).rstrip()
    errors = _errors(run)
    for name, count, reason in errors[:ALL_ERRORS]:
        yield fill(f"{_cut(name, TITLE_LIMIT)}: {count} error: {_plain(reason)}", width)
    if rest := errors[ALL_ERRORS:]:
        others = f"{counted(len(rest), 'other reason')}, all in the report"
        yield f"and {counted(sum(count for _, count, _ in rest), 'more error')} for {others}"
    if len(totals) > ALL_TARGETS:
        yield f"and {len(totals) - ALL_TARGETS} more targets, all in the report"
    worse = [each for each in changes if each.is_worse]
    for change in worse[:WORSE]:
        yield _cut(f"passed in the last run, now {change.now}: {_plain(change.case)}", width)
    if len(worse) > WORSE:
        yield f"and {len(worse) - WORSE} more that passed in the last run, all in the report"


def _errors(run: Run) -> list[tuple[str, int, str]]:
    """Return why cases ended as errors: the target, how many, and the reason, the most frequent first."""
    reasons = Counter(
        (case.target, short_reason(case).partition("\n")[0]) for case in run.cases if case.outcome == "error"
    )
    return [(target, count, reason) for (target, reason), count in reasons.most_common()]


def _cut(text: str, width: int) -> str:
    plain = _plain(text, width)
    return plain if len(plain) <= width else f"{plain[: width - 1]}…"


def _matrix(run: Run) -> str:
    targets = views.targets_of(run)
    rows = views.matrix(run)
    if len(rows) > ALL_ROWS:
        rows = {name: outcomes for name, outcomes in rows.items() if not {*outcomes.values()} <= _GOOD}
    if not rows:
        return ""
    if len(targets) > ALL_COLUMNS:
        return f"{_counted(rows)}\n{len(targets)} targets are too many for a column each; report.md has them all."
    cells = [
        [_plain(story), _plain(title), *(outcomes.get(target, "-") for target in targets)]
        for (story, title), outcomes in rows.items()
    ]
    return tabulate(cells, headers=["story", "title", *map(_plain, targets)], disable_numparse=True)


def _counted(rows: Mapping[tuple[str, str], Mapping[str, str]]) -> str:
    """Return one line a story: on how many targets it ended in which way."""
    counts = [(name, Counter(outcomes.values())) for name, outcomes in rows.items()]
    seen = [outcome for outcome in views.SYMBOLS if any(count[outcome] for _, count in counts)]
    cells = [
        [_plain(story), _plain(title), *(str(count[outcome] or "-") for outcome in seen)]
        for (story, title), count in counts
    ]
    align = ["left"] * 2 + ["right"] * len(seen)
    return tabulate(cells, headers=["story", "title", *seen], disable_numparse=True, colalign=align)


def _scores(run: Run) -> str:
    rows = [row for case in run.cases if case.outcome != "measured" for row in views.score_rows(case)]
    if not rows:
        return ""
    rows = views.folded(rows)
    columns = views.score_columns(rows)
    cells = [
        [
            _plain(f"{row.story} {row.level}".strip()),
            _plain(row.target),
            _plain(row.category or "total") + (" (apart)" if row.apart else ""),
            str(row.questions),
            *views.score_cells(row, list(columns)),
        ]
        for row in rows
    ]
    align = ["left"] * 3 + ["right"] * (len(columns) + 1)
    header = ["story", "target", "questions", "n", *columns.values()]
    return tabulate(cells, headers=header, disable_numparse=True, colalign=align)


def _flaky(run: Run) -> Iterator[str]:
    for case in run.cases:
        if (rate := case.rate) and rate.flaky:
            yield f"flaky: {_plain(case.id)} {rate}"


def unsupported_reasons(run: Run) -> list[str]:
    """Return the reasons for unsupported cases with their counts, the most frequent first."""
    counts: dict[str, int] = {}
    for case in views.with_outcome(run, "unsupported"):
        reason = case.reason or "no reason was given"
        counts[reason] = counts.get(reason, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    lines = [f"{count} unsupported: {_plain(reason, 240)}" for reason, count in ranked[:REASONS]]
    if rest := ranked[REASONS:]:
        lines.append(f"{sum(count for _, count in rest)} unsupported for {len(rest)} other reasons, all in report.md")
    return lines


def _plain(text: str, limit: int = TITLE_LIMIT) -> str:
    return shorten(visible(" ".join(text.split())), limit)
