"""The page on language models: its commands, typed, with a scripted server in the place of the one that it names."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra proxy is not installed")

from memstory.models.answering import RuleAnswerer
from memstory.models.proxy import Proxy

PAGE = Path(__file__).parents[1] / "docs/how-to/models.md"
STORY = """
story: TALK1
title: The model says hello
steps:
  - say: Hello
    expect: {answer: {contains: Good day}}
"""
RULES = "model:\n  - reply: Good day.\n"


@pytest.fixture
def server():
    with Proxy(RuleAnswerer([{"reply": "Good day."}])) as proxy:
        yield proxy.url


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "talk.story.yaml").write_text(STORY, "utf-8")
    (tmp_path / "model.yaml").write_text(RULES, "utf-8")
    return tmp_path


def typed(folder, situation, url=""):
    """Type the command of a row as in a shell, on one story and the quickest target; return code and output."""
    (command,) = re.findall(rf"^\| {situation}.*\| `(.+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    told = command.replace("http://127.0.0.1:8080/v1", url).replace("--bundled", "talk.story.yaml --target fts5")
    start = [sys.executable, "-c", "import sys; from memstory.cli import main; sys.exit(main())"]
    words = [part for word in told.split() for part in (start if word == "memstory" else [word])]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI")}
    done = subprocess.run(  # noqa: S603  (the commands of our own page)
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr, (folder / "reports/latest/report.md").read_text("utf-8")


def test_a_server_is_asked_and_its_calls_are_in_the_report(folder, server):
    code, said, report = typed(folder, "an OpenAI-compatible server", server)
    assert code == 0, said
    assert re.search(r"\| fts5 \| openai:MODEL \| 1 of 1 \| say \| 1 \| 1 \| 0 \|", report)


def test_what_is_recorded_is_replayed_without_the_server_and_labelled_so(folder, server):
    code, said, _ = typed(folder, "such a server", server)
    assert code == 0, said
    code, said, report = typed(folder, "a recording, and no server")
    assert code == 0, said
    assert "openai:MODEL \\(replayed\\)" in report or "openai:MODEL (replayed)" in report


def test_rules_answer_and_are_labelled_so(folder):
    code, said, report = typed(folder, "no model, only rules")
    assert code == 0, said
    assert "openai:MODEL (scripted)" in report.replace("\\", "")


def test_a_server_that_is_down_is_one_sentence(folder):
    code, said, _ = typed(folder, "an OpenAI-compatible server", "http://127.0.0.1:9/v1")
    assert code == 1
    assert "Nothing answers at http://127.0.0.1:9/v1" in " ".join(said.split())
    assert "Traceback" not in said
