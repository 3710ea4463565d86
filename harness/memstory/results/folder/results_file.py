"""results.json: a run without the steps of its cases, which are in recordings.jsonl next to it.

The same run gives the same file, except for the fields `seconds`, `embedding_seconds` and `started`. Optional
fields that are empty are left out, and each case has its own line. A packed file tells only what differs.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Final

from memstory.contract.codec import Misfit, decode, encode_lean
from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.results.baseline import with_ids
from memstory.results.extracts import without_steps
from memstory.results.folder.packed_cases import PACKED_SCHEMA, pack, unpack
from memstory.results.folder.spool import SPOOL_NAME
from memstory.results.folder.whole_files import write_whole
from memstory.results.outcomes import OUTCOMES
from memstory.results.runs import SCHEMA, Run

RESULTS_NAME: Final = "results.json"
PACKED: Final = ".gz"
MOST_UNPACKED: Final = 256 * 1024 * 1024
"""Bytes that a packed file may hold, and that its cases may have: a hundred times the published comparison."""

FIRST_SCHEMA: Final = "memstory.results/1"
DIGITS: Final = 6
"""Numbers are rounded to this many digits: the last bits of a score depend on the machine."""


def write_results(path: Path, run: Run) -> None:
    """Write `run` to `path`, packed if the name ends in `.gz`."""
    is_packed = path.suffix == PACKED
    text = results_text(run, is_packed=is_packed).encode("utf-8", "backslashreplace")
    write_whole(path, gzip.compress(text, mtime=0) if is_packed else text)


def results_text(run: Run, *, is_packed: bool = False) -> str:
    """Return the text of results.json, or of a packed file."""
    tree = rounded(encode_lean(replace(run, cases=[without_steps(case) for case in run.cases])))
    cases = tree.pop("cases")
    if is_packed:
        tree["schema"], cases = PACKED_SCHEMA, pack(cases)
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
        return _parsed(content, path)
    except MemoryError as error:
        raise SetupError(f"{path} needs more memory than there is: read it on another machine") from error


def _parsed(content: bytes, path: Path) -> Run:
    try:
        tree = json.loads(_unpacked(content, path) if path.suffix == PACKED else content)
    except (ValueError, RecursionError, EOFError, OSError, zlib.error) as error:
        raise SetupError(f"{path} is not JSON: {error}") from error
    found = tree.get("schema") if isinstance(tree, dict) else None
    if found == PACKED_SCHEMA:
        try:
            tree |= {"schema": SCHEMA, "cases": _unpacked_cases(tree["cases"], path)}
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise SetupError(f"{path} is damaged: its cases do not follow from each other ({error!r})") from error
    elif found != SCHEMA:
        older = " (an older memstory wrote it)" if found == FIRST_SCHEMA else ""
        raise SetupError(
            f"{path} has the schema {found!r}{older}, this version reads {SCHEMA!r}:"
            " run the stories again, or read it with the version that wrote it"
        )
    try:
        run: Run = decode(Run, tree)
        _check(run)
    except Misfit as error:
        message = f"{path} is damaged at {error}, or an earlier memstory wrote it. Run the stories again"
        raise SetupError(message) from error
    return with_ids(run)


def _unpacked(content: bytes, path: Path) -> bytearray:
    """Return what `content` holds: a few kilobytes may hold more than the memory of a machine."""
    held = bytearray()
    with gzip.open(BytesIO(content)) as file:
        while piece := file.read(1024 * 1024):
            held += piece
            _limit(len(held), path)
    return held


def _unpacked_cases(packed: Sequence[Tree], path: Path) -> list[Tree]:
    """Return the cases, of which each may repeat an earlier one."""
    cases, size = [], 0
    for case in unpack(packed):
        size += len(json.dumps(case))
        _limit(size, path)
        cases.append(case)
    return cases


def _limit(size: int, path: Path) -> None:
    if size > MOST_UNPACKED:
        raise SetupError(
            f"{path} holds more than {MOST_UNPACKED} bytes when it is unpacked: name the folder of the run, or write "
            "the file again with fewer cases ('memstory gate --update')"
        )


def _check(run: Run) -> None:
    """Raise Misfit for what no type says and reports rely on."""
    for outcome in OUTCOMES:
        if outcome not in run.summary:
            raise Misfit(f"{outcome} is missing", "summary")
    for number, case in enumerate(run.cases):
        if case.trials and not 0 <= case.shown < len(case.trials):
            raise Misfit(f"there is no trial {case.shown!r:.20}", f"cases[{number}].shown")


def rounded(value: Tree) -> Tree:
    """Return JSON with its numbers as they are written."""
    if isinstance(value, float):
        # JSON has no word for these; a text keeps them visible. Adding 0.0 turns -0.0 into 0.0.
        return round(value, DIGITS) + 0.0 if isfinite(value) else str(value)
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value
