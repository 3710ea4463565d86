"""A server that speaks OpenAI's protocol: its address and key, and its failures as one sentence that says what to do.

The protocol is that of llama.cpp, vLLM, LM Studio, OpenRouter and others: https://platform.openai.com/docs/api-reference
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from memstory.contract.errors import SetupError

if TYPE_CHECKING:
    import openai

URL, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
DEFAULT: Final = "https://api.openai.com/v1"

HOW: Final = "MEMSTORY_PROXY"
"""The variable by which `memstory proxy` says that it replays or scripts: no model answers then."""

TIMEOUT_SECONDS = 120.0
"""Waited for each piece of an answer; the first one may have to wait until the model is loaded."""

RETRIES = 4
"""Tries after the first one, for 408, 409, 429, 5xx and broken connections; the client waits .5 to 8 s, or as told."""

NO_KEY = "none"
"""Sent where no key is set: servers on this machine want none, and the client does not go without."""

_BAD_REQUEST, _SERVER_ERROR = 400, 500
_TOO_LONG: Final = re.compile("context.(length|size|window)", re.IGNORECASE)
"""In a refusal of more than the model reads at once; each server has its own words and codes for it."""


@dataclass(frozen=True, slots=True)
class OpenAiServer:
    """Where a server answers: its URL without a slash at its end. `key` is sent to it and goes nowhere else.

    `answers` is "replayed" or "scripted" where no model is behind it.
    """

    url: str
    key: str | None = None
    timeout_seconds: float = TIMEOUT_SECONDS
    retries: int = RETRIES
    answers: str = ""

    def __repr__(self) -> str:
        return f"OpenAiServer({self.url})"

    def client(self) -> openai.AsyncOpenAI:
        """Return a client; the caller closes it, because a client belongs to one event loop."""
        import openai  # noqa: PLC0415  (an extra, and slow)

        return openai.AsyncOpenAI(
            base_url=self.url, api_key=self.key or NO_KEY, timeout=self.timeout_seconds, max_retries=self.retries
        )

    def reason(self, error: Exception, model: str) -> str:
        """Return why `model` did not answer, and what to do about it."""
        import openai  # noqa: PLC0415  (the same)

        if isinstance(error, openai.APITimeoutError):
            waited = f"{model} at {self.url} was silent for {self.timeout_seconds:g} s"
            return f"{waited}. It may still be loading: try again, or choose a smaller model."
        if isinstance(error, openai.APIConnectionError):
            return (
                f"Nothing answers at {self.url} ({error.__cause__ or error}). Start the server, or say where it is "
                f"with --chat-url or {URL}."
            )
        if isinstance(error, openai.APIStatusError):
            return f"{self._error_text(error)}{self._advice(error, model)}"
        return f"{model} at {self.url} broke off its answer: {str(error) or type(error).__name__}. Try again."

    def _advice(self, error: openai.APIStatusError, model: str) -> str:
        again = f", {self.retries + 1} times. "
        if is_too_long(error):
            return ". Say less at once, or serve the model with a larger context."
        if error.status_code == _BAD_REQUEST and "tool" in str(error).lower():
            return ". The memory is reached by tools: choose a model that calls them."
        if error.status_code >= _SERVER_ERROR:
            return f"{again}Try again; if it stays, look at the server's log."
        advice = {
            401: f". Put the right key into {KEY}, or name the variable that has it: --chat-key",
            403: f". May the key in {KEY} use {model!r}?",
            404: f". Is {model!r} the name of a model there? See: {self.url}/models",
            429: f"{again}Wait, run with fewer workers, or look at your quota.",
        }
        return advice.get(error.status_code, f". Is {model!r} a model that can do this?")

    def _error_text(self, error: openai.APIStatusError) -> str:
        body = error.body if isinstance(error.body, Mapping) else {}
        words = " ".join(str(body.get("message") or error.message).split())
        return f"{self.url} answered {error.status_code}: {words[:300].rstrip('.')}"


def is_too_long(error: Exception) -> bool:
    """Say whether a server refused a prompt because it is more than the model reads at once."""
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    return status == _BAD_REQUEST and _TOO_LONG.search(f"{error} {body}") is not None


def openai_server(named: str | None = None, environ: Mapping[str, str] = os.environ) -> OpenAiServer:
    """Return the server that is `named`, else that of OPENAI_BASE_URL, else OpenAI's own, with the key OPENAI_API_KEY.

    >>> openai_server(environ={"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1/"})
    OpenAiServer(http://127.0.0.1:8080/v1)

    Raises:
        SetupError: it is OpenAI's own server, which answers nobody without a key, and no key is set.
    """
    url = (named or environ.get(URL, "")).strip().rstrip("/") or DEFAULT
    key = environ.get(KEY, "").strip() or None
    if key is None and urlsplit(url).hostname == urlsplit(DEFAULT).hostname:
        raise SetupError(f"{KEY} is not set, and {url} wants a key: set it, or let {URL} name another server")
    return OpenAiServer(url, key, answers=environ.get(HOW, ""))
