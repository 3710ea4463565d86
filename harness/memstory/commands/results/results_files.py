"""Runs from what a person types: the folder of a run, or a file of any name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from memstory.contract.errors import SetupError
from memstory.results.folder.recordings_file import RECORDINGS_NAME, RecordedCases, read_recordings, with_steps
from memstory.results.folder.results_file import (
    GZIPPED,
    RESULTS_NAME,
    ResultsFile,
    StoredCase,
    plain_or_packed,
    read_results,
)
from memstory.results.folder.spool import SELECTED_NAME, SPOOL_NAME
from memstory.results.merging import ShardSource
from memstory.results.runs import NamedRun, Run

_OF_A_FOLDER: Final = (RESULTS_NAME, f"{RESULTS_NAME}{GZIPPED}")


def run_folder(typed: Path) -> Path:
    """Return the folder of a run that ended; `typed` may be the folder itself or `results.json` in it."""
    folder = typed if typed.is_dir() else typed.parent
    if not typed.exists():
        raise SetupError(f"no file or folder {typed}: name the folder of a run, such as reports/latest")
    is_left = any((folder / name).exists() for name in (SPOOL_NAME, SELECTED_NAME))
    if is_left and not plain_or_packed(folder / RESULTS_NAME).exists():
        raise SetupError(
            f"{folder} holds a run that was killed: 'memstory report {folder}' first writes what it had done"
        )
    return folder


def run_at(typed: Path) -> Run:
    """Return the run that `typed` names, without its steps.

    Raises:
        SetupError: there is none, it is damaged, or of another version.
    """
    return read_results(_results_path(typed))


def results_at(typed: Path) -> ResultsFile:
    """Return the same, to be read one case at a time: only its head is read yet."""
    return ResultsFile(_results_path(typed))


def recorded_run_at(typed: Path) -> Run:
    """Return the run that `typed` names with its steps; SetupError if there are no recordings beside it."""
    run = run_at(typed)
    return with_steps(run, read_recordings(_recordings_path(typed)))


def has_recordings(typed: Path) -> bool:
    """Whether recordings are next to the run that `typed` names; a baseline has none."""
    named = typed.is_dir() or typed.name in _OF_A_FOLDER
    return named and _recordings_path(typed).is_file()


def _results_path(typed: Path) -> Path:
    folder = run_folder(typed)
    return plain_or_packed(folder / RESULTS_NAME) if typed.is_dir() else typed


def _recordings_path(typed: Path) -> Path:
    return plain_or_packed(run_folder(typed) / RECORDINGS_NAME)


def runs_at(typed: Sequence[Path], *, with_steps: bool = False) -> list[NamedRun]:
    """Return the runs, each under the shortest end of its path that no other has; with steps where there are any."""
    return [
        NamedRun(name=name, run=recorded_run_at(one) if with_steps and has_recordings(one) else run_at(one))
        for name, one in _names(typed).items()
    ]


def shards_at(typed: Sequence[Path]) -> list[ShardSource]:
    """Return the same without steps, to be read one case at a time: only their heads are read yet."""
    results = {name: results_at(one) for name, one in _names(typed).items()}
    return [ShardSource(name=name, head=one.head, cases=one) for name, one in results.items()]


def stored_at(typed: Path) -> Iterator[StoredCase]:
    """Yield the cases of the run that `typed` names with their lines, and with steps where there are any."""
    results = results_at(typed)
    yield from (RecordedCases(results, _recordings_path(typed)) if has_recordings(typed) else results).stored()


def _names(typed: Sequence[Path]) -> dict[str, Path]:
    paths = [_without_suffix(path.resolve()) for path in typed]
    twice = [str(one) for number, one in enumerate(typed) if paths[number] in paths[:number]]
    if twice:
        raise SetupError(f"{twice[0]} is named twice: leave one of the two out")
    return {_name(path, paths): one for path, one in zip(paths, typed, strict=True)}


def _without_suffix(path: Path) -> Path:
    if path.name in _OF_A_FOLDER:
        return path.parent
    return path.with_suffix("").with_suffix("") if path.suffix == GZIPPED else path.with_suffix("")


def _name(path: Path, paths: Sequence[Path]) -> str:
    for count in range(1, len(path.parts)):
        end = path.parts[-count:]
        if sum(other.parts[-count:] == end for other in paths) == 1:
            return "/".join(end)
    return str(path)
