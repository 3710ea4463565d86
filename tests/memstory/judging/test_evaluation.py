"""Recordings to outcomes: pure, and each outcome for its own reason."""

from dataclasses import replace

import pytest

from memstory.case import Case
from memstory.judging.evaluation import evaluate
from memstory.judging.verdicts import holds, locate
from memstory.language.stories import parse_stories
from memstory.results.recording import Failure, QuestionRecord, Recording, RetrievalRecord, StepRecord


def story(steps, more=""):
    (found,) = parse_stories(f"story: A\ntitle: T\nsteps:\n{steps}{more}", "stories/x.yaml")
    return found


def done(path, op, result=None, **more):
    return StepRecord(path=path, op=op, args={}, user="u", session=None, at="", result=result, **more)


def said(answer, path=(0,)):
    return done(path, "say", {"answer": answer, "tool_calls": [], "thinking": None, "context": None})


def result(one, *recordings):
    return evaluate(Case(story=one, target="toy"), recordings)


def recorded(*steps, failure=None, **more):
    return Recording(story="A", target="toy", steps=steps, failure=failure, seconds=0.5, **more)


ASKED = "  - settle:\n  - say: hi\n    expect: {answer: {contains: Elixir}}\n"


def test_a_right_answer_passes():
    found = result(story(ASKED), recorded(done((0,), "settle"), said("It is Elixir", (1,))))
    assert (found.outcome, found.reason, found.id, found.where) == ("passed", None, "A[toy]", "stories/x.yaml:1:1")
    (verdict,) = found.trials[0].verdicts
    assert verdict.reason == "answer contains 'Elixir'"


def test_a_wrong_answer_fails_with_place_step_and_reason_in_one_line():
    found = result(story(ASKED), recorded(done((0,), "settle"), said("I\ndo not know", (1,))))
    assert found.outcome == "failed"
    assert found.reason == (
        "stories/x.yaml:6:23 step 2 (say): answer does not contain 'Elixir'; it is 'I\\ndo not know'"
    )


def test_further_failures_are_counted():
    one = story("  - say: hi\n    expect: {answer: {contains: a, length: 9}}\n")
    assert result(one, recorded(said("x"))).reason.endswith("(and 1 more)")


NOT_GIVEN = Failure(kind="failed", message="'${it}' is used, but nothing had it", step=(1,))


def test_a_case_that_lacks_a_value_fails_for_the_expectation_that_saw_it_first():
    one = story("  - search: x\n    save: {it: hits.0.id}\n    expect: {hits: {count: 1}}\n  - get: {id: '${it}'}\n")
    found = result(one, recorded(done((0,), "search", []), failure=NOT_GIVEN))
    assert found.outcome == "failed"
    assert found.reason.startswith("stories/x.yaml:6:21 step 1 (search): hits count 0")


def test_a_case_that_lacks_a_value_fails_where_it_is_used_if_no_expectation_saw_it():
    one = story("  - search: x\n    save: {it: hits.0.id}\n  - get: {id: '${it}'}\n")
    found = result(one, recorded(done((0,), "search", []), failure=NOT_GIVEN))
    assert found.outcome == "failed"
    assert found.reason == "stories/x.yaml:6:5 step 2 (get): '${it}' is used, but nothing had it"


BROKE = [
    ("error", "then the target broke off: step 2 (settle): it is gone"),
    ("unsupported", "then the target could not go on: step 2 (settle): it is gone"),
    ("invalid", "then the story could not go on: step 2 (settle): it is gone"),
]


@pytest.mark.parametrize(("kind", "words"), BROKE)
def test_a_check_that_failed_before_a_case_broke_off_is_its_outcome(kind, words):
    failure = Failure(kind=kind, message="it is gone", step=(1,))
    one = story("  - say: hi\n    expect: {answer: x}\n  - settle:\n", "harm: leak\n")
    found = result(one, recorded(said("y"), failure=failure))
    assert (found.outcome, found.harm) == ("failed", "leak")
    assert found.reason == f"stories/x.yaml:5:14 step 1 (say): answer is 'y', not 'x'; {words}"


