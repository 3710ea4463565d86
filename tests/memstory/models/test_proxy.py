"""The proxy in front of a server, without it, and without a model at all."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace

import pytest

pytest.importorskip("httpx", reason="the extra proxy is not installed")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import httpx
from memstory_tests_local_server import LocalHandler, serving

from memstory.contract.errors import SetupError
from memstory.models.answering import Forwarder, Replayer, RuleAnswerer
from memstory.models.proxy import Proxy, totals
from memstory.models.proxy_recording import Recorder, read_calls
from memstory.results.secret_values import Secrets

ONE = "0b5ad9d0-6c5e-4f0e-9a59-6f4f2f1c1111"
OTHER = "9f0c3a52-1111-4222-8333-444455556666"
CHAT = "chat/completions"


class Repeating(LocalHandler):
    """Repeats its input and counts: the nth answer ends with n."""

    def answer(self, body):
        self.fake.seen.append((self.headers["Authorization"], body))
        said = f"{body['messages'][-1]['content']} #{len(self.fake.seen)}"
        message = {"role": "assistant", "content": said}
        self.send(200, {
            "id": "x", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2},
        })  # fmt: skip


@pytest.fixture
def upstream():
    """The address of a model's server, and what it was asked."""
    for fake in serving(SimpleNamespace(seen=[], stopping=Event()), Repeating, "/v1"):
        yield fake.url, fake.seen


def said(proxy, text, **more):
    return httpx.post(
        f"{proxy.url}/{CHAT}",
        json={"model": "m", "messages": [{"role": "user", "content": text}], **more},
        headers={"Authorization": "Bearer sk-caller"},
    )


def content(answer):
    return answer.json()["choices"][0]["message"]["content"]


@pytest.fixture
def recording(upstream, tmp_path):
    url, _ = upstream
    path = tmp_path / "run.jsonl"
    with Proxy(Forwarder(url, None, Recorder(path, Secrets(["sk-in-a-prompt"])))) as proxy:
        said(proxy, f"change {ONE}")
        said(proxy, "again")
        said(proxy, "again")
        said(proxy, "my key is sk-in-a-prompt")
    return path


def test_calls_are_passed_on_with_the_callers_key_and_counted(upstream):
    url, seen = upstream
    with Proxy(Forwarder(url)) as proxy:
        assert content(said(proxy, "tea")) == "tea #1"
    assert seen[0][0] == "Bearer sk-caller"
    assert totals(proxy.calls)[0][:6] == [CHAT, "m", "forwarded", 1, 5, 2]


def test_another_key_replaces_the_callers(upstream):
    url, seen = upstream
    with Proxy(Forwarder(url, "sk-ours")) as proxy:
        said(proxy, "tea")
    assert seen[0][0] == "Bearer sk-ours"


def test_a_replay_needs_no_server_and_fills_in_the_new_id(recording):
    with Proxy(Replayer(read_calls(recording))) as proxy:
        assert content(said(proxy, f"change {OTHER}")) == f"change {OTHER} #1"


def test_equal_requests_get_their_answers_in_order_and_the_last_one_again(recording):
    with Proxy(Replayer(read_calls(recording))) as proxy:
        assert [content(said(proxy, "again")) for _ in range(3)] == ["again #2", "again #3", "again #3"]


def test_no_secret_reaches_the_recording(recording):
    written = recording.read_text("utf-8")
    assert "sk-in-a-prompt" not in written
    assert "sk-caller" not in written


def test_a_request_with_a_secret_is_found_again(recording):
    with Proxy(Replayer(read_calls(recording))) as proxy:
        assert said(proxy, "my key is sk-in-a-prompt").status_code == 200


def test_a_miss_shows_how_the_nearest_request_differs_and_is_not_tried_again(recording):
    with Proxy(Replayer(read_calls(recording))) as proxy:
        answer = said(proxy, "once more")
    assert answer.status_code == 404
    message = answer.json()["error"]["message"]
    assert "no such request" in message
    assert '"content": "once more"' in message
    assert proxy.failures == [message]


