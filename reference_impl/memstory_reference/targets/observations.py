"""The observations memory as a target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from memstory.contract.target import Environment, Tree
from memstory_reference.composition.observations import open_observations
from memstory_reference.setting_rules import CHROMA, POSTGRES
from memstory_reference.systems.observations.memory import ObservationsMemory
from memstory_reference.systems.observations.settings import ObservationsConfig
from memstory_reference.targets.environment_ports import PORT_OPTIONS, EnvironmentPorts, MakeEmbedder
from memstory_reference.targets.shared_postgres import CasesPostgres, PostgresFactory
from memstory_reference.targets.system_target import SystemTarget

CONFIG = tuple(ObservationsConfig.rules)


class ObservationsTarget(SystemTarget):
    """One memory of observations; both indexes are in the case's workspace, or in its schemas."""

    memory_class = ObservationsMemory
    options = (*CONFIG, *PORT_OPTIONS)

    def __init__(self, make_embedder: MakeEmbedder, postgres: CasesPostgres) -> None:
        super().__init__(make_embedder)
        self._postgres = postgres

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        given = {name: env.options[name] for name in CONFIG if name in env.options}
        self._config = ObservationsConfig().merge(given, "options")
        return super()._ports_of(env)

    async def _open_memory(self, workspace: Path) -> ObservationsMemory:
        chat = self._ports.chat if self._has_model else None
        in_postgres = self._config.store == POSTGRES
        service = await open_observations(
            workspace,
            embedder=self._ports.embedder,
            chat=chat,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._config,
            wrap=self._ports.with_faults,
            place=await self._postgres.place(workspace) if in_postgres else None,
        )
        engine = f"{POSTGRES} ({self._postgres.name})" if in_postgres else self._config.store
        return ObservationsMemory(service, engine)

    @property
    def _has_model(self) -> bool:
        # The stand-in is a model too where a story names it.
        return bool(self._env.model_rules) or "chat" in self._env.options


class ObservationsFactory(PostgresFactory):
    """The observations memory: what finished runs left behind, ranked by likeness and quality."""

    name = "observations"
    spec = "memstory_reference.targets.observations:ObservationsFactory"
    target_class = ObservationsTarget


class ObservationsChromaFactory(ObservationsFactory):
    """The observations memory with its vectors in Chroma's own persistence."""

    name = "observations-chroma"
    spec = "memstory_reference.targets.observations:ObservationsChromaFactory"
    usual_options: ClassVar[Mapping[str, Tree]] = {"store": CHROMA}