@pytest.mark.parametrize(("kind", "_words"), BROKE)
def test_a_case_that_broke_off_before_any_check_failed_is_what_broke_it(kind, _words):
    failure = Failure(kind=kind, message="it is gone", step=(1,))
    found = result(story("  - say: hi\n    expect: {answer: x}\n  - settle:\n"), recorded(said("x"), failure=failure))
    assert (found.outcome, found.reason) == (kind, "stories/x.yaml:6:5 step 2 (settle): it is gone")


def test_a_story_that_only_measures_is_not_failed_by_what_it_saw_before_it_broke():
    broken = recorded(said("y"), failure=Failure(kind="error", message="gone", step=(1,)))
    one = story("  - say: hi\n    expect: {answer: x}\n  - settle:\n", "measure: true\n")
    assert result(one, broken).outcome == "error"


def test_a_memory_of_another_user_is_a_leak_whatever_harm_the_story_names():
    hit = {"id": "1", "text": "Ana's PIN is 4711"}
    told = StepRecord(path=(0,), op="add", args={}, user="ana", session=None, at="",
                      result={"items": [{**hit, "outcome": "stored"}]})  # fmt: skip
    seen = StepRecord(path=(1,), op="search", args={}, user="ben", session=None, at="", result=[hit])
    one = story("  - add: Ana's PIN is 4711\n  - search: PIN\n", "harm: rank\n")
    found = result(one, recorded(told, seen))
    assert (found.outcome, found.harm) == ("failed", "leak")


def test_what_a_step_could_not_look_at_any_more_is_not_judged():
    one = story("  - say: hi\n    expect: {answer: {contains: tea, judged: It is tea}, honest: {claims: saved}}\n")
    found = result(one, recorded(said("tea"), failure=Failure(kind="error", message="it is gone", step=(0,))))
    assert found.outcome == "error"
    assert [verdict.check for verdict in found.trials[0].verdicts] == ["contains"]


def test_a_step_without_a_record_fails_where_nothing_else_explains_it():
    found = result(story(ASKED), recorded(done((0,), "settle")))
    assert found.outcome == "failed"
    assert "step 2 (say): this step left no record" in found.reason


def test_nothing_recorded_is_an_error():
    assert result(story(ASKED)).outcome == "error"


REFUSED = "  - add: x\n    expect: {error: {contains: reserved}}\n"


@pytest.mark.parametrize(
    ("expect", "error", "outcome", "words"),
    [
        ("", "the key is reserved", "failed", "step 1 (add): was refused: the key is reserved"),
        ("    expect: {error: {contains: reserved}}\n", "the key is reserved", "passed", None),
        (
            "    expect: {error: {contains: unknown}}\n",
            "the key is reserved",
            "failed",
            "error does not contain 'unknown'",
        ),
        ("    expect: {error: {contains: reserved}}\n", None, "failed", "was not refused, and should have been"),
        ("    expect: {error: true}\n", "no", "passed", None),
        ("    expect: {error: true}\n", None, "failed", "was not refused, and should have been"),
        ("    expect: {refusal: allowed}\n", "no", "passed", None),
        ("    expect: {refusal: allowed}\n", None, "passed", None),
        ("    expect: {refusal: allowed, receipt: {items: {length: 1}}}\n", "no", "passed", None),
        (
            "    expect: {refusal: allowed, receipt: {items: {length: 1}}}\n",
            None,
            "failed",
            "a length that is 0, not 1",
        ),
    ],
)
def test_a_refusal_is_judged_where_it_is_expected_and_fails_where_it_is_not(expect, error, outcome, words):
    found = result(
        story(f"  - add: x\n{expect}"), recorded(done((0,), "add", None if error else {"items": []}, error=error))
    )
    assert found.outcome == outcome
    assert found.reason is None if words is None else words in found.reason


