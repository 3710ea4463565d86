"""recordings.jsonl: the steps of every trial; results.json has the rest.

One line a trial, each with the version of its form. Together they are the run as it was: it can be judged again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias, get_args

from memstory.contract.codec import Misfit, decode, encode_lean
from memstory.contract.errors import SetupError
from memstory.contract.target import ToolSchema, Tree
from memstory.results.folder.results_file import (
    MOST_UNPACKED,
    RESULTS_NAME,
    ResultsFile,
    StoredCase,
    case_line,
    parse_results,
    reading,
)
from memstory.results.folder.whole_files import whole_file
from memstory.results.outcomes import CaseResult
from memstory.results.recording import StepRecord
from memstory.results.runs import Run

Schema = Literal["memstory.recordings/2"]
RECORDINGS_NAME: Final = "recordings.jsonl"
RECORDINGS_SCHEMA: Final[Schema] = get_args(Schema)[0]
_AGAIN: Final = "Run the stories again"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSteps:
    """One line: the steps of a trial of a case, and the tools that its target had announced."""

    schema: Schema
    case: str
    trial: int
    steps: Sequence[StepRecord] = ()
    tools: Sequence[ToolSchema] = ()


Recorded: TypeAlias = Mapping[tuple[str, int], TrialSteps]
"""By the id of a case and the place of a trial in it."""


def write_recordings(path: Path, cases: Iterable[CaseResult]) -> None:
    """Write the steps of all trials of `cases`."""
    with whole_file(path) as file:
        file.writelines(line for case in cases for line in recording_lines(case))


def stored(case: CaseResult) -> StoredCase:
    """Return a case with the lines that are to be written of it."""
    return StoredCase(case, case_line(case), tuple(recording_lines(case)))


def recording_lines(case: CaseResult) -> Iterator[bytes]:
    """Yield the line of each trial of a case."""
    for number, recording in enumerate(trial.recording for trial in case.trials):
        steps = TrialSteps(
            schema=RECORDINGS_SCHEMA, case=case.id, trial=number, steps=recording.steps, tools=recording.tools
        )
        yield f"{json.dumps(encode_lean(steps), separators=(',', ':'))}\n".encode()


@dataclass(frozen=True, slots=True)
class RecordedCases:
    """The cases of a run with their steps, from its files: going through them reads one at a time, each time anew."""

    results: ResultsFile
    recordings: Path

    def __iter__(self) -> Iterator[CaseResult]:
        """Yield the cases; SetupError where a file is damaged, or the steps are not those of these cases."""
        return (one.case for one in self.stored())

    def stored(self) -> Iterator[StoredCase]:
        """Yield the same, each with its lines."""
        with reading(self.recordings) as file:
            trials = ((_read(line, f"{self.recordings}:{at}"), line) for at, line in enumerate(_lines_of(file), 1))
            trial, line = next(trials, _NONE)
            for one in self.results.stored():
                recorded: dict[tuple[str, int], TrialSteps] = {}
                lines = []
                while trial and trial.case == one.case.id:
                    recorded[trial.case, trial.trial] = trial
                    lines.append(line)
                    trial, line = next(trials, _NONE)
                yield StoredCase(_case_with_steps(one.case, recorded), one.line, lines)
            if trial:
                raise SetupError(
                    f"{self.recordings} has the case {trial.case!r:.80} where {self.results.path} has none: the "
                    f"two are not of one run. {_AGAIN}"
                )


_NONE: Final[tuple[TrialSteps | None, bytes]] = (None, b"")


def _lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines; one that would fill the memory of a machine is cut, and so damaged."""
    while line := file.readline(MOST_UNPACKED):
        yield line


def read_recordings(path: Path) -> Recorded:
    """Return the steps that `path` has.

    Raises:
        SetupError: there is no such file, it is damaged, or it has the form of another version.
    """
    if not path.is_file():
        raise SetupError(f"{path} is not there: a run writes it beside results.json. {_AGAIN} to have recordings")
    with reading(path) as file:
        return _by_trial(_lines_of(file), path)


def parse_recordings(content: bytes, path: Path) -> Recorded:
    """Return the steps that `content`, read from `path`, holds; SetupError as in `read_recordings`."""
    return _by_trial(content.splitlines(), path)


def _by_trial(lines: Iterable[bytes], path: Path) -> Recorded:
    trials = (_read(line, f"{path}:{number}") for number, line in enumerate(lines, 1))
    return {(one.case, one.trial): one for one in trials}


def with_steps(run: Run, recorded: Recorded) -> Run:
    """Return `run` with the steps of its trials; a trial of which none were recorded stays as it is."""
    return replace(run, cases=tuple(_case_with_steps(case, recorded) for case in run.cases))


def _case_with_steps(case: CaseResult, recorded: Recorded) -> CaseResult:
    trials = []
    for number, trial in enumerate(case.trials):
        found = recorded.get((case.id, number))
        steps = replace(trial.recording, steps=found.steps, tools=found.tools) if found else trial.recording
        trials.append(replace(trial, recording=steps))
    return replace(case, trials=tuple(trials))


def _read(line: bytes, place: str) -> TrialSteps:
    try:
        tree: Tree = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{place}: this line is damaged ({error}). {_AGAIN}") from error
    found = tree.get("schema") if isinstance(tree, dict) else None
    if found != RECORDINGS_SCHEMA:
        raise SetupError(
            f"{place}: the recording has the form {found!r}, this version of memstory reads "
            f"{RECORDINGS_SCHEMA!r}. {_AGAIN}, or judge it with the version that wrote it"
        )
    try:
        read: TrialSteps = decode(TrialSteps, tree)
    except Misfit as error:
        raise SetupError(f"{place}: the recording is not complete ({error}). {_AGAIN}") from error
    return read


@dataclass(frozen=True, slots=True)
class LastRun:
    """The files of the previous run in a folder as they were; reading them waits until the next run has ended."""

    folder: Path
    results: bytes = b""
    recordings: bytes = b""

    @classmethod
    def in_folder(cls, folder: Path) -> LastRun:
        """Return what `folder` holds now; a file that is missing or cannot be read is empty."""
        return cls(folder, _content(folder / RESULTS_NAME), _content(folder / RECORDINGS_NAME))

    def read(self) -> Run | None:
        """Return the run; None where there was none, or another version wrote it: that is not this run's error."""
        if not self.results:
            return None
        try:
            run = parse_results(self.results, self.folder / RESULTS_NAME)
            return with_steps(run, parse_recordings(self.recordings, self.folder / RECORDINGS_NAME))
        except SetupError:
            return None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
