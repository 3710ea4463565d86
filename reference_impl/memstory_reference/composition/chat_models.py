"""Chat models by the names that settings have for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.errors import InputError

if TYPE_CHECKING:
    from memstory_reference.composition.embedders import NamesModels
    from memstory_reference.ports import ChatModel, Embedder

OFFLINE = "offline"


def chat_of(
    settings: NamesModels, embedder: Embedder | None, on_text: Callable[[str], None] | None = None
) -> ChatModel:
    """Return the chat model of `settings`."""
    return make_chat(settings.chat, embedder, ollama_host=settings.ollama_host, on_text=on_text)


def make_chat(
    name: str, embedder: Embedder | None, *, ollama_host: str, on_text: Callable[[str], None] | None = None
) -> ChatModel:
    """Return the chat model that a setting names; the stand-in compares texts by `embedder` if it has one.

    A model that answers in parts passes each to `on_text`. `record:NAME@FILE` is the model NAME whose calls are kept
    in FILE, `replay:FILE` answers from there without any model.

    Raises:
        InputError: no chat model has this name.
    """
    kind, _, rest = name.partition(":")
    if name == OFFLINE:
        from memstory_reference.adapters.offline_chat import OfflineChat  # noqa: PLC0415

        return OfflineChat(embedder)
    if kind == "ollama" and rest:
        from memstory_reference.adapters.chat_models.ollama_chat import OllamaChat  # noqa: PLC0415

        return OllamaChat(rest, ollama_host, on_text=on_text)
    if kind == "record":
        from memstory_reference.adapters.chat_models.cassette import RecordingChat  # noqa: PLC0415

        inner, _, file = rest.partition("@")
        if not file or inner.startswith(("record:", "replay:")):
            raise InputError(
                f"{name!r:.80} records nothing; allowed: record:NAME@FILE, as record:ollama:qwen3:4b@run.json"
            )
        return RecordingChat(make_chat(inner, embedder, ollama_host=ollama_host, on_text=on_text), Path(file))
    if kind == "replay" and rest:
        from memstory_reference.adapters.chat_models.cassette import ReplayingChat  # noqa: PLC0415

        return ReplayingChat(Path(rest))
    raise InputError(
        f"there is no chat model named {name!r:.80}; allowed: offline, ollama:NAME, record:NAME@FILE, replay:FILE"
    )
