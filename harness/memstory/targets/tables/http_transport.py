"""Calls of a table over HTTP: what is sent, how often it is tried, and what a reply or its absence means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import quote, urlsplit

import httpx

from memstory.contract.errors import NotSupported, Refused, SetupError, TargetError
from memstory.contract.target import Tree
from memstory.targets.child_server import HOST, ChildServer
from memstory.targets.tables.replies import ServerReply
from memstory.targets.tables.servers import SharedServer, start_server
from memstory.targets.tables.table import Call, ToolTable
from memstory.targets.tables.templates import Values, Variables, render

CALL_SECONDS: Final = 30.0
RETRIES: Final = 2
MOST_BYTES: Final = 64 * 1024 * 1024

_PAUSE_SECONDS: Final = 0.2
_REPEATABLE: Final = frozenset({"GET", "PUT"})
"""Methods that may be sent again when no reply came. Not DELETE: the second would say that there was nothing."""

_PASSING: Final = frozenset({502, 503, 504})
_WAITING: Final = frozenset({429, 503})
_UNAUTHORISED: Final = 401
_SHORTEST_SECRET: Final = 8
"""Characters that a value must have to be taken out of a good reply, where a shorter one may be an ordinary word."""

_DOTS: Final = {".": "%2E", "..": "%2E%2E"}


class HttpTransport:
    """One client for one open target, and its own server where the table starts one.

    Where other cases use the same server, users are made unique to the case.
    """

    _client: httpx.AsyncClient

    def __init__(self, table: ToolTable, common: SharedServer[ChildServer]) -> None:
        self.shared = "command" not in table.settings
        self._table = table
        self._where = table.where
        self._variables = Variables(table.where)
        self._url = self._variables.fill("url", table.settings.get("url", f"http://{HOST}:{{port}}"))
        self._common = common
        self._server: ChildServer | None = None
        self._is_own = False
        self._headers = self._variables.headers(table.settings.get("headers", {}))
        self._seconds: float = table.settings.get("call_seconds", CALL_SECONDS)
        self._retries: int = table.settings.get("retries", RETRIES)
        self._has_answered = False

    async def open(self, values: Values, options: Mapping[str, Tree]) -> None:
        """Start the server if it is our own, and make the client; nothing is sent yet."""
        if self._common.is_wanted(options):
            self._server, self.shared = await self._common.server(), True
        elif not self.shared:
            self._server, self._is_own = await start_server(self._table, values), True
        if self._server is not None:
            self._url = self._url.replace("{port}", str(self._server.port))
        self._client = httpx.AsyncClient(base_url=self._url, headers=self._headers, timeout=self._seconds)

    async def close(self) -> None:
        """Close every connection, and end the server if it is this target's own."""
        try:
            await self._client.aclose()
        finally:
            if self._server is not None and self._is_own:
                await self._server.close()

    async def about(self) -> Mapping[str, str]:
        """Return where the server is, without what in the address may be secret."""
        return {"server": public_url(self._url)}

    def describe(self, call: Call, values: Values) -> str:
        """Return method, path, query and body; of a call that could not be sent, its place in the table."""
        try:
            method, path, query, content = _request_of(call, values)
        except (NotSupported, Refused):
            return call.where
        address = f"{path}?{query}" if query else path
        return self._redact(f"{method} {address} {content.decode() if content else ''}".rstrip())

    async def call(self, call: Call, values: Values) -> ServerReply:
        """Send one call, again where that can do no harm, and return what came back.

        Raises:
            SetupError: no server is there, or it does not know who we are.
            TargetError: no reply came in time, the connection broke, or the reply cannot be read.
            Refused: a value of the story cannot be sent.
        """
        method, path, query, content = _request_of(call, values)
        headers = self._call_headers(call, values, content)
        request = self._client.build_request(method, path, params=query, headers=headers, content=content)
        for left in range(self._retries, -1, -1):
            reply, pause = await self._attempt(request, is_last=not left)
            if reply is not None:
                return reply
            await asyncio.sleep(pause * (self._retries - left + 1))
        raise AssertionError("the last attempt gives a reply or raises")

    async def _attempt(self, request: httpx.Request, *, is_last: bool) -> tuple[ServerReply | None, float]:
        """Return a reply, or None and how long to wait before the next attempt."""
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._client.send(request, stream=True)
                try:
                    text = await _text(response, self._name(request))
                finally:
                    await response.aclose()
        except (TimeoutError, httpx.TimeoutException) as error:
            raise TargetError(f"{self._name(request)}: no reply within {self._seconds:g} s ('call_seconds')") from error
        except httpx.ConnectError as error:
            # Nothing was sent, so that any method may be tried again.
            if is_last or not self._has_answered:
                raise self._unreachable(request, error) from error
            return None, _PAUSE_SECONDS
        except httpx.HTTPError as error:
            if is_last or request.method not in _REPEATABLE:
                raise TargetError(self._redact(f"{self._name(request)}: the connection broke: {error!r}")) from error
            return None, _PAUSE_SECONDS
        self._has_answered = True
        pause = None if is_last else _pause(request, response, self._seconds)
        return (self._reply(request, response, text), 0.0) if pause is None else (None, pause)

    def _reply(self, request: httpx.Request, response: httpx.Response, text: str) -> ServerReply:
        said = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
        if response.status_code == _UNAUTHORISED:
            raise SetupError(
                f"{self._where}: {self._name(request)}: {said}: the server does not know who asks. "
                "Give it what it wants under 'headers', as in Authorization = \"Bearer ${NAME}\"."
            )
        if response.is_success:
            # What the server gives as a memory is not told, but it is if it cannot be read.
            return ServerReply(text=self._variables.redact(text, shortest=_SHORTEST_SECRET))
        return ServerReply(text=self._redact(text), problem=said)

    def _call_headers(self, call: Call, values: Values, content: bytes | None) -> Mapping[str, str]:
        own: Mapping[str, Tree] = render(call.spec.get("headers") or {}, values)
        kind = {} if content is None else {"content-type": "application/json"}
        try:
            return {**kind, **{name: str(value).encode("ascii").decode() for name, value in own.items()}}
        except UnicodeEncodeError as error:
            raise Refused(f"{call.where}: a header takes ASCII only: {error.object!r:.80}") from error

    def _unreachable(self, request: httpx.Request, error: httpx.ConnectError) -> Exception:
        place = public_url(self._url)
        if self._has_answered:
            return TargetError(self._redact(f"{self._name(request)}: the server at {place} is gone: {error}"))
        if self._server is not None:
            return TargetError(self._redact(f"{self._name(request)}: {self._server.last_words() or error}"))
        return SetupError(
            self._redact(f"{self._where}: no server answers at {place} ({error}). Start it, or correct 'url'.")
        )

    def _redact(self, text: str) -> str:
        return self._variables.redact(text)

    def _name(self, request: httpx.Request) -> str:
        return f"{request.method} {request.url.path}"


