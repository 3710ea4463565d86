"""What the five systems have in common as targets: how they open, fail on demand, and put errors into words."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path

from memstory.clock import Clock
from memstory.target import Environment, Target
from memstory_reference.targets.environment_ports import EnvironmentPorts, MakeEmbedder
from memstory_reference.targets.refusals import in_harness_words, of_the_story
from memstory_reference.targets.warning_log import WarningLog


class SystemTarget(Target):
    """A memory system on the ports of its case; subclasses say which ports, and open their system on them."""

    def __init__(self, make_embedder: MakeEmbedder) -> None:
        self._make_embedder = make_embedder
        self._log = WarningLog()
        self._env: Environment
        self._clock: Clock
        self._ports: EnvironmentPorts

    @abstractmethod
    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        """Read the options of `env`, and return the ports that they ask for; InputError is the story's mistake."""

    @abstractmethod
    async def _open_system(self, workspace: Path) -> None:
        """Open the system on `self._ports`."""

    async def open(self, env: Environment, clock: Clock) -> None:
        self._env, self._clock = env, clock
        with in_harness_words():
            with of_the_story():
                self._ports = self._ports_of(env)
            self._log.attach()
            try:
                await self._open_system(Path(env.workspace))
            except BaseException:
                self._log.detach()
                raise
        for part, mode in env.faults.items():
            self._ports.set_fault(part, mode)

    async def fault(self, part: str, mode: str) -> None:
        self._ports.set_fault(part, mode)

    def _in_harness_words(self) -> AbstractContextManager[None]:
        return in_harness_words(is_fault_injected=self._ports.is_fault_injected, failures=self._ports.failures)
