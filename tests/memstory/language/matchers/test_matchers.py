"""Every matcher, both ways, as a story writes it."""

import pytest

from memstory.language.matchers import Context, contents, judge
from memstory.language.matchers.check import read_group
from memstory.language.reading import Reading
from memstory.language.text import documents


def finding(value, written, names=None):
    text = f"m: {written}"
    (document,) = documents(text, "f.yaml")
    reading = Reading(document=document, errors=[], saved=set(names or ()))
    matchers = read_group(reading, document.tree["m"], ("m",))
    assert reading.errors == []
    findings = [judge("data", value, matcher, Context(names=names or {})) for matcher in matchers]
    return next((found for found in findings if not found.holds), findings[0])


HOLDS = [
    ("tea", "tea"), (1, "1.0"), (1.0, "{equals: 1}"), ({"a": [1]}, "{equals: {a: [1]}}"), (None, "null"),
    ("green tea", "{contains: tea}"), (["tea"], "{contains: tea}"), ({"tea": 1}, "{contains: tea}"),
    ("Green Tea", "{icontains: tEA}"), (["Tea"], "{icontains: tea}"), ("STRASSE", "{icontains: straße}"),
    ("a b c", "{contains_all: [a, c]}"), ("a b c", "{contains_any: [z, c]}"), ([1, 2], "{contains_any: [2]}"),
    ("tea 42", "{regex: '\\d+$'}"), ("tea time", "{starts_with: tea}"), ("tea time", "{ends_with: time}"),
    ("tea", "{length: 3}"), ([1, 2], "{length: {ge: 2}}"), ({"a": 1}, "{length: 1}"),
    (2, "{one_of: [1, 2]}"), (0.3999999762, "{approx: 0.4}"), (0.45, "{approx: {value: 0.4, tolerance: 0.1}}"),
    ([0.91, 0.6], "{approx: [0.91, 0.6]}"), (2, "{gt: 1}"), (2, "{ge: 2}"), (1, "{lt: 1.5}"), ("b", "{le: b}"),
    ("x", "{type: text}"), (1.5, "{type: number}"), (2.0, "{type: integer}"), (True, "{type: boolean}"),
    (None, "{type: null}"), ([], "{type: list}"), ({}, "{type: mapping}"),
    ({"a": "x"}, "{json_schema: {type: object, required: [a]}}"),
    ("a-b-a", "{occurs: {a: 2, b: 1, z: 0}}"), (["a", "a"], "{occurs: {a: {ge: 2}}}"),
    ([{"by": "x"}, {"by": "y"}], "{occurs: {of: {by: x}, times: 1}}"), ("aba", "{occurs: {of: a, times: 2}}"),
    ("x", "{type: string}"), ([], "{type: array}"), ({}, "{type: object}"), ({"field": 1}, "{field: 1}"),
    ([1, 2], "{all: {ge: 1}}"), ("tea", "{all: [{contains: t}, {contains: e}]}"), ({"a": 1}, "{all: 1}"),
    ([1, 5], "{any: {gt: 4}}"), ("tea", "{any: [{contains: z}, tea]}"),
    ("tea", "{not: {contains: z}}"), ("tea", "{not: jam}"), ("tea", "{contains: t, not: {length: 4}}"),
    ({"a": 1, "b": 2}, "{a: 1}"), ({"type": "x"}, "{fields: {type: x}}"), ({"a": {"b": [1]}}, "{a: {b: {length: 1}}}"),
    ("tea-7", "'tea-${n}'"), (7, "'${n}'"), ("say tea-7", "{contains: 'tea-${n}'}"),
    ("7 up", "{starts_with: '${n}'}"), ("a7", "{icontains: '${n}'}"), ("a7", "{regex: '${n}$'}"),
    ([1], "{same_as: before}"), ({"files": [1], "containing": {}}, "{same_as: listing}"),
    ({"containing": {"secret": []}}, "{none_contain: [secret]}"),
]  # fmt: skip
FAILS = [
    ("tea", "jam"), (True, "1"), (1, "true"), ("1", "1"), ({"a": 1, "b": 2}, "{equals: {a: 1}}"), ([1, 2], "[2, 1]"),
    ("green tea", "{contains: Tea}"), (["green tea"], "{contains: tea}"), (5, "{contains: 5}"), (None, "{contains: x}"),
    ("jam", "{icontains: tea}"), ("a b", "{contains_all: [a, c]}"), ("a b", "{contains_any: [x, y]}"),
    ("tea", "{regex: '^\\d'}"), (5, "{regex: '5'}"), ("a tea", "{starts_with: tea}"), ("tea a", "{ends_with: tea}"),
    ("tea", "{length: 4}"), (5, "{length: 1}"), (3, "{one_of: [1, 2]}"), (True, "{one_of: [1]}"),
    (0.41, "{approx: 0.4}"), ("0.4", "{approx: 0.4}"), ([0.4], "{approx: [0.4, 0.5]}"), (True, "{approx: 1}"),
    (1, "{gt: 1}"), (1, "{ge: 2}"), (2, "{lt: 2}"), (3, "{le: 2}"), ("b", "{gt: 1}"), (None, "{ge: 0}"),
    (True, "{ge: 0}"),
    (1, "{type: text}"), (True, "{type: number}"), (1.5, "{type: integer}"), (0, "{type: boolean}"),
    ({}, "{json_schema: {type: object, required: [a]}}"), ("aa", "{occurs: {a: 1}}"),
    ([{"by": "x"}], "{occurs: {of: {by: {contains: x}}, times: 0}}"), (5, "{occurs: {a: 1}}"),
    ([1, 0], "{all: {ge: 1}}"), ([], "{all: {ge: 1}}"), ("tea", "{all: [tea, jam]}"), (5, "{all: 5}"),
    ([1], "{any: 2}"), ([], "{any: 2}"), ("tea", "{any: [jam, {contains: z}]}"),
    ("tea", "{not: tea}"), ("tea", "{not: {not: {contains: z}}}"), ("tea", "{contains: t, length: 9}"),
    ({"b": 1}, "{a: 1}"), ({"a": 2}, "{a: 1}"), ("tea", "{a: 1}"),
    ("x", "{regex: '${broken}'}"), ("x", "{not: {regex: '${broken}'}}"),
    ([2], "{same_as: before}"), ({"containing": {"secret": ["db"]}}, "{none_contain: [secret]}"),
    ({"containing": {}}, "{none_contain: [secret]}"),
]  # fmt: skip
NAMES = {"n": 7, "broken": "(", "before": [1], "listing": {"files": [1], "digest": "x"}}


