import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from memstory_tests_waiting import STARTS_WITHIN, wait_until

from memstory.bundled import bundled_stories
from memstory.commands.running.run import pytest_arguments
from memstory.contract.errors import SetupError

BLOCKED = [
    *("-p", "no:langsmith_plugin", "-p", "no:anyio", "-p", "no:asyncio", "-p", "no:hypothesispytest"),
    "--assert=plain",
]
MEMSTORY = [sys.executable, "-c", "import sys; from memstory.cli import main; sys.exit(main())"]


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ([], ["a.story.yaml", "sub/b.story.yaml"]),
        (["--target", "topics", "a.story.yaml"], ["a.story.yaml", "--memstory-target", "topics"]),
        (["--target", "topics", "plain.yaml", "-x"], ["plain.yaml", "--memstory-target", "topics", "-x"]),
        (["-x", "a.story.yaml::tea[topics]", "-q"], ["a.story.yaml::tea[topics]", "-x", "-q"]),
        (["--target=topics", "sub"], ["sub/b.story.yaml", "--memstory-target=topics"]),
        (["--target", "topics", "sub"], ["sub/b.story.yaml", "--memstory-target", "topics"]),
        (["--report", "sub"], ["a.story.yaml", "sub/b.story.yaml", "--memstory-report", "sub"]),
        (["-k", "S5", "-x"], ["a.story.yaml", "sub/b.story.yaml", "-k", "S5", "-x"]),
        (["-x", "-k", "S" * 300], ["a.story.yaml", "sub/b.story.yaml", "-x", "-k", "S" * 300]),
        (["sub", "--target", "topics"], ["sub/b.story.yaml", "--memstory-target", "topics"]),
        (["plain.yaml", "-q"], ["plain.yaml", "-q"]),
        (["a.story.yaml::tea[topics]"], ["a.story.yaml::tea[topics]"]),
    ],
)
def test_paths_become_story_files_and_options_get_our_own_names(terminal, typed, given):
    terminal.save(name="a.story.yaml")
    terminal.save(name="sub/b.story.yaml")
    terminal.save(name="plain.yaml")
    assert [word for word in pytest_arguments(typed) if word not in BLOCKED] == given


