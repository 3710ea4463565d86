"""What is wrong with a story by its grammar: where, which name, which number; and word for word in a golden file."""

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


VIOLATIONS = [
    ("tag: [a]", "3:1", ["'tag'", "'tags'"]),
    ("trials: 0", "3:9", ["'trials'", "1", "0"]),
    ("trials: two", "3:9", ["'trials'", "'two'"]),
    ("tags: topics", "3:7", ["'tags'", "'topics'"]),
    ("covers: [L15]", "3:10", ["1", "'covers'", "'L15'", "'L-15'", "'SEC-4'"]),
    ("covers: [L-1, L-1]", "3:9", ["'covers'", "L-1"]),
    ("steps: []", "3:8", ["'steps'"]),
    ("model: []", "3:8", ["'model'"]),
    ("pass: {}", "3:1", ["'pass'", "'at_least'"]),
    ("settle: never", "3:9", ["'settle'", "'never'"]),
    ("control: {nothing: pass}", "3:1", ["'control'", "'because'"]),
    ("options: {Tool Set: 1}", "3:11", ["'Tool Set'", "'language'", "'top_k'"]),
    ("vectors: {a: [x]}", "3:15", ["1", "'a'", "'x'"]),
    ("notes: 5", "3:8", ["'notes'", "5"]),
    ("notes: true", "3:8", ["'notes'", "true"]),
    ("notes:", "3:7", ["'notes'", "nothing"]),
    ("perturb: {distractor: 1}", "3:11", ["'distractor'", "'distractors'"]),
    ("expect: {metrics: {recal@5: 1}}", "3:20", ["'recal@5'", "'recall@5'"]),
    ("steps: [{serach: x}]", "3:10", ["'serach'", "'search'"]),
    ("steps: [{say: 5}]", "3:15", ["'say'", "5"]),
    ("steps: [{search: {q: x}}]", "3:10", ["'search'", "'query'"]),
    ("steps: [{search: {query: x, topk: 5}}]", "3:29", ["'topk'", "'top_k'"]),
    ("steps: [{advance: 30x}]", "3:19", ["'advance'", "'30x'", "'2w'", "'1h 5m'", "'500ms'"]),
    ("steps: [{advance: 2 months}]", "3:19", ["w (weeks)", "us (microseconds)"]),
    ("expect: {metrics: {recal@3: 1}}", "3:20", ["'recal@3'", "'recall@3'"]),
    ("expect: {recall@3: {ge: 0.9}}", "3:10", ["`metrics:`", "`expect: {metrics: {recall@3: …}}`"]),
    ("steps: {add: x, search: y}", "3:8", ["'steps'", "a list", "'- '"]),
    ("steps: [restart]", "3:9", ["1", "'steps'", "'restart'", "'restart:'"]),
    ("steps: [{fault: {embedder: dwn}}]", "3:28", ["'embedder'", "'dwn'"]),
    ("steps: [{settle: now}]", "3:18", ["'settle'", "'now'"]),
    ("steps: [{repeat: {times: 0, steps: [{settle: }]}}]", "3:26", ["'times'", "1", "0"]),
    ("steps: [{say: a, expect: {anser: x}}]", "3:27", ["'anser'", "'answer'"]),
    ("steps: [{say: a, expect: {answer: {contians: x}}}]", "3:36", ["'contians'", "'contains'"]),
    ("steps: [{say: a, expect: {tool_calls: [{a: , b: }]}}]", "3:40", ["2", "a, b"]),
    ("steps: [{search: a, expect: {hits: {frist: a}}}]", "3:37", ["'frist'", "'first'"]),
    ("steps: [{search: a, expect: {hits: {order: [a]}}}]", "3:44", ["'order'", "2"]),
    ("retrieval: {sample: 0}", "3:21", ["'sample'", "1", "0"]),
    ("retrieval: {sample: many}", "3:21", ["'sample'", "'many'"]),
    ("retrieval: {sample: 2.5}", "3:21", ["'sample'", "2.5"]),
    ("retrieval: {sample: 2, seed: -1}", "3:30", ["'seed'", "0", "-1"]),
    ("retrieval: {preloaded: 1}", "3:24", ["'preloaded'", "1"]),
    ("retrieval: {user: ''}", "3:19", ["'user'"]),
    ("retrieval: {ids: [id]}", "3:18", ["'ids'", "id"]),
]


@pytest.mark.parametrize(("text", "place", "parts"), VIOLATIONS)
def test_a_mistake_is_named_with_its_place_and_its_remedy(text, place, parts):
    found = messages(text)
    at_place = [one.removeprefix(f"f.yaml:{place}: ") for one in found if one.startswith(f"f.yaml:{place}: ")]
    assert any(all(part in one for part in parts) for one in at_place), found


def test_the_messages_are_word_for_word_those_of_the_golden_file(golden):
    golden("grammar.txt", {text: messages(text) for text, *_ in VIOLATIONS})


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
