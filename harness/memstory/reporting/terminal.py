"""Documents as plain text, and the summary at the end of a run: a line for each target, and all tables with -v."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from textwrap import fill, wrap
from typing import Final

from tabulate import tabulate

from memstory.reporting.document import (
    DASH,
    CaseLink,
    Document,
    FileLink,
    Markup,
    Note,
    Part,
    PlaceLink,
    Section,
    Table,
    Words,
    shorten,
    visible,
)
from memstory.reporting.sections.cases import matrix, untried_stories
from memstory.reporting.sections.columns import columns_of_run, headline, stand_ins, targets_of, with_outcome
from memstory.reporting.sections.outcomes import (
    changes_by_target,
    changes_since,
    short_reason,
    shown_outcomes,
)
from memstory.reporting.sections.scores import measured_stories, score_table, score_tables
from memstory.results.outcomes import KEPT_NOTHING, OUTCOMES
from memstory.results.redaction import redaction_notice
from memstory.results.runs import Run, quantity

ALL_ROWS: Final = 40
"""Up to this many stories are all listed; of more, those that neither passed nor were measured everywhere."""

ALL_COLUMNS: Final = 12
"""Up to this many targets have a column each; of more, the outcomes of a story are counted."""

REASONS: Final = 8
"""Reasons for unsupported cases that are listed, most frequent first."""

TITLE_LIMIT: Final = 60
REASON: Final = 240

ALL_TARGETS: Final = 20
"""Up to this many targets have a line each."""

WORSE: Final = 10
"""Cases that are named because they passed in the last run and do not now."""

ALL_ERRORS: Final = 5
"""Reasons for errors that are shown, the most frequent first."""

ADVISED: Final = 3
"""For up to this many targets it is said what would let more stories run: a run of more is a comparison."""

LEAST_NAME: Final = 12
"""Characters of a target's name that are shown in the narrowest terminal."""

_GOOD: Final = frozenset({"passed", "measured"})

_NOTE: Final = 100
"""Characters of a line of a note."""

_MARKS: Final = re.compile(r"[*`]")

_NARROWEST: Final = 5
"""Characters of a column of scores: a number and the mark for chance."""


def terminal_summary(run: Run, *, last: Run | None = None, verbose: bool = False, width: int = 80) -> str:
    """Return the summary as plain text without control characters.

    A line for each target, with what changed since `last`, below one table of scores by category if there are any;
    `verbose` puts all tables before it. Without it lines are at most `width` characters wide.
    """
    return "\n\n".join(part for part in _parts(run, last, verbose=verbose, width=width) if part)


def _parts(run: Run, last: Run | None, *, verbose: bool, width: int) -> Iterator[str]:
    if verbose:
        yield from (
            _matrix(run),
            as_text(score_table(run)),
            as_text(score_tables(run)),
            "\n".join(unsupported_reasons(run)),
        )
    else:
        yield _measured_shortly(run, width)
    yield "\n".join(_flaky(run))
    yield "\n".join(fill(line, width) for line in _notices(run))
    yield "\n".join([*_target_lines(run, last, width), f"memstory: {headline(run)}"])


def _notices(run: Run) -> Iterator[str]:
    models = [f"'{_plain(model)}'" for model in stand_ins(run)]
    if models:
        yield f"No language model was used: {', '.join(models)} chose tools and words by fixed rules."
    lost = sum(KEPT_NOTHING in warning for case in run.cases for warning in case.warnings)
    if lost:
        yield f"Adds of which nothing was kept after the memory had asked its model: {lost}. See Warnings in report.md."
    if any(run.redacted.values()):
        yield f"Redacted from all that was written: {redaction_notice(run.redacted)}."
    advice = untried_stories(run)
    if len(advice) <= ADVISED:
        yield from (visible(f"{target}, not tried: {said}.") for target, said in advice.items())


def _target_lines(run: Run, last: Run | None, width: int) -> Iterator[str]:
    """Yield a line for each target: counts, recall, what changed; those of more than some targets are in the report."""
    columns = columns_of_run(run)
    changes, words = changes_since(last, run), changes_by_target(last, run)
    shown = shown_outcomes(columns, ["passed"])
    rows = []
    for one in columns[:ALL_TARGETS]:
        cells = [f"{one.counts[name]} {name}" for name in shown]
        cells.append(f"R@5 {one.recall:.2f}" if one.recall is not None else "")
        if last is not None:
            cells.append(f"{words[one.title]} since the last run")
        rows.append(cells)
    taken = sum(2 + max(map(len, cells)) for cells in zip(*rows, strict=True))
    named = [[_cut(one.title, max(LEAST_NAME, width - taken)), *row] for one, row in zip(columns, rows, strict=False)]
    align = ["left", *("right" for _ in rows[0])] if rows else []
    table = tabulate(named, tablefmt="plain", disable_numparse=True, colalign=align)
    yield from (line.rstrip() for line in table.splitlines())
    errors = Counter((case.target, short_reason(case).partition("\n")[0]) for case in with_outcome(run, "error"))
    for (name, reason), count in errors.most_common(ALL_ERRORS):
        yield fill(f"{_cut(name, TITLE_LIMIT)}: {count} error: {_plain(reason, REASON)}", width)
    if rest := errors.most_common()[ALL_ERRORS:]:
        others = f"{quantity(len(rest), 'other reason')}, all in the report"
        yield f"and {quantity(sum(count for _, count in rest), 'more error')} for {others}"
    if len(columns) > ALL_TARGETS:
        yield f"and {len(columns) - ALL_TARGETS} more targets, all in the report"
    worse = [each for each in changes if each.was == "passed"]
    for change in worse[:WORSE]:
        yield _cut(f"passed in the last run, now {change.now}: {_plain(change.case)}", width)
    if len(worse) > WORSE:
        yield f"and {len(worse) - WORSE} more that passed in the last run, all in the report"


