"""The layers memory as a target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from memstory.contract.target import Environment, Scope, Tree
from memstory_reference.adapters.embedding.fixed_vectors import IdleEmbedder
from memstory_reference.composition.layers import open_layers
from memstory_reference.setting_rules import SQLITE
from memstory_reference.systems.layers.memory import LayersMemory
from memstory_reference.targets.environment_ports import EnvironmentPorts, environment_ports
from memstory_reference.targets.layers_faults import faulty_layers_store
from memstory_reference.targets.layers_options import OPTIONS, layers_options
from memstory_reference.targets.seeded_ids import counted_ids
from memstory_reference.targets.system_target import SystemFactory, SystemTarget

EXTRACTOR = "extractor"
"""The part of the model that is asked after the reply; a story can make it fail alone, by a job of this name."""


class LayersTarget(SystemTarget):
    """One layers memory, in the case's workspace or in Postgres unless it is incognito."""

    memory_class = LayersMemory
    options = OPTIONS

    @property
    def _is_in_postgres(self) -> bool:
        return self._options.mode.is_durable and super()._is_in_postgres

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        self._options = layers_options(env)
        if self._options.mode.is_durable:
            return environment_ports(env, self._make_embedder, after_reply=EXTRACTOR)
        ids = counted_ids(env.seed)
        # The log above it shows that it is never asked.
        idle = IdleEmbedder("none")
        return environment_ports(env, lambda *_: idle, new_id=ids, after_reply=EXTRACTOR, compares=False)

    async def _open_memory(self, workspace: Path) -> LayersMemory:
        service = await open_layers(
            workspace / "layers",
            embedder=self._ports.embedder if self._options.mode.is_durable else None,
            model=self._ports.chat if self._has_model else None,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._options.config,
            mode=self._options.mode,
            place=await self._place(),
            wrap=lambda store: faulty_layers_store(store, self._ports.switches["store"]),
        )
        return LayersMemory(service, store_name=self._store_name(), is_anonymous=self._is_anonymous)

    @property
    def _has_model(self) -> bool:
        return self._has_named_model

    def _is_anonymous(self, user: str) -> bool:
        return user.removeprefix(self._env.owner).removeprefix(".") in self._options.anonymous

    async def about(self) -> Mapping[str, str]:
        embedder = {} if self._options.mode.is_durable else {"embedder": "none"}
        return {**await super().about(), **embedder, "mode": str(self._options.mode)}

    def _store_name(self) -> str:
        if not self._options.mode.is_durable:
            return "memory only"
        return self._engine(SQLITE)

    async def inspect(self, what: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        # A session that the steps before were in: only they name it by themselves.
        session = args.get("session", scope.session)
        rest = {name: value for name, value in args.items() if name != "session"}
        return await super().inspect(what, rest, replace(scope, session=session))

    async def _job_extractor(self, _: Scope, *, mode: str) -> Tree:
        # Not a fault of a part that every memory has: the model's calls after the reply alone.
        self._ports.set_fault(EXTRACTOR, mode)

    @contextmanager
    def _in_harness_words(self) -> Iterator[None]:
        with super()._in_harness_words():
            yield
            # The memory goes on without a model that failed, and no story may be judged by that.
            if self._ports.chat.failures:
                raise self._ports.chat.failures[0]


class LayersFactory(SystemFactory):
    """The layers memory: facts, sessions and rules, extracted after each turn and settled when a session ends."""

    name = "layers"
    target_class = LayersTarget
