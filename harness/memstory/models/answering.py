"""Where an answer comes from: a server elsewhere, a recording, or rules."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

import httpx

from memstory.contract.errors import SetupError
from memstory.contract.local_requests import RefusedRequestError
from memstory.contract.models import Reply
from memstory.contract.values import Tree
from memstory.models.cassette import AGAIN, difference_from_nearest
from memstory.models.proxy_recording import BlankRequest, RecordedCall, Recorder, blank_request
from memstory.models.scripted_chat import has_texts, reply_of
from memstory.models.spoiled_replies import REPLIES, STATUSES, spoil
from memstory.models.word_vectors import counted_words

TIMEOUT_SECONDS: Final = 600.0
ANSWER_BYTES: Final = 64_000_000
"""Of one answer, thousands of embeddings included: a server that repeats itself never ends."""

DIMENSION: Final = 384
_MOST_SPOILED: Final = 5
MOST_TEXTS, MOST_DIMENSIONS = 2048, 4096
"""Of one request for embeddings, so that no number in it decides how much memory is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent back: an HTTP status and JSON; `how` is forwarded, replayed, scripted, missed or refused.

    `retry_after` is what the server says of another try.
    """

    status: int
    body: Tree
    how: str
    retry_after: str | None = None


class Answerer(Protocol):
    """Gives the answer to a request; `path` is what comes after /v1/."""

    async def answer(self, path: str, body: Mapping[str, Tree], key: str | None) -> Answer:
        """Return the answer; `key` is the caller's, for a server elsewhere.

        Raises:
            RefusedRequestError: the request is damaged.
        """
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...


class Forwarder:
    """Asks the server at `url`, and writes down what it says where there is a `recorder`.

    Raises:
        SetupError: `url` is not that of a server, or no header can have the `key`.
    """

    def __init__(self, url: str, key: str | None = None, recorder: Recorder | None = None) -> None:
        # Callers see it without a password.
        self._url = _without_password(url)
        # Here, because the client would quote the key where it says that it cannot send it.
        if key and not (key.isascii() and key.isprintable()):
            raise SetupError("the key holds a line end or another sign that no HTTP header can have. Set it again.")
        self._client = httpx.AsyncClient(timeout=TIMEOUT_SECONDS)
        self._asked, self._key, self.recorder = url.rstrip("/"), key, recorder

    async def answer(self, path: str, body: Mapping[str, Tree], key: str | None) -> Answer:
        """Ask for a whole answer, which is easier to keep than a stream; the caller still gets one."""
        sent = {name: value for name, value in body.items() if name not in {"stream", "stream_options"}}
        bearer = self._key or key
        headers = {"Content-Type": "application/json"}
        if bearer:
            headers["Authorization"] = f"Bearer {bearer}"
        try:
            # Not by `base_url` and a path: a path that is a URL itself would replace it, and get the key.
            url = f"{self._asked}/{path}"
            # Escaped: a text may hold half of a character, which is not UTF-8.
            async with self._client.stream("POST", url, content=json.dumps(sent), headers=headers) as got:
                content = await _whole(got)
            answer = json.loads(content)
        except httpx.HTTPError as error:
            said = f"no answer from {self._url}: {str(error) or type(error).__name__}"
            return error_answer(502, said)
        except (ValueError, RecursionError) as error:
            return error_answer(502, f"{self._url} answered with what is not JSON: {str(error)[:100]}")
        if got.is_success and self.recorder is not None:
            self.recorder.write(blank_request(path, body), answer)
        wait = got.headers.get("retry-after")
        return Answer(status=got.status_code, body=answer, how="forwarded", retry_after=wait)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class Replayer:
    """Answers from a recording: equal requests get their answers in the order of the recording, the last one again."""

    def __init__(self, calls: Sequence[RecordedCall]) -> None:
        self._calls = calls
        self._answers: dict[str, list[Tree]] = defaultdict(list)
        self._next: dict[str, int] = defaultdict(int)
        for call in calls:
            self._answers[call.key].append(call.answer)

    async def answer(self, path: str, body: Mapping[str, Tree], key: str | None) -> Answer:
        """Return the recorded answer with this request's ids, or how the nearest recorded request differs."""
        request = blank_request(path, body)
        recorded = self._answers.get(request.key)
        if recorded is None:
            # Not 5xx or 409: a client would ask again and again.
            return error_answer(404, self._miss(request), how="missed")
        place = self._next[request.key]
        self._next[request.key] += 1
        return Answer(status=200, body=request.fill(recorded[min(place, len(recorded) - 1)]), how="replayed")

    async def close(self) -> None:
        """Release nothing."""

    def _miss(self, request: BlankRequest) -> str:
        head = f"the recording has no such request to {request.path}"
        there = [call.request for call in self._calls if call.path == request.path]
        if not there:
            return f"{head}, and none to this path at all. {AGAIN}"
        difference = difference_from_nearest(_lines(request.body), map(_lines, there))
        return "\n".join([f"{head}. {AGAIN}", *difference])


