"""The pipeline memory as a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import ClassVar

from memstory.contract.errors import Refused, UnavailableError
from memstory.contract.target import Environment, Tree
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.pipeline import PIPELINE, open_pipeline
from memstory_reference.systems.pipeline.memory import PipelineMemory
from memstory_reference.systems.pipeline.parts import Reranker
from memstory_reference.systems.pipeline.settings import PipelineSettings
from memstory_reference.targets.environment_ports import FaultyPort
from memstory_reference.targets.system_target import SystemFactory, SystemTarget

REVERSED, UNAVAILABLE = "reversed", "unavailable"


class ReversedReranker:
    """Turns the order round: for stories that look at what a re-ranker does, not at how good it is."""

    name = REVERSED

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [float(place) for place, _ in enumerate(texts)]


class UnavailableReranker:
    """A re-ranker that cannot be had, on any machine."""

    name = UNAVAILABLE

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        raise UnavailableError("the story has no re-ranker")


class _FaultySearches(FaultyPort):
    """What searches by vectors, behind a switch; its garbage is that nothing is found."""

    free = frozenset({"run"})
    garbage: ClassVar = {"similar": dict}


class PipelineTarget(SystemTarget):
    """One pipeline memory; its store is in the case's workspace."""

    system = PIPELINE
    faulty_store = _FaultySearches
    _settings: PipelineSettings

    def _settings_of(self, env: Environment) -> PipelineSettings:
        bundled: Mapping[Tree, Callable[[], Reranker]] = {REVERSED: ReversedReranker, UNAVAILABLE: UnavailableReranker}
        chosen = bundled.get(env.options.get("reranker"))
        self._reranker = chosen and chosen()
        options = {name: value for name, value in env.options.items() if chosen is None or name != "reranker"}
        settings: PipelineSettings = super()._settings_of(replace(env, options=options))
        return settings

    async def _open_on(self, settings: PipelineSettings, ports: MemoryPorts) -> PipelineMemory:
        return await open_pipeline(settings, ports, self._reranker)

    async def settle(self) -> None:
        # A part that the story has taken down is reported by the step that needs it.
        is_expected = suppress(Refused) if self._ports.is_fault_injected else nullcontext()
        with is_expected, self._in_harness_words():
            await self._memory.settle()


class PipelineFactory(SystemFactory):
    """The pipeline memory: texts in chunks, weighed, routed, and recalled within a budget of tokens."""

    name = "pipeline"
    target_class = PipelineTarget
