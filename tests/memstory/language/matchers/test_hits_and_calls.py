"""Checks of hits and of tool calls, through stories and recordings."""

import re
from dataclasses import replace

import pytest

from memstory.contract.target import ToolSchema
from memstory.judging.verdicts import step_verdicts
from memstory.language.json_schemas import call_faults, tool_faults
from memstory.language.matchers.expectable import estimated_tokens
from memstory.language.stories import parse_stories
from memstory.results.recording import Failure, Recording, StepRecord

LATER = Failure(kind="error", message="it ended here")
ITEMS = "[{text: near, save: near}, {text: good, save: good}, {text: far, save: far}]"
START = f"story: A\ntitle: T\nsteps:\n  - add: {ITEMS}\n"


def hit(name, score=None, **more):
    return {"id": f"id-{name}", "text": name, "score": score, "metadata": {}, "explain": None, **more}


def record(path, op, result, names=None):
    return StepRecord(path=path, op=op, args={}, user="u", session=None, at="", result=result, names=names or {})


def verdicts_on_hits(hits, expect, *, ids=True):
    (story,) = parse_stories(f"{START}  - search: q\n    expect: {{hits: {expect}}}\n", "f.yaml")
    given = {name: f"id-{name}" if ids else None for name in ("near", "good", "far")}
    items = [{"id": given[name], "text": name} for name in given]
    if not ids:
        hits = [{**one, "id": None} for one in hits]
    recording = Recording(
        story="A", target="t", steps=[record((0,), "add", {"items": items}, given), record((1,), "search", hits, given)]
    )
    return step_verdicts(story, recording)


HITS = [hit("good", 0.9, metadata={"score": 9.5}, explain={"final": 0.77}), hit("near", 0.8), hit("other", 0.5)]


@pytest.mark.parametrize(
    "expect", ["{first: near}", "{includes: near}", "{exactly: [near]}", "{count: 1}", "{empty: false}"]
)
def test_a_failed_check_of_no_hits_says_that_there_were_none(expect):
    assert [verdict.kind for verdict in verdicts_on_hits([], expect) if not verdict.passed] == ["no hits"]
    assert [verdict.kind for verdict in verdicts_on_hits([HITS[2]], expect) if not verdict.passed] in ([], [None])


def test_a_pattern_is_looked_for_in_all_of_many_hits():
    hits = [hit(f"nothing to see here {number} " + "." * 600) for number in range(90)] + [hit("PIN 4711")]
    (verdict,) = verdicts_on_hits(hits, r"{text: {not: {regex: 'PIN \d{4}'}}}")
    assert not verdict.passed


def test_a_pattern_is_looked_for_in_the_whole_of_a_long_context():
    (story,) = parse_stories(
        "story: A\ntitle: T\nsteps: [{context: q, expect: {text: {not: {regex: 'PIN \\d{4}'}}}}]", "f.yaml"
    )
    recording = Recording(story="A", target="t", steps=[record((0,), "context", "Nothing here. " * 5_000 + "PIN 4711")])
    assert [verdict.passed for verdict in step_verdicts(story, recording)] == [False]


def test_that_hits_were_told_apart_by_their_text_is_said_only_of_hits():
    said = [verdict.reason for verdict in verdicts_on_hits([], "{includes: near, empty: false}", ids=False)]
    assert said
    assert not [reason for reason in said if "matched by text" in reason]
    (verdict,) = verdicts_on_hits(HITS, "{includes: far}", ids=False)
    assert "matched by text" in verdict.reason


