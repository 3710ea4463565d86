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
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from memstory.contract.errors import MemstoryError, NotSupported, Refused, StoryError, UnavailableError
from memstory.contract.local_requests import LOCAL_NAMES, RefusedRequestError, check_asker, check_json
from memstory.contract.values import Tree
from memstory_reference.errors import InputError, NotFoundError, StoreConflictError

LOG = logging.getLogger(__name__)

MAX_BODY_BYTES = 1_000_000
_READING = ("GET", "HEAD")

Answer = Callable[[Mapping[str, Tree]], Awaitable[Tree]]


Endpoint = tuple[str, str, Answer]
"""One thing that can be asked: method, path, and what answers the path, the query and the body as one mapping."""


def http_app(acts: Sequence[Endpoint], page: str, host: str, port: int) -> Starlette:
    """Return the application that serves `acts`, and `page` at its root."""
    names = {*LOCAL_NAMES, host.lower()}
    headers = {
        "Content-Security-Policy": _policy(page),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }

    def endpoint(act: Answer | None) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            try:
                check_asker(request.headers, names, port=port, is_page=act is None)
                # A browser asks before it deletes for another site, and a path says what.
                if request.method not in _READING and (request.method != "DELETE" or _has_body(request)):
                    check_json(request.headers)
                answer = HTMLResponse(page) if act is None else _json(await act(await _arguments(request)))
            except (RefusedRequestError, MemstoryError) as error:
                answer = _json({"error": str(error)}, _status(error))
            except ClientDisconnect:
                answer = Response(status_code=400)
            except Exception:
                LOG.exception("a request failed")
                answer = _json({"error": "the service failed; its log says why"}, 500)
            answer.headers.update(headers)
            return answer

        return respond

    async def nothing(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        answer = _json({"error": f"there is no {request.method} {request.url.path[:200]}"}, status)
        answer.headers.update(headers)
        return answer

    routes = [Route("/", endpoint(None), methods=["GET"])]
    routes += [Route(path, endpoint(answer), methods=[method]) for method, path, answer in acts]
    return Starlette(routes=routes, exception_handlers={HTTPException: nothing})


class HttpServer(uvicorn.Server):
    """The application on a port; `serve` returns at `stop` or a signal, when what was asked is answered.

    `announce` is called once it can be asked.
    """

    def __init__(self, app: Starlette, host: str, port: int, announce: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(app, host=host, port=port, log_level="warning", access_log=False, lifespan="off")
        )
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit as ended:  # uvicorn has said why
            place = f"http://{self.config.host}:{self.config.port}"
            raise UnavailableError(f"{place} cannot be served: choose another --host or --port") from ended
        self._announce()

    def stop(self) -> None:
        """Take no more requests."""
        self.should_exit = True


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


async def _arguments(request: Request) -> dict[str, Tree]:
    query: dict[str, Tree] = {name: value for name, value in request.query_params.items() if value}
    body: Tree = {}
    if request.method not in _READING:
        read = bytearray()
        async for part in request.stream():
            read += part
            if len(read) > MAX_BODY_BYTES:
                raise RefusedRequestError(413, f"the body has more than {MAX_BODY_BYTES} bytes")
        try:
            body = json.loads(read or b"{}")
        except (ValueError, RecursionError) as error:
            raise RefusedRequestError(400, "the body is not JSON") from error
        if not isinstance(body, dict):
            raise RefusedRequestError(400, "the body is a JSON object")
    return {**query, **body, **request.path_params}


_STATUSES: Final[Sequence[tuple[type[MemstoryError], int]]] = (
    (NotFoundError, 404),
    (InputError, 400),
    (Refused, 400),
    (StoryError, 400),
    (NotSupported, 501),
    (StoreConflictError, 409),
    (UnavailableError, 503),
)


def _status(error: RefusedRequestError | MemstoryError) -> int:
    if isinstance(error, RefusedRequestError):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


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