def _cut(text: str, width: int) -> str:
    plain = _plain(text, width)
    return plain if len(plain) <= width else f"{plain[: width - 1]}…"


def _matrix(run: Run) -> str:
    targets = targets_of(run)
    rows = matrix(run)
    if len(rows) > ALL_ROWS:
        rows = {name: outcomes for name, outcomes in rows.items() if not {*outcomes.values()} <= _GOOD}
    if not rows:
        return ""
    if len(targets) > ALL_COLUMNS:
        return f"{_counts(rows)}\n{len(targets)} targets are too many for a column each; report.md has them all."
    cells = [[*name, *(outcomes.get(target, DASH) for target in targets)] for name, outcomes in rows.items()]
    return _table(Table(["story", "title", *targets], cells), _plain)


def _counts(rows: Mapping[tuple[str, str], Mapping[str, str]]) -> str:
    """Return one line a story: on how many targets it ended in which way."""
    counts = [(name, Counter(outcomes.values())) for name, outcomes in rows.items()]
    outcomes = [outcome for outcome in OUTCOMES if any(count[outcome] for _, count in counts)]
    cells = [[*name, *(str(count[outcome] or DASH) for outcome in outcomes)] for name, count in counts]
    return _table(Table(["story", "title", *outcomes], cells, numbers=slice(2, None)), _plain)


def _measured_shortly(run: Run, width: int) -> str:
    """Return one table of categories by target, at most `width` wide; empty if nothing was measured by category.

    Of several it is the last: for lifelines the group of people on which no memory is tuned.
    """
    everything = list(measured_stories(run))
    several = [story for story in everything if story.categories > 1]
    if not several:
        return ""
    story = several[-1]
    header = [visible(_text(cell)) for cell in story.table.header]
    rows = [[visible(_text(cell)) for cell in row] for row in story.table.rows[: story.categories + 1]]
    first = max(len(row[0]) for row in [*rows, header])
    room = width - first
    count = max(1, min(len(header) - 1, room // (_NARROWEST + 2)))
    names = header[1 : count + 1]
    column = min(max(_NARROWEST, room // count - 2), max(_NARROWEST, *map(len, names)))
    # Where their beginnings are alike (`control:…`), the ends tell columns apart.
    ends = len({name[: column - 1] for name in names}) < len(names)
    short = [f"…{name[1 - column :]}" if ends else f"{name[: column - 1]}…" for name in names]
    shown = [name if len(name) <= column else cut for name, cut in zip(names, short, strict=True)]
    # Without the interval, which is in the whole table.
    cells = [[row[0], *(cell.partition(" ")[0] for cell in row[1 : count + 1])] for row in rows]
    lines = [
        "  ".join([row[0].ljust(first), *(cell.rjust(column) for cell in row[1:])])
        for row in [[header[0], *shown], *cells]
    ]
    notes = list(story.notes)
    left_out = len(header) - 1 - count
    if left_out:
        notes.append(f"{left_out} more target{'s' * (left_out > 1)} in the report.")
    if len(everything) > 1:
        others = len(everything) - 1
        notes.append(f"{others} more table{'s' * (others > 1)} of this kind with -v, and in the report.")
    return "\n".join([fill(visible(story.title), width), *lines, *(fill(visible(note), width) for note in notes)])


def _flaky(run: Run) -> Iterator[str]:
    for case in run.cases:
        if (rate := case.rate) and rate.flaky:
            yield f"flaky: {_plain(case.id)} {rate}"


def unsupported_reasons(run: Run) -> list[str]:
    """Return the reasons for unsupported cases with their counts, the most frequent first."""
    counts = Counter(case.reason or "no reason was given" for case in with_outcome(run, "unsupported"))
    ranked = counts.most_common()
    lines = [f"{count} unsupported: {_plain(reason, REASON)}" for reason, count in ranked[:REASONS]]
    if rest := ranked[REASONS:]:
        lines.append(f"{sum(count for _, count in rest)} unsupported for {len(rest)} other reasons, all in report.md")
    return lines


def _plain(text: str, limit: int = TITLE_LIMIT) -> str:
    return shorten(visible(" ".join(text.split())), limit)


def as_text(document: Document) -> str:
    """Return sections of notes and tables as plain text without control characters, long cells in several lines."""
    return "\n\n".join(_section(part) if isinstance(part, Section) else _part(part) for part in document)


def _section(section: Section) -> str:
    return "\n".join([visible(_text(section.title)), *map(_part, section.parts)])


def _part(part: Part) -> str:
    match part:
        case Note(text):
            return fill(visible(_text(text)), _NOTE)
        case Table():
            return _table(part, lambda cell: "\n".join(wrap(visible(cell), TITLE_LIMIT)))
        case _:
            raise TypeError(f"plain text has no {type(part).__name__}")


def _table(table: Table, shown: Callable[[str], str]) -> str:
    header, *rows = ([shown(_text(cell)) for cell in row] for row in (table.header, *table.rows))
    align = ["right" if column in table.number_columns else "left" for column in range(len(header))]
    return tabulate(rows, headers=header, disable_numparse=True, colalign=align)


def _text(words: Words) -> str:
    match words:
        case Markup():
            return _MARKS.sub("", words)
        case str():
            return words
        case CaseLink() | PlaceLink() | FileLink():
            return words.text
        case _:
            return "".join(map(_text, words))
