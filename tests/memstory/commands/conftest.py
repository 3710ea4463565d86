"""A folder in which commands are typed, and runs to look at afterwards."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from memstory.bundled import named_path
from memstory.cli import main
from memstory.language.stories import load_stories
from memstory.playing import play
from memstory.reporting.writing import write_reports
from memstory.results.runs import make_fingerprint, make_run
from memstory.targets.discovery import load_targets

ORACLE = "control:oracle"

STORY = """\
story: tea
title: A fact is found
tags: [quick]
steps:
  - add: {text: Ana drinks tea, key: drink}
    save: {drink: id}
  - search: what does Ana drink
    expect: {hits: {first: drink, count: 1}}
"""


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


class Terminal:
    """Types commands of memstory in its own folder."""

    def __init__(self, folder, capsys):
        self.folder, self._capsys = folder, capsys

    def type(self, *words):
        try:
            code = main(list(words))
        except SystemExit as stopped:
            code = stopped.code
        said = self._capsys.readouterr()
        return Said(code, said.out, said.err)

    def save(self, text=STORY, name="a.story.yaml"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def record(self, name="a.story.yaml", target=ORACLE, trials=1):
        """Run the stories of a file without pytest, and write the reports into `out`."""
        (factory,) = load_targets([target]).values()
        results = [
            asyncio.run(play(story, factory, self.folder / "work", target=target, trials=trials))
            for story in load_stories(self.folder / named_path(name), name)
        ]
        write_reports(self.folder / "out", make_run(results, make_fingerprint(results)))
        return results


@pytest.fixture
def terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return Terminal(tmp_path, capsys)
