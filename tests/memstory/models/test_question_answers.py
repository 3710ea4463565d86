"""Answers from what was found: one model answers, another judges; both are scripted here."""

import json
import os
import subprocess
import sys

import pytest

from memstory.case import Case
from memstory.contract.errors import Mark
from memstory.contract.models import ChatModelUnavailableError, Reply
from memstory.contract.target import TargetFactory
from memstory.controls import Oracle
from memstory.judging.evaluation import evaluate
from memstory.language.story import Retrieval, Story
from memstory.models.judge import Judge, VoteFile, questions
from memstory.models.question_answers import QuestionAnswers
from memstory.reporting.markdown import as_markdown
from memstory.reporting.sections.outcomes import question_answers
from memstory.results.runs import make_fingerprint, make_run
from memstory.running.runner import RunOptions, run

EXAM = {(one.question, one.answer): one.fits for one in questions()}
MARK = Mark("q.yaml", 1, 1)


class Examined:
    """Knows the exam; of other answers it lets through those that name the gold."""

    name = "scripted judge"

    def __init__(self, *, knows=True):
        self.knows, self.asked = knows, []

    async def chat(self, request):
        given = json.loads(request.messages[-1].content)
        self.asked.append(given["question"])
        known = EXAM.get((given["question"], given["answer"]))
        fits = given["facts"] in given["answer"] if known is None else known and self.knows
        return Reply(content="YES" if fits else "NO", prompt_tokens=5, answer_tokens=1)


class Answering:
    """Says what `says` has for a question, or is not there."""

    name = "scripted answers"

    def __init__(self, says):
        self.says, self.given = says, []

    async def chat(self, request):
        given = json.loads(request.messages[-1].content)
        self.given.append(given)
        said = self.says[given["question"]]
        if said is None:
            raise ChatModelUnavailableError("the server does not answer")
        return Reply(content=said, prompt_tokens=100, answer_tokens=4)


class Factory(TargetFactory):
    def capabilities(self, options):
        return frozenset({"add", "search"})

    def target(self):
        return Oracle()


def entry(number, name="e"):
    return {
        "question_id": f"{name}{number}",
        "question_type": "multi-session",
        "question": f"Which dog is number {number}?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": "a beagle",
        "haystack_session_ids": ["answer_1"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [[{"role": "user", "content": f"Dog {number} is a beagle.", "has_answer": True}]],
        "answer_session_ids": ["answer_1"],
    }


SAYS = {
    "Which dog is number 0?": "It is a beagle.",
    "Which dog is number 1?": "It is a poodle.",
    "Which dog is number 2?": "I don't know.",
    "Which dog is number 3?": None,
}


@pytest.fixture
def measure(tmp_path):
    """Return a function that runs four histories with a model that answers, and a judge."""

    async def go(judge, says=SAYS):
        (tmp_path / "set.json").write_text(json.dumps([entry(number) for number in range(4)]))
        task = Retrieval(mark=MARK, k=1, dataset="longmemeval", path="set.json")
        story = Story(id="L", title="t", mark=MARK, digest="d", retrieval=task, measure=True)
        model = Answering(says)
        answers = QuestionAnswers(model, Judge(judge, VoteFile()))
        case = Case(story=story, target="toy")
        options = RunOptions(base=tmp_path, answers=answers)
        return evaluate(case, [await run(case, Factory(), tmp_path / "work", options)]), model

    return go


async def test_right_wrong_refused_and_broken_answers_are_told_apart_and_retrieval_stays_as_it_is(measure):
    result, model = await measure(Examined())
    answers = [one.answer for one in result.retrieval[0].questions]
    assert [one.outcome for one in answers] == ["right", "wrong", "refused", "error"]
    assert result.metrics["recall@1"] == 1.0
    assert model.given[0] == {
        "question": "Which dog is number 0?",
        "asked_at": "2023/05/30 (Tue) 23:40",
        "memories": ["[2023/05/20 (Sat) 02:21] user: Dog 0 is a beagle."],
    }
    assert (answers[0].model.prompt_tokens, answers[0].judge.calls) == (100, 2)


async def test_the_report_has_the_share_both_models_and_what_they_were_asked(measure):
    result, _ = await measure(Examined())
    page = as_markdown(question_answers(make_run([result], make_fingerprint([result]))))
    row = next(line for line in page.splitlines() if line.startswith("| L"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:9] == ["L", "toy", "0.333 \\[0.061, 0.792\\]", "1", "1", "1", "0", "1", "scripted answers"]
    assert cells[9].startswith("model: calls 4, 1 failed, tokens 300 + 12")
    assert "scripted judge: 1.00 right" in page


async def test_after_a_failed_exam_nothing_is_answered_and_the_report_says_so(measure):
    result, model = await measure(Examined(knows=False))
    assert model.given == []
    assert [one.answer for one in result.retrieval[0].questions] == [None] * 4
    assert (result.outcome, result.metrics["recall@1"]) == ("measured", 1.0)
    page = as_markdown(question_answers(make_run([result], make_fingerprint([result]))))
    assert "no answers: the judge 'scripted judge' failed its exam" in page


def test_a_whole_run_answers_by_a_server_and_its_judge_by_the_same(openai_endpoint, tmp_path):
    pytest.importorskip("openai", reason="the extra openai is not installed")
    (tmp_path / "set.json").write_text(json.dumps([entry(number) for number in range(2)]))

    def reply(body):
        given = json.loads(body["messages"][-1]["content"])
        if "memories" in given:
            return [{"content": SAYS[given["question"]]}]
        known = EXAM.get((given["question"], given["answer"]))
        fits = given["facts"] in given["answer"] if known is None else known
        return [{"content": "YES" if fits else "NO"}]

    openai_endpoint.reply = reply
    words = [
        "run",
        "longmemeval",
        "--target",
        "fts5",
        "-k",
        "turn",
        "--answer",
        "openai:tiny",
        "--judge",
        "openai:tiny",
    ]
    start = [sys.executable, "-c", "import sys; from memstory.cli import main; sys.exit(main())"]
    environ = {
        **os.environ, "OPENAI_BASE_URL": openai_endpoint.url, "OPENAI_API_KEY": "none",
        "MEMSTORY_LONGMEMEVAL": str(tmp_path / "set.json"),
    }  # fmt: skip
    done = subprocess.run(  # noqa: S603  (our own command)
        [*start, *words, "--chat-url", openai_endpoint.url], cwd=tmp_path, env=environ, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = (tmp_path / "reports/latest/report.md").read_text()
    assert "## Answered by a language model" in report
    (row,) = [line for line in report.splitlines() if "openai:tiny" in line and line.startswith("| LONGMEMEVAL")]
    assert [cell.strip() for cell in row.split("|")][4:9] == ["1", "1", "0", "0", "0"]


def test_an_answer_without_a_judge_is_refused_at_the_start(tmp_path):
    start = [sys.executable, "-c", "import sys; from memstory.cli import main; sys.exit(main())"]
    words = ["run", "longmemeval", "--target", "fts5", "--answer", "offline"]
    done = subprocess.run([*start, *words], cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 4
    assert "--answer goes with --judge" in done.stderr