def test_of_repeated_attempts_the_last_one_counts():
    one = story("  - search: q\n    expect: {hits: {count: 1}, eventually: 5s}\n")
    hit = {"id": "1", "text": "x"}
    assert result(one, recorded(done((0,), "search", []), done((0,), "search", [hit]))).outcome == "passed"
    assert holds(one.steps[0], done((0,), "search", [hit]))
    assert not holds(one.steps[0], done((0,), "search", []))


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ("get: k\n    expect: {hits: {empty: true}}", None),
        ("get: k\n    expect: {hits: {first: {text: tea}, count: 1}}", {"id": "1", "text": "tea"}),
        ("add: x\n    expect: {receipt: {outcomes: [dropped], items: {all: {reason: short}}}}",
         {"items": [{"id": None, "outcome": "dropped", "reason": "short"}]}),
        ("context: q\n    expect: {text: {starts_with: '<m'}, context_tokens: {le: 9}}", "<memory>"),
        ("tool: t\n    expect: {result: saved}", {"name": "t", "args": {}, "result": "saved", "error": None}),
        ("tool: t\n    expect: {result: {contains: bad}, error: {contains: bad}}",
         {"name": "t", "args": {}, "result": None, "error": "bad argument"}),
        ("tools:\n    expect: {tools: [b, a]}", [{"name": "a", "parameters": {}}, {"name": "b", "parameters": {}}]),
        ("tools:\n    expect: {tools: {a: {parameters: {required: [topic]}}}}",
         [{"name": "a", "description": "", "parameters": {"required": ["topic"]}}]),
        ("delete: k\n    expect: {result: false}", False),
        ("run: purge\n    expect: {result: {deleted: 2}}", {"deleted": 2, "kept": 1}),
        ("inspect: status\n    expect: {data: {calls: {ge: 1}}}", {"calls": 3}),
        ("feedback: {key: k, value: 1}\n    expect: {result: true}", True),
        ("settle:\n    expect: {latency_ms: {le: 1500}}", None),
    ],
)  # fmt: skip
def test_each_field_speaks_of_its_part_of_the_result(step, answer):
    one = story(f"  - {step}\n")
    found = result(one, recorded(done((0,), one.steps[0].op, answer, seconds=1.0)))
    assert found.outcome == "passed", found.reason
    assert found.trials[0].verdicts


def test_saved_names_stand_in_what_is_expected():
    one = story("  - say: a\n    save: {first: answer}\n  - say: b\n    expect: {answer: 'again ${first}'}\n")
    second = done((1,), "say", {"answer": "again tea", "tool_calls": []}, names={"first": "tea"})
    assert result(one, recorded(said("tea"), second)).outcome == "passed"


NESTED = (
    "  - repeat:\n      times: 2\n      steps:\n        - settle:\n        - say: hi\n          expect: {answer: ok}\n"
)


def test_a_step_within_a_block_is_named_with_its_pass():
    one = story(NESTED)
    steps = [done((0,), "repeat"), said("ok", (0, 0, 1)), said("no", (0, 1, 1))]
    assert "step 1.2, pass 2 (say): answer is 'no', not 'ok'" in result(one, recorded(*steps)).reason


def test_paths_find_their_steps_within_blocks_and_crashes():
    one = story(NESTED + "  - crash: {during: [{settle: }, {add: x}]}\n")
    assert locate(one, (0, 1, 1)).step.op == "say"
    assert locate(one, (1, 1)).label == "step 2.2 (add)"
    assert locate(one, (7,)) is None


TRIED = "trials: 3\npass: {at_least: 2}\n"


@pytest.mark.parametrize(
    ("answers", "outcome", "words"),
    [
        ("ok ok ok", "passed", None),
        ("ok no ok", "passed", "flaky: 2 of 3 trials passed, 2 needed; first miss: "),
        ("no ok no", "failed", "1 of 3 trials passed, 2 needed; first miss: "),
        ("ok broke no", "failed", "1 of 3 trials passed, 2 needed, 1 broke; first miss: stories/x.yaml:5:14 step 1"),
        ("broke ok broke", "error", "1 of 3 trials passed, 2 needed, 2 broke; first miss: stories/x.yaml:1:1"),
        ("ok broke ok", "passed", "flaky: 2 of 3 trials passed, 2 needed, 1 broke"),
        ("no broke no", "failed", "0 of 3 trials passed, 2 needed, 1 broke"),
        ("ok unsupported ok", "unsupported", "no clock"),
        ("no unsupported ok", "failed", "1 of 3 trials passed, 2 needed, 1 unsupported; first miss: stories/x"),
        ("ok no ok unsupported", "failed", "2 of 4 trials passed, 2 needed, 1 unsupported; first miss: "),
        ("unsupported broke ok", "error", "1 of 3 trials passed, 2 needed, 1 broke, 1 unsupported; first miss: "),
        ("seen ok ok", "passed", "flaky: 2 of 3 trials passed, 2 needed; first miss: "),
        ("seen ok unsupported", "failed", "then the target broke off: "),
    ],
)
def test_trials_are_aggregated_by_the_rule_of_passing(answers, outcome, words):
    def trial(word):
        if word in ("broke", "unsupported"):
            kind = "error" if word == "broke" else "unsupported"
            return recorded(failure=Failure(kind=kind, message="no clock"))
        if word == "seen":
            return recorded(said("no"), failure=Failure(kind="error", message="no clock"))
        return recorded(said(word))

    found = result(story("  - say: hi\n    expect: {answer: ok}\n", TRIED), *map(trial, answers.split()))
    assert found.outcome == outcome
    assert found.reason is None if words is None else words in found.reason
    assert found.seconds == pytest.approx(0.5 * len(answers.split()))


