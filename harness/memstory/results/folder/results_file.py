"""results.json: a run without the steps of its cases, which are in recordings.jsonl next to it.

The same run gives the same file, except for the fields `seconds`, `embedding_seconds` and `started`. Optional
fields that are empty are left out, and each case has its own line. In a file whose name ends in `.gz` it is gzipped.
What reports need of the steps is beside each trial.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from errno import EMFILE
from math import isfinite
from pathlib import Path
from typing import IO, Final

from memstory.contract.codec import Misfit, decode, encode_lean
from memstory.contract.errors import SetupError
from memstory.contract.target import ToolCall, Tree, Turn
from memstory.results.folder.spool import SPOOL_NAME
from memstory.results.folder.whole_files import whole_file
from memstory.results.outcomes import OUTCOMES, AgentStep, CaseResult, StepTime, TrialResult
from memstory.results.recording import StepRecord
from memstory.results.runs import SCHEMA, Run

RESULTS_NAME: Final = "results.json"
GZIPPED: Final = ".gz"
MOST_UNPACKED: Final = 256 * 1024 * 1024
"""Bytes that a gzipped file may hold: far more than the published comparison."""

_EARLIER: Final = ("memstory.results/1", "memstory.packed/1")
DIGITS: Final = 6
"""Numbers are rounded to this many digits: the last bits of a score depend on the machine."""

_JUDGED_WELL = ("passed", "measured", "unsupported", "exhausted")

_MOST_HEAD: Final = 64 * 1024 * 1024
"""Bytes of a line, or of all lines above the cases: a gzipped file may hold more than the memory of a machine."""

_CASES: Final = b' "cases": ['
_END: Final = b"]}"


@dataclass(frozen=True, slots=True)
class StoredCase:
    """A case with what the files of a run have of it: a line of results.json, and a line of recordings.jsonl a trial.

    What was read and is written again goes as it is: to make the text of a case takes longer than to read it.
    """

    case: CaseResult
    line: bytes
    recorded: Sequence[bytes] = ()


def write_results(path: Path, run: Run, lines: Iterable[bytes] | None = None) -> None:
    """Write `run` to `path`, gzipped if the name ends in `.gz`; SetupError where it cannot be written.

    With `lines` these are written in the place of its cases, one after the other.
    """
    with whole_file(path) as file:
        pieces = _pieces(run, map(case_line, run.cases) if lines is None else lines)
        if path.suffix == GZIPPED:
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                packed.writelines(pieces)
        else:
            file.writelines(pieces)


def results_text(run: Run) -> str:
    """Return the text of results.json."""
    return b"".join(_pieces(run, map(case_line, run.cases))).decode()


def case_line(case: CaseResult) -> bytes:
    """Return the line of a case. A lone surrogate becomes its escape, as in JSON."""
    tree = round_numbers(encode_lean(without_steps(case)))
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _pieces(run: Run, lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the file in pieces: the head, the line of each case, the end."""
    head = round_numbers(encode_lean(replace(run, cases=())))
    del head["cases"]
    yield json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}").encode("utf-8", "backslashreplace")
    yield b",\n" + _CASES
    begin = b"\n"
    for line in lines:
        yield begin + line
        begin = b",\n"
    yield (b"\n" if begin == b"\n" else b"") + b"\n" + _END + b"\n"


def plain_or_packed(path: Path) -> Path:
    """Return `path`, or the file beside it that is the same gzipped, where only that is there.

    Raises:
        SetupError: both are there, and may be of different runs.
    """
    plain, packed = path, path.with_name(f"{path.name}{GZIPPED}")
    if plain.exists() and packed.exists():
        raise SetupError(f"{path.parent} holds both {plain.name} and {packed.name}: remove what is not of this run")
    return packed if packed.exists() else plain


