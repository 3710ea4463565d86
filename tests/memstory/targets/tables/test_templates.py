import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.targets.tables.templates import EACH, SPREAD, parse_template, placeholders, render, takes_items

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text().filter(lambda name: name not in (EACH, SPREAD)), inner),
)


def filled(tree, **values):
    return render(parse_template(tree), values)


def escaped(tree):
    if isinstance(tree, str):
        return tree.replace("{", "{{").replace("}", "}}")
    if isinstance(tree, list):
        return [escaped(inner) for inner in tree]
    return {name: escaped(inner) for name, inner in tree.items()} if isinstance(tree, dict) else tree


@given(JSON)
def test_what_has_no_placeholder_stays_as_it_is(tree):
    assert filled(escaped(tree)) == tree


@given(JSON.filter(lambda value: value not in (None, {})))
def test_a_placeholder_alone_keeps_the_type_of_its_value(value):
    assert filled({"a": ["{x}"]}, x=value) == {"a": [value]}


@given(st.text(), st.text().map(lambda text: text.replace("{", "").replace("}", "")))
def test_text_that_is_filled_in_is_never_read_as_a_placeholder(value, around):
    assert filled(f"{around}:{{x}}", x=value) == f"{around}:{value}"


@given(st.text())
def test_any_string_is_read_or_refused_with_its_own_words(text):
    try:
        template = parse_template(text)
    except ValueError as error:
        assert "lone" in str(error)  # noqa: PT017  (either of two, and neither is a must)
    else:
        assert set(placeholders(template)) <= set(text.replace("{", " ").replace("}", " ").replace("|", " ").split())


@pytest.mark.parametrize(
    ("tree", "values", "expected"),
    [
        ("k={k}", {"k": 5}, "k=5"),
        ("{kind|note}", {}, "note"),
        ("{kind|}", {}, ""),
        ("{kind|note}", {"kind": "fact"}, "fact"),
        ({"a": "{x}", "b": 1}, {}, {"b": 1}),
        ({"a": "{x}", "b": 1}, {"x": {}}, {"b": 1}),
        ({"a": "{x}", "b": 1}, {"x": 0}, {"a": 0, "b": 1}),
        ({"a": "{x}", "b": 1}, {"x": ""}, {"a": "", "b": 1}),
        (["user:{user}", "session:{session}"], {"user": "ann"}, ["user:ann"]),
        ({"where": {"session": "{session}"}, "b": 1}, {}, {"b": 1}),
        ({"a": ["{x}"]}, {}, None),
        ({"a": [], "b": {}}, {}, {"a": [], "b": {}}),
        ({"*": "{metadata}", "user": "{user}"}, {"metadata": {"a": 1}, "user": "ann"}, {"a": 1, "user": "ann"}),
        ({"*": "{metadata}", "user": "{user}"}, {"metadata": {"user": "x"}, "user": "ann"}, {"user": "ann"}),
        ("{a} and {b}", {"a": "{b}", "b": [1]}, "{b} and [1]"),
    ],
)
def test_a_template_is_filled_in(tree, values, expected):
    assert filled(tree, **values) == expected


def test_each_makes_one_element_an_item_and_sees_what_is_around_it():
    tree = {"ids": {"each": "{id}"}, "docs": {"each": {"text": "{text}", "user": "{user}"}}}
    items = [{"id": "1", "text": "a"}, {"id": "2", "text": "b"}]
    assert filled(tree, items=items, user="ann") == {
        "ids": ["1", "2"],
        "docs": [{"text": "a", "user": "ann"}, {"text": "b", "user": "ann"}],
    }


def test_a_column_is_as_long_as_the_others_where_a_value_is_missing():
    assert filled({"each": "{key}"}, items=[{"key": "a"}, {"key": None}]) == ["a", None]


def test_a_template_tells_whether_it_takes_many():
    assert takes_items(parse_template({"a": [{"each": "{text}"}]}))
    assert not takes_items(parse_template({"each": "{text}", "other": 1}))


def test_values_in_a_longer_string_can_be_written_in_another_way():
    assert (
        render(parse_template("/m/{id}"), {"id": "a/b"}, escape=lambda value: value.replace("/", "%2F")) == "/m/a%2Fb"
    )


@given(st.dictionaries(st.sampled_from("abc"), st.integers() | st.text() | st.none()))
def test_what_is_made_can_always_be_sent(values):
    made = filled({"x": ["{a}", {"y": "{b}"}], "z": "{c}!"}, **values)
    assert json.loads(json.dumps(made)) == made
