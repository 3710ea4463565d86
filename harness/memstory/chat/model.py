"""Chat models by name, for the shim: their input, their reply, and how a package offers one.

A package offers a model under the entry point group `memstory.chat_models`: a callable that is given what follows the
first colon of `--chat NAME:REST`, an empty text where there is none, and returns the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Literal, Protocol, cast

from memstory.contract.errors import SetupError, install_command
from memstory.contract.target import ToolSchema, Tree

GROUP: Final = "memstory.chat_models"
DEFAULT: Final = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """A tool call that a model asks for."""

    name: str
    args: Mapping[str, Tree] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation; `tool` names the tool that a message of the role `tool` comes from."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    requests: Sequence[ToolRequest] = ()
    tool: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model said: words, tool requests, or both; tokens as its server counts them, None if it counts none."""

    content: str
    requests: Sequence[ToolRequest] = ()
    thinking: str | None = None
    prompt_tokens: int | None = None
    answer_tokens: int | None = None


class ChatModel(Protocol):
    """A language model that may call tools. `name` says 'stand-in' if there is no model behind it."""

    name: str

    async def chat(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Reply:
        """Return the model's next message; a model that cannot answer now raises SetupError."""
        ...

    async def close(self) -> None:
        """Release what it holds; another `chat` may open it again."""
        ...


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


def _offer(name: str) -> EntryPoint:
    offered = {entry.name: entry for entry in entry_points(group=GROUP)}
    head = name.partition(":")[0]
    if head not in offered:
        near = get_close_matches(head, offered, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        known = ", ".join(sorted(offered)) or "none is installed"
        raise SetupError(f"no chat model is named '{name}'.{hint} Known: {known}.")
    return offered[head]
