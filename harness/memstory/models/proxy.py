"""The server itself: OpenAI's paths on 127.0.0.1, and /memstory/calls with what was asked so far.

It may hold a key, so it answers nobody but whom its user gave its address: the path begins with a random word, the Host
header must name this machine (DNS rebinding), and what a browser sends for another site is refused (CSRF). What is
passed on is one of a few paths, byte for byte.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Final, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from memstory.contract.errors import SetupError
from memstory.contract.local_requests import LOCAL_NAMES, RefusedRequestError, check_asker, check_json
from memstory.contract.values import ModelUse, Tree
from memstory.models.answering import Answer, Answerer, error_answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

POSTED: Final = ("chat/completions", "completions", "embeddings", "responses")
"""The paths behind /v1/ that may be asked; no other one is passed on."""

BODY_BYTES: Final = 16_000_000
"""Of one request: some times the longest prompt that a model takes."""

_LEVELS: Final = 64
_SHOWN_PATH: Final = 100
_ASKED_CHARACTERS: Final = 4_000
_FIELDS: Final = (
    ("model", str, "a text"),
    ("stream", bool, "true or false"),
    ("stream_options", dict, "an object"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedCall:
    """One call: where, which model, how it was answered, its tokens as the server counts them, and its seconds.

    `failure` says why it got no answer; `asked` has the end of what was sent, each message after its role; `said` what
    the model said or which tools it called, for a chat.
    """

    number: int
    path: str
    model: str
    how: str
    status: int
    prompt_tokens: int | None
    answer_tokens: int | None
    seconds: float
    failure: str | None = None
    asked: str | None = None
    said: str | None = None

    @property
    def use(self) -> ModelUse:
        """The call as use of a model."""
        return ModelUse(
            calls=1,
            failed=int(self.failure is not None),
            prompt_tokens=self.prompt_tokens,
            answer_tokens=self.answer_tokens,
            seconds=self.seconds,
        )


class Proxy:
    """Serves in a thread while it is entered; `url` is what a client takes as its base URL.

    The `url` holds a random word, or `token`, and who does not know it is refused. `host_names` are those by which this
    machine is asked besides its own. `refused` says how many requests were not from here, or not for here.
    """

    def __init__(
        self, answering: Answerer, port: int = 0, *, token: str | None = None, host_names: Sequence[str] = ()
    ) -> None:
        self.calls: list[CountedCall] = []
        self.refused = 0
        self._answering = answering
        self._token = token or secrets.token_hex(16)
        self._names = {*LOCAL_NAMES, *(name.lower() for name in host_names)}
        self._socket = _listening(port)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/{self._token}/v1"
        routes = [Route("/{any:path}", self._respond, methods=["GET", "POST"])]
        config = uvicorn.Config(Starlette(routes=routes, lifespan=self._closing), log_level="error", lifespan="on")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    @property
    def failures(self) -> Sequence[str]:
        """Why calls got no answer, in their order."""
        return [one.failure for one in self.calls if one.failure is not None]

    def start(self) -> None:
        """Serve from now on; who asks before waits."""
        self._thread.start()

    def stop(self) -> None:
        """Serve no more."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @asynccontextmanager
    async def _closing(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        await self._answering.close()

    async def _respond(self, request: Request) -> Response:
        try:
            path = self._admit(request)
        except RefusedRequestError as refusal:
            self.refused += 1
            return _json(error_answer(refusal.status, str(refusal)))
        try:
            return await self._serve(request, path)
        except ClientDisconnect:
            return Response(status_code=400)

    def _admit(self, request: Request) -> str:
        """Return the path behind the word, as it was sent, of a request from this machine and from no page."""
        check_asker(
            request.headers, self._names, advice="; another name is allowed by: memstory proxy --host-name NAME"
        )
        word, _, path = request.scope["raw_path"].removeprefix(b"/").partition(b"/")
        if not secrets.compare_digest(word, self._token.encode()):
            raise RefusedRequestError(
                404, "the proxy is asked by the whole base URL that it gave, with the word in its path"
            )
        return str(path, "latin-1")

    async def _serve(self, request: Request, path: str) -> Response:
        if (request.method, path) == ("GET", "v1/models"):
            names = sorted({one.model for one in self.calls} | {"memstory"})
            models = {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}
            return _json(Answer(status=200, body=models, how="told"))
        if (request.method, path) == ("GET", "memstory/calls"):
            return _json(self._recent_calls(request.query_params.get("since", "0")))
        begun = perf_counter()
        name, body = path.removeprefix("v1/"), {}
        try:
            body = await _body(request, path)
            bearer = request.headers.get("authorization", "").removeprefix("Bearer ") or None
            answer = await self._answering.answer(name, body, bearer)
        except RefusedRequestError as refusal:
            answer = error_answer(refusal.status, str(refusal), how="refused")
        self._count(name[:_SHOWN_PATH], body, answer, perf_counter() - begun)
        if body.get("stream") and answer.status < 400:  # noqa: PLR2004  (of HTTP)
            wanted = (body.get("stream_options") or {}).get("include_usage", False)
            return StreamingResponse(_as_stream(answer.body, with_usage=wanted), media_type="text/event-stream")
        return _json(answer)

    def _count(self, path: str, body: Mapping[str, Tree], answer: Answer, seconds: float) -> None:
        usage = answer.body.get("usage") if isinstance(answer.body, Mapping) else None
        is_failed = answer.status >= 400  # noqa: PLR2004  (of HTTP)
        self.calls.append(
            CountedCall(
                number=len(self.calls) + 1,
                path=path,
                model=str(body.get("model") or ""),
                how=answer.how,
                status=answer.status,
                prompt_tokens=_tokens(usage, "prompt_tokens", "input_tokens"),
                answer_tokens=_tokens(usage, "completion_tokens", "output_tokens"),
                seconds=seconds,
                failure=_failure(answer.body) if is_failed else None,
                asked=_end_of_messages(body),
                said=None if is_failed else _words_of(answer.body),
            )
        )

    def _recent_calls(self, since: str) -> Answer:
        if not re.fullmatch(r"[0-9]{1,9}", since):
            return error_answer(400, "`since` is the number of a call")
        return Answer(status=200, body={"calls": [asdict(one) for one in self.calls[int(since) :]]}, how="told")


def totals(calls: Sequence[CountedCall]) -> Sequence[Sequence[Tree]]:
    """Return a row for each path, model and way of answering: calls, tokens of prompts and of answers, seconds."""
    groups: defaultdict[tuple[str, str, str], ModelUse] = defaultdict(ModelUse)
    for call in calls:
        groups[call.path, call.model, call.how] += call.use
    return [
        [*group, use.calls, use.prompt_tokens, use.answer_tokens, f"{use.seconds:.2f}"]
        for group, use in sorted(groups.items())
    ]


def _tokens(usage: Tree, *names: str) -> int | None:
    found = [usage.get(name) for name in names] if isinstance(usage, Mapping) else []
    return next((number for number in found if isinstance(number, int)), None)


def _failure(body: Tree) -> str:
    error = body.get("error") if isinstance(body, Mapping) else body
    return str(error.get("message", error) if isinstance(error, Mapping) else error or body)


def _end_of_messages(body: Mapping[str, Tree]) -> str | None:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    said = [f"{one.get('role')}: {one.get('content')}" for one in messages if isinstance(one, dict)]
    return "\n".join(said)[-_ASKED_CHARACTERS:]


def _words_of(body: Tree) -> str | None:
    """Return the words of a chat's answer, or the calls that it asks for; None for other answers."""
    try:
        message = body["choices"][0]["message"]
        calls = [
            f"{one['function']['name']}({one['function']['arguments']})" for one in message.get("tool_calls") or ()
        ]
        return "; ".join(calls) or str(message.get("content") or message.get("refusal") or "nothing")
    except (LookupError, TypeError, AttributeError):
        return None


async def _body(request: Request, path: str) -> dict[str, Tree]:
    """Return what is asked, where it is asked as the protocol has it."""
    if (request.method, path) not in [("POST", f"v1/{one}") for one in POSTED]:
        raise RefusedRequestError(404, f"the proxy answers POST of v1/ with {', '.join(POSTED)}; and GET v1/models")
    check_json(request.headers)
    body = _parse(await _read(request))
    if not isinstance(body, dict) or _is_deep(body):
        raise RefusedRequestError(400, f"the body is not a JSON object, or has more than {_LEVELS} levels")
    for field, allowed, what in _FIELDS:
        if not isinstance(body.get(field), allowed | None):
            raise RefusedRequestError(400, f"`{field}` is {what}")
    if body.get("stream") and path != "v1/chat/completions":
        raise RefusedRequestError(400, "the proxy streams chat/completions only; ask without `stream`")
    return body


async def _read(request: Request) -> bytearray:
    read, size = bytearray(), 0
    async for part in request.stream():
        size += len(part)
        # What is too long is not kept, but taken: a client that is still sending reads no answer.
        read += part if size <= BODY_BYTES else b""
    if size > BODY_BYTES:
        raise RefusedRequestError(413, f"the body has more than {BODY_BYTES:,} bytes")
    return read


def _parse(text: bytearray) -> Tree:
    try:
        tree = json.loads(text)
        # Infinity and NaN, which Python reads, are not in JSON.
        json.dumps(tree, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return tree


def _is_deep(tree: Tree) -> bool:
    level = [tree]
    for _ in range(_LEVELS):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, (dict, list)))
        level = list(chain.from_iterable(inner))
    return bool(level)


