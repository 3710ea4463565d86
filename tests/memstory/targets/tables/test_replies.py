import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.targets.tables.replies import MalformedError, Rows, ServerReply, number_of, parse_path, read_rows


def rows(**fields):
    at = fields.pop("at", "hits")
    return Rows(at=parse_path(at), fields={name: parse_path(path) for name, path in fields.items()})


def read(how, data):
    return [dict(row.fields) for row in read_rows(how, ServerReply(text=json.dumps(data)))]


def test_rows_are_read_by_paths_from_structured_content_before_text():
    how = rows(id="id", text="body.text")
    reply = ServerReply(text="{}", data={"hits": [{"id": 1, "body": {"text": "a"}}]})
    assert [dict(row.fields) for row in read_rows(how, reply)] == [{"id": "1", "text": "a"}]


def test_one_object_is_one_row_and_null_is_none():
    assert read(rows(at="", id="id"), {"id": "7"}) == [{"id": "7"}]
    assert read(rows(id="id"), {"hits": None}) == []
    assert read(rows(id="id"), {"hits": []}) == []


def test_columns_are_read_side_by_side():
    how = Rows(shape="columns", fields={name: parse_path(f"{name}s[0]") for name in ("id", "text", "score")})
    data = {"ids": [["1", "2"]], "texts": [["a", "b"]], "scores": [[0.5, 0.25]]}
    assert read(how, data) == [{"id": "1", "text": "a", "score": 0.5}, {"id": "2", "text": "b", "score": 0.25}]


def test_columns_of_different_length_are_malformed():
    how = Rows(shape="columns", fields={name: parse_path(name) for name in ("id", "text")})
    with pytest.raises(MalformedError, match="differ in length"):
        read(how, {"id": ["1", "2"], "text": ["a"]})


def test_null_is_what_a_memory_does_not_have():
    how = rows(id="id", text="text", score="score", key="key", kind="kind", created_at="then", metadata="more")
    empty = {"score": None, "key": None, "kind": None, "then": None, "more": None}
    assert read(how, {"hits": [{"id": "1", "text": "a", **empty}]}) == [{"id": "1", "text": "a"}]


def test_prose_is_read_by_a_pattern():
    pattern = re.compile(r"(?ms)^\d+\. (?P<text>.*?)\n   Hash: (?P<id>\w+)(?: \((?P<score>[\d.]+)\))?")
    how = Rows(shape="pattern", pattern=pattern)
    text = "Found 2:\n\n1. One\nand a half\n   Hash: ab (0.5)\n\n2. Two\n   Hash: cd"
    found = [dict(row.fields) for row in read_rows(how, ServerReply(text=text))]
    assert found == [{"text": "One\nand a half", "id": "ab", "score": 0.5}, {"text": "Two", "id": "cd"}]


def test_a_part_of_the_text_can_be_cut_out_first():
    how = Rows(at=parse_path(""), fields={"id": parse_path("id")}, within=re.compile(r"(?s)Found:\s*(\[.*\])"))
    assert [row.fields["id"] for row in read_rows(how, ServerReply(text='Found:\n[{"id": "1"}]\nBye.'))] == ["1"]
    with pytest.raises(MalformedError, match="nowhere in the reply: Bye"):
        read_rows(how, ServerReply(text="Bye."))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"hits": [{"id": "1"}]}, "row 1: there is no 'text'"),
        ({"hits": [{"id": None, "text": "a", "score": 1}]}, "the id is neither a text nor a number"),
        ({"hits": [{"id": "1", "text": 5, "score": 1}]}, "the text is not a string"),
        ({"hits": [{"id": "1", "text": "a", "score": "high"}]}, "not a finite number"),
        ({"hits": [{"id": "1", "text": "a", "score": True}]}, "not a finite number"),
        ({"hits": ["a"]}, "row 1: 'id' wants an object"),
        ({"hits": "sorry"}, "a text where rows are expected: 'sorry'"),
        ({"results": []}, "there is no 'hits'; there is results"),
        ([], "'hits' wants an object, there is a list"),
    ],
)
def test_a_malformed_reply_says_what_is_wrong_and_shows_it(data, message):
    with pytest.raises(MalformedError, match=message):
        read(rows(id="id", text="text", score="score"), data)


def test_text_that_is_no_json_is_malformed_and_shown():
    with pytest.raises(MalformedError, match="not JSON: Internal error"):
        read_rows(rows(id="id"), ServerReply(text="Internal error"))


def test_fields_that_need_not_be_there_may_be_missing():
    assert read(rows(id="id", kind="kind", metadata="more"), {"hits": [{"id": "1", "more": None}]}) == [{"id": "1"}]


def test_what_the_table_itself_put_into_metadata_is_hidden():
    how = Rows(fields={"metadata": parse_path("m")}, hidden=("user",))
    assert read(how, {"m": {"user": "ann", "topic": "x"}}) == [{"metadata": {"topic": "x"}}]


@given(
    st.lists(st.floats(min_value=0, max_value=1e6), min_size=2, max_size=9), st.sampled_from(["-x", "1-x", "1/(1+x)"])
)
def test_a_smaller_distance_is_never_a_smaller_score(distances, transform):
    scores = [number_of(distance, transform) for distance in sorted(distances)]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "nan", None, [], {}, "x", False])
def test_what_is_no_finite_number_is_no_score(value):
    with pytest.raises(ValueError, match="not a finite number"):
        number_of(value, "x")


def test_a_distance_below_its_range_is_refused():
    with pytest.raises(ValueError, match="below 0"):
        number_of(-2, "1/(1+x)")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["hits", "id", "text", "score"]), inner, max_size=4)
        ),
    )
)
def test_whatever_a_server_answers_is_read_or_malformed(data):
    for how in (
        rows(id="id", text="text", score="score"),
        Rows(shape="columns", fields={"id": parse_path("id"), "text": parse_path("hits")}),
    ):
        try:
            found = read(how, data)
        except MalformedError as error:
            assert str(error)  # noqa: PT017  (either of two, and neither is a must)
        else:
            assert all(isinstance(row.get("id", ""), str) for row in found)
