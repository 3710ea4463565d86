"""`nox -s long`: what it is asked for, what it tells, and the report that is kept in git."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression
from memstory_tests_waiting import wait_until
from tests.long import PARTS

ROOT = Path(__file__).parents[1]
REPORT = (ROOT / "reports/long.md").read_text("utf-8")
SUITE = """
import pytest, time
from pathlib import Path

@pytest.mark.doses("kills", 1, 200)
def test_kills(kills):
    assert kills == 20

@pytest.mark.doses("kills", 1, 200)
def test_kills_too_much(kills):
    assert kills < 20, "twenty kills"

@pytest.mark.doses("kills", 1, 200)
def test_kills_nowhere(kills):
    pytest.skip("no server")

@pytest.mark.repeats
def test_again():
    with Path("again").open("a") as file:
        file.write("x")

@pytest.mark.slow
def test_waits():
    Path("waiting").touch()
    time.sleep(600)
"""
PROPERTY = """
from hypothesis import given, settings, strategies as st

@settings(max_examples=10)
@given(st.integers())
def test_numbers(number):
    pass
"""


@pytest.fixture
def checkout(tmp_path):
    """A folder with this program, its conftest and its settings, and a few tests of its own."""
    for name in (
        "pyproject.toml",
        "tests/long.py",
        "tests/conftest.py",
        "tests/local_server.py",
        "tests/waiting.py",
        "tests/small_model.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    folder = tmp_path / "tests/memstory_reference"
    folder.mkdir()
    (folder / "test_suite.py").write_text(SUITE, "utf-8")
    (folder / "test_property.py").write_text(PROPERTY, "utf-8")
    return tmp_path


def begin(checkout, *words):
    command = [sys.executable, "tests/long.py", "--workers", "0", *words]
    return subprocess.Popen(command, cwd=checkout, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603


def long(checkout, *words):
    running = begin(checkout, *words)
    said, wrong = running.communicate(timeout=300)
    return running.returncode, said, wrong


def rows(report):
    """The rows of the table by their part: the other cells, without blanks."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in report.splitlines() if line[:1] == "|"]
    return {name: rest for name, *rest in cells[2:]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kils"], "no part 'kils'. Known: kills, fuzz, flips, repeats, properties, slow."),
        (["--scale", "much"], "argument --scale: 'much' is no factor of the dose; give a number above 0, such as 0.1"),
        (["--scale", "0"], "argument --scale: '0' is no factor of the dose; give a number above 0, such as 0.1"),
        (["--seed", "x"], "argument --seed: invalid int value: 'x'"),
        (["--much"], "unrecognized arguments: --much"),
    ],
)
def test_bad_words_are_one_line_and_nothing_runs(checkout, words, said):
    assert long(checkout, *words) == (2, "", f"long: {said}\n")


def test_a_report_counts_what_passed_failed_and_was_skipped_and_shows_the_failure(checkout):
    code, said, _ = long(checkout, "kills", "repeats", "properties", "--scale", "0.1", "--seed", "7")
    report = (checkout / "reports/long.md").read_text("utf-8")
    assert code == 1
    assert "kills: 3 of 3, " in said
    found = rows(report)
    assert found["kills"][:8] == ["failed", "MEMSTORY_DOSE=0.1", "3", "1", "1", "1", "0", "20 kills"]
    assert found["repeats"][:4] == ["passed", "MEMSTORY_REPEATS=10", "10", "10"]
    assert found["properties"][:4] == ["passed", "MEMSTORY_EXAMPLES=2", "1", "1"]
    assert found["properties"][7] == "20 examples"
    assert "AssertionError: twenty kills" in report
    assert "- 1 times: Skipped: no server" in report
    assert "- **Not run:** fuzz, flips, slow" in report
    assert "--scale 0.1 --seed 7" in report
    assert (checkout / "again").read_text() == "x" * 10


def test_a_part_that_ran_nothing_is_no_success(checkout):
    code, said, _ = long(checkout, "flips")
    assert code == 1
    assert "long: flips: nothing ran" in said


@pytest.mark.parametrize("part", ["kills", "fuzz", "flips", "repeats"])
def test_the_words_of_a_part_choose_tests_of_this_project(part):
    words = PARTS[part].words
    chosen = Expression.compile(words[words.index("-k") + 1] if "-k" in words else "test")
    texts = ((ROOT / file).read_text("utf-8") for file in PARTS[part].files())
    names = [name for text in texts for name in re.findall(r"def (test_\w+)", text)]
    assert any(chosen.evaluate(lambda word, name=name: word in name) for name in names)


def test_a_test_that_cannot_be_read_fails_its_part(checkout):
    (checkout / "tests/memstory_reference/test_suite.py").write_text("import nothing_like_it", "utf-8")
    code, _, _ = long(checkout, "kills")
    report = (checkout / "reports/long.md").read_text("utf-8")
    assert code == 1
    assert "No module named 'nothing_like_it'" in report


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_a_report_of_what_was_done_and_ends_with_2(checkout, number):
    running = begin(checkout, "repeats", "slow", "--scale", "0.02")
    for line in running.stdout:
        if line.startswith("long: repeats"):
            break
    wait_until(lambda: (checkout / "waiting").exists() or running.poll() is not None)
    assert running.poll() is None
    running.send_signal(number)
    said, wrong = running.communicate(timeout=120)
    report = (checkout / "reports/long.md").read_text("utf-8")
    assert (running.returncode, "Traceback" in said + wrong) == (2, False)
    assert [rows(report)[name][0] for name in ("repeats", "slow")] == ["passed", "interrupted"]
    assert "- **Not run:** kills, fuzz, flips, properties" in report


def test_examples_are_the_same_in_every_run_and_leave_no_database(checkout):
    drawn = PROPERTY.replace("    pass", "    with open('drawn', 'a') as file:\n        print(number, file=file)")
    (checkout / "tests/memstory_reference/test_property.py").write_text(drawn, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-k", "numbers"]

    def examples(**environ):
        subprocess.run(command, cwd=checkout, check=True, capture_output=True, env={**os.environ, **environ})  # noqa: S603
        lines = (checkout / "drawn").read_text()
        (checkout / "drawn").unlink()
        return lines.splitlines()

    first = examples()
    assert first == examples()
    assert not (checkout / ".hypothesis/examples").exists()
    assert len(examples(MEMSTORY_EXAMPLES="30")) > len(first)


def test_the_report_that_is_kept_says_where_it_comes_from_and_its_numbers_add_up():
    for said in (r"Commit:\*\* [0-9a-f]{10}\b", r"Python:\*\* 3\.\d+", r"\d+ cores", r"--scale \S+ --seed \d+"):
        assert re.search(said, REPORT), said
    table = rows(REPORT)
    (left_out,) = re.findall(r"^- \*\*Not run:\*\* (.*)$", REPORT, re.MULTILINE)
    assert {*table, *left_out.split(", ")} - {"nothing"} == {"kills", "fuzz", "flips", "repeats", "properties", "slow"}
    failures = Counter(re.findall(r"^## Failed in (\w+): ", REPORT, re.MULTILINE))
    for name, (_, _, ran, *ended, _, _) in table.items():
        assert int(ran) == sum(map(int, ended)), name
        assert failures[name] >= int(ended[1]), name
    assert str(ROOT) not in REPORT
