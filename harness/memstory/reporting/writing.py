"""Puts the reports into a folder, each whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from memstory.errors import SetupError
from memstory.reporting.markdown import render
from memstory.results.document import SCHEMA, build
from memstory.results.fingerprint import make_fingerprint
from memstory.results.holding import Hold
from memstory.results.outcomes import CaseResult
from memstory.results.recordings import RECORDINGS_NAME, recordings_text
from memstory.results.spool import SPOOL_NAME, Spool
from memstory.target import Json

RESULTS_NAME: Final = "results.json"
REPORT_NAME: Final = "report.md"
_PROBE: Final = ".writable"


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
    for name in (RESULTS_NAME, REPORT_NAME, RECORDINGS_NAME):
        (folder / name).unlink(missing_ok=True)
    Spool(folder).clear()
    # Rights and mounts are known by trying only.
    (folder / _PROBE).touch()
    (folder / _PROBE).unlink()


def write_reports(
    folder: Path, results: Sequence[CaseResult], fingerprint: Mapping[str, Json], *, complete: bool = True
) -> None:
    """Write `results.json`, `report.md` and `recordings.jsonl`.

    Then the spool is done with, so that one left over marks a killed run.
    """
    document = build(results, fingerprint, complete=complete)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / RESULTS_NAME, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    write_text(folder / REPORT_NAME, render(document))
    write_text(folder / RECORDINGS_NAME, recordings_text(results))
    Spool(folder).clear()


def report_from_spool(folder: Path) -> str:
    """Write the reports of a run that was killed, or `report.md` again from `results.json`; return what was done.

    Raises:
        SetupError: the folder holds neither, or a file of another version, or a run is writing there now.
    """
    if not folder.is_dir():
        read_results(folder / RESULTS_NAME)  # says what is missing
    with Hold(folder):
        return _report_from_spool(folder)


def _report_from_spool(folder: Path) -> str:
    spooled = Spool(folder).load()
    if spooled.results:
        write_reports(folder, spooled.results, make_fingerprint(spooled.results), complete=False)
        torn = f"; {spooled.torn} more was being written and is lost" if spooled.torn else ""
        return f"{folder / REPORT_NAME}: the run was cut short, {len(spooled.results)} cases were done{torn}"
    document = read_results(folder / RESULTS_NAME)
    write_text(folder / REPORT_NAME, render(document))
    return f"{folder / REPORT_NAME}: made from {RESULTS_NAME}, {len(document['cases'])} cases"


def read_results(path: Path) -> Json:
    """Return the document at `path`, which is `results.json` of some folder.

    Raises:
        SetupError: it is not there, is no JSON, or is of another version.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SetupError(
            f"{path.parent} holds neither {SPOOL_NAME} nor {RESULTS_NAME}:"
            " name the folder of a run, such as reports/latest"
        ) from error
    except ValueError as error:
        raise SetupError(f"{path} is not JSON: {error}") from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA:
        raise SetupError(f"{path} has the schema {found!r}, this version reads {SCHEMA!r}: run the stories again")
    return document


def write_text(path: Path, text: str) -> None:
    """Put `text` at `path`, whole or not at all."""
    # A reader, or a kill between two writes, finds the old file or the new one. A lone surrogate becomes its escape,
    # which JSON reads back as what it was.
    with NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.close()
            Path(file.name).chmod(0o644)
            os.replace(file.name, path)  # noqa: PTH105  (the same call, and what the comment speaks of)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
