from __future__ import annotations

import pytest

from memstory.contract.errors import SetupError
from memstory.models.ollama_address import ollama_url


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("box:8080", "http://box:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104  (read, not bound)
        ("[::]:80", "http://[::1]:80"),
        ("http://box", "http://box:80"),
        ("https://box/ollama/", "https://box:443/ollama"),
        (' "box" ', "http://box:11434"),
        (" ", None),
    ],
)
def test_an_address_may_be_as_short_as_for_ollama_itself(written, url):
    assert ollama_url({"OLLAMA_HOST": written}) == url


@pytest.mark.parametrize("written", ["box:port", "ftp://box", "http://[::1", "box:99999"])
def test_what_is_no_address_is_refused_with_what_is(written):
    with pytest.raises(SetupError, match=r"OLLAMA_HOST is .* allowed: HOST, HOST:PORT or a URL"):
        ollama_url({"OLLAMA_HOST": written})
