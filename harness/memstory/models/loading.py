"""Chat models by the names that users type: those of servers and of recordings, and those that packages offer.

A package offers a model under the entry point group `memstory.chat_models`: a callable that is given what follows the
first colon of `--chat NAME:REST`, an empty text where there is none, and returns the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, cast

from memstory.contract.errors import SetupError
from memstory.contract.installation import find_offer, install_command, make_offer
from memstory.contract.models import ChatModel
from memstory.models.ollama_address import ollama_host as usual_ollama_host

GROUP: Final = "memstory.chat_models"
DEFAULT: Final = "offline"
CLIENTS: Final = "ollama:NAME, openai:NAME, record:NAME@FILE, replay:FILE"
"""The names that `client` knows."""


def client(
    name: str,
    *,
    make: Callable[[str], ChatModel],
    ollama_host: str | None = None,
    on_text: Callable[[str], None] | None = None,
) -> ChatModel | None:
    """Return the client of a model's server, or the recording, that has this name; None for any other name.

    A model that answers in parts passes each part of a reply to `on_text`. `record:NAME@FILE` is the model that `make`
    returns for NAME, whose calls are kept in FILE; `replay:FILE` answers from there without any model.

    Raises:
        SetupError: what it needs is not installed, or the recording cannot be used.
    """
    kind, _, rest = name.partition(":")
    if kind == "ollama" and rest:
        with _extra("ollama", "the client of Ollama"):
            from memstory.models.ollama_chat import OllamaChat  # noqa: PLC0415

        return OllamaChat(rest, ollama_host or usual_ollama_host(), on_text=on_text)
    if kind == "openai" and rest:
        with _extra("openai", "the client of OpenAI's protocol"):
            from memstory.models.openai_chat import OpenAiChat  # noqa: PLC0415
            from memstory.models.openai_server import openai_server  # noqa: PLC0415

        return OpenAiChat(rest, openai_server(), on_text=on_text)
    if kind == "record":
        from memstory.models.cassette import RecordingChat  # noqa: PLC0415  (no lock of files on Windows)

        inner, _, file = rest.partition("@")
        if not file or inner.startswith(("record:", "replay:")):
            raise SetupError(
                f"{name!r:.80} records nothing; allowed: record:NAME@FILE, as record:ollama:qwen3:4b@run.json"
            )
        return RecordingChat(make(inner), Path(file))
    if kind == "replay" and rest:
        from memstory.models.cassette import ReplayingChat  # noqa: PLC0415

        return ReplayingChat(Path(rest))
    return None


@contextmanager
def _extra(extra: str, what: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise SetupError(f"{what} is missing. Install it with: {install_command(extra)}") from error


def _offered_client(kind: str, rest: str) -> ChatModel:
    model = client(f"{kind}:{rest}", make=load_model)
    if model is None:
        raise SetupError(f"there is no chat model named '{kind}:{rest}'; allowed: {CLIENTS}")
    return model


ollama, openai, record, replay = (partial(_offered_client, kind) for kind in ("ollama", "openai", "record", "replay"))
"""What this package itself offers under the entry point group."""


def check_model_name(name: str) -> None:
    """Raise SetupError where nothing offers the chat model `name`; imports nothing."""
    find_offer(GROUP, "chat model", name)


def load_model(name: str) -> ChatModel:
    """Return the chat model that a package offers under `name`.

    Raises:
        SetupError: nothing offers it, or what it needs is not installed.
    """
    return cast("ChatModel", make_offer(GROUP, "chat model", name, usual="The stand-in"))


async def close_model(model: ChatModel) -> None:
    """Release what `model` holds open, if it is one of those that hold something."""
    close = getattr(model, "close", None)
    if close is not None:
        await close()