def test_trials_of_a_story_that_only_a_judge_looks_at_are_measured():
    one = story("  - say: hi\n    expect: {answer: {judged: Ana drinks tea}}\n", "trials: 3\n")
    step = replace(said("tea"), judged={"Ana drinks tea": True})
    found = result(one, *[recorded(step)] * 3)
    assert (found.outcome, found.reason) == ("measured", "judged: 1 of 1 answers fit")


def retrieval_story(metrics):
    text = f"story: Q\ntitle: T\nretrieval: {{corpus: c, queries: q, k: 10}}\nexpect: {{metrics: {metrics}}}\n"
    (found,) = parse_stories(text, "q.yaml")
    return found


def question(name, relevant, retrieved, category=None, *, judged=True):
    return QuestionRecord(id=name, relevant=relevant, retrieved=retrieved, category=category, judged=judged)


QUESTIONS = [
    question("1", ["a", "c"], ["b", "a", "c"], "single"),
    question("2", ["x"], ["x"], "multi"),
    question("3", ["x"], ["y"], "adversarial"),
    question("4", [], [], "single"),
    question("5", [], ["y"], "single"),
    question("6", ["x"], [], "multi", judged=False),
]


def task(questions=QUESTIONS, **more):
    return RetrievalRecord(name="t", digest="d", k=10, documents=500, smallest=500, questions=questions,
                           apart=["adversarial"], **more)  # fmt: skip


def retrieved(one, *tasks):
    return result(one, Recording(story="Q", target="toy", retrieval=tasks))


def scores(found, category=None):
    return {score.metric: score.value for score in found.trials[0].scores if score.category == category}


def test_scores_are_means_over_judged_answerable_questions_without_those_that_stand_apart():
    found = retrieved(retrieval_story("{mrr: {ge: 0.75}, 'recall@1': {approx: 0.5}}"), task())
    assert (found.outcome, found.reason) == ("passed", None)
    total = scores(found)
    assert total["mrr"] == pytest.approx(0.75)
    assert total["recall@1"] == pytest.approx(0.5)
    assert total["recall@10"] == 1.0
    assert total["abstention"] == 0.5
    assert scores(found, "adversarial")["mrr"] == 0.0
    assert scores(found, "multi")["mrr"] == 1.0
    counted = {score.metric: score.questions for score in found.trials[0].scores if score.category is None}
    assert (counted["mrr"], counted["abstention"]) == (2, 2)


def test_a_metric_below_its_bound_fails_with_the_number_and_the_questions():
    found = retrieved(retrieval_story("{mrr: {ge: 0.8}}"), task())
    assert found.reason == "q.yaml:4:26: mrr over 2 questions is 0.75, which is not ≥ 0.8"


def test_every_level_of_a_perturbation_is_judged():
    worse = task([question("1", ["a"], ["b", "a"])], level={"distractors": 200})
    found = retrieved(retrieval_story("{mrr: {ge: 0.75}}"), task(), worse)
    assert found.outcome == "failed"
    assert "mrr at distractors 200 over 1 question is 0.5" in found.reason


def test_a_metric_that_no_question_calls_for_fails():
    found = retrieved(retrieval_story("{abstention: {ge: 0.9}}"), task(QUESTIONS[:2]))
    assert "abstention could not be measured" in found.reason


def test_a_retrieval_without_any_judged_question_is_an_error():
    assert retrieved(retrieval_story("{mrr: 1}"), task([])).outcome == "failed"
    (unbound,) = parse_stories("story: Q\ntitle: T\nretrieval: {dataset: d}\n", "q.yaml")
    assert retrieved(unbound, task([])).outcome == "error"


