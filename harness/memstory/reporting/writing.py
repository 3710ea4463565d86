"""The report of a run: its sections in order, and the files in its folder, each written atomically."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from memstory.contract.errors import SetupError
from memstory.reporting.document import Document, Markup, Note, Part, Section, Table, join_words, page_note
from memstory.reporting.large_runs import CasePages, LargeRun, Tally, clear_case_pages, large_document, large_page
from memstory.reporting.markdown import Links, as_markdown
from memstory.reporting.page.html import MOST_CASES, LinesOf, PageInput, lines_in, render_page
from memstory.reporting.sections.cases import (
    by_reason,
    failure_sections,
    matrix_parts,
    repetition,
    requirements,
    slowest,
    untried_parts,
    warnings,
)
from memstory.reporting.sections.columns import (
    Column,
    columns_of_run,
    facts_of,
    headline,
    stand_in_words,
    with_outcome,
)
from memstory.reporting.sections.costs import calls_section, model_calls
from memstory.reporting.sections.outcomes import (
    capability_scores,
    capability_section,
    causes,
    causes_section,
    changes_by_target,
    essential_section,
    honesty,
    judged_answers,
    lead,
    models_by_story,
    obligations_by_column,
    obligations_section,
    question_answers,
    stories_section,
    totals_parts,
)
from memstory.reporting.sections.scores import retrieval, score_tables
from memstory.results.folder.holding import Hold
from memstory.results.folder.recordings_file import RECORDINGS_NAME, RecordedCases, stored, write_recordings
from memstory.results.folder.results_file import (
    GZIPPED,
    RESULTS_NAME,
    ResultsFile,
    StoredCase,
    plain_or_packed,
    read_results,
    with_extract,
    write_results,
)
from memstory.results.folder.spool import (
    HISTORIES_NAME,
    ISOLATE,
    SELECTED_NAME,
    SPOOL_NAME,
    Spool,
    lost_cases,
    read_selected,
)
from memstory.results.folder.whole_files import make_again, whole_file, write_text
from memstory.results.outcomes import CaseResult
from memstory.results.runs import NamedRun, Run, make_fingerprint, make_run, quantity
from memstory.results.secret_values import Secrets

REPORT_NAME: Final = "report.md"
PAGE_NAME: Final = "report.html"
KILLED_NAME: Final = "killed"
"""Folder in that of a run: what the run before it had done, which was killed."""


HOW_TO_READ: Final = Markup("""\
A *story* is a short YAML script of what a memory must do; a *target* is a memory it was run on; a *case* is one story
on one target, in a fresh memory. `passed` and `failed` are judgements: everything the story expects was compared with
what the memory returned. The other three count neither way: `unsupported` means that the target cannot
do what the story needs, `error` that the target or the machine broke, `invalid` that the story itself is wrong. A
dash in the matrix means that the story was not meant for that target. *Harm* is what a failure does to the user, as the
story says: a leak to somebody else, a loss, a wrong answer, a bad rank, or cosmetic. Retrieval is scored from gold ids,
without a judge: R@k is the mean share of the right documents among the first k, nDCG@k rewards placing them early, MRR
is the mean of 1 / rank of the first right one; *n* is the number of questions in that mean. Categories marked *apart*
are not part of the total. `results.json` has all of it in full.""")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """What the page shows beside the run: the lines of its stories, and the run before.

    `roots` are the folders in which the files of the stories are looked for, by default the current one. `clean` and
    `safe` take out of a line, and of a case of the run before, what must not be written.
    """

    roots: Sequence[Path] = field(default_factory=lambda: [Path.cwd()])
    clean: Callable[[str], str] = lambda text: Secrets().without(text)[0]
    last: Run | None = None
    safe: Callable[[CaseResult], CaseResult] = lambda case: case

    def lines_of(self) -> LinesOf:
        """Return what finds the story of a case."""
        return lines_in(self.roots, self.clean)


def run_document(run: Run, *, last: Run | None = None, page: str = "") -> Document:
    """Return the report of a run; `last` is the run before, `page` the name of the page that shows its cases."""
    columns = columns_of_run(run)
    return [
        _head(run, columns, last, page),
        essential_section(columns),
        obligations_section(obligations_by_column(columns)),
        capability_section(capability_scores(columns), [column.title for column in columns]),
        causes_section(causes(columns)),
        *failure_sections(run, columns),
        Section("Measured", score_tables(run)),
        Section("Retrieval", retrieval(run)),
        Section("Repeated trials", repetition(run)),
        *model_sections(columns),
        Section("Honest talk", honesty(run)),
        Section("Answered by a language model", question_answers(run)),
        Section("Judged by a language model", judged_answers(run)),
        Section("Could not run", by_reason(with_outcome(run, "unsupported"))),
        Section("Not tried, and what would let them run", untried_parts(run)),
        Section("Warnings", warnings(run)),
        Section("What it was made with", [Table(["", ""], list(facts_of(run).items()))]),
        Section("Slowest cases", slowest(run)),
        Section("Requirements", requirements(run)),
        Section("Stories on targets", matrix_parts(run)),
        Section("How to read this", [Note(HOW_TO_READ)]),
    ]


def first_screen(run: Run, *, last: Run | None = None) -> Document:
    """Return the first screen of the report, for a page that a service shows of a run."""
    columns = columns_of_run(run)
    return [_head(run, columns, last, ""), essential_section(columns), causes_section(causes(columns))]


def model_sections(columns: Sequence[Column]) -> list[Section]:
    """Return what language models did in these columns, as far as one was asked."""
    return [calls_section(model_calls(columns)), stories_section(models_by_story(columns))]


def _head(run: Run, columns: Sequence[Column], last: Run | None, page: str) -> Section:
    words = [lead(run, columns), *([page_note(page, "step by step")] if page else [])]
    parts: list[Part] = [Note(join_words(map(Markup, words), " "))]
    parts += totals_parts(columns, changes_by_target(last, run))
    parts += [Note([Markup("> "), *words]) for words in stand_in_words([run])]
    return Section(Markup(f"memstory: {headline(run)}"), parts, level=1)


def begin_reports(folder: Path, tell: Callable[[str], None] = lambda _: None, *, resumes: bool = False) -> Hold:
    """Make `folder` ready for a run, without what an earlier one left: a run killed at once must not seem to be it.

    What a killed run had done is kept in the folder `killed` below it, and told in one line; a run that `resumes` finds
    the histories of a retrieval that it had done. The folder is held until the run lets go of it; SetupError if another
    run has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hold = Hold(folder)
    try:
        if said := _keep_killed(folder, folder / KILLED_NAME):
            tell(said)
        _clear(folder)
        if not resumes:
            (folder / HISTORIES_NAME).unlink(missing_ok=True)
    except BaseException:
        hold.release()
        raise
    return hold


