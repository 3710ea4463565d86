import gzip
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from memstory.cli import main
from memstory.contract.errors import SetupError
from memstory.reporting.gate import gate
from memstory.reporting.sections.differences import differences
from memstory.results.baseline import as_baseline
from memstory.results.folder import results_file
from memstory.results.folder.results_file import read_results, write_results
from memstory.results.runs import NamedRun


@pytest.fixture
def kept(tmp_path):
    """Return a function: a run to what is read of its baseline."""

    def keep(named, file="base.json.gz"):
        write_results(tmp_path / file, as_baseline(named.run))
        return NamedRun(name=named.name, run=read_results(tmp_path / file))

    return keep


@pytest.mark.parametrize("file", ["base.json.gz", "base.json"])
def test_a_baseline_judges_as_its_run_does(run, kept, file):
    old = run("old", run.case(trials=3), run.retrieval([1, 2, 10] * 7, seconds=3.5))
    new = run("new", run.case(trials=3), run.retrieval([0, 2, 9] * 7))
    assert gate(kept(old, file), new) == gate(old, new)
    assert gate(new, kept(old, file)) == gate(new, old)


def test_every_metric_of_a_question_is_what_it_was(run, kept):
    before = run("old", run.retrieval([1, 3, 0, 10, (7, "odd")]))
    (was,), (now,) = before.run.cases, kept(before).run.cases
    assert {found.value for found in differences(was, now)} == {0.0}
    assert now.scores == was.scores


def test_ids_are_kept_only_where_gold_was_missed(run):
    (case,) = as_baseline(run("old", run.retrieval([2, 0])).run).cases
    found, missed = case.retrieval[0].questions
    assert (found.ranks, found.relevant, found.retrieved) == ((2,), (), ())
    assert (missed.ranks, missed.relevant, len(missed.retrieved)) == ((), ("right",), 10)


def test_steps_times_and_tracebacks_are_left_out(run):
    broken = run.case("S2", "error")
    (trial,) = broken.trials
    failure = replace(trial.recording.failure, detail='File "/home/ann/memory.py"')
    broken = replace(broken, trials=(replace(trial, recording=replace(trial.recording, failure=failure)),))
    slim = as_baseline(run("old", replace(run.case(), seconds=2.5), broken).run)
    assert slim.fingerprint.started is None
    for case in slim.cases:
        (trial,) = case.trials
        assert (case.seconds, trial.recording.seconds, trial.times, trial.verdicts) == (0.0, 0.0, (), ())
        assert trial.recording.failure is None or trial.recording.failure.detail is None


def test_a_baseline_of_a_baseline_is_the_same_file(run, kept, tmp_path):
    named = kept(run("old", run.case(), run.retrieval([1, 0])), "one.json.gz")
    kept(named, "two.json.gz")
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "two.json.gz").read_bytes()


def test_a_packed_file_has_what_a_plain_one_has(run, kept):
    cases = [run.case(f"S{number}", target=target) for number in range(3) for target in ("one", "other")]
    tasks = [run.retrieval([1, 2, rank], target=target) for rank, target in ((3, "one"), (0, "other"))]
    named = run("old", *cases, *tasks)
    assert kept(named).run == kept(named, "base.json").run


def test_a_case_that_another_memory_ended_alike_takes_no_room(run, kept, tmp_path):
    ranks = [chance % 11 for chance in range(7, 2000, 7)]
    kept(run("old", run.retrieval(ranks, target="one")), "one.json.gz")
    kept(run("old", *(run.retrieval(ranks, target=name) for name in ("one", "two", "three"))), "three.json.gz")
    assert (tmp_path / "three.json.gz").stat().st_size < 1.1 * (tmp_path / "one.json.gz").stat().st_size


def test_the_committed_baselines_are_small_and_say_for_each_question_where_its_gold_was():
    files = sorted((Path(__file__).parents[3] / "reports/baseline").glob("*.json.gz"))
    assert sum(file.stat().st_size for file in files) <= 400_000
    for file in files:
        questions = [one for case in read_results(file).cases for task in case.retrieval for one in task.questions]
        assert questions
        assert all(one.id and one.ranks is not None for one in questions)


def test_a_packed_file_that_is_damaged_is_named(tmp_path):
    path = tmp_path / "base.json.gz"
    path.write_bytes(gzip.compress(b"{}")[:-6])
    with pytest.raises(SetupError, match=r"base\.json\.gz is not JSON"):
        read_results(path)


@pytest.mark.parametrize(
    "cases", ["[[1, {}]]", "[[0, {}]]", "[7]", "7", "[[0, [1, 2]]]", '[[0, [{}]], [1, {"a": {}}]]']
)
def test_a_packed_file_whose_cases_do_not_fit_is_named(tmp_path, cases):
    path = tmp_path / "base.json.gz"
    path.write_bytes(gzip.compress(f'{{"schema": "memstory.packed/1", "cases": {cases}}}'.encode()))
    with pytest.raises(SetupError, match=r"base\.json\.gz is damaged"):
        read_results(path)


def bomb(path, cases):
    path.write_bytes(gzip.compress(f'{{"schema": "memstory.packed/1", "cases": {cases}}}'.encode()))
    return path


@pytest.mark.parametrize(
    "cases", [f"[{' ' * 20_000}]", f"""[[0, [{{"a": "{"b" * 900}"}}]]{", [1, {}]" * 20}]"""], ids=["long", "repeats"]
)
def test_a_packed_file_that_holds_more_than_it_may_is_refused_in_one_line(tmp_path, monkeypatch, cases):
    monkeypatch.setattr(results_file, "MOST_UNPACKED", 10_000)
    with pytest.raises(SetupError, match=r"base\.json\.gz holds more than 10000 bytes.*gate --update") as refused:
        read_results(bomb(tmp_path / "base.json.gz", cases))
    assert "\n" not in str(refused.value)


def test_a_small_file_that_would_fill_the_memory_is_refused_at_the_limit(tmp_path, capsys):
    piece = gzip.compress(b" " * 2**24)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(piece * (results_file.MOST_UNPACKED // 2**24 + 64))  # a GiB more than the limit
    tracemalloc.start()
    code = main(["compare", str(path)])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    said = capsys.readouterr()
    assert (code, said.out, said.err.count("\n")) == (2, "", 1)
    assert f"bomb.json.gz holds more than {results_file.MOST_UNPACKED} bytes" in said.err
    assert peak < 1.5 * results_file.MOST_UNPACKED


LITTLE_MEMORY = """
import resource, sys
from memstory.cli import main
import memstory.commands.results.compare
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, -1))
sys.exit(main(["compare", sys.argv[1]]))
"""


@pytest.mark.parametrize("file", ["base.json", "base.json.gz"])
def test_a_file_that_needs_more_memory_than_there_is_is_one_line(tmp_path, file):
    path = tmp_path / file
    text = f"[{', '.join(['[]'] * 2_000_000)}]".encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    run = subprocess.run([sys.executable, "-c", LITTLE_MEMORY, path], capture_output=True, text=True, check=False)  # noqa: S603
    assert (run.returncode, run.stdout) == (2, ""), run.stderr
    assert run.stderr.startswith(f"memstory compare: {path} needs more memory")
    assert run.stderr.count("\n") == 1
