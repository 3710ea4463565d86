"""memstory in projects of other forms: settings in a folder above, packages without `__init__.py`, strict plugins."""

import os
import subprocess
import sys

import pytest

STORY = "story: T\ntitle: T\nsteps: [{add: tea}, {search: tea, expect: {hits: {count: 1}}}]\n"
MINE = """
from memstory.controls import OracleFactory


class Mine(OracleFactory):
    name = "mine"
"""
PLUGIN = """
def pytest_addoption(parser):
    parser.addoption("--target", choices=["arm", "x86"], default="x86")


def pytest_report_header(config):
    return f"built for {config.getoption('--target')}"
"""


@pytest.fixture
def typed(tmp_path):
    """Type a command in a folder of the project, as a person would; return its code and what it printed."""

    def run(*words, folder="."):
        start = {"memstory": ["-c", "import sys; from memstory.cli import main; sys.exit(main())"]}
        command = [sys.executable, *start.get(words[0], ["-m", words[0]]), *words[1:], "-p", "no:cacheprovider"]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        environ.pop("PYTEST_ADDOPTS", None)
        done = subprocess.run(  # noqa: S603  (our own words)
            command, cwd=tmp_path / folder, env=environ, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture
def save(tmp_path):
    def write(name, text=""):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    return write


@pytest.mark.parametrize("command", [("pytest", "-p", "no:asyncio"), ("memstory", "run")])
def test_settings_of_a_folder_above_hold_and_the_report_lies_beside_them(tmp_path, save, typed, command):
    save(
        "pytest.ini",
        "[pytest]\naddopts = -q --strict-markers\nmemstory_target = control:oracle\nfilterwarnings = error",
    )
    save("services/memory/tests/a.story.yaml", STORY)
    code, said = typed(*command, "tests", folder="services/memory")
    assert (code, "memstory: 1 passed" in said) == (0, True), said
    assert (tmp_path / "reports/latest/report.md").exists()
    assert not (tmp_path / "services/memory/reports").exists()


@pytest.mark.parametrize("command", [("pytest", "tests"), ("memstory", "run", "tests")])
def test_adapters_and_tests_may_lie_in_namespace_packages(save, typed, command):
    save("acme/adapters/mine.py", MINE)
    save("memstory/notes.txt", "a folder of the same name is no package")
    for folder in ("one", "two"):
        save(f"tests/{folder}/test_same_name.py", "def test_it(): pass\n")
    save("tests/one/a.story.yaml", STORY)
    save("pytest.ini", "[pytest]\naddopts = --import-mode=importlib\n")
    code, said = typed(*command, "--target", "acme.adapters.mine:Mine")
    assert (code, "T[mine]" in said or "memstory: 1 passed" in said) == (0, True), said


def test_a_plugin_that_the_settings_load_keeps_its_option_and_memstory_run_means_ours(tmp_path, save, typed):
    save("their_plugin.py", PLUGIN)
    save("pytest.ini", "[pytest]\naddopts = -p their_plugin\npythonpath = .\n")
    save("a.story.yaml", STORY)
    code, said = typed("memstory", "run", "--target", "control:oracle")
    assert (code, "built for x86" in said) == (0, True), said
    code, said = typed("pytest", "--target", "arm", "--memstory-target", "control:oracle")
    assert (code, "built for arm" in said) == (0, True), said
    assert (tmp_path / "reports/latest/results.json").exists()
