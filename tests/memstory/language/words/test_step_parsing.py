"""Arguments as authors write them, in their one form."""

import pytest

from memstory.language.stories import InvalidStory, parse_stories
from memstory.language.words.times import microseconds


@pytest.mark.parametrize(
    ("written", "args"),
    [
        ("say: hello", {"text": "hello"}),
        ("add: tea", {"items": [{"text": "tea"}]}),
        ("add: [tea, {text: jam, key: k}]", {"items": [{"text": "tea"}, {"text": "jam", "key": "k"}]}),
        ("get: user.name", {"key": "user.name"}),
        ("get: {id: x, kind: topic}", {"id": "x", "kind": "topic"}),
        ("search: tea", {"query": "tea"}),
        ("search: {query: tea, kinds: fact}", {"query": "tea", "kinds": ["fact"]}),
        ("list:", {}),
        ("list: fact", {"kinds": ["fact"]}),
        ("delete: {all: true}", {}),
        ("delete: user.name", {"key": "user.name"}),
        ("feedback: {key: k, value: -1}", {"key": "k", "value": -1}),
        ("context: tea", {"query": "tea"}),
        ("tool: save", {"name": "save", "args": {}}),
        ("tool: {name: save, args: {a: 1}, caller: critic}", {"name": "save", "args": {"a": 1}, "caller": "critic"}),
        ("tools:", {}),
        ("run: purge", {"job": "purge", "args": {}}),
        ("inspect: status", {"what": "status"}),
        ("inspect: {what: bus, since: 3}", {"what": "bus", "since": 3}),
        ("new_session:", {}),
        ("new_session: second", {"name": "second"}),
        ("end_session:", {"reason": "explicit"}),
        ('at: "2026-05-31T12:00:00+02:00"', {"moment": "2026-05-31T10:00:00+00:00"}),
        ("advance: 30d", {"microseconds": 2_592_000_000_000}),
        ("fault: {store: garbage}", {"part": "store", "mode": "garbage"}),
        ("fault: {part: model, mode: ok}", {"part": "model", "mode": "ok"}),
        ("crash: true", {}),
        ("repeat: {times: 2, steps: [{settle: }]}", {"times": 2}),
    ],
)
def test_every_way_of_writing_a_step_has_one_form(written, args):
    (story,) = parse_stories(f"story: A\ntitle: T\nsteps:\n  - {written}\n", "f.yaml")
    assert story.steps[0].args == args


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1us", 1),
        ("1ms", 1000),
        ("19m 59s", 1_199_000_000),
        ("1.5h", 5_400_000_000),
        ({"days": 1, "seconds": 1}, 86_401_000_000),
    ],
)
def test_durations_are_exact_to_the_microsecond(written, expected):
    assert microseconds(written) == expected


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("add: x, save: {a: idd}", ["'idd'", "Did you mean 'id'?", "outcome"]),
        ("add: [x, y], save: {a: items.1.name}", ["'name'", "importance"]),
        ("update: {key: k, text: x}, save: {a: uid}", ["'uid'"]),
        ("search: x, save: {a: hits.0.idd}", ["'idd'", "score"]),
        ("get: k, save: {a: txt}", ["'txt'", "Did you mean 'text'?"]),
        ("list: , save: {a: 0.metdata.day}", ["'metdata'", "Did you mean 'metadata'?"]),
    ],
)
def test_a_saved_field_that_no_memory_has_is_the_mistake_of_the_story(step, words):
    (story,) = parse_stories(f"story: A\ntitle: T\nsteps:\n  - {{{step}}}\n", "f.yaml")
    assert isinstance(story, InvalidStory)
    (error,) = story.errors
    assert (error.mark.line, [word for word in words if word not in error.message]) == (4, [])


@pytest.mark.parametrize(
    "step",
    [
        "add: x, save: {a: id, b: items.0.key, c: receipt, d: items}",
        "search: x, save: {a: 0.id, b: hits.1.metadata.day}",
        "get: k, save: {a: id, b: hits.0.text, c: '0', d: hits}",
        "tool: t, save: {a: result.anything}",
    ],
)
def test_a_saved_field_may_be_any_that_a_result_has(step):
    (story,) = parse_stories(f"story: A\ntitle: T\nsteps:\n  - {{{step}}}\n", "f.yaml")
    assert not isinstance(story, InvalidStory)


@pytest.mark.parametrize(
    "step",
    [
        "search: x, expect: {hits: {text: {none_contain: [tea]}}}",
        "say: x, expect: {answer: {none_contain: [tea]}}",
        "inspect: files, expect: {data: {not: {none_contain: [tea]}}}",
    ],
)
def test_a_matcher_of_files_on_a_text_is_the_mistake_of_the_story(step):
    (story,) = parse_stories(f"story: A\ntitle: T\nsteps:\n  - {{{step}}}\n", "f.yaml")
    assert isinstance(story, InvalidStory)
    (error,) = story.errors
    assert (error.mark.line, "'none_contain'" in error.message, "{not: {contains_any:" in error.message) == (
        4,
        True,
        True,
    )
