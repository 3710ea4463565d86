"""A real model of 135 million parameters that comes in a wheel, in this process, on one thread: `nox -s model`.

It calls no tools, invents and repeats: what is shown is the protocol, streams, JSON schemas, the proxy and trials, and
nothing about quality.
"""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

if importlib.util.find_spec("xllamacpp") is None and os.environ.get("MEMSTORY_SMALL_MODEL") != "all":
    pytest.skip("xllamacpp is not installed: it is for `nox -s model`", allow_module_level=True)

from memstory_tests_small_model import serve

from memstory.contract.models import ChatRequest, Message, PromptTooLongError, Reply
from memstory.controls import OracleFactory
from memstory.language.stories import parse_stories
from memstory.models.answering import Forwarder, Replayer
from memstory.models.judge import Judge, VoteFile, questions
from memstory.models.openai_chat import OpenAiChat
from memstory.models.openai_server import OpenAiServer
from memstory.models.proxy import Proxy
from memstory.models.proxy_recording import Recorder, read_calls
from memstory.models.question_answers import QuestionAnswers
from memstory.models.shim import Chats
from memstory.playing import play
from memstory.results.secret_values import Secrets
from memstory.running.runner import RunOptions

pytestmark = pytest.mark.slow
CONTEXT = 1024
ASKED = [Message(role="user", content="Name a colour. Answer with one word.")]
SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"enum": ["yes", "no"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server():
    """Where the model answers."""
    running = serve(CONTEXT, 64)
    return OpenAiServer(f"{running.listening_address}/v1", "none", retries=0), running


@pytest.fixture
def model(server):
    return OpenAiChat("smollm2", server[0])


async def test_an_answer_is_streamed_in_pieces_and_its_tokens_are_counted(server):
    pieces = []
    reply = await OpenAiChat("smollm2", server[0], on_text=pieces.append).chat(ChatRequest(ASKED, temperature=0.0))
    assert reply.content == "".join(pieces)
    assert len(pieces) > 1
    assert reply.prompt_tokens > 10
    assert 1 <= reply.answer_tokens <= 64


async def test_an_answer_keeps_to_a_json_schema(model):
    reply = await model.chat(ChatRequest(ASKED, temperature=0.0, response_schema=SCHEMA))
    assert json.loads(reply.content)["verdict"] in {"yes", "no"}


async def test_a_prompt_beyond_its_context_is_one_sentence(model):
    with pytest.raises(PromptTooLongError) as caught:
        await model.chat(ChatRequest([Message(role="user", content="tea " * 2 * CONTEXT)]))
    assert "answered 400" in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_what_it_said_is_recorded_by_the_proxy_and_replayed_without_it(server, tmp_path):
    file = tmp_path / "run.jsonl"
    with Proxy(Forwarder(server[0].url, None, Recorder(file, Secrets()))) as proxy:
        said = await OpenAiChat("smollm2", replace(server[0], url=proxy.url)).chat(ChatRequest(ASKED))
        (call,) = proxy.calls
    with Proxy(Replayer(read_calls(file))) as proxy:
        again = await OpenAiChat("smollm2", replace(server[0], url=proxy.url)).chat(ChatRequest(ASKED))
    assert again == said
    assert (call.prompt_tokens, call.answer_tokens) == (said.prompt_tokens, said.answer_tokens)


class Backend(OracleFactory):
    """The perfect memory under a name of its own: controls get no shim."""

    name = "perfect"


async def test_trials_are_counted_with_their_tokens(model, tmp_path):
    story = """
story: SM1
title: It says something
trials: 2
steps:
  - say: Say hello.
    expect: {answer: {length: {ge: 1}}}
"""
    (parsed,) = parse_stories(story, "sm.story.yaml")
    options = RunOptions(chats=Chats({"m": model}), target={"chat": "m"}, case_seconds=300)
    result = await play(parsed, Backend(), tmp_path / "work", options=options)
    assert (result.rate.passed, result.rate.trials) == (2, 2), result.reason
    for trial in result.trials:
        (step,) = trial.recording.steps
        assert step.model.calls == 1
        assert step.model.prompt_tokens > step.model.answer_tokens > 0


HISTORY = {
    "question_id": "q1",
    "question_type": "multi-session",
    "question": "What colour is the boat?",
    "question_date": "2023/05/30 (Tue) 23:40",
    "answer": "blue",
    "haystack_session_ids": ["answer_1"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21"],
    "haystack_sessions": [[{"role": "user", "content": "The boat is blue.", "has_answer": True}]],
    "answer_session_ids": ["answer_1"],
}
"""One history in LongMemEval's shape."""


class Examiner:
    """Knows the exam, and lets any other answer through."""

    name = "scripted judge"

    def __init__(self):
        self.exam = {(one.question, one.answer): one.fits for one in questions()}

    async def chat(self, request):
        given = json.loads(request.messages[-1].content)
        return Reply(content="YES" if self.exam.get((given["question"], given["answer"]), True) else "NO")


async def test_it_answers_from_what_was_found_and_its_tokens_are_counted_apart_from_retrieval(model, tmp_path):
    (tmp_path / "set.json").write_text(json.dumps([HISTORY]))
    (story,) = parse_stories(
        "story: L\ntitle: T\nmeasure: true\nretrieval: {dataset: longmemeval, path: set.json, k: 1}\n",
        str(tmp_path / "l.yaml"),
    )
    options = RunOptions(base=tmp_path, answers=QuestionAnswers(model, Judge(Examiner(), VoteFile())), case_seconds=300)
    result = await play(story, OracleFactory(), tmp_path / "work", options=options)
    (asked,) = result.retrieval[0].questions
    assert (result.outcome, result.metrics["recall@1"]) == ("measured", 1.0), result.reason
    assert asked.answer.outcome in {"right", "refused"}
    assert asked.answer.model.calls == 1
    assert asked.answer.model.prompt_tokens > asked.answer.model.answer_tokens > 0


def test_a_run_with_it_as_its_own_judge_says_how_its_exam_ended(server, tmp_path):
    (tmp_path / "set.json").write_text(json.dumps([HISTORY]))
    words = ["run", "longmemeval", "--target", "fts5", "-k", "turn", "--chat-url", server[0].url]
    words += ["--answer", "openai:smollm2", "--judge", "openai:smollm2"]
    start = [sys.executable, "-c", "import sys; from memstory.cli import main; sys.exit(main())"]
    environ = {**os.environ, "OPENAI_API_KEY": "none", "MEMSTORY_LONGMEMEVAL": str(tmp_path / "set.json")}
    done = subprocess.run([*start, *words], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)  # noqa: S603  (our own command)
    assert done.returncode == 0, done.stdout + done.stderr
    report = (tmp_path / "reports/latest/report.md").read_text()
    # No model of this size has passed it: an answer that nobody can judge is none.
    assert "smollm2' failed its exam" in report or "## Answered by a language model" in report
    (case,) = json.loads((tmp_path / "reports/latest/results.json").read_text())["cases"]
    assert (case["outcome"], case["metrics"]["recall@5"]) == ("measured", 1.0)