HIT_VERDICTS = [
    ("{first: good}", True),
    ("{first: near}", False),
    ("{first: {text: good, metadata: {score: 9.5}, explain: {final: {approx: 0.77}}}}", True),
    ("{first: {text: near}}", False),
    ("{includes: [near, good]}", True),
    ("{includes: far}", False),
    ("{includes: {score: {gt: 0.95}}}", False),
    ("{excludes: far}", True),
    ("{excludes: [far, near]}", False),
    ("{excludes: {text: {contains: zzz}}}", True),
    ("{order: [good, near]}", True),
    ("{order: [near, good]}", False),
    ("{order: [good, far]}", False),
    ("{order: [good, {text: other}]}", True),
    ("{exactly: [near, good, {text: other}]}", True),
    ("{exactly: [{score: {gt: 0.4}}, good, near]}", True),
    ("{exactly: [near, good]}", False),
    ("{exactly: [near, good, {text: other}, {text: other}]}", False),
    ("{exactly: [far, good, {text: other}]}", False),
    ("{exactly: []}", False),
    ("{count: 3}", True),
    ("{count: {le: 2}}", False),
    ("{empty: false}", True),
    ("{empty: true}", False),
    ("{scores: {approx: [0.9, 0.8, 0.5]}}", True),
    ("{scores: {all: {ge: 0.6}}}", False),
    ("{scores: {near: {approx: 0.8}}}", True),
    ("{scores: {near: 0.7}}", False),
    ("{scores: {far: {ge: 0}}}", False),
    ("{falling: true}", True),
    ("{falling: false}", False),
    ("{explain: {good: {final: {approx: 0.77}}}}", True),
    ("{explain: {near: {final: 1}}}", False),
    ("{text: {contains_all: [good, near]}}", True),
    ("{text: {contains: far}}", False),
    ("{not: {first: near}}", True),
    ("{not: {first: good, count: 3}}", False),
    ("{not: {first: good, count: 4}}", True),
    ("{first: good, count: 3, excludes: far}", True),
]


@pytest.mark.parametrize("ids", [True, False], ids=["by id", "by text"])
@pytest.mark.parametrize(("expect", "passed"), HIT_VERDICTS)
def test_checks_of_hits(expect, passed, ids):
    verdicts = verdicts_on_hits(HITS, expect, ids=ids)
    assert verdicts
    assert all(verdict.passed for verdict in verdicts) == passed, [verdict.reason for verdict in verdicts]


def test_no_hits_satisfy_nothing_but_emptiness():
    assert all(verdict.passed for verdict in verdicts_on_hits([], "{empty: true, count: 0}"))
    assert not any(
        verdict.passed for verdict in verdicts_on_hits([], "{first: good, includes: good, scores: {all: {ge: 0}}}")
    )


def test_the_reason_names_the_hits_by_their_saved_names():
    (verdict,) = verdicts_on_hits(HITS, "{first: near}")
    assert "1. good (0.9); 2. near (0.8); 3. 'other' (0.5)" in verdict.reason
    assert verdict.where == "f.yaml:6:21"


def test_matching_by_text_is_noted_in_the_reason():
    (verdict,) = verdicts_on_hits(HITS, "{first: good}", ids=False)
    assert "matched by text, since the backend gave no ids" in verdict.reason


def test_a_wrong_order_says_which_came_too_late():
    (verdict,) = verdicts_on_hits(HITS, "{order: [near, good]}")
    assert verdict.reason.startswith("hits have 'good' before 'near'")


CALLS = [
    {"name": "search", "args": {"query": "tea"}, "result": "x", "error": None},
    {"name": "save", "args": {"topic": "user.tea", "content": "green"}, "result": "ok", "error": None},
    {"name": "save", "args": {"topic": "user.milk", "content": "no"}, "result": "ok", "error": None},
]


def verdicts_on_calls(calls, expect, tools=()):
    (story,) = parse_stories(
        f"story: A\ntitle: T\nsteps:\n  - say: hi\n    expect: {{tool_calls: {expect}}}\n", "f.yaml"
    )
    said = record((0,), "say", {"answer": "", "tool_calls": calls, "thinking": None, "context": None})
    return step_verdicts(story, Recording(story="A", target="t", steps=[said], tools=tools))


CALL_VERDICTS = [
    ("[search]", True),
    ("[search, save]", True),
    ("[save, search]", False),
    ("[{save: {topic: user.milk}}]", True),
    ("[{save: {topic: user.coffee}}]", False),
    ("[{save: {owner: me}}]", False),
    ("[{search: {query: {regex: '^t'}}}]", True),
    ("[forget]", False),
    ("[]", False),
    ("{any_order: [save, search]}", True),
    ("{any_order: [save, save, save]}", False),
    ("{any_order: [{save: {content: green}}, save]}", True),
    ("{any_order: [save, {save: {content: green}}]}", True),
    ("{any_order: [forget]}", False),
    ("{only: [search, save, {save: {topic: user.milk}}]}", True),
    ("{only: [search, save]}", False),
    ("{only: [save, save, search]}", False),
    ("{none: true}", False),
    ("{none: forget}", True),
    ("{none: [forget, save]}", False),
    ("{any_of: [forget, [search, save]]}", True),
    ("{any_of: [forget, [save, search]]}", False),
    ("{count: 3}", True),
    ("{count: {lt: 3}}", False),
    ("{not: [forget]}", True),
    ("{not: [search]}", False),
    ("{in_order: [search], none: forget}", True),
]


