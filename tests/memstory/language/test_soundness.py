"""The quick check of trees: whatever it takes for sound, the validator does too."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memstory.bundled import bundled_stories
from memstory.language.grammar import grammar
from memstory.language.soundness import soundness
from memstory.language.text import documents

STRING, LOOP = {"type": "string"}, {"$ref": "#/$defs/tree"}
VALIDATOR = Draft202012Validator(grammar())
FITS = soundness(grammar())
WORDS = ["story", "title", "steps", "add", "search", "expect", "hits", "count", "perturb", "distractors", "contains",
         "control", "because", "nothing", "pass", "x", "", "5s"]  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers(-2, 5) | st.sampled_from([0.5, 2.0]) | st.sampled_from(WORDS)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(TREES, st.sampled_from(sorted(grammar()["properties"])))
def test_what_is_taken_for_sound_is_valid(tree, key):
    story = {"story": "A", "title": "t", "steps": [{"add": "x"}], key: tree}
    assert not FITS(story) or VALIDATOR.is_valid(story)


def test_every_bundled_story_is_found_sound_at_once():
    files = sorted(path for path in bundled_stories().rglob("*.yaml"))
    found = [document for path in files for document in documents(path.read_text("utf-8"), path.name)]
    assert found
    assert [document.tree["story"] for document in found if not FITS(document.tree)] == []


@pytest.mark.parametrize(
    ("schema", "sound", "wrong"),
    [
        ({"type": ["integer", "null"]}, [1, None], ["1", True, 1.5]),
        ({"enum": ["a", 1, None]}, ["a", 1, None], ["b", True, [], {}]),
        ({"items": {"type": "string"}, "minItems": 1, "uniqueItems": True}, [["a"]], [[], ["a", "a"], [1]]),
        ({"required": ["a"], "minProperties": 2, "maxProperties": 2}, [{"a": 1, "b": 1}], [{"a": 1}, {"b": 1, "c": 1}]),
        ({"propertyNames": {"pattern": "^a"}}, [{"ab": 1}, 5], [{"b": 1}]),
        ({"patternProperties": {"^a": STRING}, "additionalProperties": False}, [{"a": ""}], [{"a": 1}, {"b": ""}]),
        ({"minimum": 1, "maximum": 2}, [1, 2.0, "text"], [0, 3]),
        ({"minLength": 1, "maxLength": 2}, ["a", [], 7], ["", "abc"]),
        ({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "array", "items": LOOP}}}, [[[], [[]]]], [[1]]),
        ({"properties": {"a": False}}, [{}, {"b": 1}], [{"a": 1}]),
    ],
)  # fmt: skip
def test_each_keyword_tells_sound_from_wrong(schema, sound, wrong):
    fits = soundness(schema)
    assert [fits(value) for value in sound] == [True] * len(sound)
    assert [fits(value) for value in wrong] == [False] * len(wrong)


def test_a_keyword_without_a_quick_check_is_refused_when_the_schema_is_read():
    with pytest.raises(ValueError, match="oneOf"):
        soundness({"oneOf": []})