def _keep_killed(folder: Path, kept: Path) -> str:
    """Move what a killed run left in `folder` into `kept`, and say what it was; nothing where no run was killed."""
    left = [name for name in (SPOOL_NAME, SELECTED_NAME) if (folder / name).is_file()]
    if not left or plain_or_packed(folder / RESULTS_NAME).exists() or kept.is_symlink():
        return ""
    kept.mkdir(exist_ok=True)
    _clear(kept)
    for name in left:
        (folder / name).replace(kept / name)
    try:
        done = Spool(kept).read()
        missing = len(lost_cases(read_selected(kept), done, ""))
    except SetupError:  # another version wrote it: `memstory report` says so
        return ""
    return (
        f"The run before was killed: {quantity(len(done), 'case')} done, {missing} without a result. "
        f"'memstory report {kept}' writes its report."
    )


def _clear(folder: Path) -> None:
    packed = (f"{name}{GZIPPED}" for name in (RESULTS_NAME, RECORDINGS_NAME))
    for name in (RESULTS_NAME, REPORT_NAME, PAGE_NAME, RECORDINGS_NAME, SELECTED_NAME, *packed):
        (folder / name).unlink(missing_ok=True)
    clear_case_pages(folder)
    Spool(folder).clear()
    # Rights and mounts are known by trying only.
    with TemporaryFile(dir=folder):
        pass


def write_reports(folder: Path, run: Run, *, recordings: bool = True, options: PageOptions | None = None) -> Run:
    """Write `results.json`, `report.md`, `report.html` and `recordings.jsonl`; return the run as results.json has it.

    Then the spool is done with, so that one left over marks a killed run.
    """
    options = options or PageOptions()
    if len(run.cases) > MOST_CASES:
        head, cases, tally = replace(run, cases=()), map(stored, run.cases), Tally.of(run.cases)
        write_reports_of(folder, head, cases, tally, recordings=recordings, options=options)
        return read_results(folder / RESULTS_NAME)
    make_again(folder)
    clear_case_pages(folder)
    write_results(folder / RESULTS_NAME, run)
    written = read_results(folder / RESULTS_NAME)
    _write_markdown(folder, run_document(written, last=options.last, page=PAGE_NAME), options)
    if recordings:
        write_recordings(folder / RECORDINGS_NAME, run.cases)
    # Plots and causes read the extract, which only what results.json gives has.
    _write_page(folder, replace(run, cases=tuple(map(with_extract, run.cases))), options)
    _forget_spool(folder)
    return written


