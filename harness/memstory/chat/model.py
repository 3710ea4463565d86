"""Chat models by name, for the shim: their input, their reply, and how a package offers one.

A package offers a model under the entry point group `memstory.chat_models`: a callable that is given what follows the
first colon of `--chat NAME:REST`, an empty text where there is none, and returns the model.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

from memstory.contract.errors import SetupError, install_command
from memstory.contract.models import ChatModel

GROUP: Final = "memstory.chat_models"
DEFAULT: Final = "offline"


def check_model_name(name: str) -> None:
    """Raise SetupError where nothing offers the chat model `name`; imports nothing."""
    _offer(name)


def load_model(name: str) -> ChatModel:
    """Return the chat model that a package offers under `name`.

    Raises:
        SetupError: nothing offers it, or what it needs is not installed.
    """
    entry = _offer(name)
    try:
        return cast("ChatModel", entry.load()(name.partition(":")[2]))
    except ImportError as error:
        raise SetupError(
            f"the chat model '{name}' needs the package '{error.name}', which is not installed. "
            f"The reference's own come with: {install_command('reference,ollama')}"
        ) from error


async def close_model(model: ChatModel) -> None:
    """Release what `model` holds open, if it is one of those that hold something."""
    close = getattr(model, "close", None)
    if close is not None:
        await close()


def _offer(name: str) -> EntryPoint:
    offered = {entry.name: entry for entry in entry_points(group=GROUP)}
    head = name.partition(":")[0]
    if head not in offered:
        near = get_close_matches(head, offered, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        known = ", ".join(sorted(offered)) or "none is installed"
        raise SetupError(f"no chat model is named '{name}'.{hint} Known: {known}.")
    return offered[head]