@pytest.mark.parametrize(
    ("typed", "files", "environment"),
    [
        (["-p", "anyio"], {}, {}),
        (["-panyio"], {}, {}),
        (["--assert=rewrite"], {}, {}),
        (["--hypothesis-seed=1"], {}, {}),
        ([], {}, {"PYTEST_ADDOPTS": "-p langsmith_plugin"}),
        ([], {}, {"PYTEST_PLUGINS": "anyio.pytest_plugin"}),
        ([], {"pytest.ini": "[pytest]\nasyncio_mode = auto\n"}, {}),
        ([], {"pytest.ini": "[pytest]\naddopts = -p anyio\n"}, {}),
        ([], {"conftest.py": "collect_ignore = []\n"}, {}),
    ],
)
def test_who_may_use_plugins_has_pytest_as_it_is(terminal, monkeypatch, typed, files, environment):
    terminal.save()
    assert pytest_arguments(["-p", "no:cacheprovider"])[1:-2] == BLOCKED
    for name, text in files.items():
        terminal.save(text, name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert pytest_arguments(typed) == ["a.story.yaml", *typed]


@pytest.mark.parametrize("path", ["project/sub", "project/sub/a.story.yaml", "project/sub/a.story.yaml::tea"])
@pytest.mark.parametrize(
    ("name", "text"), [("pytest.ini", "[pytest]\nasyncio_mode = auto\n"), ("conftest.py", "import anyio\n")]
)
def test_the_project_around_the_stories_has_pytest_as_it_is(terminal, path, name, text):
    terminal.save(name="project/sub/a.story.yaml")
    terminal.save(text, f"project/{name}")
    assert not {*BLOCKED} & {*pytest_arguments([path])}


def test_other_settings_use_no_plugin(terminal):
    terminal.save()
    terminal.save("[pytest]\nmemstory_target = fts5\nfilterwarnings = error\n", "pytest.ini")
    assert pytest_arguments([])[1:] == BLOCKED


def test_settings_of_another_file_are_taken_as_they_are(terminal):
    terminal.save()
    assert pytest_arguments(["-c", "other.ini"]) == ["a.story.yaml", "-c", "other.ini"]


def test_no_warning_of_another_plugin_is_shown(terminal):
    terminal.save()
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [*MEMSTORY, "run", "--target", "control:oracle", "-p", "no:cacheprovider"],
        cwd=terminal.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stdout + done.stderr
    assert " warning" not in done.stdout


@pytest.mark.parametrize("named", [[], ["-p", "langsmith_plugin"]])
def test_installed_plugins_are_loaded_but_not_those_that_our_extras_drag_in(terminal, monkeypatch, named):
    terminal.save()
    for plugin in ("pytest_cov", "html", "langsmith_plugin"):
        terminal.save(f"def pytest_configure():\n    print('loaded fake_{plugin}')\n", f"fake_{plugin}.py")
    folder = "fake_plugins-1.0.dist-info"
    names = [f"{plugin} = fake_{plugin}\n" for plugin in ("pytest_cov", "html", "langsmith_plugin")]
    terminal.save(f"[pytest11]\n{''.join(names)}", f"{folder}/entry_points.txt")
    terminal.save("Metadata-Version: 2.1\nName: fake-plugins\nVersion: 1.0\n", f"{folder}/METADATA")
    paths = os.pathsep.join([str(terminal.folder), *filter(None, sys.path)])
    monkeypatch.setenv("PYTHONPATH", paths)
    words = ["run", "--target", "control:oracle", "-p", "no:cacheprovider", *named]
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [*MEMSTORY, *words], cwd=terminal.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    loaded = {line for line in done.stdout.splitlines() if line.startswith("loaded")}
    assert loaded == {
        "loaded fake_pytest_cov",
        "loaded fake_html",
        *(["loaded fake_langsmith_plugin"] if named else []),
    }


def test_bundled_stories_are_named_and_report_into_this_folder(terminal):
    given = pytest_arguments(["--target", "mine", "--bundled"])
    assert str(bundled_stories() / "s5_memory_recall.yaml") in given
    own = [f"--rootdir={terminal.folder}", "-c", os.devnull]
    assert given[-len(own) - len(BLOCKED) - 2 :] == [*own, *BLOCKED, "--memstory-target", "mine"]


@pytest.mark.parametrize("workers", [[], pytest.param(["-n", "1"], marks=pytest.mark.slow)])
def test_bundled_stories_are_run_with_the_settings_and_targets_of_this_folder(terminal, workers):
    settings = terminal.save("[pytest]\nmemstory_redact = texts\n", "pytest.ini")
    terminal.save(
        "from memstory.controls import OracleFactory\ndef pytest_memstory_targets(config):\n"
        "    return {'mine': OracleFactory()}\n",
        "conftest.py",
    )
    assert pytest_arguments(["--bundled"])[-4:] == ["-c", str(settings), "-p", "conftest"]
    words = ["run", "--bundled", "--target", "mine", "-k", "FD1[mine]", "-p", "no:cacheprovider", *workers]
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [*MEMSTORY, *words], cwd=terminal.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "memstory: 1 passed" in done.stdout
    assert "Redacted from all that was written" in done.stdout
    assert (terminal.folder / "reports/latest/report.md").exists()


def test_settings_that_were_typed_win_and_a_project_with_paths_brings_its_own_conftest(terminal):
    terminal.save()
    terminal.save("", "conftest.py")
    typed = ["a.story.yaml", "--bundled", "--rootdir=x", "-c", "other.ini"]
    assert pytest_arguments(typed)[-3:] == ["--rootdir=x", "-c", "other.ini"]


@pytest.mark.parametrize("words", [["-n", "2"], ["-n2"], ["-nauto"], ["--numprocesses=2"]])
def test_several_processes_without_the_package_for_it_are_one_line(terminal, monkeypatch, words):
    monkeypatch.setattr("memstory.commands.running.run.find_spec", lambda _: None)
    said = terminal.type("run", "--bundled", "generic", *words)
    assert (said.code, len(said.err.splitlines())) == (2, 1)
    assert "pip install pytest-xdist" in said.err


def test_nothing_to_run_is_told_and_ends_with_2(terminal):
    said = terminal.type("run")
    assert said.code == 2
    assert said.err.startswith("memstory run: no story file in this folder. A file of stories ends in .story.yaml")


def test_stories_run_with_the_exit_code_of_pytest_and_the_projects_tests_do_not(terminal):
    terminal.save()
    terminal.save("def test_never(): raise SystemExit(9)\n", "test_other.py")
    terminal.save("story: wrong\ntitle: T\nsteps: [{add: x, expect: {receipt: {length: 9}}}]\n", "b.story.yaml")
    words = ["run", "--target", "control:oracle", "-q", "--report", "out", "-p", "no:cacheprovider"]
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [*MEMSTORY, *words], cwd=terminal.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert (terminal.folder / "out/recordings.jsonl").exists()


@pytest.mark.slow
def test_an_interrupt_leaves_a_report_and_ends_with_2(terminal):
    # A target that waits for ever in its second story.
    terminal.save(
        "import asyncio\nfrom pathlib import Path\n"
        "from memstory.contract.target import Receipt, Target, TargetFactory\n"
        "class Slow(Target):\n"
        "    async def open(self, env, clock): pass\n"
        "    async def close(self): pass\n"
        "    async def add(self, items, scope):\n"
        "        if items[0].text == 'wait':\n"
        "            Path('waiting').touch()\n"
        "            await asyncio.Event().wait()\n"
        "        return Receipt()\n"
        "class Factory(TargetFactory):\n"
        "    name, spec = 'slow', 'slow_target:Factory'\n"
        "    def capabilities(self, options): return frozenset({'add'})\n"
        "    def target(self): return Slow()\n",
        "slow_target.py",
    )
    terminal.save("story: A\ntitle: T\nsteps: [{add: x}]\n---\nstory: B\ntitle: T\nsteps: [{add: wait}]\n")
    process = subprocess.Popen(  # noqa: S603  (our own interpreter)
        [*MEMSTORY, "run", "--target", "slow_target:Factory", "-q", "-p", "no:cacheprovider"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=terminal.folder,
    )
    wait_until(Path(terminal.folder, "waiting").exists, STARTS_WITHIN)
    process.send_signal(signal.SIGINT)  # to the one process that there is, by whoever started it
    assert process.wait(timeout=30) == 2
    assert (terminal.folder / "reports/latest/report.md").exists()


@pytest.mark.parametrize(
    ("typed", "files"),
    [
        (["--bundled", "generic"], "generic/*.yaml"),
        (["--bundled", "--target", "fts5", "generic"], "generic/*.yaml"),
        (["--bundled", "generic/list.yaml", "-x"], "generic/list.yaml"),
    ],
)
def test_with_bundled_a_path_is_one_among_the_bundled_stories(typed, files):
    given = pytest_arguments(typed)
    found = [word for word in given if word.endswith(".yaml")]
    assert found == sorted(map(str, bundled_stories().glob(files)))
    assert "-c" in given


def test_with_bundled_an_id_names_one_bundled_story():
    given = pytest_arguments(["--bundled", "generic/list.yaml::G40[fts5]"])
    assert [word for word in given if ".yaml" in word] == [f"{bundled_stories()}/generic/list.yaml::G40[fts5]"]


def test_a_bundled_story_has_a_short_id_that_can_be_typed_again(terminal):
    def run(*words):
        done = subprocess.run(  # noqa: S603  (our own interpreter)
            [*MEMSTORY, "run", *words, "--target", "control:nothing", "--tb", "no"],
            cwd=terminal.folder, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "100"},
        )  # fmt: skip
        return [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]

    (failed,) = run("--bundled", "generic/recall.yaml", "-k", "G1[control")
    assert failed.startswith("FAILED bundled/generic/recall.yaml::G1[control:nothing] - search: ")
    assert run("bundled/generic/recall.yaml::G1[control:nothing]") == [failed]
    assert run("--bundled", "--lf") == [failed]


def test_a_bundled_folder_that_lies_here_too_is_the_one_here(terminal):
    terminal.save(name="generic/a.story.yaml")
    given = pytest_arguments(["--bundled", "generic"])
    assert "generic/a.story.yaml" in given
    assert len([word for word in given if word.endswith(".yaml")]) > 20


def test_a_mistyped_option_is_told_with_what_is_near(terminal):
    terminal.save()
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [*MEMSTORY, "run", "--targt=fts5"], cwd=terminal.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert "unrecognized arguments: --targt=fts5" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("memstory: pytest does not take this command line, for the reason")
    assert done.stderr.count("Did you mean") == done.stderr.count("Did you mean '--target'?") == 1


@pytest.mark.parametrize(("typed", "hint"), [("--bundled", ""), ("--bundeld", "Did you mean '--bundled'?")])
def test_the_option_of_the_command_itself_is_known_where_another_is_wrong(terminal, typed, hint):
    terminal.save()
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [*MEMSTORY, "run", typed, "-k"], cwd=terminal.folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("Did you mean")) == (4, bool(hint))
    assert hint in done.stderr


