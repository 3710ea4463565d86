"""recordings.jsonl: the complete recordings beside results.json, from which a run can be judged again.

One line for each case, each with the version of its form: results.json leaves out what only judging needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memstory.codec import decode, encode
from memstory.errors import SetupError
from memstory.results.outcomes import CaseResult, Outcome
from memstory.results.recording import Recording
from memstory.target import Json

RECORDINGS_NAME: Final = "recordings.jsonl"
RECORDINGS_SCHEMA: Final = "memstory.recordings/1"
_SCHEMA_FIELD: Final = "schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCase:
    """One case as it was recorded, how it was judged then, and the story that it was about."""

    id: str
    story: str
    target: str
    where: str
    digest: str
    outcome: Outcome
    reason: str | None
    recordings: Sequence[Recording]
    row: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    redacted: Mapping[str, int] = field(default_factory=dict)


def recordings_text(results: Sequence[CaseResult]) -> str:
    """Return the file's text; a story that could not be read has nothing recorded and is left out."""
    cases = (_recorded(result) for result in results if result.trials)
    return "".join(f"{json.dumps({_SCHEMA_FIELD: RECORDINGS_SCHEMA, **encode(case)})}\n" for case in cases)


def read_recordings(path: Path) -> Sequence[RecordedCase]:
    """Return the cases of `path`.

    Raises:
        SetupError: there is no such file, it is damaged, or it has the form of another version.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError as error:
        raise SetupError(
            f"{path} is not there: a run writes it beside results.json. Run the stories again to have recordings"
        ) from error
    return tuple(_cases(lines, path))


def _recorded(result: CaseResult) -> RecordedCase:
    return RecordedCase(
        id=result.id,
        story=result.story,
        target=result.target,
        where=result.where,
        digest=result.digest,
        outcome=result.outcome,
        reason=result.reason,
        recordings=tuple(trial.recording for trial in result.trials),
        row=result.row,
        options=result.options,
        redacted=result.redacted,
    )


def _cases(lines: Sequence[bytes], path: Path) -> Iterator[RecordedCase]:
    for number, line in enumerate(lines, 1):
        try:
            tree = json.loads(line)
        except ValueError as error:
            raise SetupError(f"{path}:{number}: this line is damaged ({error}). Run the stories again") from error
        found = tree.pop(_SCHEMA_FIELD, None) if isinstance(tree, dict) else None
        if found != RECORDINGS_SCHEMA:
            raise SetupError(
                f"{path}:{number}: the recording has the form {found!r}, this version of memstory reads "
                f"{RECORDINGS_SCHEMA!r}. Run the stories again, or judge it with the version that wrote it"
            )
        try:
            yield decode(RecordedCase, tree)
        except (ValueError, TypeError, AttributeError) as error:
            raise SetupError(
                f"{path}:{number}: the recording is not complete ({error}). Run the stories again"
            ) from error
