"""The topics memory as a target."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from memstory.contract.errors import NotSupported, SetupError
from memstory.contract.target import Capability, Environment, Json, Tree
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES, Profile, profile_of
from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats, nats_server
from memstory_reference.bus import Bus
from memstory_reference.bus.subjects import WRITER
from memstory_reference.composition.extras import open_bus
from memstory_reference.composition.topics import open_topics
from memstory_reference.errors import InputError
from memstory_reference.setting_rules import CHROMA, POSTGRES
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.targets.environment_ports import EnvironmentPorts, MakeEmbedder, environment_ports, options_of
from memstory_reference.targets.shared_postgres import CasesPostgres
from memstory_reference.targets.system_target import SystemFactory, SystemTarget

SETTINGS = options_of(TopicsSettings, but=("chroma_path", "chroma_server", "embedding_model"))
"""Options that are settings of the same name."""

IN_PROCESS, NATS = BUSES = ("in_process", "nats")

OPTIONS = (*SETTINGS, "bus", "embedder", "profile")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsOptions:
    """`profile` gives fixed vectors the prefixes of a model; `has_server` puts the bus on a NATS server of the case."""

    settings: TopicsSettings
    profile: Profile = NO_PREFIXES
    has_server: bool = False


def topics_options(options: Mapping[str, Json], *, has_vectors: bool) -> TopicsOptions:
    """Return what `options` say, or raise InputError that names the option and what is allowed."""
    values = {name: value for name, value in options.items() if name in SETTINGS}
    if "embedder" in options:
        values["embedding_model"] = options["embedder"]
    settings = TopicsSettings.default().merge(values, "options")
    bus = options.get("bus", IN_PROCESS)
    if bus not in BUSES:
        raise InputError(f"options: bus {bus!r:.80} is not allowed; allowed: {', '.join(BUSES)}")
    profile = _profile(options.get("profile"), has_vectors=has_vectors)
    return TopicsOptions(settings=settings, profile=profile, has_server=bus == NATS)


def _profile(name: Json, *, has_vectors: bool) -> Profile:
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
