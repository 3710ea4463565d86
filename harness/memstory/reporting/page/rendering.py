"""The page of a run or of a comparison: the totals of every column, all cases, and each case on a click."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from memstory.reporting import views
from memstory.reporting.comparing.capability_scores import OTHER, capability_scores, groups_of
from memstory.reporting.comparing.columns import Column, columns_of
from memstory.reporting.comparing.latency import latencies
from memstory.reporting.comparing.matrix import JUDGED
from memstory.reporting.comparing.owed import HEADER, HOW_TO_READ, best_first, owed_by
from memstory.reporting.comparing.sections import Section
from memstory.reporting.escaping import shorten, visible
from memstory.reporting.overview.case_changes import changes_by_target, changes_since
from memstory.reporting.overview.causes import causes, harm_of
from memstory.reporting.overview.target_totals import target_totals
from memstory.reporting.page.case_details import details, packed, without_times
from memstory.reporting.page.plots import plots
from memstory.reporting.page.story_lines import LinesOf
from memstory.results.outcomes import HARMS, OUTCOMES, WRONG, CaseResult
from memstory.results.runs import NamedRun, Run, counted, natural

SIGNS: Final[Mapping[str, str]] = {
    "passed": "✓", "failed": "✗", "measured": "≈", "unsupported": "–", "error": "!", "invalid": "?",
}  # fmt: skip
"""A cell of the matrix; colour is never the only sign."""

_SHADES: Final = 10
_MOST_CAUSES: Final = 50
_MOST_CHANGES: Final = 200
_TITLE_LIMIT: Final = 200
_ALWAYS: Final = frozenset({"passed", "failed"})
"""Outcomes that have a column even if no case ended so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageInput:
    """What a page shows beside the runs themselves.

    `last` is the run before, of the same folder, of which `safe` takes out what this run must not show; `lines_of`
    finds the story of a case; `sections` are further tables.
    """

    title: str
    facts: Mapping[str, str]
    lines_of: LinesOf
    lead: str = ""
    last: Run | None = None
    safe: Callable[[CaseResult], CaseResult] = lambda case: case
    sections: Sequence[Section] = ()


