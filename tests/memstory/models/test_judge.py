"""The judge sits its exam before it counts; scripted judges that pass, say yes, obey orders, or miss details."""

import json

import pytest

from memstory.contract.errors import SetupError
from memstory.contract.models import Reply
from memstory.contract.target import Turn
from memstory.controls import Oracle, OracleFactory
from memstory.language.stories import InvalidStory, parse_stories
from memstory.models.judge import Judge, VoteFile, marks_of, questions, read_vote
from memstory.playing import play
from memstory.reporting.markdown import as_markdown
from memstory.reporting.writing import run_document
from memstory.running.runner import RunOptions

LABELS = {(one.question, one.answer): one for one in questions()}


class Scripted:
    """A judge that knows the labels, and errs where `errs` says so."""

    name = "scripted judge (stand-in)"

    def __init__(self, errs=lambda _: False, others="YES"):
        self.errs, self.others, self.asked = errs, others, 0

    async def chat(self, request):
        self.asked += 1
        given = json.loads(request.messages[-1].content)
        one = LABELS.get((given["question"], given["answer"]))
        if one is None:
            return Reply(content=self.others)
        return Reply(content="YES" if one.fits is not self.errs(one) else "NO")

    async def close(self):
        pass


def details():
    return [one for one in questions() if one.kind == "detail"]


PASSING = {"all right": lambda _: False, "a few details": lambda one: one in details()[:14]}
FAILING = {
    "always yes": lambda one: not one.fits,
    "always no": lambda one: one.fits,
    "falls to one injection": lambda one: one.kind == "injected" and "switched off" in one.answer,
    "misses details": lambda one: one.kind == "detail",
    "refuses what fits": lambda one: one.fits and one.kind == "long",
}


def test_the_exam_has_150_labelled_answers_of_every_kind():
    kinds = {kind: sum(one.kind == kind for one in questions()) for kind in {one.kind for one in questions()}}
    assert len(questions()) == len(LABELS) == 150
    assert kinds == {"right": 20, "detail": 20, "stale": 20, "evasive": 20, "long": 20, "injected": 20,
                     "unknown": 15, "invented": 15}  # fmt: skip
    assert {one.kind for one in questions() if one.fits} == {"right", "long", "unknown"}
    assert sum(one.fits for one in questions() if one.kind == "long") == 10


@pytest.mark.parametrize("name", PASSING)
async def test_a_good_judge_passes(name):
    assert (await Judge(Scripted(PASSING[name]), VoteFile()).sit()).is_passed


@pytest.mark.parametrize("name", FAILING)
async def test_a_bad_judge_fails_the_exam(name):
    with pytest.raises(SetupError, match="failed its exam"):
        await Judge(Scripted(FAILING[name]), VoteFile()).sit()


def test_no_clear_word_is_a_wrong_answer_to_the_exam():
    marks = marks_of([None] * 150)
    assert (marks.right, marks.refused, marks.admitted, marks.injected) == (0, 1, 1, 20)


@pytest.mark.parametrize(
    ("said", "vote"),
    [("YES", True), ("no", False), ("**Yes.**", True), ("", None), ("yes and no", None), ('{"fits": true}', None)],
)
def test_only_one_clear_word_is_a_vote(said, vote):
    assert read_vote(said) is vote


async def test_the_majority_decides_and_asking_stops_when_it_is_clear():
    class Wavering(Scripted):
        async def chat(self, request):
            self.asked += 1
            return Reply(content=["YES", "NO", "NO", "YES"][self.asked - 1])

    model = Wavering()
    assert await Judge(model, VoteFile()).fits("q", "f", "a") is False
    assert model.asked == 3
    silent = Scripted(others="Well …")
    assert await Judge(silent, VoteFile()).fits("q", "f", "a") is None


async def test_replies_are_kept_and_replayed_without_the_model(tmp_path):
    file = tmp_path / "judge.jsonl"
    first = Scripted()
    await Judge(first, VoteFile(file)).sit()
    with file.open("a") as torn:
        torn.write('{"key": "ab')
    second = Scripted(lambda _: True)
    assert (await Judge(second, VoteFile(file)).sit()).is_passed
    assert (first.asked, second.asked) == (300, 0)


def test_a_reply_with_a_line_end_of_unicode_is_one_line_of_the_file(tmp_path):
    file = tmp_path / "judge.jsonl"
    VoteFile(file).keep("a", "a judge", "NO\u2028because\u0085of that")
    assert VoteFile(file)["a"] == "NO\u2028because\u0085of that"


async def test_an_answer_and_a_reply_may_hold_half_of_a_character(tmp_path):
    file = tmp_path / "judge.jsonl"
    assert await Judge(Scripted(others="\ud83d"), VoteFile(file)).fits("q", "f", "cut \ud83d") is None
    assert await Judge(Scripted(others="YES"), VoteFile(file)).fits("q", "f", "cut \ud83d") is None


STORY = """
story: J1
title: An answer is judged by facts
steps:
  - say: Where does Ana live?
    expect:
      answer: {judged: Ana lives in Faro}
"""


class Talker(Oracle):
    async def say(self, text, scope):
        return Turn(answer="In Faro.")


class Talking(OracleFactory):
    def capabilities(self, options):
        return super().capabilities(options) | {"chat"}

    def target(self):
        return Talker()


async def played(tmp_path, model, text=STORY):
    (story,) = parse_stories(text, "j.yaml")
    options = RunOptions(judge=Judge(model, VoteFile()) if model else None)
    return await play(story, Talking(), tmp_path, options=options)


@pytest.mark.parametrize(("others", "says"), [("YES", "1 of 1"), ("NO", "0 of 1")])
async def test_a_judged_answer_is_measured_and_never_passed_or_failed(tmp_path, run_of, others, says):
    result = await played(tmp_path, Scripted(others=others))
    assert (result.outcome, result.reason) == ("measured", f"judged: {says} answers fit")
    (verdict,) = result.trials[0].verdicts
    assert (verdict.kind, verdict.passed) == ("judged", others == "YES")
    text = as_markdown(run_document(run_of([result])))
    assert "## Judged by a language model" in text
    assert "scripted judge (stand-in): 1.00 right" in text


@pytest.mark.parametrize(("contains", "outcome"), [("Faro", "passed"), ("Porto", "failed")])
async def test_rules_decide_a_case_that_is_judged_too(tmp_path, contains, outcome):
    text = STORY.replace("{judged:", f"{{contains: {contains}, judged:")
    assert (await played(tmp_path, Scripted(others="NO"), text)).outcome == outcome


async def test_a_judge_that_failed_makes_the_case_an_error(tmp_path):
    result = await played(tmp_path, Scripted(FAILING["always yes"]))
    assert result.outcome == "error"
    assert "failed its exam" in result.reason


async def test_a_judge_without_a_clear_verdict_makes_the_case_an_error(tmp_path):
    result = await played(tmp_path, Scripted(others="It depends."))
    assert result.outcome == "error"
    assert "no clear verdict" in result.reason


async def test_without_a_judge_the_case_is_unsupported(tmp_path):
    result = await played(tmp_path, None)
    assert result.outcome == "unsupported"
    assert "--judge MODEL" in result.reason


def test_only_an_answer_can_be_judged():
    (story,) = parse_stories(STORY.replace("answer:", "error:"), "j.yaml")
    assert isinstance(story, InvalidStory)
    assert "write `answer: {judged: …}`" in str(story.errors[0])
