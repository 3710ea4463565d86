"""The published faults: what failed in the published run is in faults.yaml, and the page shows what that says."""

import importlib.util
import os
import re
from functools import cache
from pathlib import Path

import pytest

from memstory.results.folder.results_file import read_results

ROOT = Path(__file__).parents[1]
BASELINE = ROOT / "reports/baseline"
PAGE = (BASELINE / "faults.md").read_text("utf-8")


def made():
    spec = importlib.util.spec_from_file_location("make_faults", ROOT / "docs/make_faults.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MADE = made()
FAULTS = MADE.faults()
FAILED = {"failed", "error"}


@cache
def published():
    """Return the outcomes of the published run by case: read when a test asks, as each worker collects all tests."""
    return {case.id: case.outcome for case in read_results(BASELINE / "backends.json.gz").cases}


def named(fault):
    """Return the cases that a fault names; `FO8[x-*]` are all rows of FO8 on x."""
    rows = {name: [case for case in published() if case.startswith(name.removesuffix("*]"))] for name in fault["cases"]}
    return [case for name, found in rows.items() for case in (found if name.endswith("*]") and found else [name])]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one["what"][:60])
def test_each_case_of_a_fault_failed_in_the_published_run_or_says_why_it_is_not_in_it(fault):
    seen = {case: published().get(case) for case in named(fault)}
    if "needs" in fault:
        # What a ready adapter works around, or a run leaves out, cannot have failed there.
        assert not FAILED & set(seen.values()), f"it failed there: take 'needs' out: {seen}"
    else:
        assert set(seen.values()) <= FAILED, seen


def test_each_failure_of_the_published_run_is_explained():
    explained = {case for fault in FAULTS for case in named(fault)}
    assert [case for case, outcome in published().items() if outcome in FAILED and case not in explained] == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one["what"][:60])
def test_each_fault_names_a_part_a_version_a_harm_a_date_and_what_shows_it(fault):
    assert any(char.isdigit() for char in fault["backend"])
    assert fault["harm"] in MADE.HARMS
    assert fault["seen"].year >= 2026
    assert fault["part"] in MADE.PARTS
    assert fault["cases"] or fault["part"] == "bug"
    assert ("script" in fault) == (fault["part"] == "bug")
    assert f"### {fault['by_hand']}\n" in PAGE if "by_hand" in fault else True


def test_each_bug_has_a_script_of_its_own_of_at_most_fifteen_lines_that_says_what_is_seen():
    bugs = [one["script"] for one in FAULTS if one["part"] == "bug"]
    assert sorted(bugs) == sorted(path.stem for path in MADE.SCRIPTS.glob("*.py"))
    assert len(bugs) >= 20
    for name in bugs:
        lines = (MADE.SCRIPTS / f"{name}.py").read_text("utf-8").splitlines()
        assert len([line for line in lines if line.strip() and not line.startswith("#")]) <= 15, name
        assert "memstory" not in "\n".join(lines), name
        assert MADE.said_of(name, "expected") != MADE.said_of(name, "seen")


def test_a_script_that_prints_something_else_is_not_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(MADE, "SCRIPTS", tmp_path)
    for name, seen in (("right", "1 2"), ("wrong", "1 3")):
        (tmp_path / f"{name}.py").write_text(f"print(1)\nprint(2)\n# expected: 1 1\n# seen: {seen}\n")
        assert MADE._shows({"script": name}, dict(os.environ)) == (name == "right")
    assert "NOT SHOWN wrong: it printed '1 2'" in capsys.readouterr().out


UPSTREAM = {  # looked up in the trackers on 2026-11-23
    "FW1[mcp-server-memory]": "modelcontextprotocol/servers#1819",
    "FW9[langgraph]": "langchain-ai/langgraph#8822",
    "INF6[mem0]": "mem0ai/mem0#4540",
}


@pytest.mark.parametrize("case", UPSTREAM)
def test_a_fault_names_the_report_that_describes_it(case):
    (fault,) = (one for one in FAULTS if case in one["cases"])
    assert UPSTREAM[case] in fault["upstream"]


def test_a_fault_that_nobody_reported_names_no_report_of_another():
    (numbers,) = (one for one in FAULTS if "FI4[langgraph-sqlite]" in one["cases"])
    assert "upstream" not in numbers


@pytest.mark.parametrize("case", ["FW11[chroma]", "FS17[bm25]", "FS17[mcp-server-memory]"])
def test_what_is_documented_or_a_limitation_is_not_beyond_dispute(case):
    (fault,) = (one for one in FAULTS if case in one["cases"])
    assert fault["part"] != "bug"


def test_the_cases_that_were_judged_by_hand_are_those_that_are_drawn():
    judged = re.findall(r"^\| `([^`]+)` \|", (BASELINE / "drawings.md").read_text("utf-8"), re.MULTILINE)
    assert judged == [row[0] for seed in (1, 2) for row in MADE.draw(seed)]


def test_what_nobody_reported_is_ready_to_be_filed():
    assert (BASELINE / "upstream.md").read_text("utf-8") == MADE.upstream(), "run: python docs/make_faults.py"


def test_the_page_shows_what_the_file_says():
    assert MADE.with_table(PAGE) == PAGE, "run: python docs/make_faults.py"
