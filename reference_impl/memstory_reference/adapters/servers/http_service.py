"""A small HTTP service on this machine: acts in JSON and one page, which no other site can reach through a browser.

A request must name this service in its Host header, so that no foreign name that leads here is answered (DNS
rebinding); one that a browser sends for another site is refused (CSRF), and what changes anything has a JSON body.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.values import Tree
from memstory_reference.errors import InputError, NotFoundError, StoreConflictError

LOG = logging.getLogger(__name__)

MAX_BODY_BYTES = 1_000_000
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_SAME = ("same-origin", "none")
_READING = ("GET", "HEAD")

Answer = Callable[[Mapping[str, Tree]], Awaitable[Tree]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One thing that can be asked: what is in the path, the query and the body goes to `answer` as one mapping."""

    method: str
    path: str
    answer: Answer


class RefusedError(Exception):
    """A request that is answered with a status and one sentence."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def http_app(acts: Sequence[Act], page: str, host: str, port: int) -> Starlette:
    """Return the application that serves `acts`, and `page` at its root."""
    names = {f"{name}:{port}" for name in (*_LOCAL, host)}
    headers = {
        "Content-Security-Policy": _policy(page),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }

    def endpoint(act: Act | None) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            try:
                _check(request, names)
                answer = HTMLResponse(page) if act is None else _json(await act.answer(await _arguments(request)))
            except (RefusedError, MemstoryError) as error:
                answer = _json({"error": str(error)}, _status(error))
            except ClientDisconnect:
                answer = Response(status_code=400)
            except Exception:
                LOG.exception("a request failed")
                answer = _json({"error": "the service failed; its log says why"}, 500)
            answer.headers.update(headers)
            return answer

        return respond

    routes = [Route("/", endpoint(None), methods=["GET"])]
    routes += [Route(act.path, endpoint(act), methods=[act.method]) for act in acts]
    return Starlette(routes=routes)


class _Announcing(uvicorn.Server):
    """A server that says when it takes requests."""

    def __init__(self, settings: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(settings)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()


class HttpServer:
    """The application on a port; `serve` returns when `stop` was called and what was asked is answered.

    `announce` is called once it can be asked.
    """

    def __init__(self, app: Starlette, host: str, port: int, announce: Callable[[], None]) -> None:
        settings = uvicorn.Config(app, host=host, port=port, log_level="warning", access_log=False, lifespan="off")
        self._server = _Announcing(settings, announce)

    async def serve(self) -> None:
        """Serve until `stop`, or a signal, which its own handler then gets."""
        await self._server.serve()

    def stop(self) -> None:
        """Take no more requests."""
        self._server.should_exit = True


def _check(request: Request, names: set[str]) -> None:
    host = request.headers.get("host", "").lower()
    if host not in names:
        raise RefusedError(421, f"this service is asked as {min(names)}, not as {host!r:.80}")
    origin = request.headers.get("origin")
    if origin is not None and origin.lower().removeprefix("http://") not in names:
        raise RefusedError(403, "another site may not ask this service")
    if request.headers.get("sec-fetch-site", "none") not in _SAME and request.url.path != "/":
        raise RefusedError(403, "another site may not ask this service")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method not in _READING and kind != "application/json":
        raise RefusedError(415, "what changes anything has a body of the type application/json")


async def _arguments(request: Request) -> dict[str, Tree]:
    query: dict[str, Tree] = {name: value for name, value in request.query_params.items() if value}
    body: Tree = {}
    if request.method not in _READING:
        read = bytearray()
        async for part in request.stream():
            read += part
            if len(read) > MAX_BODY_BYTES:
                raise RefusedError(413, f"the body has more than {MAX_BODY_BYTES} bytes")
        try:
            body = json.loads(read or b"{}")
        except (ValueError, RecursionError) as error:
            raise RefusedError(400, "the body is not JSON") from error
        if not isinstance(body, dict):
            raise RefusedError(400, "the body is a JSON object")
    return {**query, **body, **request.path_params}


def _status(error: RefusedError | MemstoryError) -> int:
    match error:
        case RefusedError(status=status):
            return status
        case NotFoundError():
            return 404
        case InputError():
            return 400
        case StoreConflictError():
            return 409
        case UnavailableError():
            return 503
        case _:
            return 500


def _json(value: Tree, status: int = 200) -> Response:
    # Escaped: what people send may hold half of a character, which is not UTF-8.
    return Response(json.dumps(value), status_code=status, media_type="application/json")


def _policy(page: str) -> str:
    def hashes(tag: str) -> str:
        found = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in found]
        return " ".join(f"'sha256-{one}'" for one in digests) or "'none'"

    return (
        f"default-src 'none'; script-src {hashes('script')}; style-src {hashes('style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