class ResultsFile:
    """results.json, gzipped if its name ends in `.gz`; going through it reads one case at a time, each time anew.

    `head` is the run without its cases. A file that another program wrote is read whole: its cases have no lines.
    """

    def __init__(self, path: Path) -> None:
        """Read the head of the file at `path`.

        Raises:
            SetupError: it is not there, is damaged, or of another version.
        """
        self.path = path
        self._whole: Run | None = None
        with reading(path) as file:
            above = _above_cases(file)
            if above is None:
                file.seek(0)
                self._whole = parse_results(_read_whole(file, path), path)
                self.head = replace(self._whole, cases=())
            else:
                self.head = _run(json.loads(above + _CASES + _END), path)

    def __iter__(self) -> Iterator[CaseResult]:
        """Yield the cases in their order; SetupError where one is damaged, or the file is cut off."""
        return (one.case for one in self.stored())

    def stored(self) -> Iterator[StoredCase]:
        """Yield the same, each with its line."""
        if self._whole is not None:
            yield from (StoredCase(case, case_line(case)) for case in self._whole.cases)
            return
        with reading(self.path) as file:
            _above_cases(file)
            number, more = 0, True
            while (line := file.readline(_MOST_HEAD).rstrip(b"\r\n")) != _END:
                if not line and more and not number:
                    more = False  # A run without a case has an empty line.
                    continue
                if not (line and more):
                    raise ValueError(f"it is cut off behind case {number}")
                more, line = line.endswith(b","), line.removesuffix(b",")
                number += 1
                yield StoredCase(_case(_json_of(line, number), number - 1), line)
            if more and number:
                raise ValueError(f"a case is missing behind case {number}")


def _json_of(line: bytes, number: int) -> Tree:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        # Its line and column are those of the case, not of the file.
        raise ValueError(f"it is damaged in case {number}: {error.msg}") from error


@contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """Open the file of a run, unpacked if its name ends in `.gz`; what is wrong with it is a SetupError."""
    try:
        with _content_of(path), gzip.open(path) if path.suffix == GZIPPED else path.open("rb") as file:
            yield file  # type: ignore[misc]  # what gzip opens has the methods of a file
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SetupError(
            f"{path.parent} holds neither {SPOOL_NAME} nor {RESULTS_NAME}:"
            " name the folder of a run, such as reports/latest"
        ) from error
    except OSError as error:
        hint = ". Merge fewer at a time, with --partial" if error.errno == EMFILE else ""
        raise SetupError(f"{path} cannot be read: {error.strerror}{hint}") from error


