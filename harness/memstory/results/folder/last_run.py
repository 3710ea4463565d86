"""The previous run in the same folder, kept in memory during the next one, so that reports can show what changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memstory.contract.errors import SetupError
from memstory.results.folder.recordings_file import RECORDINGS_NAME, parse_recordings, with_steps
from memstory.results.folder.results_file import RESULTS_NAME, parse_results
from memstory.results.runs import Run


@dataclass(frozen=True, slots=True)
class LastRun:
    """The files of a run as they were; reading them waits until the next run has ended."""

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