def test_a_stream_is_sent_where_one_is_asked_for(recording):
    with Proxy(Replayer(read_calls(recording))) as proxy:
        answer = said(proxy, "again", stream=True, stream_options={"include_usage": True})
    events = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert "".join(one["choices"][0]["delta"].get("content", "") for one in chunks if one["choices"]) == "again #2"
    assert chunks[-1]["usage"]["prompt_tokens"] == 5


def test_callers_at_once_get_their_own_answers(upstream, tmp_path):
    url, _ = upstream
    path = tmp_path / "many.jsonl"
    texts = [f"text {number}" for number in range(40)]
    with Proxy(Forwarder(url, None, Recorder(path, Secrets()))) as proxy, ThreadPoolExecutor(8) as pool:
        recorded = dict(zip(texts, pool.map(lambda text: content(said(proxy, text)), texts), strict=True))
    with Proxy(Replayer(read_calls(path))) as proxy, ThreadPoolExecutor(8) as pool:
        replayed = dict(zip(texts, pool.map(lambda text: content(said(proxy, text)), texts), strict=True))
    assert recorded == replayed
    assert [one.number for one in proxy.calls] == list(range(1, 41))


def test_a_server_that_is_not_there_is_an_error_of_the_proxy():
    with Proxy(Forwarder("http://127.0.0.1:9/v1")) as proxy:
        answer = said(proxy, "tea")
    assert answer.status_code == 502
    assert "no answer from http://127.0.0.1:9/v1" in proxy.failures[0]


def test_rules_answer_with_texts_and_tool_calls():
    rules = [
        {"when": {"contains": "Memory Extractor", "tool_result_contains": "saved"}, "reply": "Done."},
        {
            "when": {"contains": ["Memory Extractor", "Porto"]},
            "reply": {"tool_calls": [{"name": "add", "args": {"x": 1}}]},
        },
    ]
    system = {"role": "system", "content": "You are a Memory Extractor"}
    with Proxy(RuleAnswerer(rules)) as proxy:
        asked = {"model": "m", "messages": [system, {"role": "user", "content": "I live in Porto"}]}
        first = httpx.post(f"{proxy.url}/{CHAT}", json=asked).json()["choices"][0]
        asked["messages"].append({"role": "tool", "content": "saved", "tool_call_id": "1"})
        second = httpx.post(f"{proxy.url}/{CHAT}", json=asked).json()["choices"][0]
        missed = said(proxy, "tea")
    assert (first["finish_reason"], first["message"]["tool_calls"][0]["function"]["name"]) == ("tool_calls", "add")
    assert second["message"]["content"] == "Done."
    assert (missed.status_code, "no rule" in proxy.failures[0]) == (404, True)


def test_scripted_embeddings_have_the_size_that_was_asked_for():
    with Proxy(RuleAnswerer([])) as proxy:
        asked = {"model": "m", "input": ["green tea", "tea green", "coffee"], "dimensions": 64}
        rows = [row["embedding"] for row in httpx.post(f"{proxy.url}/embeddings", json=asked).json()["data"]]
    assert {len(row) for row in rows} == {64}
    assert rows[0] == rows[1] != rows[2]


def test_calls_so_far_can_be_asked_for(recording):
    with Proxy(Replayer(read_calls(recording))) as proxy:
        said(proxy, "again")
        said(proxy, "again")
        answer = httpx.get(proxy.url.replace("/v1", "/memstory/calls?since=1")).json()
    assert [one["number"] for one in answer["calls"]] == [2]


def test_a_port_that_is_taken_is_said():
    with Proxy(RuleAnswerer([])) as proxy:
        port = int(proxy.url.split(":")[2].split("/")[0])
        with pytest.raises(SetupError, match=f"port {port} cannot be used"):
            Proxy(RuleAnswerer([]), port)