def test_the_reasons_are_word_for_word_those_of_the_golden_file(golden):
    hits = {expect: [one.reason for one in verdicts_on_hits(HITS, expect)] for expect, _ in HIT_VERDICTS}
    hits |= {
        f"{texts} corrected: {{now: Lisbon, was: Porto}}": [
            one.reason
            for one in verdicts_on_hits([hit(text) for text in texts], "{corrected: {now: Lisbon, was: Porto}}")
        ]
        for texts in (["Lisbon"], ["Lisbon", "Porto"], ["Porto", "Lisbon"], ["Porto"], ["other"])
    }
    golden("hits.txt", hits)
    golden(
        "tool_calls.txt",
        {expect: [one.reason for one in verdicts_on_calls(CALLS, expect)] for expect, _ in CALL_VERDICTS},
    )


@pytest.mark.parametrize(("expect", "passed"), CALL_VERDICTS)
def test_checks_of_tool_calls(expect, passed):
    # H-02
    verdicts = verdicts_on_calls(CALLS, expect)
    assert verdicts
    assert all(verdict.passed for verdict in verdicts) == passed, [verdict.reason for verdict in verdicts]


def test_calls_in_any_order_are_paired_however_many_there_are():
    fillers = [f"f{number}" for number in range(8)]
    calls = [{"name": "t", "args": {"a": number}} for number in range(4)]
    calls += [{"name": name, "args": {}} for name in fillers * 2]
    first = [f"{{t: {{a: {{one_of: {some}}}}}}}" for some in ([0, 1], [2, 3], [0, 2])]
    (verdict,) = verdicts_on_calls(calls, f"{{any_order: [{', '.join([*first, *fillers])}]}}")
    assert verdict.passed, verdict.reason
    (verdict,) = verdicts_on_calls(calls, f"{{any_order: [{', '.join([*first * 2, *fillers])}]}}")
    assert not verdict.passed


def test_no_calls_satisfy_an_empty_list():
    assert all(verdict.passed for verdict in verdicts_on_calls([], "[]"))


def test_a_call_with_another_argument_says_which_and_what_happened():
    (verdict,) = verdicts_on_calls(CALLS[:2], "[{save: {topic: user.coffee}}]")
    assert "'topic' is 'user.tea', not 'user.coffee'" in verdict.reason
    assert verdict.reason.endswith("search(query='tea'); save(topic='user.tea', content='green')")
    assert verdict.expected == "save(topic='user.coffee')"


def test_what_a_call_should_be_shows_the_matcher_of_each_argument():
    (verdict,) = verdicts_on_calls([], "[{save: {topic: {contains: tea}, content: {not: {contains: green}}}}]")
    assert verdict.expected == "save(topic contains 'tea', content)"


SAVE = ToolSchema(
    name="save",
    description="",
    parameters={"type": "object", "required": ["topic"], "properties": {"topic": {"type": "string"}}},
)


def test_a_call_against_the_announced_schema_fails_a_story_that_expects_only_its_name():
    calls = [{"name": "save", "args": {"topic": {"$ne": ""}}}]
    verdicts = verdicts_on_calls(calls, "[save]", tools=[SAVE])
    assert [verdict.passed for verdict in verdicts] == [True, False]
    assert all(part in verdicts[1].reason for part in ("'save'", "topic: {'$ne': ''}"))


def test_a_call_of_a_tool_that_was_never_announced_fails():
    (fault,) = call_faults([{"name": "x", "args": {}}], [SAVE])
    assert ("'x'" in fault, "save" in fault) == (True, True)


def test_calls_are_not_held_against_schemas_that_nobody_announced():
    assert list(call_faults([{"name": "x", "args": {}}], [])) == []


