import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from memstory.cli import COMMANDS, load_command, main
from memstory.reporting.writing import write_reports
from memstory.results.runs import make_fingerprint, make_run

MEMSTORY = [sys.executable, "-c", "import sys; from memstory.cli import main; sys.exit(main())"]

HELP = """\
usage: memstory [-h] [--version] COMMAND ...

Stories and evaluation for the memory of AI agents.

options:
  -h, --help  show this help message and exit
  --version   show program's version number and exit

commands:
  COMMAND
    new       write a story, a corpus or a target to start from
    validate  check stories without running them
    list      list stories with what they need
    explain   say what a story needs and which targets can run it
    probe     find out what a memory can do by trying it, and print the declaration
    steps     list the steps with what they take and return
    matchers  list what a story can assert about a result
    schema    write the JSON Schema by which editors complete and check stories
    mcp       look at the tools of an MCP server, and draft a target from them
    run       run stories with pytest
    explore   look for faults that no story asks for, with programs drawn from a seed
    proxy     record, replay, count or script the language model of a memory
    data      fetch the sets of conversations that are known by name, such as locomo
    demo      run five stories on three memories, and look at a failure and the page
    show      show what happened in a recorded case, step by step
    rejudge   judge the recordings of a run again, without the target
    submit    pack a run, so that somebody else can judge it again
    verify    judge the recordings of a pack again, and say what cannot be checked
    merge     put the shards of one run together
    compare   put targets and runs side by side
    gate      compare a run with its baseline
    report    write report.md and report.html again, or the report of a run that was killed
    export    write a run in files that other tools read, CSV and TREC
    badge     print a badge: how much leaked and was lost

examples:
  memstory demo                                  see a leak found, in a few seconds
  memstory new story coffee                      begin with a story that runs
  memstory validate                              check every story below this folder
  memstory run --target control:oracle           run them on a perfect memory
  memstory show reports/latest S5                see what happened in one

exit codes: 0 fine, 1 something was found wrong, 2 the command could not be carried out;
'memstory run' ends with pytest's own.

'memstory COMMAND --help' says more, with examples.
"""

VALIDATE_HELP_TAIL = """\
examples:
  memstory validate                        every story below this folder
  memstory validate mine.story.yaml        one file
  memstory validate --bundled              the stories that come with memstory
  memstory validate --requirements spec.md with every id under 'covers' looked up in spec.md
  memstory validate --json | jq .errors    for programs

exit codes: 0 nothing is wrong, 1 something is, 2 there is nothing to check
"""


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


def helped(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_help_is_word_by_word(capsys):
    assert helped(capsys) == HELP


def test_help_of_a_command_ends_with_examples_and_exit_codes(capsys):
    assert helped(capsys, "validate").endswith(VALIDATE_HELP_TAIL)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_with_examples_and_exit_codes(capsys, name):
    text = helped(capsys, name)
    assert text.startswith(f"usage: memstory {name} ")
    assert f"\n  memstory {name}" in text
    assert "\nexit codes: " in text
    assert load_command(name).about.endswith((".", "to run on it"))


def test_without_a_command_the_help_is_shown_and_the_code_is_2(capsys):
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == HELP


def test_an_unknown_command_gets_the_nearest_name(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["reprot"])
    assert stopped.value.code == 2
    assert "unknown command 'reprot'. Did you mean 'report'? Known: new, validate, " in capsys.readouterr().err


def test_help_imports_neither_pytest_nor_the_grammar_nor_any_target():
    watch = "import sys; from memstory.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    heavy = "print({'pytest', 'jsonschema', 'yaml', 'deepdiff', 'chromadb', 'tabulate'} & set(sys.modules))"
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [sys.executable, "-c", watch + heavy], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"


def test_a_run_imports_once_what_runs_and_reports(tmp_path):
    # pytest is a child of the command: what both import is paid for twice.
    (tmp_path / "a.story.yaml").write_text("story: A\ntitle: t\nsteps: [{add: tea}, {search: tea}]\n")
    parent = {"yaml", "tabulate", "jinja2", "pytest", "memstory.language", "memstory.reporting"}
    child = {"deepdiff", "jsonschema", "chromadb", "numpy", "langsmith", "anyio", "memstory_reference"}
    # No plugin tells it: where one is named, pytest gets all the others too.
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, sys\n"
        "def show():\n"
        "    is_child = 'memstory.pytest_plugin' in sys.modules\n"
        f"    name, watched = ('child', {child}) if is_child else ('parent', {parent})\n"
        "    print(name, sorted(watched & {*sys.modules}))\n"
        "atexit.register(show)\n"
    )
    watch = "from memstory.cli import main; main(['run', 'a.story.yaml', '--target', 'fts5'])"
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [sys.executable, "-c", watch],
        capture_output=True, text=True, check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert "memstory: 1 passed" in done.stdout
    assert done.stdout.splitlines()[-2:] == ["child []", "parent []"]


def test_report_makes_the_report_again_and_says_where(tmp_path, capsys):
    write_reports(tmp_path, make_run([], make_fingerprint([])))
    (tmp_path / "report.md").unlink()
    assert main(["report", str(tmp_path)]) == 0
    assert (tmp_path / "report.md").exists()
    assert "made from results.json, 0 cases" in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, "[]", json.dumps({"schema": "other"})])
def test_a_folder_without_results_is_one_line_on_stderr_and_a_code(tmp_path, capsys, content):
    if content:
        (tmp_path / "results.json").write_text(content)
    assert main(["report", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("memstory report: ")
    assert error.count("\n") == 1


def test_what_a_file_holds_cannot_move_the_cursor_by_an_error(tmp_path, capsys, make_case):
    write_reports(tmp_path, make_run([make_case("S5\x1b[2J")], make_fingerprint([])))
    assert main(["show", str(tmp_path), "none"]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert r"S5\u001b[2J" in said


def test_the_report_of_a_file_is_asked_of_its_folder(tmp_path, capsys):
    (tmp_path / "results.json").write_text("{}")
    assert main(["report", str(tmp_path / "results.json")]) == 2
    assert "name the folder of a run" in capsys.readouterr().err


def test_a_reader_that_closes_early_gets_no_traceback():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [*MEMSTORY, "matchers"], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_that_knows_only_ascii_gets_escapes_not_a_traceback():
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [*MEMSTORY, "run", "--help"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert r"\u2026" in done.stdout


def test_the_installed_command_is_this_one():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    assert 'memstory = "memstory.cli:main"' in text


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"memstory {version('memstory')}\n"


def test_a_file_that_stands_in_the_way_is_named_without_an_errno(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    assert main(["demo", "--folder", "taken"]) == 2
    assert capsys.readouterr().err == "memstory demo: taken: File exists\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is always full")
def test_a_full_disk_behind_stdout_is_told_without_an_errno():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(  # noqa: S603  (our own interpreter)
            [*MEMSTORY, "steps", "--json"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "memstory steps: No space left on device"


def test_a_report_of_no_run_names_what_was_typed(tmp_path, capsys):
    (tmp_path / "a.story.yaml").write_text("", "utf-8")
    for name in ("a.story.yaml", "nowhere"):
        assert main(["report", str(tmp_path / name)]) == 2
        assert f"{tmp_path / name}: name the folder of a run" in capsys.readouterr().err
