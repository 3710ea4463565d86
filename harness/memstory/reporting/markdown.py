"""report.md: what a stranger needs to know about a run, made from results.json alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

from memstory.reporting import views
from memstory.reporting.comparing.capability_scores import capability_scores
from memstory.reporting.comparing.columns import Column, columns_of
from memstory.reporting.comparing.matrix import JUDGED
from memstory.reporting.comparing.owed import owed_section
from memstory.reporting.comparing.sections import model_sections
from memstory.reporting.escaping import inline, table
from memstory.reporting.measured import measured_page
from memstory.reporting.overview.case_changes import changes_by_target
from memstory.reporting.overview.causes import causes
from memstory.reporting.overview.comparison_markdown import laid_out
from memstory.reporting.overview.facts import facts_of
from memstory.reporting.overview.first_screen import causes_table, conclusion, harms_in_words, totals_table
from memstory.reporting.overview.links import Links
from memstory.reporting.overview.not_passed import could_not_run, went_wrong
from memstory.reporting.overview.unlocks import unlocks_table
from memstory.reporting.repetition import repetition
from memstory.reporting.retrieval_tables import retrieval
from memstory.reporting.talk.honesty import honesty, judged
from memstory.results.outcomes import CaseResult, Outcome
from memstory.results.runs import NamedRun, Run, counted, natural

SLOWEST: Final = 10

HOW_TO_READ: Final = """\
A *story* is a short YAML script of what a memory must do; a *target* is a memory it was run on; a *case* is one story
on one target, in a fresh memory. `passed` and `failed` are judgements: everything the story expects was compared with
what the memory returned. The other three count neither way: `unsupported` means that the target cannot
do what the story needs, `error` that the target or the machine broke, `invalid` that the story itself is wrong. A
dash in the matrix means that the story was not meant for that target. *Harm* is what a failure does to the user, as the
story says: a leak to somebody else, a loss, a wrong answer, a bad rank, or cosmetic. Retrieval is scored from gold ids,
without a judge: R@k is the mean share of the right documents among the first k, nDCG@k rewards placing them early, MRR
is the mean of 1 / rank of the first right one; *n* is the number of questions in that mean. Categories marked *apart*
are not part of the total. `results.json` has all of it in full."""

_FOLDED: Final = 12


def render(run: Run, *, last: Run | None = None, links: Links | None = None) -> str:
    """Return the report as markdown; everything that came from a story or a target is escaped.

    `last` is the run before, None if there is none; `links` makes links, None for none.
    """
    links = links or Links()
    columns = columns_of([NamedRun(name="", run=run)])
    sections = [
        _head(run, columns, last, links),
        _section("What a memory owes", owed_section(run)),
        _section("By capability", _capabilities(columns)),
        _section("Failures by cause", causes_table(causes(columns), links)),
        went_wrong(run, links),
        _section("Measured", measured_page(run)),
        _section("Retrieval", retrieval(run)),
        _section("Repeated trials", repetition(run)),
        *map(laid_out, model_sections(columns)),
        _section("Honest talk", honesty(run)),
        _section("Judged by a language model", judged(run)),
        _section("Could not run", could_not_run(run)),
        _section("What one more capability would unlock", unlocks_table(run)),
        _section("Warnings", _warnings(run)),
        _section("What it was made with", _facts(run)),
        _section("Slowest cases", _slowest(run)),
        _section("Requirements", _coverage(run)),
        _section("Stories on targets", _appendix(run, links)),
        _section("How to read this", HOW_TO_READ),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def step_summary(run: Run, *, last: Run | None = None) -> str:
    """Return the first screen of the report, for a page that a service shows of a run."""
    columns = columns_of([NamedRun(name="", run=run)])
    found = causes(columns)
    parts = [_head(run, columns, last, Links()), _section("Failures by cause", causes_table(found, Links()))]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _head(run: Run, columns: Sequence[Column], last: Run | None, links: Links) -> str:
    first = " ".join(filter(None, [conclusion(run), harms_in_words(causes(columns))]))
    page = f"[{links.page}]({links.page}) shows every case, step by step." if links.page else ""
    totals = totals_table(columns, changes_by_target(last, run))
    parts = [f"# memstory: {views.headline(run)}", " ".join(filter(None, [first, page])), totals, *_notes(run)]
    return "\n\n".join(part for part in parts if part)


def _facts(run: Run) -> str:
    return table(["", ""], [(name, inline(text)) for name, text in facts_of(run).items()])


def _notes(run: Run) -> Iterable[str]:
    models = [f"“{inline(model)}”" for model in views.stand_ins(run)]
    if models:
        yield (
            f"> **Not a language model:** {', '.join(models)}. A deterministic stand-in chooses tools and words by"
            " fixed rules. Its stories show that the memory and its tools work, not how well a language model uses"
            " them."
        )


def _capabilities(columns: Sequence[Column]) -> str:
    """Return passed of judged for each group of stories."""
    scores = capability_scores(columns)
    rows = [
        [inline(score.name), str(len(score.stories)), *(_share(score.columns[one.title]) for one in columns)]
        for score in scores
    ]
    header = ["Capability", "stories", *(inline(one.title) for one in columns)]
    return table(header, rows, right=range(1, len(header))) if rows else ""


def _share(counts: Mapping[Outcome, int]) -> str:
    judged = sum(counts[outcome] for outcome in JUDGED)
    return f"{counts['passed']}/{judged}" if judged else ""


def _appendix(run: Run, links: Links) -> str:
    """Return the matrix, folded: stories that several targets were asked, then those of one target only."""
    if not run.cases:
        return "No case ended."
    targets = views.targets_of(run)
    rows = list(views.matrix(run).items())
    places = {case.name: case for case in run.cases}
    shared = [one for one in rows if len(one[1]) > 1 or len(targets) <= 1]
    parts = [_matrix(shared, targets, places, links)]
    for target in targets:
        own = [one for one in rows if list(one[1]) == [target] and len(targets) > 1]
        if own:
            parts.append(
                _fold(f"{inline(target)} only: {counted(len(own), 'story')}", _matrix(own, [target], places, links))
            )
    legend = ", ".join(f"{symbol} {outcome}" for outcome, symbol in views.SYMBOLS.items())
    return "\n\n".join([f"{legend}.", *(part for part in parts if part)])


def _matrix(
    rows: Sequence[tuple[tuple[str, str], Mapping[str, Outcome]]], targets: Sequence[str],
    cases: Mapping[str, CaseResult], links: Links,
) -> str:  # fmt: skip
    """Return a table; the rows of one story that ended alike are one line."""
    made = []
    for _, group in groupby(rows, key=lambda one: (one[0][0].partition("[")[0], one[0][1], one[1])):
        alike = list(group)
        (story, title), outcomes = alike[0]
        count = f" and {counted(len(alike) - 1, 'more row')}" if len(alike) > 1 else ""
        place, slug = links.to_place(cases[story].where, story), inline(cases[story].slug or "")
        made.append(
            [f"{place}{count} {slug}".strip(), inline(title), *(_cell(outcomes.get(target)) for target in targets)]
        )
    text = table(["Story", "Title", *map(inline, targets)], made)
    return _fold(counted(len(rows), "story"), text) if len(made) > _FOLDED else text if made else ""


def _fold(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>" if text else ""


def _cell(outcome: Outcome | None) -> str:
    return views.SYMBOLS[outcome] if outcome else "-"


def _warnings(run: Run) -> str:
    cases: dict[str, list[str]] = {}
    for case in run.cases:
        for warning in case.warnings:
            cases.setdefault(warning, []).append(case.id)
    return "\n".join(f"- {inline(warning)} ({inline(', '.join(names))})" for warning, names in cases.items())


def _slowest(run: Run) -> str:
    ranked = sorted(run.cases, key=lambda case: -case.seconds)[:SLOWEST]
    rows = [[inline(case.id), f"{case.seconds:.2f}"] for case in ranked if case.seconds > 0]
    return table(["Case", "Seconds"], rows, right=[1]) if rows else ""


def _coverage(run: Run) -> str:
    """Return which requirements passing stories show, and which are claimed by stories that did not pass."""
    shown: dict[str, list[str]] = {}
    claimed: dict[str, list[str]] = {}
    for case in run.cases:
        for requirement in case.covers:
            claimed.setdefault(requirement, [])
            (shown if case.outcome == "passed" else claimed).setdefault(requirement, []).append(case.id)
    if not claimed:
        return ""
    rows = [
        [inline(name), inline(", ".join(shown.get(name, []))) or "-", inline(", ".join(claimed[name])) or "-"]
        for name in sorted(claimed, key=natural)
    ]
    counted = f"{len(shown)} of the {len(claimed)} requirements that these stories cover are shown by a passing case."
    listed = table(["Requirement", "Shown by", "Not passed"], rows)
    return f"{counted}\n\n<details><summary>Each requirement</summary>\n\n{listed}\n\n</details>"