def write_reports_of(
    folder: Path,
    head: Run,
    cases: Iterable[StoredCase],
    tally: Tally,
    *,
    recordings: bool = True,
    options: PageOptions | None = None,
) -> None:
    """Write the same of a run that is `head`, but for its cases: these are gone through once, and `tally` has them all.

    Of more cases than one page can hold the report shows some; all are on pages in a folder beside it.
    """
    if tally.cases <= MOST_CASES:
        run = replace(head, cases=tuple(one.case for one in cases))
        write_reports(folder, run, recordings=recordings, options=options)
        return
    options = options or PageOptions()
    make_again(folder)
    pages = CasePages(folder, head, tally, options.lines_of(), PAGE_NAME)

    def lines(file: IO[bytes] | None) -> Iterator[bytes]:
        for one in cases:
            pages.add(one.case)
            if file:
                file.writelines(one.recorded)
            yield one.line

    try:
        with whole_file(folder / RECORDINGS_NAME) if recordings else nullcontext() as file:
            write_results(folder / RESULTS_NAME, head, lines(file))
    except BaseException:
        clear_case_pages(folder)
        raise
    _write_large(folder, pages, options)
    _forget_spool(folder)


def _write_large(folder: Path, pages: CasePages, options: PageOptions) -> None:
    pages.close()
    page, large = large_page(
        LargeRun(run=replace(pages.head, cases=pages.shown), tally=pages.tally, pages=pages.pages), pages.lines_of
    )
    _write_markdown(folder, large_document(large, PAGE_NAME, HOW_TO_READ), options)
    write_text(folder / PAGE_NAME, page)


def _forget_spool(folder: Path) -> None:
    Spool(folder).clear()
    (folder / SELECTED_NAME).unlink(missing_ok=True)


def report_from_spool(
    folder: Path,
    why: str = f"the run was killed, or a target ended its process; {ISOLATE}",
    patience_seconds: float = 0.0,
) -> str:
    """Write the reports of a run that was killed, or `report.md` again from `results.json`; return what was done.

    Raises:
        SetupError: the folder holds neither, or a file of another version, or a run is writing there now.
    """
    if not folder.is_dir():
        read_results(folder / RESULTS_NAME)  # Says what is missing.
    with Hold(folder, patience_seconds):
        return _report_from_spool(folder, why)


def _report_from_spool(folder: Path, why: str) -> str:
    options = PageOptions()
    spool = Spool(folder)
    done = spool.read()
    missing = lost_cases(read_selected(folder), done, why)
    if done or missing:
        cases = [*done, *missing]
        write_reports(folder, make_run(cases, make_fingerprint(cases), complete=False))
        torn = f"; {spool.torn} more was being written and is lost" if spool.torn else ""
        named = f"; no result: {', '.join(case.id for case in missing)}" if missing else ""
        return f"{folder / REPORT_NAME}: the run was cut short, {quantity(len(done), 'case')} done{torn}{named}"
    results = ResultsFile(plain_or_packed(folder / RESULTS_NAME))
    recorded = plain_or_packed(folder / RECORDINGS_NAME)
    shown: Iterable[CaseResult] = RecordedCases(results, recorded) if recorded.is_file() else results
    count = sum(results.head.summary.values())
    if count > MOST_CASES:
        pages = CasePages(folder, results.head, Tally.of(results), options.lines_of(), PAGE_NAME)
        for case in shown:
            pages.add(case)
        _write_large(folder, pages, options)
    else:
        clear_case_pages(folder)
        run = replace(results.head, cases=tuple(results))
        _write_markdown(folder, run_document(run, page=PAGE_NAME), options)
        _write_page(folder, replace(run, cases=tuple(shown)), options)
    return f"{folder / REPORT_NAME} and {PAGE_NAME}: made from {results.path.name}, {quantity(count, 'case')}"


def _write_markdown(folder: Path, document: Document, options: PageOptions) -> None:
    links = Links(folder=folder, page=PAGE_NAME, roots=options.roots)
    write_text(folder / REPORT_NAME, as_markdown(document, links))


def _write_page(folder: Path, run: Run, options: PageOptions) -> None:
    columns = columns_of_run(run)
    page = PageInput(
        title=headline(run),
        lead=lead(run, columns),
        facts=facts_of(run),
        lines_of=options.lines_of(),
        last=options.last,
        safe=options.safe,
        sections=model_sections(columns),
    )
    write_text(folder / PAGE_NAME, render_page([NamedRun(name=folder.name, run=run)], page))
