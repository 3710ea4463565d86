"""The bundled stories on the controls: what `nox -s controls` judges."""

import subprocess
import sys
from pathlib import Path

import pytest

from memstory.controls import BROAD, FAULTS
from memstory.reporting.discrimination import judge_controls
from memstory.results.folder.results_file import read_results

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_bundled_stories_tell_good_memories_from_bad_ones(tmp_path):
    # H-15, LF-18: what passes with no memory at all proves no recall.
    command = [sys.executable, "-m", "pytest", "stories", "--target", "control:all", "--report", str(tmp_path)]
    command += ["-q", "-p", "no:cacheprovider"]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=False)  # noqa: S603  (our own command)
    found = judge_controls(read_results(tmp_path / "results.json"))
    assert found.broken == []
    assert min(len(found.kills[name]) for name in BROAD) >= 3
    assert [name for name in FAULTS if not found.kills.get(name)] == []
    oracle = {outcomes["oracle"] for story, outcomes in found.outcomes.items() if story.startswith("F")}
    assert oracle == {"passed", "measured"}
