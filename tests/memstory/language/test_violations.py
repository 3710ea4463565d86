"""The messages that authors live with, word for word."""

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memstory.language.grammar import grammar
from memstory.language.matchers import HIT_CHECKS, MATCHERS
from memstory.language.registry import OTHER_WORDS, suggestion
from memstory.language.text import documents
from memstory.language.violations import violations
from memstory.language.words import WORDS as STEPS

START = "story: A\ntitle: T\n"


def messages(text):
    (document,) = documents(START + text, "f.yaml")
    return [str(error) for _, error in violations(document.tree, document)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tag: [a]", "f.yaml:3:1: unknown key of a story 'tag'. Did you mean 'tags'? Known: control, covers,"),
        ("trials: 0", "f.yaml:3:9: 'trials' must be at least 1, but is 0"),
        ("trials: two", "f.yaml:3:9: 'trials' must be a whole number, but is the text 'two'"),
        ("tags: topics", "f.yaml:3:7: 'tags' must be a list, but is the text 'topics'"),
        (
            "covers: [L15]",
            "item 1 of 'covers' is 'L15', which is not a valid requirement id; write it like 'L-15' or 'SEC-4'",
        ),
        ("covers: [L-1, L-1]", 'f.yaml:3:9: \'covers\' names something twice: ["L-1", "L-1"]'),
        ("steps: []", "f.yaml:3:8: 'steps' must not be empty"),
        ("model: []", "f.yaml:3:8: 'model' must not be empty"),
        ("pass: {}", "f.yaml:3:1: 'pass' needs 'at_least' (the least number of trials that must pass)."),
        ("settle: never", "f.yaml:3:9: 'settle' must be one of auto, manual, but is the text 'never'."),
        ("control: {nothing: pass}", "f.yaml:3:1: 'control' needs 'because' (why the control passes or fails)."),
        ("options: {Tool Set: 1}", "f.yaml:3:11: 'Tool Set' is not a valid name; write it like 'language' or 'top_k'"),
        ("vectors: {a: [x]}", "f.yaml:3:15: item 1 of 'a' must be a number, but is the text 'x'"),
        ("notes: 5", "f.yaml:3:8: 'notes' must be a text, but is the number 5; quote it to mean a text"),
        ("notes: true", "f.yaml:3:8: 'notes' must be a text, but is the truth value true; quote it to mean a text"),
        ("notes:", "f.yaml:3:7: 'notes' must be a text, but is nothing"),
        ("perturb: {distractor: 1}", "f.yaml:3:11: unknown perturbation 'distractor'. Did you mean 'distractors'?"),
        ("expect: {metrics: {recal@5: 1}}", "f.yaml:3:20: unknown metric 'recal@5'. Did you mean 'recall@5'?"),
        ("steps: [{serach: x}]", "f.yaml:3:10: unknown step 'serach'. Did you mean 'search'? Known: add, advance,"),
        ("steps: [{say: 5}]", "'say' must be a text or a mapping, but is the number 5; quote it to mean a text"),
        ("steps: [{search: {q: x}}]", "f.yaml:3:10: 'search' needs 'query' (what is asked)."),
        ("steps: [{search: {query: x, topk: 5}}]", "unknown argument of search 'topk'. Did you mean 'top_k'?"),
        (
            "steps: [{advance: 30x}]",
            "'advance' is '30x', which is not a valid duration; write it like '2w' or '1h 5m' or '500ms', with the",
        ),
        (
            "steps: [{advance: 2 months}]",
            "units w (weeks), d (days), h (hours), m (minutes), s (seconds), ms (milliseconds), us (microseconds)",
        ),
        ("expect: {metrics: {recal@3: 1}}", "f.yaml:3:20: unknown metric 'recal@3'. Did you mean 'recall@3'?"),
        ("expect: {recall@3: {ge: 0.9}}", "write it under `metrics:`, as in `expect: {metrics: {recall@3: …}}`"),
        ("steps: {add: x, search: y}", "f.yaml:3:8: 'steps' must be a list, but is a mapping"),
        ("steps: {add: x, search: y}", "; put '- ' before each of its keys"),
        ("steps: [restart]", "item 1 of 'steps' must be a mapping, but is the text 'restart'; write 'restart:'"),
        (
            "steps: [{fault: {embedder: dwn}}]",
            "'embedder' must be one of down, slow, garbage, ok, but is the text 'dwn'. D",
        ),
        ("steps: [{settle: now}]", "'settle' must be nothing, a mapping or true or false, but is the text 'now'"),
        ("steps: [{repeat: {times: 0, steps: [{settle: }]}}]", "'times' must be at least 1, but is 0"),
        ("steps: [{say: a, expect: {anser: x}}]", "unknown expected field 'anser'. Did you mean 'answer'?"),
        ("steps: [{say: a, expect: {answer: {contians: x}}}]", "unknown matcher 'contians'. Did you mean 'contains'?"),
        ("steps: [{say: a, expect: {tool_calls: [{a: , b: }]}}]", "must have exactly one key, but has 2: a, b"),
        ("steps: [{search: a, expect: {hits: {frist: a}}}]", "unknown check of hits 'frist'. Did you mean 'first'?"),
        ("steps: [{search: a, expect: {hits: {order: [a]}}}]", "'order' must have at least 2 items"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_its_remedy(text, message):
    assert any(message in found for found in messages(text)), messages(text)


def test_the_grammar_is_a_valid_json_schema():
    Draft202012Validator.check_schema(grammar())


def test_every_property_of_the_grammar_is_described():
    undescribed = []

    def walk(schema, path):
        for name, inner in schema.items() if isinstance(schema, dict) else ():
            if name == "properties" and isinstance(inner, dict):
                for key, value in inner.items():
                    target = grammar()["$defs"].get(value.get("$ref", "").rpartition("/")[2], {})
                    if not (value.get("description") or target.get("description")):
                        undescribed.append((*path, key))
            if isinstance(inner, dict):
                walk(inner, (*path, name))

    walk(grammar(), ())
    assert undescribed == []


def test_a_name_like_nothing_gets_no_suggestion():
    assert suggestion("qqqq", ["contains"]) == ""


WORDS = [*MATCHERS, *HIT_CHECKS, "x"]
LEAVES = st.none() | st.booleans() | st.integers(-2, 5) | st.sampled_from([0.5, 2.0]) | st.sampled_from(WORDS)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(TREES, st.sampled_from([*grammar()["properties"]]))
def test_the_quick_check_agrees_with_the_one_that_explains(tree, key):
    expecting = {"search": "x", "expect": {"hits": tree}}
    story = {"story": "A", "title": "t", "steps": [{"add": "x"}, expecting], key: tree}
    quick, full = jsonschema_rs.Draft202012Validator(grammar()), Draft202012Validator(grammar())
    assert quick.is_valid(story) == full.is_valid(story)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "steps: [{search: x, expect: {hits: {frist: {text: {containz: tea}}}}}]",
            ["unknown check of hits 'frist'. Did you mean 'first'?", "unknown matcher 'containz'. Did you mean"],
        ),
        ("steps: [{serch: {qury: x}}]", ["unknown step 'serch'. Did", "'qury'. Did you mean 'query'"]),
        ("setps: [{serch: x, expcet: {hitz: {cuont: 1}}}]", ["'setps'", "'serch'", "'expcet'", "'hitz'", "'cuont'"]),
        ("steps: [{serch: x, search: {qury: y}}]", ["unknown step 'serch'", "'qury'. Did you mean 'query'"]),
        ("steps: [{search: x, expect: {hits: {frist: 3, cuont: x}}}]", ["'frist'", "'cuont'"]),
    ],
)
def test_what_is_below_a_misspelt_key_is_checked_in_the_same_go(text, told):
    found = sorted(messages(text), key=lambda one: [int(part) for part in one.split(":")[1:3]])
    assert all(part in " ".join(found) for part in told), found
    assert len(told) <= len(found) == len(set(found)) <= len(told) + 1


@pytest.mark.parametrize(
    ("written", "meant"),
    [("matches", "regex"), ("eq", "equals"), ("includes", "contains"), ("gte", "ge"), ("in", "one_of")],
)
def test_a_matcher_of_another_tool_is_answered_with_ours(written, meant):
    (told,) = messages(f"steps: [{{say: x, expect: {{answer: {{{written}: a}}}}}}]")
    assert f"unknown matcher '{written}'. Did you mean '{meant}'?" in told
    assert meant in MATCHERS


def test_every_other_word_leads_to_a_word_that_a_story_has():
    known = {*MATCHERS, *HIT_CHECKS, *STEPS}
    assert {name: word for name, word in OTHER_WORDS.items() if word not in known} == {}
