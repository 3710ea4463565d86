"""A project's own options keep their names: ours have long ones, and short ones only where they are free."""

import os
import subprocess
import sys

import pytest

from memstory.commands.running.option_names import FLAGS, PREFIX, SHORT

pytest_plugins = ["pytester"]

ADDS = """
def pytest_addoption(parser):
    parser.addoption("--target", choices=["arm", "x86"], default="x86")
    parser.addoption("--report", action="store_true")
    parser.addoption("--trials", type=int, default=1)
"""
THEIRS = """
def test_theirs(request):
    assert request.config.getoption("--target") == "arm"
    assert request.config.getoption("--report") is True
    assert request.config.getoption("--trials") == 7
"""
WORDS = ("-p", "no:asyncio", "--target", "arm", "--report", "--trials=7")


@pytest.fixture
def guest(pytester):
    """A project that has options, and where memstory is installed."""
    pytester.makepyfile(test_theirs=THEIRS)
    return pytester


def plugin_of(guest):
    guest.makepyfile(their_plugin=ADDS)
    guest.syspathinsert()


@pytest.mark.parametrize("late", [(), ("test_theirs.py",)])
def test_options_of_a_conftest_stay_its_own(guest, late):
    guest.makeconftest(ADDS)
    guest.runpytest_inprocess(*WORDS, *late).assert_outcomes(passed=1)


def test_options_of_a_plugin_named_by_p_stay_its_own(guest):
    plugin_of(guest)
    guest.runpytest_inprocess("-p", "their_plugin", *WORDS).assert_outcomes(passed=1)


def test_options_of_a_plugin_that_a_conftest_names_stay_its_own(guest):
    plugin_of(guest)
    guest.makeconftest("pytest_plugins = ['their_plugin']")
    guest.runpytest_inprocess(*WORDS).assert_outcomes(passed=1)


def test_options_of_an_installed_plugin_stay_its_own(guest, monkeypatch):
    plugin_of(guest)
    folder = guest.mkdir("their-1.0.dist-info")
    (folder / "entry_points.txt").write_text("[pytest11]\ntheir = their_plugin\n")
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: their\nVersion: 1.0\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(guest.path), *filter(None, sys.path)]))
    guest.runpytest_subprocess(*WORDS).assert_outcomes(passed=1)


def test_options_that_the_ini_gives_stay_the_projects_own(guest):
    guest.makeconftest(ADDS)
    guest.makeini(f"[pytest]\naddopts = {' '.join(WORDS)}\n")
    guest.runpytest_inprocess("-p", "no:asyncio").assert_outcomes(passed=1)


def test_ini_settings_of_a_project_stay_its_own(guest):
    guest.makeconftest(
        "def pytest_addoption(parser):\n"
        "    for name in ('target', 'report', 'redact', 'stories'):\n"
        "        parser.addini(name, 'theirs')\n"
    )
    guest.makeini("[pytest]\ntarget = arm\nreport = yes\n")
    guest.makepyfile(
        test_theirs="def test_theirs(pytestconfig):\n    assert pytestconfig.getini('target') == 'arm'\n"
        "    assert pytestconfig.getini('report') == 'yes'\n"
    )
    guest.runpytest_inprocess("-p", "no:asyncio").assert_outcomes(passed=1)


def test_a_conftest_of_a_subfolder_has_its_options_when_the_subfolder_is_named(guest):
    folder = guest.mkdir("sub")
    (folder / "conftest.py").write_text(ADDS)
    (guest.path / "test_theirs.py").rename(folder / "test_theirs.py")
    guest.runpytest_inprocess("sub", *WORDS).assert_outcomes(passed=1)


def test_a_conftest_of_a_subfolder_that_is_met_later_harms_nobody(guest):
    folder = guest.mkdir("sub")
    (folder / "conftest.py").write_text(ADDS)
    (guest.path / "test_theirs.py").unlink()
    (folder / "test_default.py").write_text(
        "def test_default(pytestconfig):\n    assert pytestconfig.getoption('--trials') == 1\n"
    )
    guest.runpytest_inprocess("-p", "no:asyncio").assert_outcomes(passed=1)


def test_a_value_behind_a_short_name_is_no_place_to_look_for_conftests(project):
    project.story()
    tests = project.pytester.mkdir("tests")
    (tests / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--slow', action='store_true')\n"
    )
    project.pytester.mkdir("out")
    result = project.run("--report", "out", "--slow")
    result.assert_outcomes(passed=1)
    assert project.results("out") == {"G1": "passed"}


@pytest.mark.parametrize("name", SHORT)
def test_a_short_name_that_is_free_means_ours(project, name):
    project.story()
    value = {
        "--target": "control:oracle",
        "--target-option": "k=5",
        "--chat": "offline",
        "--embedder": "x",
        "--case-timeout": "9",
        "--on": "dask://127.0.0.1:8786",
        "--shard": "1/1",
        "--redact": "texts",
        "--price": "0.15/0.60",
    }.get(name, "1")
    words = [name] if name.removeprefix("--") in FLAGS else [name, value]
    spelled = [f"{PREFIX}{name.removeprefix('--')}", *words[1:]]
    assert understood(project, words) == understood(project, spelled)


def understood(project, words):
    """What a command line means to us; an option of another plugin may have a default that is drawn at random."""
    given = vars(project.pytester.parseconfig(*words).option)
    return {name: value for name, value in given.items() if name.startswith("memstory_") or name == "file_or_dir"}


def test_a_short_name_that_is_taken_leaves_ours_by_its_long_name(project):
    project.pytester.makeconftest(ADDS)
    project.story()
    project.run("--report", "--target", "arm", "--memstory-report", "mine").assert_outcomes(passed=1)
    assert project.results("mine") == {"G1": "passed"}


def test_memstory_run_always_means_ours(guest):
    guest.makeconftest(ADDS)
    story = "story: T\ntitle: T\nsteps: [{add: tea}, {search: tea, expect: {hits: {count: 1}}}]\n"
    (guest.path / "a.story.yaml").write_text(story)
    words = ["run", "--target", "control:oracle", "--report=out", "--trials", "2"]
    command = [sys.executable, "-c", "import sys; from memstory.cli import main; sys.exit(main())", *words]
    done = subprocess.run(command, cwd=guest.path, capture_output=True, text=True, check=False)  # noqa: S603  (ours)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (guest.path / "out/results.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--chat-url", "localhost:8080"), "*--chat-url is 'localhost:8080'; allowed: a URL such as*"),
        (("--chat-key", "NO_SUCH_KEY"), "*--chat-key names the variable 'NO_SUCH_KEY', which is not set*export*"),
    ],
)
def test_a_wrong_place_of_models_is_said_before_anything_runs(pytester, words, said):
    result = pytester.runpytest_inprocess(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_address_and_key_of_models_go_where_their_clients_look(pytester, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-mine")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere/v1")
    pytester.makepyfile(
        test_address="""
        import os

        def test_address():
            assert os.environ["OPENAI_BASE_URL"] == "http://127.0.0.1:8080/v1"
            assert os.environ["OPENAI_API_KEY"] == "sk-mine"
        """
    )
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    words = ("--chat-url", "http://127.0.0.1:8080/v1", "--chat-key", "MY_KEY")
    pytester.runpytest_inprocess(*words).assert_outcomes(passed=1)


def test_options_that_a_target_does_not_take_are_said_before_anything_runs(pytester):
    done = pytester.runpytest_inprocess("--target", "mem0", "--target-option", "config=nothing.json")
    assert done.ret == 4
    done.stderr.fnmatch_lines(["*config=nothing.json: the file cannot be read: No such file or directory*"])