class RuleAnswerer:
    """Answers by rules, as a story's `model:`; embeddings are made of hashed words, 384 numbers.

    A rule is `{when: {contains, tool_result_contains}, reply}`: `contains` looks at all that was said but tool results.
    The first that fits answers. `mode` is `ok`, or says how replies are spoiled; `spoiled` counts those that were.
    """

    def __init__(self, rules: Sequence[Mapping[str, Tree]]) -> None:
        self._rules = rules
        self.mode, self.spoiled = "ok", 0
        self._left = 0

    def spoil(self, mode: str) -> None:
        """Spoil the next five replies as `spoiled_replies` says of `mode`, or one that is to fail; `ok` spoils none.

        No more: an agent that asks until it is understood would never end.
        """
        self.mode, self._left = mode, 0 if mode == "ok" else 1 if mode in STATUSES else _MOST_SPOILED

    async def answer(self, path: str, body: Mapping[str, Tree], key: str | None) -> Answer:
        """Return what the first rule that fits says."""
        if path == "embeddings":
            return Answer(status=200, body=_embed(body), how="scripted")
        if path != "chat/completions":
            raise RefusedRequestError(404, f"rules answer chat/completions and embeddings, not {path}")
        messages = _messages(body)
        said = "\n".join(_text(one) for one in messages if one.get("role") != "tool")
        results = "\n".join(_text(one) for one in messages if one.get("role") == "tool")
        for rule in self._rules:
            if has_texts(rule.get("when") or {}, said, [results]):
                return self._reply(_completion(body, reply_of(rule["reply"])))
        return error_answer(404, f"no rule under `model:` fits this request:\n{said[-2000:]}", how="missed")

    def _reply(self, completion: Mapping[str, Tree]) -> Answer:
        if not self._left:
            return Answer(status=200, body=completion, how="scripted")
        self._left, self.spoiled = self._left - 1, self.spoiled + 1
        if self.mode in STATUSES:
            return error_answer(STATUSES[self.mode], f"the story's model {REPLIES[self.mode]}", how="scripted")
        (choice,) = completion["choices"]
        spoiled = {**completion, "choices": [{**choice, "message": spoil(self.mode, choice["message"])}]}
        return Answer(status=200, body=spoiled, how="scripted")

    async def close(self) -> None:
        """Release nothing."""


def _without_password(url: str) -> str:
    with suppress(httpx.InvalidURL, ValueError):
        shown, parts = httpx.URL(url).copy_with(userinfo=b""), urlsplit(url)
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
            return str(shown)
    raise SetupError(f"{url!r} is not the URL of a server; allowed: a URL such as http://127.0.0.1:8080/v1")


async def _whole(got: httpx.Response) -> bytes:
    content = bytearray()
    async for piece in got.aiter_bytes():
        content += piece
        if len(content) > ANSWER_BYTES:
            raise httpx.ReadError(f"its answer did not end within {ANSWER_BYTES:,} bytes")
    return bytes(content)


def _embed(body: Mapping[str, Tree]) -> Tree:
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or len(texts) > MOST_TEXTS:
        raise RefusedRequestError(400, f"`input` is a text, or a list of at most {MOST_TEXTS:,} texts")
    size = DIMENSION if body.get("dimensions") is None else body["dimensions"]
    if type(size) is not int or not 1 <= size <= MOST_DIMENSIONS:
        raise RefusedRequestError(400, f"`dimensions` is a whole number from 1 to {MOST_DIMENSIONS:,}")
    rows = [
        {"object": "embedding", "index": place, "embedding": counted_words(str(text), size)}
        for place, text in enumerate(texts)
    ]
    return {"object": "list", "data": rows, "model": body.get("model")}


def _messages(body: Mapping[str, Tree]) -> Sequence[Mapping[str, Tree]]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise RefusedRequestError(400, "`messages` is a list of objects such as {role: user, content: TEXT}")
    if not all(isinstance(one.get("content"), str | list | None) for one in messages):
        raise RefusedRequestError(400, "`content` of a message is a text or a list of parts")
    return messages


def _completion(body: Mapping[str, Tree], reply: Reply) -> dict[str, Tree]:
    calls = reply.tool_requests
    message: dict[str, Tree] = {"role": "assistant", "content": reply.content or (None if calls else "")}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_scripted{place}",
                "type": "function",
                "function": {"name": one.name, "arguments": json.dumps(one.arguments)},
            }
            for place, one in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model"),
        "choices": [choice],
    }


def error_answer(status: int, message: str, how: str = "forwarded") -> Answer:
    """Return an error as OpenAI's protocol has it."""
    return Answer(status=status, body={"error": {"message": message, "type": "memstory_proxy"}}, how=how)


def _lines(body: Tree) -> list[str]:
    return json.dumps(body, indent=1, ensure_ascii=False, sort_keys=True).replace("\\n", "\n").splitlines()


def _text(message: Mapping[str, Tree]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in content or () if isinstance(part, Mapping))
