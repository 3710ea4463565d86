import json
import multiprocessing

import pytest

from memstory.contract.errors import SetupError
from memstory.results.folder.spool import SPOOL_NAME, Spool


def write_many(folder, case, count):
    for _ in range(count):
        Spool(folder).append(case)


def test_what_was_appended_is_read_back_equal(tmp_path, results):
    spool = Spool(tmp_path / "new" / "folder")
    for case in results:
        spool.append(case)
    assert spool.read() == results


def test_an_absent_spool_and_a_cleared_one_hold_nothing(tmp_path, results):
    spool = Spool(tmp_path)
    assert spool.read() == []
    spool.append(results[0])
    spool.clear()
    spool.clear()
    assert spool.read() == []


@pytest.mark.parametrize("outcomes", [("failed", "passed"), ("passed", "failed"), ("error", "failed", "passed")])
def test_a_case_that_ran_again_is_held_once_with_all_its_runs_and_as_the_worst_of_them(tmp_path, make_case, outcomes):
    spool = Spool(tmp_path)
    for outcome in outcomes:
        spool.append(make_case(outcome=outcome))
    (case,) = spool.read()
    assert (case.outcome, [trial.outcome for trial in case.trials]) == ("failed", list(outcomes))


@pytest.mark.parametrize("cut", [1, 5, 200])
def test_a_torn_line_costs_only_its_own_case(tmp_path, make_case, cut):
    spool = Spool(tmp_path)
    spool.append(make_case("S1"))
    spool.append(make_case("S2"))
    path = tmp_path / SPOOL_NAME
    path.write_bytes(path.read_bytes()[: -1 - cut])
    assert [case.story for case in spool.read()] == ["S1"]
    spool.append(make_case("S3"))
    assert [case.story for case in spool.read()] == ["S1", "S3"]
    assert spool.torn == 1


def test_several_processes_append_without_mixing_their_lines(tmp_path, make_case):
    context = multiprocessing.get_context("spawn")
    big = "long answer " * 20_000
    cases = [make_case(f"S{number}", trials=[make_case.trial(answer=big)]) for number in range(3)]
    workers = [context.Process(target=write_many, args=(tmp_path, case, 10)) for case in cases]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    spool = Spool(tmp_path)
    assert {case.story for case in spool.read()} == {"S0", "S1", "S2"}
    assert spool.torn == 0
    lines = [line for line in (tmp_path / SPOOL_NAME).read_bytes().split(b"\n") if line]
    assert len(lines) == 30
    assert all(json.loads(line) for line in lines)


def test_a_spool_of_another_version_says_so(tmp_path):
    (tmp_path / SPOOL_NAME).write_text('{"id": "S5[topics]", "colour": "red"}\n')
    with pytest.raises(SetupError, match="another version"):
        Spool(tmp_path).read()


@pytest.mark.parametrize("line", ["{}", "[]", "5", '"x"', '{"outcome": "passed"}'])
def test_a_line_that_is_no_case_of_any_version_costs_only_itself(tmp_path, make_case, line):
    spool = Spool(tmp_path)
    spool.append(make_case("S1"))
    with (tmp_path / SPOOL_NAME).open("a") as file:
        file.write(f"{line}\n")
    assert ([case.story for case in spool.read()], spool.torn) == (["S1"], 1)


def test_lone_surrogates_and_nan_survive_the_spool(tmp_path, make_case):
    case = make_case(title="\ud800 |", options={"x": float("inf")})
    Spool(tmp_path).append(case)
    assert Spool(tmp_path).read() == [case]
