import subprocess
import sys
from typing import ClassVar

import pytest

from memstory.contract.errors import NotSupported
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.targets.adapter import (
    NOT_DEFAULT,
    Adapter,
    IdSequence,
    receipt_item,
    refuse_undeclared,
    stored_receipt,
    unknown_refusal,
)

ANYWHERE, SESSION = Scope(user="ann"), Scope(user="ann", session="one")
ASKED = [
    ("scope.session", Query(text="tea"), SESSION),
    ("search.min_score", Query(text="tea", min_score=0.0), ANYWHERE),
    ("search.budget", Query(text="tea", token_budget=0), ANYWHERE),
    ("search.where", Query(text="tea", where={"n": 1}), ANYWHERE),
    ("search.where", Query(text="tea", kinds=("fact",)), ANYWHERE),
]
EVERYTHING = frozenset(capability for capability, _, _ in ASKED)


@pytest.mark.parametrize(("capability", "query", "scope"), ASKED)
def test_a_condition_is_refused_by_the_name_of_what_is_not_declared(capability, query, scope):
    with pytest.raises(NotSupported, match=capability):
        refuse_undeclared(query, scope, EVERYTHING - {capability})


@pytest.mark.parametrize(("capability", "query", "scope"), ASKED)
def test_a_condition_that_is_declared_is_let_through(capability, query, scope):
    refuse_undeclared(query, scope, frozenset({capability}))


class OfCosines(Adapter):
    not_default: ClassVar = {"space cosine": "default l2"}

    def store_name(self):
        return "of cosines 1.0"


async def test_an_adapter_says_which_settings_are_not_the_default_of_its_library():
    assert await OfCosines().about() == {"store": "of cosines 1.0", NOT_DEFAULT: "space cosine (default l2)"}


def test_a_search_without_conditions_asks_for_nothing():
    refuse_undeclared(Query(text="tea", top_k=3), ANYWHERE, frozenset())


TEA, MILK = Item(text="tea", key="drink", kind="fact"), Item(text="milk")


def test_each_item_has_its_own_id():
    tea, milk = stored_receipt([TEA, MILK], ["m1", "m2"]).items
    assert (tea.id, tea.text, tea.outcome, tea.kind, tea.key) == ("m1", "tea", "stored", "fact", "drink")
    assert (milk.id, milk.text, milk.outcome, milk.kind, milk.key) == ("m2", "milk", "stored", None, None)


def test_an_id_too_few_is_no_receipt():
    with pytest.raises(ValueError, match="shorter"):
        stored_receipt([TEA, MILK], ["m1"])


def test_what_was_replaced_is_told_as_updated():
    item = receipt_item(TEA, "m1", "updated")
    assert (item.id, item.text, item.outcome, item.kind, item.key) == ("m1", "tea", "updated", "fact", "drink")


@pytest.mark.parametrize(("ref", "name"), [(Ref(id="m7"), "'m7'"), (Ref(key="drink"), "'drink'")])
def test_the_refusal_of_an_update_names_what_is_not_there(ref, name):
    assert str(unknown_refusal(ref)) == f"update: nothing is remembered under {name}"


def test_no_id_is_given_twice_by_two_that_were_opened_one_after_the_other(tmp_path):
    env = Environment(workspace=str(tmp_path), owner="ann", seed=3)
    given = [ids.next() for ids in (IdSequence(env), IdSequence(env), IdSequence(env)) for _ in range(3)]
    assert len(set(given)) == 9
    assert all(id_.startswith("m3.") for id_ in given)


def test_the_same_run_gives_the_same_ids(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = (IdSequence(Environment(workspace=str(tmp_path / name), owner="ann")) for name in ("one", "two"))
    assert [one.next(), one.next()] == [two.next(), two.next()]


OPEN = """
import sys
from memstory.contract.target import Environment
from memstory.targets.adapter import IdSequence
sys.stdin.readline()
for _ in range(200):
    print(IdSequence(Environment(workspace=sys.argv[1], owner="ann")).next())
"""


def test_processes_that_open_one_memory_at_the_same_time_never_give_one_id_twice(tmp_path):
    start = [sys.executable, "-c", OPEN, str(tmp_path)]
    processes = [
        subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603  (our own)
        for _ in range(4)
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    given = [one for process in processes for one in process.communicate()[0].split()]
    assert [process.returncode for process in processes] == [0] * 4
    assert len(set(given)) == len(given) == 800
