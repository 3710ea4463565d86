"""The topics memory as a target."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from memstory.contract.errors import NotSupported, SetupError
from memstory.contract.target import Capability, Environment, Tree
from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats, nats_server
from memstory_reference.bus import Bus
from memstory_reference.bus.subjects import WRITER
from memstory_reference.composition.extras import open_bus
from memstory_reference.composition.topics import open_topics
from memstory_reference.setting_rules import CHROMA, POSTGRES
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.targets.environment_ports import EnvironmentPorts, MakeEmbedder, environment_ports
from memstory_reference.targets.shared_postgres import CasesPostgres
from memstory_reference.targets.system_target import SystemFactory, SystemTarget
from memstory_reference.targets.topics_options import OPTIONS, topics_options


class TopicsTarget(SystemTarget):
    """One topics memory; the vector store is in the case's workspace."""

    memory_class = TopicsMemory
    options = OPTIONS

    def __init__(self, make_embedder: MakeEmbedder, postgres: CasesPostgres) -> None:
        super().__init__(make_embedder, postgres)
        self._left = AsyncExitStack()

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        chosen = topics_options(env.options, has_vectors=bool(env.vectors))
        self._settings, self._has_server = chosen.settings, chosen.has_server
        return environment_ports(env, self._make_embedder, profile=chosen.profile)

    async def _open_memory(self, workspace: Path) -> TopicsMemory:
        return await open_topics(
            replace(self._settings, chroma_path=str(workspace / self._settings.chroma_path)),
            embedder=self._ports.embedder,
            chat=self._ports.chat,
            clock=self._clock,
            new_id=self._ports.new_id,
            wrap=self._ports.with_faults,
            bus=await self._server_bus(workspace / "nats") if self._has_server else None,
            place=await self._place(),
            engine=self._engine(self._settings.store),
        )

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
