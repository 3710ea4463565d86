"""The topics memory as a target."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import ClassVar

from memstory.contract.errors import NotSupported, SetupError
from memstory.contract.target import Capability, Environment, Json, Tree
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES, Profile, profile_of
from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats, nats_server
from memstory_reference.bus import Bus
from memstory_reference.bus.subjects import WRITER
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.extras import open_bus
from memstory_reference.composition.topics import TOPICS, open_topics
from memstory_reference.errors import InputError
from memstory_reference.setting_rules import CHROMA, POSTGRES
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.targets.environment_ports import EnvironmentPorts, MakeEmbedder
from memstory_reference.targets.shared_postgres import CasesPostgres
from memstory_reference.targets.system_target import SystemFactory, SystemTarget

IN_PROCESS, NATS = BUSES = ("in_process", "nats")


def _profile(name: Json, *, has_vectors: bool) -> Profile:
    """Return the profile whose prefixes fixed vectors are to have."""
    if name is None:
        return NO_PREFIXES
    if not has_vectors:
        raise InputError("options: profile goes with vectors; a real embedder has its own")
    profile = profile_of(name) if isinstance(name, str) else NO_PREFIXES
    if not profile.query:
        raise InputError(f"options: profile {name!r:.80} has no prefixes; allowed: nomic-embed-text")
    return profile


class TopicsTarget(SystemTarget):
    """One topics memory; the vector store is in the case's workspace."""

    system = TOPICS
    folder = ".chroma"
    decided = ("chroma_server",)
    own_options = ("bus", "profile")

    def __init__(self, make_embedder: MakeEmbedder, postgres: CasesPostgres) -> None:
        super().__init__(make_embedder, postgres)
        self._left = AsyncExitStack()

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        self._bus = env.options.get("bus", IN_PROCESS)
        if self._bus not in BUSES:
            raise InputError(f"options: bus {self._bus!r:.80} is not allowed; allowed: {', '.join(BUSES)}")
        profile = _profile(env.options.get("profile"), has_vectors=bool(env.vectors))
        return EnvironmentPorts(env, self._settings, self._make_embedder, profile=profile)

    async def _open_on(self, settings: TopicsSettings, ports: MemoryPorts) -> TopicsMemory:
        bus = await self._server_bus(Path(self._env.workspace) / "nats") if self._bus == NATS else None
        return await open_topics(settings, ports, bus)

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            await self._left.aclose()

    async def _server_bus(self, folder: Path) -> Bus:
        """Return a bus on a server of the case's own, whose stream outlives a crash; NotSupported if none can start."""
        try:
            nats_server()
        except SetupError as error:
            raise NotSupported("option.bus", str(error)) from error
        server = EmbeddedNats(folder)
        await asyncio.to_thread(server.start)
        self._left.callback(server.stop)
        return await self._left.enter_async_context(open_bus(server.url, WRITER))


class TopicsFactory(SystemFactory):
    """The topics memory: facts by name and past turns by meaning, reached through tools."""

    name = "topics"
    target_class = TopicsTarget

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        # The files of Chroma and of a server keep what was deleted until it is written over.
        engine = {**self.usual_options, **options}.get("store")
        return super().capabilities(options) - (
            frozenset({"delete.erases"}) if engine in (CHROMA, POSTGRES) else frozenset()
        )


class TopicsChromaFactory(TopicsFactory):
    """The topics memory with its rows in Chroma's own persistence."""

    name = "topics-chroma"
    usual_options: ClassVar[Mapping[str, Tree]] = {"store": CHROMA}
