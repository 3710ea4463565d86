"""Which backends get the shim, which capabilities it adds, and the chat models of one worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from memstory.chat.agent import Agent
from memstory.chat.model import DEFAULT, close_model, load_model
from memstory.chat.tools import TOOLSETS, MemoryTools, usual_toolset
from memstory.contract.errors import NotSupported, SetupError, StoryError
from memstory.contract.models import ChatModel
from memstory.contract.target import Capability, Connection, Environment, Tree
from memstory.targets.discovery import CONTROL

OPTIONS: Final = ("chat", "toolset")
"""The shim's own options."""

_ADDED: Final[frozenset[Capability]] = frozenset({"chat", "chat.tools", *(f"option.{name}" for name in OPTIONS)})
_NEEDED: Final[frozenset[Capability]] = frozenset({"add", "search"})


def gives_chat_to(target: str, able: frozenset[Capability]) -> bool:
    """Say whether a target that can do `able` gets the shim: a backend that takes and finds texts and does not chat.

    A control gets none: it is not a backend, and its abilities follow from what it must show about a story.

    >>> [gives_chat_to(name, frozenset({"add", "search"})) for name in ("fts5", "control:oracle")]
    [True, False]
    """
    return able >= _NEEDED and "chat" not in able and not target.startswith(CONTROL)


def with_shim(able: frozenset[Capability]) -> frozenset[Capability]:
    """Return what a case may ask of a backend that can do `able`, where the shim talks for it."""
    return able | _ADDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Shim:
    """What lets one case talk with a backend; `backend` is what that can do by itself."""

    model: ChatModel
    toolset: str
    backend: frozenset[Capability]

    @property
    def able(self) -> frozenset[Capability]:
        """What the backend can do with the shim."""
        return with_shim(self.backend)

    @property
    def about(self) -> Mapping[str, str]:
        """What a report says of it."""
        return {"chat": f"shim: {self.model.name}"}

    def environment(self, env: Environment) -> Environment:
        """Return `env` without the shim's own options, unless the backend has options of these names, too."""
        own = {name for name in OPTIONS if f"option.{name}" not in self.backend}
        return replace(env, options={name: value for name, value in env.options.items() if name not in own})

    def agent(self, target: Connection) -> Agent:
        """Return an agent that knows nothing yet, over an open backend."""
        tools = MemoryTools(target=target, able=self.backend, schemas=TOOLSETS[self.toolset])
        return Agent(self.model, tools)


class Chats:
    """The chat models of one worker: each is loaded once. `known` are those that are already there."""

    def __init__(self, known: Mapping[str, ChatModel] | None = None) -> None:
        self._loaded = dict(known or {})

    def shim(self, able: frozenset[Capability], options: Mapping[str, Tree]) -> Shim:
        """Return the shim for a backend that can do `able`.

        Raises:
            NotSupported: nobody chose a model, and the usual one cannot be had here.
            SetupError: the model that was chosen cannot be had here.
            StoryError: the story asks for a toolset that there is not.
        """
        toolset = options.get("toolset", usual_toolset(able))
        if toolset not in TOOLSETS:
            near = get_close_matches(str(toolset), TOOLSETS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise StoryError(f"options: the chat shim has no toolset {toolset!r}.{hint} Known: {', '.join(TOOLSETS)}")
        return Shim(model=self._model(options.get("chat")), toolset=toolset, backend=able)

    async def close(self) -> None:
        """Close every model that was loaded."""
        for model in self._loaded.values():
            await close_model(model)

    def _model(self, chosen: Tree) -> ChatModel:
        name = DEFAULT if chosen is None else str(chosen)
        if name not in self._loaded:
            try:
                self._loaded[name] = load_model(name)
            except SetupError as error:
                if chosen is not None:
                    raise
                raise NotSupported("chat", f"the target does not chat, and there is no shim for it: {error}") from error
        return self._loaded[name]
