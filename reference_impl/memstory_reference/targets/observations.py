"""The observations memory as a target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from memstory.contract.target import Environment, Tree
from memstory_reference.composition.observations import open_observations
from memstory_reference.setting_rules import CHROMA
from memstory_reference.systems.observations.memory import ObservationsMemory
from memstory_reference.systems.observations.settings import ObservationsConfig
from memstory_reference.targets.environment_ports import PORT_OPTIONS, EnvironmentPorts
from memstory_reference.targets.system_target import SystemFactory, SystemTarget

CONFIG = tuple(ObservationsConfig.rules)


class ObservationsTarget(SystemTarget):
    """One memory of observations; both indexes are in the case's workspace, or in its schemas."""

    memory_class = ObservationsMemory
    options = (*CONFIG, *PORT_OPTIONS)

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        self._config = ObservationsConfig().merge(self._given(env, CONFIG), "options")
        return super()._ports_of(env)

    async def _open_memory(self, workspace: Path) -> ObservationsMemory:
        chat = self._ports.chat if self._has_model else None
        service = await open_observations(
            workspace,
            embedder=self._ports.embedder,
            chat=chat,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._config,
            wrap=self._ports.with_faults,
            place=await self._place(),
        )
        return ObservationsMemory(service, self._engine(self._config.store))

    @property
    def _has_model(self) -> bool:
        # The stand-in is a model too where a story names it.
        return bool(self._env.model_rules) or "chat" in self._env.options


class ObservationsFactory(SystemFactory):
    """The observations memory: what finished runs left behind, ranked by likeness and quality."""

    name = "observations"
    target_class = ObservationsTarget


class ObservationsChromaFactory(ObservationsFactory):
    """The observations memory with its vectors in Chroma's own persistence."""

    name = "observations-chroma"
    usual_options: ClassVar[Mapping[str, Tree]] = {"store": CHROMA}
