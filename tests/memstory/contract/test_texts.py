import pytest

from memstory.contract.texts import did_you_mean, nearest


@pytest.mark.parametrize(
    ("found", "name"), [("serch", "search"), ("SEARCH", "search"), ("ADDD", "Add"), ("zebra", None), ("", None)]
)
def test_the_nearest_name_is_found_in_any_case_and_given_as_it_is_written(found, name):
    assert nearest(found, ["search", "Add"]) == name


def test_a_question_is_asked_only_where_a_name_is_near():
    assert did_you_mean("serch", iter(["search"])) == " Did you mean 'search'?"
    assert did_you_mean("zebra", ["search"]) == ""