@pytest.mark.parametrize(("value", "written"), HOLDS)
def test_a_matcher_holds(value, written):
    # H-16
    found = finding(value, written, NAMES)
    assert found.holds, found.says


@pytest.mark.parametrize(("value", "written"), FAILS)
def test_a_matcher_fails_and_says_why(value, written):
    # H-16
    found = finding(value, written, NAMES)
    assert not found.holds
    assert found.says


REASONS = [
    ("I do not know", "{contains: Elixir}", ["'Elixir'", "'I do not know'"]),
    ("It is Sydney", "{not: {contains: Sydney}}", ["contains 'Sydney'"]),
    ({"calls": 3}, "{calls: {le: 2}}", ["'calls'", "3", "≤ 2"]),
    ({"calls": 3}, "{texts: 2}", ["'texts'", "'calls'"]),
    ([0.9, 0.2], "{all: {ge: 0.3}}", ["element 2", "0.2", "≥ 0.3"]),
    ("a\nb", "x", ["'a\\nb'", "'x'"]),
    ("xx", "{occurs: {x: 1}}", ["'x'", "2", "1"]),
]


@pytest.mark.parametrize(("value", "written", "parts"), REASONS)
def test_the_reason_names_what_was_found_and_what_was_wanted(value, written, parts):
    says = finding(value, written).says
    assert all(part in says for part in parts), says


def test_the_reasons_are_word_for_word_those_of_the_golden_file(golden):
    cases = [(value, written) for value, written, *_ in (*FAILS, *REASONS)]
    golden("matchers.txt", {f"{value!r} {written}": [finding(value, written, NAMES).says] for value, written in cases})


def test_structures_that_differ_are_compared_in_words():
    assert "it['a'][1]" in finding({"a": [1, 2]}, "{equals: {a: [1, 3]}}").difference


def test_a_value_that_contains_nothing_is_never_shown_at_length():
    assert len(finding("x" * 100_000, "{contains: y}").says) < 300


LONG = "Nothing to see here. " * 110_000


@pytest.mark.parametrize(
    ("value", "pattern", "is_there"),
    [
        (f"{LONG}PIN 4711", r"PIN \d{4}", True),
        (f"{LONG}\ud800 PIN 4711\n", r"\ud800 PIN \d{4}$", True),
        (f"PIN {LONG}", r"PIN \d{4}", False),
    ],
    ids=["at the end", "beside half a sign", "not there"],
)
def test_a_pattern_is_looked_for_in_the_whole_of_a_long_text(value, pattern, is_there):
    assert finding(value, f"{{regex: '{pattern}'}}").holds is is_there
    assert finding(value, f"{{not: {{regex: '{pattern}'}}}}").holds is not is_there


@pytest.mark.parametrize(
    "written", ["{regex: '(a|a)*b'}", "{not: {regex: '(a|a)*b'}}", "{any: [{not: {regex: '(a|a)*b'}}]}"]
)
def test_a_text_that_a_pattern_cannot_get_through_in_time_fails_the_check_and_what_is_around_it(written, monkeypatch):
    monkeypatch.setattr(contents, "_SECONDS", 0.5)
    found = finding("a" * 100_000, written)
    assert not found.holds
    assert "100,000 characters" in found.says
    assert "0.5 s" in found.says


@pytest.mark.parametrize(
    ("value", "written", "saved"),
    [
        ("Ana likes tea", "{not: {contains: '${gone}'}}", None),
        ("Ana likes tea", "{not: {contains: 'id ${gone}'}}", None),
        ("m2", "{not: '${gone}'}", None),
        (None, "'${gone}'", None),
        (None, "{same_as: gone}", None),
        ("m2", "{not: {same_as: gone}}", None),
        ("Ana likes tea", "{contains: '${gone}'}", ""),
        ("Ana likes tea", "{starts_with: '${gone}'}", ""),
        ("Ana likes tea", "{icontains: '${gone}'}", ""),
        ("Ana likes tea", "{contains_all: '${gone}'}", []),
        ("Ana likes tea", "{contains_any: [jam, '${gone}']}", ""),
        ("Ana likes tea", "{regex: '${gone}'}", ""),
        ("Ana likes tea", "{occurs: {of: '${gone}', times: {ge: 1}}}", ""),
        ("Ana likes tea", "{any: [jam, {contains: '${gone}'}]}", ""),
    ],
)
def test_what_was_saved_empty_lets_no_check_hold(value, written, saved):
    found = finding(value, written, {"gone": saved})
    assert not found.holds
    assert "nothing was saved" in found.says
