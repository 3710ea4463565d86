"""Chat models by the names that settings have for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from memstory.contract.cache_folder import cache_folder
from memstory.contract.errors import SetupError
from memstory.models.loading import CLIENTS, client
from memstory_reference.errors import InputError

if TYPE_CHECKING:
    from memstory.contract.models import ChatModel
    from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder
    from memstory_reference.ports import Embedder
    from memstory_reference.setting_rules import CheckedSettings

OFFLINE = "offline"


def own_embedder() -> ProfiledEmbedder | None:
    """Return what the stand-in compares texts by: MiniLM where it can be had, never the memory's embedder."""
    try:
        return _minilm(cache_folder(os.environ))
    except (SetupError, ModuleNotFoundError):  # no weights, or nothing that runs them: the words alone decide
        return None


@cache
def _minilm(folder: Path) -> ProfiledEmbedder:
    """Return the one MiniLM of all stand-ins in this process: its weights are read once."""
    from memstory_reference.adapters.embedding import weights  # noqa: PLC0415
    from memstory_reference.adapters.embedding.minilm import MiniLmEmbedder  # noqa: PLC0415

    return MiniLmEmbedder(weights.find_weights(folder))


def no_embedder() -> None:
    """Return no embedder: the stand-in compares texts by their words alone."""


def chat_of(settings: CheckedSettings, on_text: Callable[[str], None] | None = None) -> ChatModel:
    """Return the chat model of `settings`; without vectors the stand-in goes by words alone, too."""
    compared = own_embedder if settings.embeds else no_embedder
    return make_chat(settings.chat, compared, ollama_host=settings.ollama_host, on_text=on_text)


def make_chat(
    name: str,
    compared: Callable[[], Embedder | None] = own_embedder,
    *,
    ollama_host: str,
    on_text: Callable[[str], None] | None = None,
) -> ChatModel:
    """Return the chat model that a setting names; `compared` makes what the stand-in compares texts by, if anything.

    A model that answers in parts passes each part of a reply to `on_text`. `record:NAME@FILE` is the model NAME whose
    calls are kept in FILE, `replay:FILE` answers from there without any model.

    Raises:
        InputError: no chat model has this name.
    """
    if name == OFFLINE:
        from memstory_reference.adapters.offline_chat import OfflineChat  # noqa: PLC0415

        return OfflineChat(compared())

    def make(inner: str) -> ChatModel:
        return make_chat(inner, compared, ollama_host=ollama_host, on_text=on_text)

    model = client(name, make=make, ollama_host=ollama_host, on_text=on_text)
    if model is None:
        raise InputError(f"there is no chat model named {name!r:.80}; allowed: {OFFLINE}, {CLIENTS}")
    return model
