"""results.json: a run without the steps of its cases, which are in recordings.jsonl next to it.

The same run gives the same file, except for the fields `seconds`, `embedding_seconds` and `started`. Optional
fields that are empty are left out, and each case has its own line. In a file whose name ends in `.gz` it is gzipped.
What reports need of the steps is beside each trial.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Final

from memstory.contract.codec import Misfit, decode, encode_lean
from memstory.contract.errors import SetupError
from memstory.contract.target import ToolCall, Tree, Turn
from memstory.results.folder.spool import SPOOL_NAME
from memstory.results.folder.whole_files import write_whole
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


def write_results(path: Path, run: Run) -> None:
    """Write `run` to `path`, gzipped if the name ends in `.gz`; SetupError where it cannot be written."""
    text = results_text(run).encode("utf-8", "backslashreplace")
    write_whole(path, gzip.compress(text, mtime=0) if path.suffix == GZIPPED else text)


def results_text(run: Run) -> str:
    """Return the text of results.json."""
    tree = round_numbers(encode_lean(replace(run, cases=[without_steps(case) for case in run.cases])))
    cases = tree.pop("cases")
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    head = json.dumps(tree, ensure_ascii=False, indent=1).removesuffix("\n}")
    return f'{head},\n "cases": [\n{lines}\n]}}\n'


def read_results(path: Path) -> Run:
    """Return the run at `path`, which is results.json of some folder, or a baseline.

    Raises:
        SetupError: it is not there, is damaged, or of another version.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise SetupError(
            f"{path.parent} holds neither {SPOOL_NAME} nor {RESULTS_NAME}:"
            " name the folder of a run, such as reports/latest"
        ) from error
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}") from error
    return parse_results(content, path)


def parse_results(content: bytes, path: Path) -> Run:
    """Return the run that `content`, read from `path`, holds; SetupError as in `read_results`."""
    try:
        return _parse(content, path)
    except MemoryError as error:
        raise SetupError(f"{path} needs more memory than there is: read it on another machine") from error


def _parse(content: bytes, path: Path) -> Run:
    try:
        tree = json.loads(_unpack(content, path) if path.suffix == GZIPPED else content)
    except (ValueError, RecursionError, EOFError, OSError, zlib.error) as error:
        raise SetupError(f"{path} is not JSON: {error}") from error
    found = tree.get("schema") if isinstance(tree, dict) else None
    if found != SCHEMA:
        older = " (an older memstory wrote it)" if found in _EARLIER else ""
        renewed = "; 'memstory gate RUN --baseline FILE --update' then writes it anew" if path.suffix == GZIPPED else ""
        raise SetupError(
            f"{path} has the schema {found!r}{older}, this version reads {SCHEMA!r}: run the stories again{renewed},"
            " or read it with the version that wrote it"
        )
    try:
        run: Run = decode(Run, tree)
        _check(run)
    except Misfit as error:
        message = f"{path} is damaged at {error}, or an earlier memstory wrote it. Run the stories again"
        raise SetupError(message) from error
    return run


def _unpack(content: bytes, path: Path) -> bytearray:
    """Return what `content` holds: a few kilobytes may hold more than the memory of a machine."""
    held = bytearray()
    with gzip.open(BytesIO(content)) as file:
        while piece := file.read(1024 * 1024):
            held += piece
            if len(held) > MOST_UNPACKED:
                raise SetupError(
                    f"{path} holds more than {MOST_UNPACKED} bytes when it is unpacked: name the folder of the run, or "
                    "write the file again with fewer cases ('memstory gate --update')"
                )
    return held


def _check(run: Run) -> None:
    """Raise Misfit for what no type says and reports rely on."""
    for outcome in OUTCOMES:
        if outcome not in run.summary:
            raise Misfit(f"{outcome} is missing", "summary")
    for number, case in enumerate(run.cases):
        if case.trials and not 0 <= case.shown < len(case.trials):
            raise Misfit(f"there is no trial {case.shown!r:.20}", f"cases[{number}].shown")


def round_numbers(value: Tree) -> Tree:
    """Return JSON with its numbers as they are written."""
    if isinstance(value, float):
        # JSON has no word for these; a text keeps them visible. Adding 0.0 turns -0.0 into 0.0.
        return round(value, DIGITS) + 0.0 if isfinite(value) else str(value)
    if isinstance(value, dict):
        return {name: round_numbers(inner) for name, inner in value.items()}
    return [round_numbers(inner) for inner in value] if isinstance(value, list) else value


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
