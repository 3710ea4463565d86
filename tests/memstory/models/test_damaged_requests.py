"""Requests that no client sends on purpose: each gets one line, and none decides how much memory is taken."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("httpx", reason="the extra proxy is not installed")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import httpx

from memstory.models.answering import Forwarder, RuleAnswerer
from memstory.models.proxy import Proxy
from memstory.models.proxy_recording import Recorder, blank_request, read_calls
from memstory.results.secret_values import Secrets

CHAT, EMBEDDINGS = "chat/completions", "embeddings"
JSON = {"Content-Type": "application/json"}
USER = {"role": "user", "content": "tea"}


@pytest.fixture(scope="module")
def proxy():
    with Proxy(RuleAnswerer([{"when": {"contains": "tea", "tool_result_contains": ""}, "reply": "Green."}])) as proxy:
        yield proxy
    CLIENT.close()


CLIENT = httpx.Client(timeout=60)


def sent(proxy, path, body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return CLIENT.post(f"{proxy.url}/{path}", content=data, headers=JSON)


def reason(answer):
    said = answer.json()["error"]["message"]
    assert "\n" not in said
    assert 0 < len(said) < 300
    return said


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (CHAT, {"messages": [1]}, "messages"),
        (CHAT, {"messages": 5}, "messages"),
        (CHAT, {"messages": "tea"}, "messages"),
        (CHAT, {"messages": {"role": "user"}}, "messages"),
        (CHAT, {}, "messages"),
        (CHAT, {"messages": [USER, {"role": "user", "content": 5}]}, "content"),
        (CHAT, {"messages": [{"role": "user", "content": {"text": "tea"}}]}, "content"),
        (CHAT, {"messages": [USER], "model": ["m"]}, "model"),
        (CHAT, {"messages": [USER], "stream": True, "stream_options": [1]}, "stream_options"),
        (CHAT, {"messages": [USER], "stream": "yes"}, "stream"),
        (EMBEDDINGS, {"input": "tea", "dimensions": "x"}, "dimensions"),
        (EMBEDDINGS, {"input": "tea", "dimensions": 0}, "dimensions"),
        (EMBEDDINGS, {"input": "tea", "dimensions": -1}, "dimensions"),
        (EMBEDDINGS, {"input": "tea", "dimensions": 1.5}, "dimensions"),
        (EMBEDDINGS, {"input": "tea", "dimensions": True}, "dimensions"),
        (EMBEDDINGS, {"input": "tea", "dimensions": [8]}, "dimensions"),
        (EMBEDDINGS, {"input": "tea", "dimensions": 200_000_000}, "dimensions"),
        (EMBEDDINGS, {"input": "tea", "dimensions": 10**300}, "dimensions"),
        (EMBEDDINGS, {"input": 5}, "input"),
        (EMBEDDINGS, {"input": {"tea": 1}}, "input"),
        (EMBEDDINGS, {"input": ["tea"] * 2049}, "input"),
        (EMBEDDINGS, {}, "input"),
    ],
)
def test_a_wrong_field_is_named_in_one_line(proxy, path, body, field):
    answer = sent(proxy, path, body)
    assert answer.status_code == 400
    assert f"`{field}`" in reason(answer)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"text"', b"5", b"null", b"\xff\xfe", b'{"messages": [NaN]}', b'{"dimensions": Infinity}',
     b'{"a": ' + b"9" * 5000 + b"}", b'{"a":' * 90_000, b"[" * 500_000, b'{"a":' + b"[" * 90 + b"]" * 90 + b"}",
     b'{"a":' * 400 + b"1" + b"}" * 400],
)  # fmt: skip
def test_what_is_no_json_object_is_refused(proxy, body):
    answer = sent(proxy, CHAT, body)
    assert answer.status_code == 400
    assert "JSON object" in reason(answer)


def test_forty_levels_are_not_too_deep(proxy):
    schema = "tea"
    for _ in range(40):
        schema = {"properties": schema}
    assert sent(proxy, CHAT, {"messages": [USER], "response_format": schema}).status_code == 200


@pytest.mark.parametrize("number", [200_000_000, 10**300, -1, 0, "x"])
@pytest.mark.parametrize("field", ["n", "best_of", "max_tokens", "logprobs", "top_logprobs", "seed"])
def test_no_other_number_counts(proxy, field, number):
    answer = sent(proxy, CHAT, {"messages": [USER], field: number})
    assert answer.status_code == 200
    assert len(answer.json()["choices"]) == 1


async def test_the_largest_request_that_is_answered_takes_little_memory():
    tracemalloc.start()
    try:
        answer = await RuleAnswerer([]).answer(EMBEDDINGS, {"input": ["tea"] * 2048, "dimensions": 4096}, None)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(answer.body["data"]), len(answer.body["data"][-1]["embedding"])) == (2048, 4096)
    assert most < 100_000_000


def test_texts_as_tokens_are_embedded_each(proxy):
    rows = sent(proxy, EMBEDDINGS, {"input": [[1, 2], [2, 1], [3]], "dimensions": 4096}).json()["data"]
    assert len(rows) == 3


@pytest.mark.parametrize("since", ["x", "-1", "9" * 5000, "²", "1.5"])
def test_a_wrong_number_of_calls_is_one_line(proxy, since):
    answer = httpx.get(proxy.url.replace("/v1", "/memstory/calls"), params={"since": since})
    assert answer.status_code == 400
    assert "`since`" in reason(answer)


HALF = "green \ud83d tea"


def test_half_a_character_comes_through_and_is_recorded(tmp_path):
    file = tmp_path / "run.jsonl"
    body = {"model": HALF, "messages": [{"role": "user", "content": HALF}]}
    with (
        Proxy(RuleAnswerer([{"reply": HALF}])) as model,
        Proxy(Forwarder(model.url, None, Recorder(file, Secrets()))) as proxy,
    ):
        answer = sent(proxy, CHAT, body)
        streamed = sent(proxy, CHAT, {**body, "stream": True})
    assert answer.json()["choices"][0]["message"]["content"] == HALF
    assert "\\ud83d" in streamed.text
    assert [call.key for call in read_calls(file)] == [blank_request(CHAT, body).key] * 2
    assert read_calls(file)[0].answer["choices"][0]["message"]["content"] == HALF


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["user", "tool", "tea", 10**300, 200_000_000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["role", "content", "text", "input", "type", "include_usage"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
FIELDS = ("model", "messages", "input", "dimensions", "n", "stream", "stream_options", "encoding_format", "user")
REQUESTS = st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=5)


@settings(derandomize=True, max_examples=300)
@given(path=st.sampled_from([CHAT, EMBEDDINGS, "completions", "responses"]), body=REQUESTS)
def test_whatever_is_in_the_fields_is_answered_or_refused_in_one_line(proxy, path, body):
    answer = sent(proxy, path, json.dumps(body).encode())
    assert answer.status_code in {200, 400, 404}
    if answer.status_code == 400:
        reason(answer)


@settings(derandomize=True, max_examples=300)
@given(data=st.data())
def test_whatever_is_cut_or_changed_in_the_bytes_is_answered_or_refused(proxy, data):
    whole = json.dumps({"model": "m", "messages": [USER], "stream": False, "n": 1}).encode()
    place, end = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    answer = sent(proxy, CHAT, whole[:place] + data.draw(st.binary(max_size=6)) + whole[end:])
    assert answer.status_code in {200, 400, 404}


def test_a_wrong_request_counts_as_a_call_that_failed():
    with Proxy(RuleAnswerer([{"reply": "Green."}])) as proxy:
        sent(proxy, CHAT, {"messages": 5})
        sent(proxy, CHAT, b"{")
    assert [(call.how, call.status) for call in proxy.calls] == [("refused", 400)] * 2
    assert len(proxy.failures) == 2
