import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memstory.contract.values import ToolSchema
from memstory_reference.errors import InputError
from memstory_reference.tooling import check_arguments

TYPES = ["string", "integer", "number", "boolean", "array", "object"]
SPEC = ToolSchema(
    name="t",
    description="d",
    parameters={"type": "object", "properties": {one: {"type": one} for one in TYPES}, "required": ["string"]},
)


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(InputError) as error:
        check_arguments(SPEC, {"integer": "1", "boolean": 1, "foreign": 2})
    assert str(error.value) == (
        "t: string is missing; 'foreign' is not an argument; integer must be integer, not string; "
        "boolean must be boolean, not integer. Arguments: string, integer, number, boolean, array, object"
    )


def test_null_stands_for_an_argument_that_was_left_out():
    assert check_arguments(SPEC, {"string": "x", "object": None}) == {"string": "x"}


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([]) | st.just({}) | st.just(1.5)


@given(st.dictionaries(st.sampled_from(TYPES), VALUES))
def test_what_is_taken_is_what_the_json_schema_takes(arguments):
    given_ones = {name: value for name, value in arguments.items() if value is not None}
    try:
        assert check_arguments(SPEC, arguments) == given_ones
        taken = True
    except InputError:
        taken = False
    assert taken == Draft202012Validator(SPEC.parameters).is_valid(given_ones)
