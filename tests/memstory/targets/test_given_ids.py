from memstory.contract.target import Environment
from memstory.targets.given_ids import GivenIds


def test_no_id_is_given_twice_by_two_that_were_opened_one_after_the_other(tmp_path):
    env = Environment(workspace=str(tmp_path), owner="ann", seed=3)
    given = [ids.next() for ids in (GivenIds(env), GivenIds(env), GivenIds(env)) for _ in range(3)]
    assert len(set(given)) == 9
    assert all(id_.startswith("m3.") for id_ in given)


def test_the_same_run_gives_the_same_ids(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = (GivenIds(Environment(workspace=str(tmp_path / name), owner="ann")) for name in ("one", "two"))
    assert [one.next(), one.next()] == [two.next(), two.next()]
