"""Environment -> ports: what a story decides about embedder, language model, ids and faults, for every system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from memstory.errors import NotSupported, StoryError
from memstory.target import Environment
from memstory_reference.adapters.chat_models.scripted_chat import ScriptedChat
from memstory_reference.adapters.embedding.embedder_log import LoggedEmbedder
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES, Profile, ProfiledEmbedder
from memstory_reference.adapters.faults import MODES, FaultyChat, FaultyEmbedder, FaultyVectorStore
from memstory_reference.composition.chat_models import make_chat
from memstory_reference.errors import UnavailableError
from memstory_reference.ports import NewId, VectorStore
from memstory_reference.targets.chat_log import LoggedChat
from memstory_reference.targets.seeded_ids import seeded_ids
from memstory_reference.targets.witnessed_embedder import WitnessedEmbedder

MakeEmbedder = Callable[[str, str], ProfiledEmbedder]
"""Name and Ollama's address to an embedder; a factory shares what is dear to load among its targets."""


class Switch(Protocol):
    """A part that can be made to fail."""

    mode: str


@dataclass(slots=True, kw_only=True)
class EnvironmentPorts:
    """What a system runs on in a case; `switches` are the parts that the story can make fail.

    `failures` are the real ones of the embedder, which no story asked for.
    """

    embedder: LoggedEmbedder
    chat: LoggedChat
    new_id: NewId
    switches: dict[str, Switch]
    failures: list[UnavailableError] = field(default_factory=list)

    def with_faults(self, store: VectorStore) -> VectorStore:
        """Return `store` as one that the story can make fail."""
        faulty = FaultyVectorStore(store)
        self.switches["store"] = faulty
        return faulty

    def set_fault(self, part: str, mode: str) -> None:
        """Make `part` behave as `mode` from now on."""
        if part not in self.switches:
            raise NotSupported(f"fault.{part}")
        if mode not in MODES:
            raise StoryError(f"fault: {part} has no mode {mode!r}; allowed: {', '.join(MODES)}")
        self.switches[part].mode = mode

    @property
    def is_fault_injected(self) -> bool:
        """Whether the story has made some part fail."""
        return any(switch.mode != "ok" for switch in self.switches.values())


def environment_ports(
    env: Environment,
    *,
    make_embedder: MakeEmbedder,
    embedder: str,
    chat: str,
    ollama_host: str,
    profile: Profile = NO_PREFIXES,
) -> EnvironmentPorts:
    """Return the ports of `env`: its fixed vectors and scripted model where it has them, else those named."""
    inner = WitnessedEmbedder(
        FixedVectors(env.vectors, profile=profile) if env.vectors else make_embedder(embedder, ollama_host)
    )
    # The stand-in compares texts of its own making, which have no fixed vectors.
    own = None if env.vectors else inner
    model = ScriptedChat(env.model_rules) if env.model_rules else make_chat(chat, own, ollama_host=ollama_host)
    faulty_embedder, faulty_chat = FaultyEmbedder(inner), FaultyChat(model)
    return EnvironmentPorts(
        embedder=LoggedEmbedder(faulty_embedder),
        chat=LoggedChat(faulty_chat),
        new_id=seeded_ids(Path(env.workspace), env.seed),
        switches={"embedder": faulty_embedder, "model": faulty_chat},
        failures=inner.failures,
    )
