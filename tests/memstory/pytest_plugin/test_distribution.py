"""`memstory run --on dask://…`: real clusters of this machine, and stories whose memories end what runs them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import distributed  # noqa: F401  (pytester forgets what an inner run imports, and this changes how plugins are found)
import pytest
from memstory_tests_waiting import STARTS_WITHIN, wait_until

from memstory.pytest_plugin.distribution import Distribution

pytest_plugins = ["pytester"]

TARGET = """
import os, signal, time
from pathlib import Path
import psutil
from memstory.controls import Oracle
from memstory.contract.target import TargetFactory

def worker():
    # Above pytest is the process that waits for it, and above that the worker.
    return psutil.Process(os.getppid()).ppid()

class Toy(Oracle):
    async def add(self, items, scope):
        text = items[0].text
        if text == "exit":
            Path(f"exits-{os.getpid()}").touch()
            os._exit(0)
        if text == "kill":
            Path(f"kills-{worker()}").touch()
            os.kill(worker(), signal.SIGKILL)
            time.sleep(60)
        if text == "wait" and not Path("let-go").exists():
            Path(f"waits-{worker()}").touch()
            time.sleep(600)
        if text == "break":
            raise RuntimeError("the backend fell over")
        return await super().add(items, scope)

class ToyFactory(TargetFactory):
    name, spec = "toy", "toy:ToyFactory"
    def capabilities(self, options):
        return frozenset("add search list".split())
    def target(self):
        return Toy()