@contextmanager
def _content_of(path: Path) -> Iterator[None]:
    """Turn what is wrong with the content of `path` into a SetupError that names it."""
    try:
        yield
    except Misfit as error:
        message = f"{path} is damaged at {error}, or an earlier memstory wrote it. Run the stories again"
        raise SetupError(message) from error
    except (ValueError, RecursionError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SetupError(f"{path} is not JSON: {error}. Copy it whole, or run the stories again") from error
    except MemoryError as error:
        raise SetupError(f"{path} needs more memory than there is: read it on another machine") from error


def _above_cases(file: IO[bytes]) -> bytes | None:
    """Return what is above the line that begins the cases; None where there is no such line."""
    above = b""
    while len(above) < _MOST_HEAD and (line := file.readline(_MOST_HEAD)):
        if line.rstrip(b"\r\n") == _CASES:
            return above
        above += line
    return None


def read_results(path: Path) -> Run:
    """Return the run at `path`, which is results.json of some folder, or a baseline.

    Raises:
        SetupError: it is not there, is damaged, or of another version.
    """
    if path.suffix == GZIPPED:
        with reading(path) as packed:
            return parse_results(_read_whole(packed, path), path)
    file = ResultsFile(path)
    return replace(file.head, cases=tuple(file))


def _read_whole(file: IO[bytes], path: Path) -> bytes | bytearray:
    """Return what the file holds: a few gzipped kilobytes may hold more than the memory of a machine."""
    if path.suffix != GZIPPED:
        return file.read()
    held = bytearray()
    while piece := file.read(1024 * 1024):
        held += piece
        if len(held) > MOST_UNPACKED:
            raise SetupError(
                f"{path} holds more than {MOST_UNPACKED} bytes when it is unpacked: name the folder of the run, or "
                "write the file again with fewer cases ('memstory gate --update')"
            )
    return held


def parse_results(content: bytes | bytearray, path: Path) -> Run:
    """Return the run that `content`, read from `path`, holds; SetupError as in `read_results`."""
    with _content_of(path):
        return _run(json.loads(content), path)


def _run(tree: Tree, path: Path) -> Run:
    found = tree.get("schema") if isinstance(tree, dict) else None
    if found != SCHEMA:
        older = " (an older memstory wrote it)" if found in _EARLIER else ""
        renewed = "; 'memstory gate RUN --baseline FILE --update' then writes it anew" if path.suffix == GZIPPED else ""
        raise SetupError(
            f"{path} has the schema {found!r}{older}, this version reads {SCHEMA!r}: run the stories again{renewed},"
            " or read it with the version that wrote it"
        )
    run: Run = decode(Run, tree)
    for outcome in OUTCOMES:
        if outcome not in run.summary:
            raise Misfit(f"{outcome} is missing", "summary")
    for number, case in enumerate(run.cases):
        _check_shown(case, number)
    return run


def _case(tree: Tree, number: int) -> CaseResult:
    try:
        case: CaseResult = decode(CaseResult, tree)
    except Misfit as error:
        raise Misfit(error.message, f"cases[{number}]{error.place}") from None
    _check_shown(case, number)
    return case


def _check_shown(case: CaseResult, number: int) -> None:
    """Raise Misfit for what no type says and reports rely on."""
    if case.trials and not 0 <= case.shown < len(case.trials):
        raise Misfit(f"there is no trial {case.shown!r:.20}", f"cases[{number}].shown")


def round_numbers(value: Tree, digits: int | None = DIGITS) -> Tree:
    """Return JSON with its numbers as they are written; without `digits` none is rounded."""
    if isinstance(value, float):
        if not isfinite(value):
            return str(value)  # JSON has no word for these; a text keeps them visible.
        # Adding 0.0 turns -0.0 into 0.0.
        return value if digits is None else round(value, digits) + 0.0
    if isinstance(value, dict):
        return {name: round_numbers(inner, digits) for name, inner in value.items()}
    return [round_numbers(inner, digits) for inner in value] if isinstance(value, list) else value


def without_steps(case: CaseResult) -> CaseResult:
    """Return `case` with an extract of its steps instead of steps and tools."""
    trials = (
        replace(trial, recording=replace(trial.recording, steps=(), tools=())) for trial in with_extract(case).trials
    )
    return replace(case, trials=tuple(trials))


def with_extract(case: CaseResult) -> CaseResult:
    """Return `case` with an extract of its steps beside them."""
    return replace(case, trials=tuple(_extract(trial) for trial in case.trials))


def _extract(trial: TrialResult) -> TrialResult:
    recording = trial.recording
    if not recording.steps:
        return trial
    is_well = trial.outcome in _JUDGED_WELL
    times = (
        StepTime(
            path=step.path,
            op=step.op,
            seconds=step.seconds,
            embedding_seconds=step.embedding_seconds,
            model=step.model,
            requests=() if is_well else step.requests,
        )
        for step in recording.steps
    )
    agent = () if is_well else _agent_steps(recording.steps)
    return replace(trial, times=tuple(times), agent=tuple(agent))


def _agent_steps(steps: Iterable[StepRecord]) -> Iterator[AgentStep]:
    for step in steps:
        if step.op == "say" and isinstance(step.result, dict):
            yield AgentStep(path=step.path, said=step.args.get("text", ""), turn=decode(Turn, step.result))
        elif step.op == "tool" and isinstance(step.result, dict):
            yield AgentStep(path=step.path, turn=Turn(answer="", tool_calls=(decode(ToolCall, step.result),)))
