"""What is drawn: the same for the same seed, no more than a target can do, and in time every value of the tables."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.controls import OracleFactory
from memstory.exploring import values
from memstory.exploring.playing import own_name
from memstory.exploring.programs import OTHER, OWNER, RULES, Op, draw

ABLE = OracleFactory().abilities({})
TURNS = ABLE | {"add.turns"}
DRAWS = 1_500


@pytest.fixture(scope="module")
def programs():
    return [draw(1, number, ABLE) for number in range(DRAWS)]


def test_a_seed_draws_the_same_again_and_another_seed_others():
    first = [draw(1, number, ABLE) for number in range(20)]
    assert first == [draw(1, number, ABLE) for number in range(20)]
    assert first != [draw(2, number, ABLE) for number in range(20)]


@pytest.mark.parametrize(
    "table",
    [values.ODD_TEXTS, values.ODD_KEYS, values.ODD_USERS, values.ODD_VALUES, values.NESTED_VALUES, values.ODD_NAMES,
     values.TWINS, values.NESTED_TWINS],
    ids=["texts", "keys", "users", "values", "nested values", "names", "twins", "nested twins"],
)  # fmt: skip
def test_every_value_of_a_table_is_drawn(programs, table):
    tags = frozenset().union(*(program.tags for program in programs))
    assert not table.keys() - tags


def test_every_kind_of_operation_is_drawn(programs):
    ops = {one.op for program in programs for one in program.operations}
    assert ops == set(get_args(Op))


def test_a_target_that_only_adds_and_searches_is_asked_for_nothing_else():
    plain = [draw(1, number, frozenset({"add", "add.verbatim", "search"})) for number in range(300)]
    operations = [one for program in plain for one in program.operations]
    assert {one.op for one in operations} == {"add", "search"}
    assert {one.user for one in operations} == {OWNER}
    assert not [one for one in operations if one.session or one.where]
    assert not [memo for one in operations for memo in one.memos if memo.item.metadata or memo.item.key]


def test_what_is_barred_is_not_drawn():
    tag = "text:quotes"
    barred = [draw(1, number, ABLE, frozenset({tag, "many"})) for number in range(500)]
    assert not [program for program in barred if {tag, "many"} & program.tags]
    assert [program for program in barred if "text:long" in program.tags]


def test_no_field_is_named_session_where_a_turn_has_one():
    tags = [frozenset().union(*(draw(1, number, able).tags for number in range(200))) for able in (ABLE, TURNS)]
    assert ["name:session" in one for one in tags] == [True, False]


def test_every_rule_speaks_of_capabilities_that_the_oracle_has():
    assert {name for name, needs in RULES.items() if needs - ABLE} == set()


@given(st.sampled_from([*values.ODD_USERS.values(), OWNER, OTHER]), st.integers(0, 99), st.integers(0, 99))
def test_a_marked_name_is_as_odd_and_of_its_program_alone(user, one, other):
    names = {own_name(user, f"{one}x1"), own_name(user, f"{other}x1")}
    assert len(names) == (1 if one == other else 2)
    assert own_name(user, "") == user