def test_a_k_that_is_not_small_and_unusable_labels_are_warned_about():
    small = RetrievalRecord(
        name="t", digest="d", k=10, documents=60, smallest=60, questions=QUESTIONS[:2], unusable=["7: D"]
    )
    warnings = retrieved(retrieval_story("{mrr: {ge: 0}}"), small).trials[0].warnings
    assert any("k=10 is 17% of the smallest collection" in warning for warning in warnings)
    assert any("1 gold labels could not be read" in warning for warning in warnings)
    assert retrieved(retrieval_story("{mrr: {ge: 0}}"), task()).trials[0].warnings == ()


HELLO = "  - say: hi\n    expect: {answer: {contains: Hello}}\n"


def test_a_story_that_measures_is_never_passed_and_tells_what_held():
    one = story(HELLO, "measure: true\n")
    for answer, held in (("Hello", 1), ("Bye", 0)):
        found = result(one, recorded(said(answer)))
        assert (found.outcome, found.reason) == ("measured", f"{held} of 1 expectations held")


def test_a_story_that_measures_and_broke_is_an_error():
    broken = recorded(failure=Failure(kind="error", message="gone"))
    assert result(story(HELLO, "measure: true\n"), recorded(said("Hello")), broken).outcome == "error"


def test_searches_that_gave_more_than_k_fail_a_retrieval_story():
    (one,) = parse_stories("story: Q\ntitle: T\nretrieval: {corpus: a.jsonl, queries: b.jsonl, k: 2}\n", "q.yaml")
    asked = [QuestionRecord(id=f"q{number}", relevant=("a",), retrieved=("a", "b")) for number in range(3)]
    kept = RetrievalRecord(name="facts", digest="d", k=2, documents=9, smallest=9, questions=asked)
    more = replace(kept, questions=[replace(asked[0], surplus=1), replace(asked[1], surplus=3), asked[2]])
    assert result(one, recorded(retrieval=[kept])).outcome == "passed"
    found = result(one, recorded(retrieval=[more]))
    assert (found.outcome, found.reason) == (
        "failed", "q.yaml:1:1: 2 of 3 searches gave more than k = 2, up to 3 more"
    )  # fmt: skip


TTL = (
    "  - add: {text: The code is 12., ttl: 1s, save: code}\n  - list:\n    expect: {hits: {includes: code}}\n"
    "  - wait: 2s\n  - list:\n    expect: {hits: {empty: true}}\n"
)
CODE = {"id": "7", "text": "The code is 12.", "score": None, "key": None, "kind": None, "created_at": None,
        "metadata": {}, "explain": None}  # fmt: skip


def listed_within_and_after_a_ttl(*, first, second, seconds):
    """Return the judgement of a ttl of one second: what two lists gave, the first of which took so long."""

    def step(place, op, at, took, result=None, **args):
        names = {"code": {"id": "7", "text": "The code is 12."}}
        return StepRecord(path=(place,), op=op, args=args, user="u", session=None, at=f"2026-01-01T12:00:0{at}+00:00",
                          result=result, seconds=took, names=names)  # fmt: skip

    added = step(
        0,
        "add",
        0,
        0.1,
        {"items": [{"id": "7", "text": "The code is 12."}]},
        items=[{"text": "The code is 12.", "ttl": 1.0}],
    )
    reads = [step(1, "list", 0, seconds, first), step(2, "wait", 0, 2.0), step(3, "list", 2, 0.1, second)]
    return result(story(TTL), recorded(added, *reads))


def test_a_step_that_outlasts_the_ttl_that_it_depends_on_is_no_failure_of_the_memory():
    found = listed_within_and_after_a_ttl(first=[], second=[], seconds=1.5)
    assert (found.outcome, "1.6 s of a ttl of 1 s had passed: stories/x.yaml" in found.reason) == ("error", True)


@pytest.mark.parametrize(
    ("first", "second", "seconds"), [([], [], 0.2), ([CODE], [CODE], 0.2), ([], [CODE], 1.5), ([CODE], [CODE], 1.5)]
)
def test_what_is_lost_within_a_ttl_or_found_behind_it_is_a_failure(first, second, seconds):
    assert listed_within_and_after_a_ttl(first=first, second=second, seconds=seconds).outcome == "failed"