@pytest.mark.parametrize("words", [["--target-option", "embedder"], ["--shard", "3/2"], ["--trials=0"]])
def test_a_wrong_value_of_a_known_option_suggests_no_other_option(terminal, words):
    terminal.save()
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [*MEMSTORY, "run", "--target", "fts5", *words], cwd=terminal.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert f"argument --memstory-{words[0].lstrip('-').partition('=')[0]}: " in done.stderr
    assert "Did you mean" not in done.stderr


def test_a_bundled_file_named_without_its_ending_is_a_hint():
    with pytest.raises(SetupError, match=r"Did you mean '--bundled faults/expiry\.yaml'"):
        pytest_arguments(["--bundled", "faults/expiry"])


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("stories", "--bundled'"),
        ("stories/generic", "--bundled generic"),
        ("stories/faults/expiry", "--bundled faults/"),
    ],
)
def test_the_folder_that_the_bundled_stories_have_in_a_clone_is_a_hint(terminal, typed, hint):
    assert not (terminal.folder / "stories").exists()
    with pytest.raises(SetupError) as told:
        pytest_arguments([typed])
    assert f"Did you mean '{hint}" in str(told.value)


def test_a_bundled_folder_named_without_bundled_is_a_hint():
    with pytest.raises(SetupError, match=r"no file or folder generc\. Did you mean '--bundled generic'"):
        pytest_arguments(["generc"])
