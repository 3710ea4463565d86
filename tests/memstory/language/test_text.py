"""YAML text to trees with places."""

import pytest

from memstory.language.text import MAX_CHARACTERS, documents


def tree(text):
    (document,) = documents(text, "f.yaml")
    assert not document.errors, document.errors
    return document.tree


def faults(text):
    return [str(error) for document in documents(text, "f.yaml") for error in document.errors]


@pytest.mark.parametrize(
    "text",
    ["19:59", "010", "no", "yes", "on", "off", "y", "2026-01-01", "0x1F", "1_000", "1:30:00", "-", "+", ".", "e5"],
)
def test_what_yaml_1_1_would_turn_into_something_else_is_a_text(text):
    assert tree(f"a: {text!r}" if text == "-" else f"a: {text}") == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("~", None),
        ("null", None),
        ("", None),
        ("true", True),
        ("False", False),
        ("7", 7),
        ("-0", 0),
        ("+3", 3),
        (".5", 0.5),
        ("1.", 1.0),
        ("-1.5e3", -1500.0),
        ("1e3", 1000.0),
        ("123456789012345678901", 123456789012345678901),
    ],
)
def test_core_scalars_have_their_values(text, value):
    found = tree(f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_a_quoted_scalar_is_always_a_text():
    assert tree("{a: '5', b: \"true\", c: '~'}") == {"a": "5", "b": "true", "c": "~"}


def test_places_of_values_and_keys_count_from_one():
    (document,) = documents("a:\n  b: [x, y]\n", "f.yaml")
    assert str(document.at(("a", "b", 1))) == "f.yaml:2:10"
    assert str(document.at_key(("a", "b"))) == "f.yaml:2:3"


def test_a_place_that_does_not_exist_is_the_nearest_thing_around_it():
    (document,) = documents("a:\n  b: x\n", "f.yaml")
    assert str(document.at(("a", "b", "c", 7))) == "f.yaml:2:6"


def test_documents_count_their_lines_from_the_start_of_the_file():
    found = list(documents("# first\n---\na: 1\n---\n---\nb: 1\n", "f.yaml"))
    assert [(document.tree, document.mark.line) for document in found] == [({"a": 1}, 3), ({"b": 1}, 6)]


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n---\n", "\ufeff"])
def test_a_file_that_holds_nothing_has_no_documents(text):
    assert list(documents(text, "f.yaml")) == []


def test_a_broken_document_leaves_the_others_readable():
    first, second, third = documents("a: 1\n---\nb: [1, 2\n---\nc: 3\n", "f.yaml")
    assert (first.tree, third.tree) == ({"a": 1}, {"c": 3})
    assert second.tree is None
    assert str(second.errors[0]).startswith("f.yaml:")


def test_duplicate_keys_are_refused_with_both_places_and_all_of_them():
    inner, outer = faults("a: 1\nb: {c: 1, c: 2}\na: 2\n")
    assert inner.startswith("f.yaml:2:11: the key 'c' ")
    assert outer.startswith("f.yaml:3:1: the key 'a' ")
    assert ("line 2, column 5" in inner, "line 1, column 1" in outer) == (True, True)


REFUSED = [
    ("a: &x 1", "1:4", ["'&x'"]),
    ("a: *x", "1:4", ["'*x'"]),
    ("a: !!python/object:os.system x", "1:4", ["'tag:yaml.org,2002:python/object:os.system'"]),
    ("a: !mine x", "1:4", ["'!mine'"]),
    ("<<: {a: 1}", "1:1", ["<<"]),
    ("5: x", "1:1", ["5"]),
    ("true: x", "1:1", ["true"]),
    ("[a]: x", "1:1", ["list", "mapping"]),
    ("a: .inf", "1:4", [".inf"]),
    ("a: -.INF", "1:4", ["-.INF"]),
    ("a: .nan", "1:4", [".nan"]),
    ("a: 1e999", "1:4", ["1e999"]),
    (f"a: {10**100}", "1:4", ["100"]),
    ("a: b: c", "1:5", ["':'", "': '"]),
    ("a: {b: ${tea}, c: 1}", "1:9", ["${tea}"]),
    ("a: [of ${tea}]", "1:9", ["${tea}"]),
    ("a: 'x", "1:6", ["quotes"]),
    ("a: @x", "1:4", ["quote"]),
    ("%YAML 1.1\n---\na: 1", "1:1", ["'%'"]),
    ("a: 1\n...\nb: 2", "3:1", ["not YAML"]),
    ("a: \x07", "1:4", ["U+0007"]),
    ("a: \ud800", "1:4", ["U+D800"]),
]


@pytest.mark.parametrize(("text", "place", "parts"), REFUSED)
def test_what_stories_do_not_use_is_refused_in_words(text, place, parts):
    found = faults(text)
    at_place = [one.removeprefix(f"f.yaml:{place}: ") for one in found if one.startswith(f"f.yaml:{place}: ")]
    assert any(all(part in one for part in parts) for one in at_place), found


def test_the_messages_are_word_for_word_those_of_the_golden_file(golden):
    golden("yaml.txt", {text: faults(text) for text, *_ in REFUSED})


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 20_000, "{a: " * 50_000])
def test_deep_nesting_is_refused_before_it_costs_anything(text):
    assert "nested more than 32 levels deep" in faults(text)[0]


def test_a_yaml_bomb_is_refused_at_its_first_anchor():
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n"
    assert faults(bomb)[0].startswith("f.yaml:1:4: '&a': anchors and aliases")


def test_a_file_that_is_too_large_is_refused_unread():
    assert "a story file has at most 2,000,000" in faults("a" * (MAX_CHARACTERS + 1))[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("story: A\nsteps:\n\t- add: x\n", 3),
        ("story: A\nsteps:\n  - add:\n  \t  text: x\n", 4),
        ("a: b\n---\nb:\n\tc: d\n", 4),
    ],
)
def test_a_tab_in_an_indentation_is_named_with_its_line(text, line):
    (error,) = [error for document in documents(text, "f.yaml") for error in document.errors]
    assert str(error).startswith(f"f.yaml:{line}:1: tab")


def test_a_tab_within_a_value_is_no_fault_of_the_indentation():
    (error,) = [error for document in documents("a: b\tc\nb: [\n", "f.yaml") for error in document.errors]
    assert "tab" not in str(error)
