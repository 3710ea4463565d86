"""Whatever is written, it is a story or a positioned error: never a traceback."""

import copy

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory.contract.errors import StoryError
from memstory.language.matchers import CALL_CHECKS, HIT_CHECKS, HIT_FIELDS, MATCHERS
from memstory.language.stories import InvalidStory, parse_stories
from memstory.language.story import Story
from memstory.language.words import WORDS as STEPS
from memstory.language.words.step_parsing import MODIFIERS

RICH = """
story: R
title: Everything at once
tags: [a]
covers: [L-15]
targets: [x]
requires: [expiry]
options: {o: 1}
vectors: {t: [1, 0]}
model: [{when: {purpose: p, contains: [a]}, reply: {text: hi, tool_calls: [{name: t, args: {}}]}}]
vars: {n: 3}
defaults: {m: 1}
parametrize: [{row: one, q: x}, {row: two, q: y}]
settle: manual
trials: 3
pass: {at_least: 2}
control: {nothing: pass, because: so it is}
notes: free
steps:
  - say: {text: hello, vector: [0, 1]}
    as: bob
    session: s1
    save: {ans: answer}
    expect:
      answer: {icontains: x, not: {any: [{regex: a}, {length: {gt: 3}}]}, occurs: {a: 1}}
      tool_calls: {any_order: [{f: {a: {one_of: [1]}}}], none: [g], any_of: [h, [{k: null}]], count: {ge: 1}, not: [z]}
      latency_ms: {le: 5}
      eventually: 5s
  - add: [{text: one, key: k, kind: f, metadata: {a: 1}, save: one, vector: [1, 0]}, two]
    expect: {receipt: {items: {all: {outcome: stored}}, outcomes: {length: 2}}, error: {contains: x}}
  - search: {query: "${q}", top_k: "${n}", kinds: f, where: {a: 1}, options: {}, min_score: 0.1, token_budget: 5}
    expect:
      hits:
        first: one
        includes: [{text: a, score: {approx: {value: 1, tolerance: 0.1}}}]
        excludes: {text: z}
        order: [one, {id: "${one}"}]
        count: 2
        empty: false
        scores: {one: {ge: 0}}
        explain: {one: {f: 1}}
        text: {contains_all: [a]}
        not: {empty: true}
  - get: ${one}
  - list: {limit: 3}
  - update: {id: "${one}", text: t}
  - delete: {all: true}
  - feedback: {key: k, value: 1}
  - context: q
    expect: {text: {starts_with: a}, context_tokens: {le: 9}}
  - tool: {name: t, args: {a: {$ne: 1}}, caller: me}
    expect: {result: {type: text, json_schema: {type: string}}}
  - tools:
    expect: {tools: [a, b]}
  - run: {job: purge, args: {}}
  - inspect: files
    save: {before: data}
  - inspect: {what: files}
    expect: {data: {same_as: before, none_contain: [s]}}
  - new_session: two
  - end_session: idle
  - settle:
  - at: "2026-05-31T10:00:00Z"
  - advance: {days: 1}
  - restart:
  - crash: {during: [{add: x}]}
  - fault: {embedder: down}
  - repeat: {times: 2, steps: [{parallel: {times: 2, steps: [{add: "${i}", as: "u${i}"}]}}]}
"""
WORDS = sorted(
    {*STEPS, *MODIFIERS, *MATCHERS, *HIT_CHECKS, *HIT_FIELDS, *CALL_CHECKS, *yaml.safe_load(RICH)}
    | {
        "query",
        "metrics",
        "recall@5",
        "vector",
        "times",
        "during",
        "answer",
        "receipt",
        "result",
        "data",
        "error",
        "at_least",
    }
)
keys = st.one_of(st.sampled_from(WORDS), st.text(max_size=4))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["${x}", "${i}", "(a+)+", "30d", "2026-01-01T00:00:00Z", "one", "loc${x}mo"]),
)
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=12,
)


def assert_read(text):
    for story in parse_stories(text, "p.yaml"):
        if isinstance(story, InvalidStory):
            assert story.errors
            for error in story.errors:
                assert isinstance(error, StoryError)
                assert error.mark is not None
                assert error.mark.line >= 1
                assert error.mark.column >= 1
                assert error.message.strip()
        else:
            assert isinstance(story, Story)


def paths_of(tree, path=()):
    yield path
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, inner in pairs:
        yield from paths_of(inner, (*path, key))


@st.composite
def damaged_stories(draw):
    """The rich story with up to three of its parts replaced, renamed or removed."""
    tree = yaml.safe_load(RICH)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([path for path in paths_of(tree) if path]))
        around = tree
        for key in path[:-1]:
            around = around[key]
        deed = draw(st.sampled_from(["replace", "remove", "rename"]))
        if deed == "replace":
            around[path[-1]] = draw(trees)
        else:
            value = around.pop(path[-1])
            if deed == "rename" and isinstance(around, dict):
                around[draw(keys)] = value
    return yaml.safe_dump(copy.deepcopy(tree), sort_keys=False, allow_unicode=True)


def as_yaml(tree):
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)


def test_the_rich_story_itself_is_read():
    stories = parse_stories(RICH, "p.yaml")
    assert [story.row for story in stories if isinstance(story, Story)] == ["one", "two"], stories


@given(trees.map(as_yaml))
@settings(max_examples=100, deadline=None)
def test_any_tree_is_a_story_or_positioned_errors(text):
    assert_read(text)


@given(damaged_stories())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_damaged_story_is_a_story_or_positioned_errors(text):
    assert_read(text)


@given(st.one_of(st.text(), st.text(alphabet="-:[]{}\n &*!|>'\"%@`,?#ab1.~\t\r\x85")))
@settings(max_examples=100, deadline=None)
def test_any_text_is_a_story_or_positioned_errors(text):
    assert_read(text)


@pytest.mark.slow
@given(st.one_of(trees.map(as_yaml), damaged_stories()))
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_ten_thousand_trees_give_no_traceback(text):
    assert_read(text)
