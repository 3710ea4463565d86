"""Results documents from what a person types: the folder of a run, or a file of any name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memstory.commands.results.run_folder import run_folder
from memstory.errors import SetupError
from memstory.reporting import read_results
from memstory.reporting.comparing import Run
from memstory.reporting.writing import RESULTS_NAME
from memstory.target import Json

_PARTS = ("complete", "fingerprint", "summary", "cases")


def document_at(typed: Path) -> Json:
    """Return the results document that `typed` names.

    Raises:
        SetupError: there is none, it is damaged, or of another version.
    """
    folder = run_folder(typed)
    path = folder / RESULTS_NAME if typed.is_dir() else typed
    document = read_results(path)
    missing = [part for part in _PARTS if part not in document]
    if missing:
        raise SetupError(f"{path} is damaged: it has no {', '.join(missing)}. Run the stories again")
    return document


def runs_at(typed: Sequence[Path]) -> list[Run]:
    """Return the runs, each under the shortest end of its path that no other has."""
    paths = [path.resolve().parent if path.name == RESULTS_NAME else path.resolve().with_suffix("") for path in typed]
    twice = [str(one) for number, one in enumerate(typed) if paths[number] in paths[:number]]
    if twice:
        raise SetupError(f"{twice[0]} is named twice: leave one of the two out")
    return [Run(name=_name(path, paths), document=document_at(one)) for path, one in zip(paths, typed, strict=True)]


def _name(path: Path, paths: Sequence[Path]) -> str:
    for count in range(1, len(path.parts)):
        end = path.parts[-count:]
        if sum(other.parts[-count:] == end for other in paths) == 1:
            return "/".join(end)
    return str(path)
