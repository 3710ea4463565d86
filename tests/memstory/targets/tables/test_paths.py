import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.targets.tables.replies import MissingPathError, find, parse_path

TREE = {"memory": {"id": 7, "a.b": 1}, "ids": [["x", "y"]], "rows": [{"tags": ["p", "q"]}, {"tags": ["r"]}]}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", TREE),
        (".", TREE),
        ("memory.id", 7),
        ('memory."a.b"', 1),
        ("ids[0]", ["x", "y"]),
        ("ids[0][-1]", "y"),
        ("rows[*].tags", [["p", "q"], ["r"]]),
        ("rows[*].tags[*]", ["p", "q", "r"]),
        ("rows[1].tags[0]", "r"),
    ],
)
def test_a_path_finds_its_place(path, expected):
    assert find(parse_path(path), TREE) == expected


@given(st.sampled_from(["memory.id", "ids[0]", "rows[*].tags[*]"]))
def test_json_in_a_text_is_read_too(path):
    assert find(parse_path(f"answer.{path}"), {"answer": json.dumps(TREE)}) == find(parse_path(path), TREE)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("memory.name", "there is no 'name'; there is id, a.b"),
        ("ids[4]", r"\[4\] is beyond the end of a list of 1"),
        ("memory[0]", r"\[0\] wants a list, there is an object"),
        ("memory.id.more", "'more' wants an object, there is a number"),
        ("memory[*]", r"\[\*\] wants a list, there is an object"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(path, message):
    with pytest.raises(MissingPathError, match=message):
        find(parse_path(path), TREE)


@pytest.mark.parametrize("written", ["a[", "a[x]", ".a", "a..b", "[", 'a."b', "a b[", "a]"])
def test_what_is_no_path_is_refused(written):
    with pytest.raises(ValueError, match="is not a path"):
        parse_path(written)


@given(st.text(max_size=20), st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_any_path_into_anything_finds_something_or_says_why_not(written, tree):
    try:
        path = parse_path(written)
        find(path, tree)
    except (ValueError, MissingPathError) as error:
        assert str(error)  # noqa: PT017  (either of two, and neither is a must)