"""
CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, processes=True, dashboard_address=None,
                      host="127.0.0.1", scheduler_port=0) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""
MEMSTORY = ("-c", "import sys; from memstory.cli import main; sys.exit(main())")
STRANGERS = "-p no:langsmith_plugin -p no:anyio -p no:hypothesispytest -p no:asyncio -p no:cacheprovider"


def story(name, deed="tea", hits=1):
    expectation = f"{{hits: {{count: {hits}}}}}"
    return f"story: {name}\ntitle: {name}\nsteps: [{{add: {deed}}}, {{search: {deed}, expect: {expectation}}}]\n"


@contextmanager
def cluster(folder, workers=2):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    script = folder / "cluster.py"
    script.write_text(CLUSTER, "utf-8")
    with (folder / "cluster.log").open("wb") as log:
        started = subprocess.Popen(  # noqa: S603  (our own words)
            [sys.executable, str(script), str(workers)],
            env=environ, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
    try:
        address = started.stdout.readline().strip()
        assert address.startswith("tcp://"), (folder / "cluster.log").read_text()
        yield address.replace("tcp://", "dask://")
    finally:
        started.stdin.close()
        try:
            started.wait(60)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
        started.stdout.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster")) as where:
        yield where


class Folder:
    """A folder with stories, and `memstory run` there."""

    def __init__(self, path):
        self.path = path
        (path / "toy.py").write_text(TARGET, "utf-8")
        (path / "pytest.ini").write_text("[pytest]\n", "utf-8")

    def write(self, *stories):
        (self.path / "w.story.yaml").write_text("---\n".join(stories), "utf-8")

    def begin(self, *words):
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTEST_ADDOPTS": STRANGERS}
        return subprocess.Popen(  # noqa: S603  (our own words)
            [sys.executable, *MEMSTORY, "run", "w.story.yaml", "--target", "toy:ToyFactory", *words],
            cwd=self.path, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        )  # fmt: skip

    def run(self, *words):
        run = self.begin(*words)
        said, _ = run.communicate(timeout=600)
        return run.returncode, said

    def results(self, folder="reports/latest"):
        return json.loads((self.path / folder / "results.json").read_text("utf-8"))

    def outcomes(self, folder="reports/latest"):
        return {case["story"]: case["outcome"] for case in self.results(folder)["cases"]}

    def reason(self, name):
        return next(case["reason"] for case in self.results()["cases"] if case["story"] == name)

    def marks(self, what):
        return [path.name.partition("-")[2] for path in self.path.glob(f"{what}-*")]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def without_times(tree):
    if isinstance(tree, dict):
        times = ("seconds", "embedding_seconds", "started")
        return {name: without_times(value) for name, value in tree.items() if name not in times}
    return [without_times(value) for value in tree] if isinstance(tree, list) else tree


def test_a_run_on_a_cluster_finds_and_says_what_a_run_here_does(folder, address):
    many = [story(f"M{number}") for number in range(8)]
    unsupported = "story: U1\ntitle: u\nsteps: [{add: tea}, {restart: }]\n"
    invalid = "story: I1\ntitle: i\nsteps: [{dance: 1}]\n"
    folder.write(*many, story("F1", hits=2), story("B1", "break"), unsupported, invalid)
    here = folder.run("--report", "here", "--junitxml", "here.xml")
    there = folder.run("--report", "there", "--junitxml", "there.xml", "--on", address)
    assert folder.outcomes("here") == {
        **{f"M{number}": "passed" for number in range(8)},
        "F1": "failed",
        "B1": "error",
        "U1": "unsupported",
        "I1": "invalid",
    }
    assert without_times(folder.results("there")) == without_times(folder.results("here"))
    assert "2 workers with 2 threads; 11 cases in 4 batches" in there[1]
    assert (here[0], there[0]) == (1, 1)
    assert last_count(there[1]) == last_count(here[1])
    assert recordings(folder.path / "there") == recordings(folder.path / "here")
    assert cases_in(folder.path / "there.xml") == cases_in(folder.path / "here.xml")
    # The failure is shown as it is here, with its line in the story.
    assert section(there[1], "F1[toy:ToyFactory]") == section(here[1], "F1[toy:ToyFactory]")


def last_count(said):
    return re.findall(r"^memstory: (.*)$", said, re.MULTILINE)[-1]


def recordings(folder):
    lines = (folder / "recordings.jsonl").read_text("utf-8").splitlines()
    return {(line["case"], line["trial"]): without_times(line) for line in map(json.loads, lines)}


def cases_in(xml):
    return sorted(re.findall(r'<testcase [^>]*?name="([^"]+)"', xml.read_text("utf-8")))


def section(said, name):
    return re.search(rf"^_+ {re.escape(name)} _+\n(.*?)^(?:_+ |=+ |-+ )", said, re.MULTILINE | re.DOTALL)[1]


def test_a_case_that_ends_its_process_twice_is_an_error_and_harms_no_other(folder, address):
    others = [story(f"M{number}") for number in range(8)]
    folder.write(*others[:4], story("X1", "exit"), *others[4:])
    code, said = folder.run("--on", address)
    assert code == 1, said
    assert folder.outcomes() == {**{f"M{number}": "passed" for number in range(8)}, "X1": "error"}
    assert len(folder.marks("exits")) == 2
    assert re.search(
        r"after two tries.*exit code 3, on tcp://127\.0\.0\.1:\d+.*exit code 3, on tcp://", folder.reason("X1")
    )
    assert folder.results()["complete"] is True


@pytest.mark.slow
def test_a_case_that_kills_its_worker_twice_is_an_error_that_names_both(folder, tmp_path_factory):
    others = [story(f"M{number}") for number in range(8)]
    folder.write(*others[:4], story("X1", "kill"), *others[4:])
    with cluster(tmp_path_factory.mktemp("cluster")) as where:
        code, said = folder.run("--on", where)
    assert code == 1, said
    assert folder.outcomes() == {**{f"M{number}": "passed" for number in range(8)}, "X1": "error"}
    assert len(folder.marks("kills")) == 2
    assert len(re.findall(r"the worker ended while it ran, on tcp://127\.0\.0\.1:\d+", folder.reason("X1"))) == 2


@pytest.mark.slow
def test_the_cases_of_a_worker_that_was_killed_run_again_elsewhere(folder, tmp_path_factory):
    folder.write(*[story(f"M{number}") for number in range(8)], story("W1", "wait"))
    with cluster(tmp_path_factory.mktemp("cluster")) as where:
        run = folder.begin("--on", where)
        wait_until(lambda: folder.marks("waits"), 3 * STARTS_WITHIN)
        (worker,) = folder.marks("waits")
        (folder.path / "let-go").touch()
        os.kill(int(worker), signal.SIGKILL)
        said, _ = run.communicate(timeout=600)
    assert run.returncode == 0, said
    assert folder.outcomes() == {**{f"M{number}": "passed" for number in range(8)}, "W1": "passed"}


@pytest.mark.slow
def test_ctrl_c_ends_what_runs_on_the_workers_and_reports_what_was_finished(folder, tmp_path_factory):
    import psutil  # noqa: PLC0415  (of the extra)

    folder.write(*[story(f"M{number}") for number in range(4)], story("W1", "wait"))
    with cluster(tmp_path_factory.mktemp("cluster"), workers=1) as where:
        run = folder.begin("--on", where)
        wait_until(lambda: folder.marks("waits"), 3 * STARTS_WITHIN)
        (worker,) = map(int, folder.marks("waits"))
        assert psutil.Process(worker).children()
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=600)
        wait_until(lambda: not psutil.Process(worker).children())
    assert run.returncode == 2, said
    # The second of two batches was under way.
    assert folder.outcomes() == {"M0": "passed", "M1": "passed", "M2": "passed", "M3": "error", "W1": "error"}
    assert "the run was interrupted" in folder.reason("W1")
    assert folder.results()["complete"] is False


@pytest.mark.slow
def test_a_scheduler_that_goes_away_ends_the_run_with_its_address(folder, tmp_path_factory):
    folder.write(*[story(f"M{number}") for number in range(4)], story("W1", "wait"))
    with cluster(tmp_path_factory.mktemp("cluster"), workers=1) as where:
        run = folder.begin("--on", where)
        wait_until(lambda: folder.marks("waits"), 3 * STARTS_WITHIN)
    said, _ = run.communicate(timeout=600)
    assert run.returncode == 2, said
    # The second of two batches was under way.
    assert folder.outcomes() == {"M0": "passed", "M1": "passed", "M2": "passed", "M3": "error", "W1": "error"}
    assert f"--on {where}: the connection to the scheduler is lost" in folder.reason("W1")


def test_workers_with_another_story_are_refused_by_name_before_anything_runs(project, address, monkeypatch):
    project.story()
    # The workers of this cluster see the very file that is here.
    monkeypatch.setattr(Distribution, "_digest", lambda *_: "another")
    done = project.run("--on", address)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    said = done.stderr.str()
    assert "2 workers cannot run these stories" in said
    assert len(re.findall(r"tcp://127\.0\.0\.1:\d+: its file .*a\.yaml is another", said)) == 2
    assert not (project.path / "reports").exists()


def test_a_scheduler_that_cannot_be_reached_is_one_message_with_its_address(project, monkeypatch):
    project.story()
    monkeypatch.setattr("memstory.running.dask_pool.CONNECT_SECONDS", 0.3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        where = f"dask://127.0.0.1:{free.getsockname()[1]}"
        done = project.run("--on", where)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert f"--on {where}: no scheduler of Dask answers there within 0.3 s" in done.stderr.str()
    assert "Traceback" not in done.stderr.str() + done.stdout.str()
    assert not (project.path / "reports").exists()


def test_without_the_library_one_line_says_what_to_install(project, monkeypatch):
    project.story()
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = project.run("--on", "dask://127.0.0.1:1")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert re.search(r"--on dask://127\.0\.0\.1:1 needs .*'distributed'.*pip install .*\[dask\]", done.stderr.str())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--on", "scheduler:8786"], "'scheduler:8786' is no scheduler"),
        (["--on", "dask://scheduler"], "such as dask://scheduler:8786"),
        (["--on", "dask://127.0.0.1:1", "--shard", "1/2"], "--shard is for machines that know nothing of each other"),
        (["--on", "dask://127.0.0.1:1", "-n", "2"], "-n spreads the cases over processes of this machine"),
        (["--on", "dask://127.0.0.1:1", "--resume"], "--resume needs"),
        (["--on", "dask://127.0.0.1:1", "--pdb"], "--pdb needs"),
    ],
)
def test_what_does_not_go_with_a_cluster_is_refused(project, words, said):
    project.story()
    done = project.run(*words)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert said in done.stderr.str()
