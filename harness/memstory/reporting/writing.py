"""Writes the reports into a folder, each one atomically."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from memstory.contract.errors import SetupError
from memstory.reporting import views
from memstory.reporting.comparing.columns import columns_of
from memstory.reporting.comparing.sections import model_sections
from memstory.reporting.markdown import render
from memstory.reporting.overview.causes import causes
from memstory.reporting.overview.facts import facts_of
from memstory.reporting.overview.first_screen import conclusion, harms_in_words
from memstory.reporting.overview.links import Links
from memstory.reporting.page.rendering import PageInput, render_page
from memstory.reporting.page.story_lines import lines_in
from memstory.results.extracts import with_extract
from memstory.results.fingerprint import make_fingerprint
from memstory.results.folder.holding import Hold
from memstory.results.folder.recordings_file import RECORDINGS_NAME, read_recordings, with_steps, write_recordings
from memstory.results.folder.results_file import RESULTS_NAME, read_results, write_results
from memstory.results.folder.selected_cases import ISOLATE, SELECTED_NAME, lost, read_selected
from memstory.results.folder.spool import SPOOL_NAME, Spool
from memstory.results.folder.whole_files import make_again, write_text
from memstory.results.outcomes import CaseResult
from memstory.results.runs import NamedRun, Run, counted, make_run
from memstory.results.secrecy.secret_values import Secrets

REPORT_NAME: Final = "report.md"
PAGE_NAME: Final = "report.html"
KILLED_NAME: Final = "killed"
"""Folder in that of a run: what the run before it had done, which was killed."""


def _without_secrets(text: str) -> str:
    return Secrets().without(text)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the page shows beside the run: the lines of its stories, and the run before.

    `roots` are the folders in which the files of the stories are looked for, None for the current one. `clean` and
    `safe` take out of a line, and of a case of the run before, what must not be written.
    """

    roots: Sequence[Path] | None = None
    clean: Callable[[str], str] = _without_secrets
    last: Run | None = None
    safe: Callable[[CaseResult], CaseResult] = lambda case: case


def begin_reports(folder: Path, tell: Callable[[str], None] = lambda _: None) -> Hold:
    """Make `folder` ready for a run, without what an earlier one left: a run killed at once must not seem to be it.

    What a killed run had done is kept in the folder `killed` below it, and told in one line. The folder is held until
    the run lets go of it; SetupError if another run has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hold = Hold(folder)
    try:
        if said := _keep_killed(folder, folder / KILLED_NAME):
            tell(said)
        _clear(folder)
    except BaseException:
        hold.release()
        raise
    return hold


def _keep_killed(folder: Path, kept: Path) -> str:
    """Move what a killed run left in `folder` into `kept`, and say what it was; nothing where no run was killed."""
    left = [name for name in (SPOOL_NAME, SELECTED_NAME) if (folder / name).is_file()]
    if not left or (folder / RESULTS_NAME).exists() or kept.is_symlink():
        return ""
    kept.mkdir(exist_ok=True)
    _clear(kept)
    for name in left:
        (folder / name).replace(kept / name)
    try:
        done = Spool(kept).load().results
        missing = len(lost(read_selected(kept), done, ""))
    except SetupError:  # another version wrote it: `memstory report` says so
        return ""
    return (
        f"The run before was killed: {counted(len(done), 'case')} done, {missing} without a result. "
        f"'memstory report {kept}' writes its report."
    )


def _clear(folder: Path) -> None:
    for name in (RESULTS_NAME, REPORT_NAME, PAGE_NAME, RECORDINGS_NAME, SELECTED_NAME):
        (folder / name).unlink(missing_ok=True)
    Spool(folder).clear()
    # Rights and mounts are known by trying only.
    with TemporaryFile(dir=folder):
        pass


def write_reports(folder: Path, run: Run, *, recordings: bool = True, beside: Beside | None = None) -> Run:
    """Write `results.json`, `report.md`, `report.html` and `recordings.jsonl`; return the run as results.json has it.

    Then the spool is done with, so that one left over marks a killed run.
    """
    make_again(folder)
    write_results(folder / RESULTS_NAME, run)
    written = read_results(folder / RESULTS_NAME)
    beside = beside or Beside()
    write_text(folder / REPORT_NAME, render(written, last=beside.last, links=_links(folder, beside)))
    if recordings:
        write_recordings(folder / RECORDINGS_NAME, run.cases)
    # Plots and causes read the extract, which only what results.json gives has.
    _write_page(folder, replace(run, cases=tuple(map(with_extract, run.cases))), beside)
    Spool(folder).clear()
    (folder / SELECTED_NAME).unlink(missing_ok=True)
    return written


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
        read_results(folder / RESULTS_NAME)  # says what is missing
    with Hold(folder, patience_seconds):
        return _report_from_spool(folder, why)


def _report_from_spool(folder: Path, why: str) -> str:
    spooled = Spool(folder).load()
    missing = lost(read_selected(folder), spooled.results, why)
    if spooled.results or missing:
        cases = [*spooled.results, *missing]
        write_reports(folder, make_run(cases, make_fingerprint(cases), complete=False))
        torn = f"; {spooled.torn} more was being written and is lost" if spooled.torn else ""
        named = f"; no result: {', '.join(case.id for case in missing)}" if missing else ""
        return (
            f"{folder / REPORT_NAME}: the run was cut short, {counted(len(spooled.results), 'case')} done{torn}{named}"
        )
    run = read_results(folder / RESULTS_NAME)
    write_text(folder / REPORT_NAME, render(run, links=_links(folder, Beside())))
    recorded = folder / RECORDINGS_NAME
    _write_page(folder, with_steps(run, read_recordings(recorded)) if recorded.is_file() else run, Beside())
    return f"{folder / REPORT_NAME} and {PAGE_NAME}: made from {RESULTS_NAME}, {counted(len(run.cases), 'case')}"


def _links(folder: Path, beside: Beside) -> Links:
    return Links(folder=folder, page=PAGE_NAME, roots=_roots(beside))


def _roots(beside: Beside) -> Sequence[Path]:
    return [Path.cwd()] if beside.roots is None else beside.roots


def _write_page(folder: Path, run: Run, beside: Beside) -> None:
    columns = columns_of([named := NamedRun(name=folder.name, run=run)])
    page = PageInput(
        title=views.headline(run),
        lead=f"{conclusion(run)} {harms_in_words(causes(columns))}".replace("**", "").strip(),
        facts=facts_of(run),
        lines_of=lines_in(_roots(beside), beside.clean),
        last=beside.last,
        safe=beside.safe,
        sections=model_sections(columns),
    )
    write_text(folder / PAGE_NAME, render_page([named], page))