def _json(answer: Answer) -> Response:
    headers = {"Retry-After": answer.retry_after} if answer.retry_after else None
    # Escaped: what a model says may hold half of a character, which is not UTF-8.
    return Response(json.dumps(answer.body), answer.status, headers, media_type="application/json")


def _listening(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        made.close()
        why = getattr(error, "strerror", "no port has this number")
        raise SetupError(f"port {port} cannot be used: {why}. Leave --port out for a free one.") from error
    made.listen()
    return made


def _as_stream(answer: Mapping[str, Tree], *, with_usage: bool) -> Iterator[bytes]:
    """Yield a whole answer as the events that a caller asked for: one for the text and one for each tool call.

    Whole pieces keep ids whole: one that is split over two pieces could not be filled in.
    """
    head = {name: answer.get(name) for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for choice in answer.get("choices") or ():
        index, message = choice.get("index", 0), dict(choice.get("message") or {})
        calls = message.pop("tool_calls", None) or ()
        pieces = [{name: value for name, value in message.items() if value is not None}]
        pieces += [{"tool_calls": [{"index": place, **call}]} for place, call in enumerate(calls)]
        for delta in pieces:
            yield _event({**head, "choices": [{"index": index, "delta": delta, "finish_reason": None}]})
        end = choice.get("finish_reason") or "stop"
        yield _event({**head, "choices": [{"index": index, "delta": {}, "finish_reason": end}]})
    if with_usage and answer.get("usage"):
        yield _event({**head, "choices": [], "usage": answer["usage"]})
    yield b"data: [DONE]\n\n"


def _event(chunk: Tree) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode(errors="backslashreplace")
