"""The manager memory as a target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from memstory.contract.target import Environment, Tree
from memstory_reference.composition.manager import open_manager
from memstory_reference.setting_rules import CHROMA, MODEL_RULES
from memstory_reference.systems.manager.memory import ManagerMemory
from memstory_reference.systems.manager.settings import ManagerSettings
from memstory_reference.targets.environment_ports import PORT_OPTIONS, EnvironmentPorts, options_of
from memstory_reference.targets.system_target import FolderTarget, SystemFactory

SETTINGS = options_of(ManagerSettings, but=("path", *MODEL_RULES))
"""Options that are settings of the same name; the case decides where the memory is."""


class ManagerTarget(FolderTarget):
    """One manager memory; its store is in the case's workspace."""

    memory_class = ManagerMemory
    options = (*SETTINGS, *PORT_OPTIONS)
    folder = "memory"

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        self._settings = ManagerSettings.default().merge(self._given(env, SETTINGS), "options")
        return super()._ports_of(env)

    async def _open_folder(self, folder: Path) -> ManagerMemory:
        return await open_manager(
            self._settings,
            folder=folder,
            embedder=self._ports.embedder,
            chat=self._ports.chat,
            clock=self._clock,
            new_id=self._ports.new_id,
            wrap=self._ports.with_faults,
            place=await self._place(),
            engine=self._engine(self._settings.store),
        )


class ManagerFactory(SystemFactory):
    """The manager memory: facts, conversations and context, some of which expire, behind three tools."""

    name = "manager"
    target_class = ManagerTarget


class ManagerChromaFactory(ManagerFactory):
    """The manager memory with its rows in Chroma's own persistence."""

    name = "manager-chroma"
    usual_options: ClassVar[Mapping[str, Tree]] = {"store": CHROMA}
