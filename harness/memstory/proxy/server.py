"""The server itself: OpenAI's paths on 127.0.0.1, and /memstory/calls with what was asked so far."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from memstory.contract.errors import SetupError
from memstory.contract.values import Tree
from memstory.proxy.streams import as_stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

    from memstory.proxy.answering import Answering


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One call: where, which model, how it was answered, its tokens as the server counts them, and its seconds.

    `failure` says why it got no answer, `said` what the model said or which tools it called, for a chat.
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
    said: str | None = None


class Proxy:
    """Serves in a thread while it is entered; `url` is what a client takes as its base URL."""

    def __init__(self, answering: Answering, port: int = 0) -> None:
        self.calls: list[Counted] = []
        self._answering = answering
        self._socket = _listening(port)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        routes = [
            Route("/memstory/calls", self._told, methods=["GET"]),
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/v1/{path:path}", self._asked, methods=["POST"]),
        ]
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

    async def _asked(self, request: Request) -> Response:
        path = request.path_params["path"]
        try:
            body = await request.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return _error(400, "the proxy expects a JSON object")
        if body.get("stream") and path != "chat/completions":
            return _error(400, f"the proxy streams chat/completions only, not {path}; ask without `stream`")
        begun = perf_counter()
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ") or None
        answer = await self._answering.answer(path, body, bearer)
        seconds = perf_counter() - begun
        usage = answer.body.get("usage") if isinstance(answer.body, Mapping) else None
        failed = answer.status >= 400  # noqa: PLR2004  (of HTTP)
        self.calls.append(
            Counted(
                number=len(self.calls) + 1,
                path=path,
                model=str(body.get("model", "")),
                how=answer.how,
                status=answer.status,
                prompt_tokens=_tokens(usage, "prompt_tokens", "input_tokens"),
                answer_tokens=_tokens(usage, "completion_tokens", "output_tokens"),
                seconds=seconds,
                failure=_failure(answer.body) if failed else None,
                said=None if failed else _said(answer.body),
            )
        )
        if body.get("stream") and not failed:
            wanted = (body.get("stream_options") or {}).get("include_usage", False)
            return StreamingResponse(as_stream(answer.body, with_usage=wanted), media_type="text/event-stream")
        headers = {"Retry-After": answer.retry_after} if answer.retry_after else None
        return JSONResponse(answer.body, status_code=answer.status, headers=headers)

    async def _told(self, request: Request) -> Response:
        since = request.query_params.get("since", "0")
        first = int(since) if since.isdecimal() else 0
        return JSONResponse({"calls": [asdict(one) for one in self.calls[first:]]})

    async def _models(self, _request: Request) -> Response:
        names = sorted({one.model for one in self.calls} | {"memstory"})
        return JSONResponse({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


def totals(calls: Sequence[Counted]) -> Sequence[Sequence[Tree]]:
    """Return a row for each path, model and way of answering: calls, tokens of prompts and of answers, seconds."""
    groups: dict[tuple[str, str, str], list[Counted]] = {}
    for call in calls:
        groups.setdefault((call.path, call.model, call.how), []).append(call)
    return [
        [*group, len(of), _sum(one.prompt_tokens for one in of), _sum(one.answer_tokens for one in of),
         f"{sum(one.seconds for one in of):.2f}"]
        for group, of in sorted(groups.items())
    ]  # fmt: skip


def _sum(numbers: object) -> int | None:
    known = [number for number in numbers if number is not None]  # type: ignore[attr-defined]
    return sum(known) if known else None


def _tokens(usage: Tree, *names: str) -> int | None:
    found = [usage.get(name) for name in names] if isinstance(usage, Mapping) else []
    return next((number for number in found if isinstance(number, int)), None)


def _failure(body: Tree) -> str:
    error = body.get("error") if isinstance(body, Mapping) else body
    return str(error.get("message", error) if isinstance(error, Mapping) else error or body)


def _said(body: Tree) -> str | None:
    """Return the words of a chat's answer, or the calls that it asks for; None for other answers."""
    try:
        message = body["choices"][0]["message"]
        calls = [
            f"{one['function']['name']}({one['function']['arguments']})" for one in message.get("tool_calls") or ()
        ]
        return "; ".join(calls) or str(message.get("content") or message.get("refusal") or "nothing")
    except (LookupError, TypeError, AttributeError):
        return None


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": "memstory_proxy"}}, status_code=status)


def _listening(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port))
    except OSError as error:
        made.close()
        raise SetupError(f"port {port} cannot be used: {error.strerror}. Leave --port out for a free one.") from error
    made.listen()
    return made
