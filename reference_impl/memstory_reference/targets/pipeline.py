"""The pipeline memory as a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import fields
from pathlib import Path
from typing import cast

from memstory.contract.errors import Refused, UnavailableError
from memstory.contract.target import Environment, Tree
from memstory_reference.adapters.faults import FaultyPort
from memstory_reference.composition.embedders import make_reranker
from memstory_reference.composition.pipeline import open_pipeline
from memstory_reference.setting_rules import SQLITE, check_settings
from memstory_reference.systems.pipeline.chunk import Vector
from memstory_reference.systems.pipeline.memory import PipelineMemory
from memstory_reference.systems.pipeline.selection import Reranker
from memstory_reference.systems.pipeline.settings import PipelineConfig, PipelineSettings
from memstory_reference.systems.pipeline.stores.pipeline_store import PipelineStore
from memstory_reference.systems.pipeline.stores.tables_store import MemoryTable
from memstory_reference.targets.environment_ports import PORT_OPTIONS, EnvironmentPorts
from memstory_reference.targets.system_target import SystemFactory, SystemTarget

CONFIG = tuple(one.name for one in fields(PipelineConfig))
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

    async def similar(self, table: MemoryTable, owner: str, vector: Vector, k: int) -> Mapping[str, float]:
        await self._switch.pass_or_fail()
        found: Mapping[str, float] = (
            {} if self._switch.garbles() else await self._inner.similar(table, owner, vector, k)
        )
        return found


class PipelineTarget(SystemTarget):
    """One pipeline memory; its store is in the case's workspace."""

    memory_class = PipelineMemory
    options = (*CONFIG, "reranker", "store", *PORT_OPTIONS)

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        check_settings(self._given(env, ["store"]), PipelineSettings.rules, "options")
        self._config = PipelineConfig().merge(self._given(env, CONFIG), "options")
        reranker: Tree = env.options.get("reranker")
        bundled: Mapping[Tree, Callable[[], Reranker]] = {REVERSED: ReversedReranker, UNAVAILABLE: UnavailableReranker}
        self._reranker = bundled[reranker]() if reranker in bundled else make_reranker(reranker)
        return super()._ports_of(env)

    async def _open_memory(self, workspace: Path) -> PipelineMemory:
        service = await open_pipeline(
            workspace,
            embedder=self._ports.embedder,
            chat=self._ports.chat if self._has_named_model else None,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._config,
            reranker=self._reranker,
            wrap=lambda store: cast("PipelineStore", _FaultySearches(store, self._ports.switches["store"])),
            place=await self._place(),
        )
        return PipelineMemory(service, self._ports.chat, self._engine(SQLITE))

    async def settle(self) -> None:
        # A part that the story has taken down is reported by the step that needs it.
        is_expected = suppress(Refused) if self._ports.is_fault_injected else nullcontext()
        with is_expected, self._in_harness_words():
            await self._memory.settle()


class PipelineFactory(SystemFactory):
    """The pipeline memory: texts in chunks, weighed, routed, and recalled within a budget of tokens."""

    name = "pipeline"
    target_class = PipelineTarget
