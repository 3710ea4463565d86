"""Where Ollama answers, as the variable OLLAMA_HOST says it: one variable for Ollama's own programs and for this."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from memstory.contract.errors import SetupError

VARIABLE = "OLLAMA_HOST"
PORT = 11434
DEFAULT = f"http://127.0.0.1:{PORT}"
_PORT_OF = {"http": 80, "https": 443}
# How a server that listens on every address says so; a client asks it on this machine.
_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (read, not bound)


def ollama_url(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the URL that `environ` names, or None; a scheme, a host or a port may be left out, as for Ollama itself.

    >>> ollama_url({"OLLAMA_HOST": "box"}), ollama_url({"OLLAMA_HOST": "0.0.0.0:8080"}), ollama_url({})
    ('http://box:11434', 'http://127.0.0.1:8080', None)
    """
    written = environ.get(VARIABLE, "").strip().strip("\"'")
    if not written:
        return None
    try:
        parts = urlsplit(written if "://" in written else f"//{written}", scheme="http")
        default = _PORT_OF[parts.scheme] if "://" in written else PORT
        port = default if parts.port is None else parts.port
    except (KeyError, ValueError) as error:
        raise SetupError(
            f"{VARIABLE} is {written!r:.80}; allowed: HOST, HOST:PORT or a URL such as http://127.0.0.1:{PORT}"
        ) from error
    host = parts.hostname or "127.0.0.1"
    host = _EVERY_ADDRESS.get(host, host)
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}{parts.path.rstrip('/')}"


def ollama_host() -> str:
    """Return the address that this machine's variable names, else where Ollama answers by default."""
    return ollama_url() or DEFAULT
