"""The language model inside a memory: what is counted, and what the user learns where it does not answer well."""

import socket
import threading

import pytest

pytest.importorskip("httpx", reason="the extra proxy is not installed")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import httpx
from memstory_tests_local_server import LocalHandler, serving

from memstory.contract.errors import SetupError, StoryError
from memstory.contract.target import ModelUse
from memstory.models import answering
from memstory.models.counted_model import CountedModel

USAGE = {"prompt_tokens": 5, "completion_tokens": 2}


class Server:
    """Answers as told: `status`, `message`, `usage`; `raw` in place of all that, cut where its length says so."""

    status, raw, length = 200, None, None
    message = {"role": "assistant", "content": "Hi"}  # noqa: RUF012  (set by a test as a whole)
    usage = USAGE
    error = "no"
    key = None

    def __init__(self):
        self.seen, self.stopping = [], threading.Event()


class Handler(LocalHandler):
    def answer(self, _):
        told = self.fake
        told.seen.append(self.headers["Authorization"])
        status = 401 if told.key and told.seen[-1] != f"Bearer {told.key}" else told.status
        choice = {"index": 0, "message": told.message, "finish_reason": "stop"}
        good = {"choices": [choice], **({"usage": told.usage} if told.usage else {})}
        answer = good if status == 200 else {"error": {"message": told.error}}
        # A length that is not that of the answer ends with the connection.
        self.send(status, answer if told.raw is None else told.raw,
                  **({"Content-Length": str(told.length), "Connection": "close"} if told.length else {}))  # fmt: skip


@pytest.fixture
def server():
    yield from serving(Server(), Handler, "/v1")


@pytest.fixture
def model(server):
    made = CountedModel("m", server=server.url, key="sk-right")
    yield made
    made.close()


def ask(model, path="chat/completions"):
    body = {"model": "m", "messages": [{"role": "user", "content": "tea"}], "input": "tea"}
    return httpx.post(f"{model.url}/{path}", json=body).status_code


def reason(model):
    with pytest.raises(SetupError) as caught:
        model.check()
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_calls_and_tokens_are_counted_without_embeddings(model, server):
    ask(model)
    before = model.use
    server.usage = None
    ask(model)
    ask(model, "embeddings")
    model.check()
    used = model.use
    assert (used.calls, used.prompt_tokens, used.answer_tokens) == (2, 5, 2)
    assert used.seconds > before.seconds > 0
    assert (before.calls, before.failed) == (1, 0)


def test_a_server_without_usage_has_no_number_of_tokens(model, server):
    server.usage = None
    ask(model)
    assert (model.use.prompt_tokens, model.use.answer_tokens) == (None, None)


def test_the_key_goes_to_the_server_and_not_to_the_memory(model, server):
    server.key = "sk-right"
    assert ask(model) == 200
    assert server.seen == ["Bearer sk-right"]


def test_a_server_that_is_down_is_to_be_started():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    model = CountedModel("m", server=url)
    ask(model)
    said = reason(model)
    model.close()
    assert f"no answer from {url}" in said
    assert said.endswith("Start the server, or say where it is: --target-option llm_url=URL")


def test_a_wrong_key_says_where_the_right_one_goes(model, server):
    server.key, server.error = "sk-other", "Incorrect API key provided"
    ask(model)
    assert reason(model) == (
        f"{server.url} answered 401 to the memory: Incorrect API key provided. Put the right key into OPENAI_API_KEY."
    )


@pytest.mark.parametrize(
    ("status", "error", "advice"),
    [
        (404, "The model `m` does not exist", "See http"),
        (400, "this model does not support tools", "needs a model that calls tools: --target-option llm=openai:MODEL"),
        (500, "overloaded", "Try again, or another model: --target-option llm=openai:MODEL"),
    ],
)
def test_what_the_server_refuses_says_what_to_type(model, server, status, error, advice):
    server.status, server.error = status, error
    ask(model)
    said = reason(model)
    assert f"{server.url} answered {status} to the memory: {error}" in said
    assert advice in said


def test_a_storm_that_ends_is_no_failure_and_one_that_does_not_is_said_with_its_tries(model, server):
    server.status, server.error = 429, "Rate limit reached"
    ask(model)
    server.status = 200
    ask(model)
    model.check()
    assert model.use == ModelUse(calls=2, failed=1, prompt_tokens=5, answer_tokens=2, seconds=model.use.seconds)
    server.status = 429
    ask(model)
    ask(model)
    assert "429 to the memory: Rate limit reached, 2 times. Wait, run with fewer workers" in reason(model)


def test_half_an_answer_is_no_answer(model, server):
    server.raw, server.length = b'{"choices": [', 400
    assert ask(model) == 502
    assert "no answer from" in reason(model)


def test_an_answer_that_is_not_json_is_said(model, server):
    server.raw = b"<html>busy</html>"
    ask(model)
    assert "answered with what is not JSON" in reason(model)


def test_an_endless_answer_is_stopped(model, server, monkeypatch):
    monkeypatch.setattr(answering, "ANSWER_BYTES", 1000)
    server.raw = b" " * 5000
    ask(model)
    assert "did not end within 1,000 bytes" in reason(model)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"content": "Sure!\nI will."}, "Sure! I will."),
        ({"content": None, "refusal": "I cannot help with that."}, "I cannot help with that."),
        ({"content": None}, "nothing"),
        ({"content": None, "tool_calls": [{"function": {"name": "save", "arguments": '{"x": '}}]}, 'save({"x": )'),
    ],
)
def test_what_the_model_said_is_the_reason_why_nothing_was_kept(model, server, message, said):
    server.message = message
    ask(model)
    assert model.last_reply(ModelUse()) == f"its model answered: {said}"
    assert model.last_reply(model.use) == "its model was not asked"


def test_a_model_behind_a_replaying_proxy_is_labelled_so(monkeypatch):
    monkeypatch.setenv("MEMSTORY_PROXY", "replayed")
    model, scripted = CountedModel("m"), CountedModel(rules=[{"reply": "Hi"}])
    assert (model.name, model.label, scripted.label) == ("m", "m (replayed)", "scripted")
    model.close()
    scripted.close()


def test_what_no_rule_answers_is_the_storys_fault():
    model = CountedModel(rules=[{"when": {"contains": "coffee"}, "reply": "no"}])
    ask(model)
    with pytest.raises(StoryError, match="no rule under `model:` fits"):
        model.check()
    model.check()
    model.close()
