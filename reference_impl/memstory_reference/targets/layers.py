"""The layers memory as a target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from memstory.contract.errors import UnavailableError
from memstory.contract.target import Environment, Scope, Tree
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.layers import LAYERS, open_layers
from memstory_reference.errors import InputError
from memstory_reference.systems.layers.memory import LayersMemory
from memstory_reference.systems.layers.records import MemoryRecord, SessionMemoryBuffer
from memstory_reference.systems.layers.settings import LayersSettings
from memstory_reference.targets.environment_ports import EnvironmentPorts, FaultyPort, counted_ids
from memstory_reference.targets.system_target import SystemFactory, SystemTarget

BREAKS_AT = 1
"""In mode `garbage` a batch breaks when this record is taken from it: the first is written by then."""


class FaultyLayersStore(FaultyPort):
    """A store whose batches break in mode `garbage`."""

    # A real store reads the session key once: a process that has a session knows it.
    free = frozenset({"asession_key", "alost", "aclose"})

    async def aput_batch(self, records: Iterable[MemoryRecord], buffer: SessionMemoryBuffer | None = None) -> None:
        await self._switch.pass_or_fail()
        await self._inner.aput_batch(self._batch(records), buffer)

    async def aend(self, owner: str, session: str, records: Iterable[MemoryRecord]) -> bool:
        await self._switch.pass_or_fail()
        return bool(await self._inner.aend(owner, session, self._batch(records)))

    def _batch(self, records: Iterable[MemoryRecord]) -> Iterator[MemoryRecord]:
        """Yield a batch, whose second record cannot be had in mode `garbage`: what has begun by then must not stay."""
        for place, record in enumerate(records):
            if place >= BREAKS_AT and self._switch.garbles():
                raise UnavailableError("the story has broken the batch at its second record")
            yield record


EXTRACTOR = "extractor"
"""The part of the model that is asked after the reply; a story can make it fail alone, by a job of this name."""


class LayersTarget(SystemTarget):
    """One layers memory, in the case's workspace or in Postgres unless it is incognito."""

    system = LAYERS
    folder = "layers"
    own_options = ("anonymous",)
    faulty_store = FaultyLayersStore
    _settings: LayersSettings

    @property
    def _is_durable(self) -> bool:
        return self._settings.memory_mode.is_durable

    @property
    def _is_in_postgres(self) -> bool:
        return self._is_durable and super()._is_in_postgres

    def _settings_of(self, env: Environment) -> LayersSettings:
        anonymous = env.options.get("anonymous", [])
        if not isinstance(anonymous, list) or not all(isinstance(name, str) for name in anonymous):
            raise InputError(
                "options: anonymous is a list of users, the empty text being the one of steps without `as`"
            )
        self._anonymous = frozenset(anonymous)
        settings: LayersSettings = super()._settings_of(env)
        return settings

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        new_id = None if self._is_durable else counted_ids(env.seed)
        return EnvironmentPorts(env, self._settings, self._make_embedder, new_id=new_id, after_reply=EXTRACTOR)

    async def _open_on(self, settings: LayersSettings, ports: MemoryPorts) -> LayersMemory:
        return await open_layers(settings, ports, self._is_anonymous)

    def _is_anonymous(self, user: str) -> bool:
        """Whether this is a user without a user id; the empty name is the case's own."""
        return user.removeprefix(self._env.owner).removeprefix(".") in self._anonymous

    async def about(self) -> Mapping[str, str]:
        return {**await super().about(), "mode": str(self._settings.memory_mode)}

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
