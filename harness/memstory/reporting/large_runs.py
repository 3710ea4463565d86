"""The report of a run that has more cases than one page can hold: totals of all, some shown, all in files beside it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from zlib import crc32

from memstory.reporting.document import Document, FileLink, Markup, Note, Section, Table, Word, Words
from memstory.reporting.page.html import LinesOf, PageInput, render_page
from memstory.reporting.sections.cases import by_reason, failure_sections, matrix_parts, untried_parts, warnings
from memstory.reporting.sections.columns import (
    JUDGED,
    RECALL,
    Column,
    TargetTotals,
    columns_of_run,
    counts_in_words,
    facts_of,
    with_outcome,
)
from memstory.reporting.sections.outcomes import (
    ALONE,
    ESSENTIAL,
    EVERY,
    GROUPS,
    OTHER,
    CapabilityScore,
    Obligations,
    capability_section,
    causes,
    causes_section,
    conclusion,
    essential_section,
    groups_of,
    obligations_of,
    obligations_section,
    totals_parts,
)
from memstory.results.folder.results_file import with_extract
from memstory.results.folder.whole_files import write_text
from memstory.results.outcomes import OUTCOMES, WRONG, CaseResult, Outcome
from memstory.results.runs import NamedRun, Run, quantity

CASES_FOLDER: Final = "report-cases"
"""The folder beside the report with a page for every thousand cases."""

PAGE_CASES: Final = 1_000
MOST_BYTES: Final = 18_000_000
"""Of a page that is shown at once."""

_MOST_PARTS: Final = 50_000
"""Steps, checks and questions of the cases of one page: some cases have thousands."""

_MOST_SHOWN: Final = 200_000
"""The same of all cases that the report keeps in memory to show them."""

SHOWN_WRONG: Final = 3_000
"""So many cases of stories in which something went wrong are shown of a large run."""

SAMPLE: Final = 1_000
"""So many of the others, about."""

_LEFT_OUT: Final = (
    "Scores, times, repeated trials, what models were asked, the slowest cases and requirements need all cases at once "
    "and are left out: a run in shards has them in the report of each shard."
)


class Tally:
    """What reports say of all cases of a run, each given once in its order, and which of them they show."""

    def __init__(self) -> None:
        self.cases = 0
        self.lost = 0
        self.seconds = 0.0
        self.owed: dict[str, Obligations] = {}
        self._counts: dict[str, Counter[Outcome]] = defaultdict(Counter)
        self._recalls: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
        self._groups: dict[str, dict[str, Counter[Outcome]]] = {name: {} for name in (EVERY, *GROUPS, OTHER, ALONE)}
        self._stories: dict[str, list[str]] = {name: [] for name in self._groups}
        self._story: dict[str, Counter[Outcome]] = {}
        self._first: CaseResult | None = None
        # An ordered set: the stories in which something went wrong, as far as they may be shown.
        self._wrong: dict[str, None] = {}

    @classmethod
    def of(cls, cases: Iterable[CaseResult]) -> Tally:
        """Return that of all these cases."""
        tally = cls()
        for case in cases:
            tally.add(case)
        return tally

    def add(self, case: CaseResult) -> None:
        """Take the next case of the run."""
        self.cases += 1
        self.lost += case.is_lost
        self.seconds += case.seconds
        self._counts[case.target][case.outcome] += 1
        if case.outcome in JUDGED and RECALL in case.metrics:
            self._recalls[case.target][0] += case.metrics[RECALL]
            self._recalls[case.target][1] += 1
        if owed := obligations_of([case]):
            known = self.owed.get(case.target)
            self.owed[case.target] = known + owed if known else owed
        if case.outcome in WRONG and len(self._wrong) < SHOWN_WRONG:
            self._wrong[case.name] = None
        if self._first is None or self._first.story != case.story:
            self._close_story()
            self._first = case
        self._story.setdefault(case.target, Counter())[case.outcome] += 1

    @property
    def targets(self) -> list[str]:
        """Every target that was asked, sorted; a story that could not be read was for none of them."""
        return sorted(name for name in self._counts if name)

    @property
    def columns(self) -> list[TargetTotals]:
        """The totals of each target; a story that could not be read is in all of them."""
        return [
            TargetTotals(
                title=name,
                counts=self._with_unreadable(self._counts, name),
                recall=self._recall(name),
                recall_stories=int(self._recalls[name][1]),
            )
            for name in self.targets
        ]

    def capability_scores(self) -> list[CapabilityScore]:
        """Return the groups of stories as for a small run, but that all rows of a story count as one."""
        self._close_story()
        return [
            CapabilityScore(
                name=name,
                stories=self._stories[name],
                columns={target: self._with_unreadable(found, target) for target in self.targets},
            )
            for name, found in self._groups.items()
            if self._stories[name]
        ]

    def chooser(self) -> Callable[[CaseResult], bool]:
        """Return what says of a case whether it is shown: always its whole row is, on all targets.

        Of the stories in which something went wrong these are the first, of the others an even sample and all that a
        report shows by themselves.
        """
        most = max(1, SHOWN_WRONG // max(1, len(self.targets)))
        wrong, every = frozenset([*self._wrong][:most]), max(1, self.cases // SAMPLE)
        return lambda case: (
            case.name in wrong or ESSENTIAL in case.tags or crc32(case.name.encode("utf-8", "replace")) % every == 0
        )

    def _with_unreadable(self, counts: Mapping[str, Counter[Outcome]], target: str) -> Mapping[Outcome, int]:
        found = counts.get(target, Counter()) + counts.get("", Counter())
        return {outcome: found[outcome] for outcome in OUTCOMES}

    def _recall(self, target: str) -> float | None:
        total, count = self._recalls[target]
        return total / count if count else None

    def _close_story(self) -> None:
        """Put the story that was counted into its groups: only the last case tells which targets were asked."""
        if self._first is None:
            return
        is_shared = len(self._story) > 1 or "" in self._story or len(self.targets) == 1
        for name in (EVERY, *groups_of(self._first)) if is_shared else (ALONE,):
            self._stories[name].append(self._first.story)
            for target, counts in self._story.items():
                self._groups[name].setdefault(target, Counter()).update(counts)
        self._first, self._story = None, {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePage:
    """A page beside the report: its file, the first and the last case on it, and how its cases ended."""

    file: str
    first: str
    last: str
    cases: int
    counts: Sequence[int]


@dataclass
class CasePages:
    """Writes all cases of a run, which are given one after the other, to pages; keeps those that the report shows."""

    folder: Path
    head: Run
    tally: Tally
    lines_of: LinesOf
    page_name: str
    pages: list[CasePage] = field(default_factory=list)
    shown: list[CaseResult] = field(default_factory=list)
    _waiting: list[CaseResult] = field(default_factory=list)
    _parts: int = 0
    _shown_parts: int = 0

    def __post_init__(self) -> None:
        self._is_shown = self.tally.chooser()
        clear_case_pages(self.folder)
        (self.folder / CASES_FOLDER).mkdir(exist_ok=True)

    def add(self, case: CaseResult) -> None:
        """Take the next case of the run, with its steps if there are any."""
        parts = _parts_of(case)
        self._waiting.append(case)
        self._parts += parts
        if self._is_shown(case) and self._shown_parts < _MOST_SHOWN:
            self.shown.append(with_extract(case))
            self._shown_parts += parts
        if len(self._waiting) >= PAGE_CASES or self._parts >= _MOST_PARTS:
            self.close()

    def close(self) -> None:
        """Write the page of the cases that wait for it."""
        if not self._waiting:
            return
        cases = self._waiting
        self._waiting, self._parts = [], 0
        name = f"{len(self.pages) + 1:05}.html"
        before = sum(page.cases for page in self.pages)
        title = f"cases {before + 1:,} to {before + len(cases):,} of {self.tally.cases:,}"
        back = FileLink(self.page_name, f"../{self.page_name}")
        links: list[Word] = [Markup("The report of the whole run is "), back, Markup(".")]
        given = PageInput(
            title=title,
            facts={},
            lines_of=self.lines_of,
            above=[Section("Where this is", [Note(links)])],
            empty="not meant for this target, or on another of these pages",
        )
        run = NamedRun(name="", run=replace(self.head, cases=cases))
        write_text(self.folder / CASES_FOLDER / name, render_page([run], given))
        counts = [sum(case.outcome == outcome for case in cases) for outcome in OUTCOMES]
        self.pages.append(CasePage(file=name, first=cases[0].id, last=cases[-1].id, cases=len(cases), counts=counts))


def clear_case_pages(folder: Path) -> None:
    """Take away the pages that an earlier run left in `folder`."""
    kept = folder / CASES_FOLDER
    if kept.is_symlink() or not kept.is_dir():
        return
    for page in kept.glob("[0-9]*.html"):
        page.unlink()
    if not any(kept.iterdir()):
        kept.rmdir()


def _parts_of(case: CaseResult) -> int:
    """Return how much there is to show of a case."""
    trial = case.deciding
    if trial is None:
        return 1
    recording = trial.recording
    questions = sum(len(record.questions) for record in recording.retrieval)
    return 1 + len(recording.steps) + len(trial.verdicts) + questions


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRun:
    """A run of which only some cases are at hand: `run` has these, its summary counts all."""

    run: Run
    tally: Tally
    pages: Sequence[CasePage]

    @property
    def columns(self) -> Sequence[Column]:
        """The cases that are shown, by target."""
        return columns_of_run(self.run)

    @property
    def lead(self) -> str:
        """What the run came to, in a few sentences with marks of Markdown."""
        return conclusion(self.run, self.tally.lost)

    @property
    def what_is_shown(self) -> str:
        """What of the report is of all cases, what is shown of them, and where the rest is."""
        wrong = sum(count for outcome, count in self.run.summary.items() if outcome in WRONG)
        shown = sum(case.outcome in WRONG for case in self.run.cases)
        others = len(self.run.cases) - shown
        return (
            f"These are {self.tally.cases:,} cases, more than one page can hold. **Of all of them** are the totals, "
            f"what a memory owes and the capabilities. **Shown** are {shown:,} of the {wrong:,} that went wrong "
            f"({'all of them' if shown == wrong else f'at most about {SHOWN_WRONG:,}'}) and {others:,} of the "
            f"{self.tally.cases - wrong:,} others: the essential stories, a sample and what stands in one row with the "
            f"former; causes, reasons, warnings and stories are of these alone. **Every case** is on one of the "
            f"{quantity(len(self.pages), 'page')} in `{CASES_FOLDER}` beside this report, listed under *All cases*. "
            f"{_LEFT_OUT} The run before is not compared: `memstory compare` does."
        )

    def facts(self) -> dict[str, str]:
        """Return what the run was made with."""
        of_all = {"Targets": ", ".join(self.tally.targets) or "none", "Time in cases": f"{self.tally.seconds:.1f} s"}
        return {**facts_of(self.run), **of_all}

    def pages_table(self) -> Table:
        """Return the pages of all cases, each with the first and the last of them and how they ended."""
        occurred = [place for place, outcome in enumerate(OUTCOMES) if self.run.summary[outcome]]
        rows: list[list[Words]] = [
            [
                FileLink(page.file, f"{CASES_FOLDER}/{page.file}"), page.first, page.last,
                *(f"{page.counts[place]:,}" if page.counts[place] else "" for place in occurred),
            ]
            for page in self.pages
        ]  # fmt: skip
        header = ["Page", "from", "to", *(OUTCOMES[place] for place in occurred)]
        return Table(header, rows, numbers=slice(3, None), may_fold=True)

    def of_all(self) -> list[Section]:
        """Return the sections that speak of all cases."""
        columns = self.tally.columns
        return [
            Section("Totals", totals_parts(columns, {})),
            obligations_section(self.tally.owed),
            capability_section(self.tally.capability_scores(), [one.title for one in columns]),
            Section("All cases", [self.pages_table()]),
        ]


def large_document(large: LargeRun, page: str, how_to_read: Markup) -> Document:
    """Return the report of a large run for report.md; `page` is the name of its page."""
    run, columns = large.run, large.columns
    shown = Markup(large.what_is_shown)
    where: list[Word] = [FileLink(page, page), Markup(" shows those step by step. ")]
    return [
        Section(
            Markup(f"memstory: {counts_in_words(run)}"), [Note(Markup(large.lead)), Note(shown), Note(where)], level=1
        ),
        *large.of_all(),
        essential_section(columns),
        causes_section(causes(columns)),
        *failure_sections(run, columns),
        Section("Could not run", by_reason(with_outcome(run, "unsupported"))),
        Section("Not tried, and what would let them run", untried_parts(run)),
        Section("Warnings", warnings(run)),
        Section("What it was made with", [Table(["", ""], list(large.facts().items()))]),
        Section("Stories on targets", matrix_parts(run)),
        Section("How to read this", [Note(how_to_read)]),
    ]


def large_page(large: LargeRun, lines_of: LinesOf) -> tuple[str, LargeRun]:
    """Return the page of a large run, and what it shows: fewer cases than were kept where these are too long for it."""
    while True:
        columns = large.columns
        given = PageInput(
            title=counts_in_words(large.run),
            lead=f"{large.lead} {large.what_is_shown}",
            facts=large.facts(),
            lines_of=lines_of,
            above=[*large.of_all(), essential_section(columns), causes_section(causes(columns))],
            empty="not meant for this target, or not shown here",
        )
        text = render_page([NamedRun(name="", run=large.run)], given)
        cases = large.run.cases
        if len(text.encode("utf-8", "backslashreplace")) <= MOST_BYTES or len({case.name for case in cases}) <= 1:
            return text, large
        # Half of the rows, those first in which something went wrong.
        rows = dict.fromkeys(case.name for case in sorted(cases, key=lambda case: case.outcome not in WRONG))
        kept = frozenset([*rows][: max(1, len(rows) // 2)])
        large = replace(large, run=replace(large.run, cases=[case for case in cases if case.name in kept]))