async def _text(response: httpx.Response, said: str) -> str:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MOST_BYTES:
            raise TargetError(f"{said}: the reply has more than {MOST_BYTES // 1024 // 1024} MiB")
    try:
        return body.decode(response.charset_encoding or "utf-8")
    except (UnicodeDecodeError, LookupError) as error:
        raise TargetError(f"{said}: the reply cannot be read as text: {error}") from error


def _pause(request: httpx.Request, response: httpx.Response, most: float) -> float | None:
    """Return how long to wait before the request is sent again; None if the reply is final."""
    if response.status_code in _WAITING and "retry-after" in response.headers:
        wanted = retry_seconds(response.headers["retry-after"])
        # A wait longer than a call may take is refused: the reply is reported as it is.
        return wanted if wanted is not None and wanted <= most else None
    if response.status_code in _PASSING and request.method in _REPEATABLE:
        return _PAUSE_SECONDS
    return None


def retry_seconds(retry_after: str) -> float | None:
    """Return the seconds that a `Retry-After` asks for, in either of its forms; None if it is neither."""
    seconds = retry_after.strip()
    if seconds.isdecimal():
        return float(seconds)
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _request_of(call: Call, values: Values) -> tuple[str, str, httpx.QueryParams, bytes | None]:
    """Return method, path, query and body."""
    body = render(call.spec.get("body"), values)
    content = None if body is None else _as_json(body)
    method = str(call.spec.get("method") or ("GET" if content is None else "POST"))
    # httpx drops what the address has behind its question mark where it is given parameters.
    path, _, own = _path(call, values).partition("?")
    query = _parameters(render(call.spec.get("query") or {}, values))
    return method, path, httpx.QueryParams(own).merge(query), content


def _path(call: Call, values: Values) -> str:
    template = call.spec["path"]
    path = render(template, values, escape=path_segment)
    if path is None:
        raise NotSupported(call.where, f"{call.where}: the path names something that this step does not give")
    # A path that is one placeholder comes as the value itself, and may be no text at all.
    return path if isinstance(path, str) and path.startswith("/") else f"/{path_segment(str(path))}"


def path_segment(value: str) -> str:
    """Return a value as one part of a path, which can neither end it nor climb out of it."""
    if not value:
        raise Refused("an empty value cannot be part of a path: it would name something else")
    try:
        return _DOTS.get(value) or quote(value, safe="")
    except UnicodeEncodeError as error:
        raise Refused(f"{value!r:.80} cannot be sent: it is not valid Unicode") from error


def _parameters(query: Mapping[str, Tree]) -> httpx.QueryParams:
    """Return what follows the question mark; a list is given value by value under the same name."""
    pairs = [(name, one) for name, value in query.items() for one in (value if isinstance(value, list) else [value])]
    return httpx.QueryParams([(name, one if isinstance(one, str) else _as_json(one).decode()) for name, one in pairs])


def _as_json(body: Tree) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise Refused(f"this cannot be sent as JSON: {error}") from error


def public_url(url: str) -> str:
    """Return an address without the user, the password and the query that it may hold."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