def render_page(runs: Sequence[NamedRun], given: PageInput) -> str:
    """Return the page as HTML. Every text of a story or a target is escaped, and the page may run its own script only.

    `runs` have their steps where there are any.
    """
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  (a start of pytest must not pay for it)

    columns = columns_of(runs)
    script, style = _own("page.js"), _own("page.css")
    templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    templates.filters["counted"] = counted
    plot = templates.from_string(_own("plot.svg"))
    changes = [change for named in runs for change in changes_since(given.last, named.run)]
    words = {name: said for named in runs for name, said in changes_by_target(given.last, named.run).items()}
    totals = target_totals(columns)
    context = {
        "title": given.title, "lead": given.lead, "facts": given.facts, "style": style, "script": script,
        "script_hash": _hashed(script), "style_hash": _hashed(style), "signs": SIGNS, "outcomes": OUTCOMES,
        "totals": [(one, words.get(one.name)) for one in totals],
        "counted": [name for name in OUTCOMES if name in _ALWAYS or any(one.counts[name] for one in totals)],
        "has_last": given.last is not None, "changes": changes, "columns": [visible(one.title) for one in columns],
        "owed": _owed(columns), "owed_header": HEADER, "how_to_read": HOW_TO_READ,
        "capabilities": list(_capabilities(columns)), "groups": _groups(columns),
        "causes": causes(columns), "most_causes": _MOST_CAUSES, "most_changes": _MOST_CHANGES,
        "rows": list(_rows(columns)), "draw": plot.render, "plots": list(plots(columns, latencies(columns))),
        "sections": [one for one in given.sections if one.rows],
        "stand_ins": sorted({name for named in runs for name in views.stand_ins(named.run)}),
        "chunks": _chunks(columns, given),
    }  # fmt: skip
    return templates.from_string(_own("page.html")).render(context)


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hashed(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _owed(columns: Sequence[Column]) -> list[tuple[str, Sequence[str]]]:
    found = {visible(column.title): owed for column in columns if (owed := owed_by(column.cases.values()))}
    return [(name, owed.cells) for name, owed in best_first(found)]


def _capabilities(columns: Sequence[Column]) -> Iterator[tuple[str, int, list[tuple[str, str, str]]]]:
    """Yield each group with its stories and for each column a share, a shade from 0 to 10, and what was not judged."""
    for score in capability_scores(columns):
        cells = []
        for column in columns:
            counts = score.columns[column.title]
            judged = sum(counts[outcome] for outcome in JUDGED)
            others = ", ".join(f"{n} {name}" for name, n in counts.items() if n and name not in JUDGED)
            shade = str(counts["passed"] * _SHADES // judged) if judged else ""
            cells.append((f"{counts['passed']}/{judged}" if judged else "–", shade, others))
        yield score.name, len(score.stories), cells


def _groups(columns: Sequence[Column]) -> list[str]:
    return sorted({name for column in columns for case in column.cases.values() for name in _groups_of(case)})


def _groups_of(case: CaseResult) -> list[str]:
    return groups_of(case) or [OTHER]


def _rows(columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
    """Yield each story: its name, title, groups, harm, and its outcome in each column."""
    groups = {name: number for number, name in enumerate(_groups(columns))}
    for number, story in enumerate(_stories(columns)):
        cases = [one.cases.get(story) for one in columns]
        case = next(one for one in cases if one is not None)
        yield {
            "number": number,
            "name": visible(story),
            "slug": case.slug or "",
            "title": visible(shorten(case.title or views.UNREADABLE, _TITLE_LIMIT)),
            "groups": " ".join(str(groups[name]) for name in _groups_of(case)),
            "harm": min((one.harm for one in cases if one and one.harm), key=HARMS.index, default=harm_of(case)),
            "tags": " ".join(case.tags),
            "outcomes": [one.outcome if one else "" for one in cases],
        }


def _stories(columns: Sequence[Column]) -> list[str]:
    """Return the stories: first those that went wrong somewhere, then those of most columns."""
    found: dict[str, list[CaseResult]] = {}
    for column in columns:
        for story, case in column.cases.items():
            found.setdefault(story, []).append(case)
    return sorted(
        found,
        key=lambda story: (
            all(case.outcome not in WRONG for case in found[story]),
            -len(found[story]),
            natural(story),
        ),
    )


def _chunks(columns: Sequence[Column], given: PageInput) -> Iterator[str]:
    """Yield all that is known of one story after the other, packed."""
    before = {case.id: case for case in given.last.cases} if given.last else {}
    for story in _stories(columns):
        cases = {one.title: one.cases[story] for one in columns if story in one.cases}
        first = next(iter(cases.values()))
        lines = given.lines_of(first)
        yield packed(
            {
                "where": visible(first.where),
                "tags": list(first.tags),
                "covers": list(first.covers),
                "first": lines.first if lines else 0,
                "lines": [visible(line) for line in lines.lines] if lines else [],
                "cases": {visible(name): _with_last(case, before.get(case.id), given) for name, case in cases.items()},
            }
        )


def _with_last(case: CaseResult, last: CaseResult | None, given: PageInput) -> Mapping[str, Any]:
    """Return the details of a case, with those of the last run where they differ; `same` says that they do not.

    Nothing is shown of a last run that kept texts which are taken out of this one.
    """
    shown = dict(details(case))
    if last is not None and bool(case.redacted.get("texts")) == bool(last.redacted.get("texts")):
        old, now = details(last), without_times(shown)
        if without_times(old) != now:
            # What equals a safe case is safe: only the others are searched.
            old = details(given.safe(last))
        shown |= {"same": True} if without_times(old) == now else {"last": dict(old)}
    return shown
