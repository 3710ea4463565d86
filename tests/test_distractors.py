"""The corpus of distractors: made by its script, and fit to stand beside the other corpora."""

import importlib.util
import json
from pathlib import Path

CORPORA = Path(__file__).parents[1] / "stories" / "corpora"


def rows(name):
    return [json.loads(line) for line in (CORPORA / name).read_text("utf-8").splitlines()]


def test_the_script_writes_the_committed_file():
    spec = importlib.util.spec_from_file_location("make_distractors", CORPORA / "make_distractors.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.lines() == (CORPORA / "distractors.jsonl").read_text("utf-8")


def test_there_are_thousands_and_no_two_are_the_same():
    found = rows("distractors.jsonl")
    assert len(found) == len({row["text"] for row in found}) == len({row["id"] for row in found}) == 4000


def test_no_distractor_speaks_of_anybody_whom_the_questions_are_about():
    named = {row["id"].partition(".")[0].title() for row in rows("facts.jsonl")}
    names = {*named, "Dewpoint", "Slipway", "Murmur", "Kettle", "Harrow", "Perigee"}
    assert [
        row["text"] for row in rows("distractors.jsonl") if names & set(row["text"].replace("'s", "").split())
    ] == []