def test_an_announced_schema_that_is_none_is_told():
    (fault,) = tool_faults([{"name": "save", "parameters": {"type": "thing"}}])
    assert ("'save'" in fault, "JSON Schema" in fault) == (True, True)


def test_tokens_are_estimated_by_words_signs_and_length():
    assert estimated_tokens("") == 0
    assert estimated_tokens("tea, internationalisation") == 6


def test_exactly_says_what_is_missing_and_what_is_too_much():
    (found,) = verdicts_on_hits(HITS[1:], "{exactly: [near, good]}")
    missing, extra = found.reason.partition(";")[0].split(" and ")
    assert ("'good'" in missing, "'other' (0.5)" in extra) == (True, True)
    (nothing,) = verdicts_on_hits([], "{exactly: []}")
    assert nothing.passed


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        ("search: {query: q, top_k: 2}", [["3", "2"]]),
        ("search: {query: q, top_k: 3}", []),
        ("search: q", []),
        ("list: {limit: 1}", [["3", "1"]]),
    ],
)
def test_more_than_was_asked_for_is_a_fault_whatever_is_expected(written, numbers):
    (story,) = parse_stories(f"{START}  - {written}\n    expect: {{hits: {{first: good}}}}\n", "f.yaml")
    done = replace(record((1,), story.steps[1].op, HITS, {"good": "id-good"}), args=story.steps[1].args)
    found = step_verdicts(story, Recording(story="A", target="t", steps=[record((0,), "add", {"items": []}), done]))
    assert [re.findall(r"\d+", verdict.reason) for verdict in found if not verdict.passed] == numbers


def test_a_memory_that_comes_twice_is_a_fault_and_two_pieces_of_one_id_are_none():
    (story,) = parse_stories(f"{START}  - list:\n", "f.yaml")
    pieces = [{"id": "7", "text": "one half"}, {"id": "7", "text": "other half"}]
    twice = Recording(story="A", target="t", steps=[record((1,), "list", [*pieces, HITS[0], HITS[0], {"id": None}])])
    (found,) = [verdict for verdict in step_verdicts(story, replace(twice, failure=LATER)) if not verdict.passed]
    assert found.check == "repeated"
    assert all(part in found.reason for part in ("'id-good'", "2", "'good'"))


@pytest.mark.parametrize(
    ("texts", "kind", "passed"),
    [
        (["I live in LISBON", "other"], "new only", (True, True)),
        (["I moved from Porto to Lisbon"], "new only", (True, True)),
        (["I live in Lisbon", "I live in Porto"], "both", (False, True)),
        (["I live in Porto", "I live in Lisbon"], "stale first", (False, False)),
        (["I live in Porto"], "old only", (False, False)),
        (["other"], "nothing", (False, False)),
        ([], "nothing", (False, False)),
    ],
)
def test_how_a_correction_was_kept_is_told_beside_whether_it_holds(texts, kind, passed):
    hits = [hit(text) for text in texts]
    alone, allowed = (
        verdicts_on_hits(hits, f"{{corrected: {{now: Lisbon, was: Porto{more}}}}}")[0]
        for more in ("", ", both: allowed")
    )
    assert (alone.kind, allowed.kind) == (kind, kind)
    assert (alone.passed, allowed.passed) == passed
    assert ("'Lisbon'" in alone.reason, "'Porto'" in alone.reason) == (True, True)


@pytest.mark.parametrize(
    ("hits", "expect", "parts"), [(HITS, "{empty: true}", ["3", "none"]), ([], "{empty: false}", ["none", "some"])]
)
def test_a_failed_empty_says_what_it_expected(hits, expect, parts):
    (verdict,) = verdicts_on_hits(hits, expect)
    assert all(part in verdict.reason for part in parts)


def test_a_hit_that_is_written_by_its_fields_is_described_by_them():
    checks = "{first: {text: {not: {contains: tea}, starts_with: go}, metadata: {fields: {score: {ge: 9}}}}}"
    (verdict,) = verdicts_on_hits(HITS, checks)
    wanted = "a hit whose text not (contains 'tea') and starts_with 'go' and metadata fields (score (ge 9))"
    assert verdict.reason == f"hits have {wanted} first"
