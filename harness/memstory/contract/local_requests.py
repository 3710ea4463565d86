"""Who may ask a server on this machine: programs that name it, and no page of another site in somebody's browser."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

LOCAL_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_SAME_SITE: Final = ("same-origin", "none")


class RefusedRequestError(Exception):
    """A request that is not answered: an HTTP status, and one line that says why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def check_asker(
    headers: Mapping[str, str],
    names: Collection[str],
    *,
    port: int | None = None,
    is_page: bool = False,
    advice: str = "",
) -> None:
    """Raise RefusedRequestError for a request that was not meant for this server, or that a page sends.

    `headers` are those of the request, by names in lower case. The Host header has to be one of `names`, so that no
    foreign name that leads here is answered (DNS rebinding); None allows any port behind it. What a browser sends for
    another site is refused (CSRF); a link to a page (`is_page`) may be followed from anywhere.
    """
    host = headers.get("host", "").lower()
    name = re.sub(r":\d+$", "", host)
    if name not in names or (port is not None and host != f"{name}:{port}"):
        known = LOCAL_NAMES[0] if port is None else f"{LOCAL_NAMES[0]}:{port}"
        raise RefusedRequestError(421, f"this server is asked as {known}, not as {host!r:.80}{advice}")
    is_foreign = not is_page and headers.get("sec-fetch-site", "none") not in _SAME_SITE
    if is_foreign or headers.get("origin", f"http://{host}").lower() != f"http://{host}":
        raise RefusedRequestError(403, "a page of another site may not ask this server")


def check_json(headers: Mapping[str, str]) -> None:
    """Raise RefusedRequestError for a body that is not JSON: a browser sends other types without asking first."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedRequestError(415, "a request has a body of the type application/json")
