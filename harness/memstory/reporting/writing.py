"""Puts the reports into a folder, each whole or not at all."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from memstory.reporting.markdown import render
from memstory.results.fingerprint import make_fingerprint
from memstory.results.folder.holding import Hold
from memstory.results.folder.recordings_file import RECORDINGS_NAME, write_recordings
from memstory.results.folder.results_file import RESULTS_NAME, read_results, write_results
from memstory.results.folder.selected_cases import SELECTED_NAME, lost, read_selected
from memstory.results.folder.spool import Spool
from memstory.results.folder.whole_files import write_text
from memstory.results.runs import Run, make_run

REPORT_NAME: Final = "report.md"


def begin_reports(folder: Path) -> Hold:
    """Make `folder` ready for a run, without what an earlier one left: a run killed at once must not seem to be it.

    The folder is held until the run lets go of it; SetupError if another run has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hold = Hold(folder)
    try:
        _clear(folder)
    except BaseException:
        hold.release()
        raise
    return hold


def _clear(folder: Path) -> None:
    for name in (RESULTS_NAME, REPORT_NAME, RECORDINGS_NAME, SELECTED_NAME):
        (folder / name).unlink(missing_ok=True)
    Spool(folder).clear()
    # Rights and mounts are known by trying only.
    with TemporaryFile(dir=folder):
        pass


def write_reports(folder: Path, run: Run, *, recordings: bool = True) -> Run:
    """Write `results.json`, `report.md` and `recordings.jsonl`; return the run as results.json has it.

    Then the spool is done with, so that one left over marks a killed run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_results(folder / RESULTS_NAME, run)
    written = read_results(folder / RESULTS_NAME)
    write_text(folder / REPORT_NAME, render(written))
    if recordings:
        write_recordings(folder / RECORDINGS_NAME, run.cases)
    Spool(folder).clear()
    (folder / SELECTED_NAME).unlink(missing_ok=True)
    return written


def report_from_spool(folder: Path, why: str = "the run was killed, or a target ended its process") -> str:
    """Write the reports of a run that was killed, or `report.md` again from `results.json`; return what was done.

    Raises:
        SetupError: the folder holds neither, or a file of another version, or a run is writing there now.
    """
    if not folder.is_dir():
        read_results(folder / RESULTS_NAME)  # says what is missing
    with Hold(folder):
        return _report_from_spool(folder, why)


def _report_from_spool(folder: Path, why: str) -> str:
    spooled = Spool(folder).load()
    missing = lost(read_selected(folder), spooled.results, why)
    if spooled.results or missing:
        cases = [*spooled.results, *missing]
        write_reports(folder, make_run(cases, make_fingerprint(cases), complete=False))
        torn = f"; {spooled.torn} more was being written and is lost" if spooled.torn else ""
        named = f"; no result: {', '.join(case.id for case in missing)}" if missing else ""
        return f"{folder / REPORT_NAME}: the run was cut short, {len(spooled.results)} cases were done{torn}{named}"
    run = read_results(folder / RESULTS_NAME)
    write_text(folder / REPORT_NAME, render(run))
    return f"{folder / REPORT_NAME}: made from {RESULTS_NAME}, {len(run.cases)} cases"
