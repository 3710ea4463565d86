"""The layers memory as a target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import cast, overload

from memstory.contract.errors import UnavailableError
from memstory.contract.target import Environment, Scope, Tree
from memstory_reference.adapters.embedding.fixed_vectors import IdleEmbedder
from memstory_reference.adapters.faults import FaultSwitch, FaultyPort
from memstory_reference.composition.layers import open_layers
from memstory_reference.errors import InputError
from memstory_reference.setting_rules import SQL_ENGINE, SQLITE, check_settings
from memstory_reference.systems.layers.memory import LayersMemory
from memstory_reference.systems.layers.records.candidates import SessionMemoryBuffer
from memstory_reference.systems.layers.records.record import MemoryRecord
from memstory_reference.systems.layers.settings import LayersConfig, MemoryMode, parse_mode
from memstory_reference.systems.layers.stores.layers_store import LayersStore
from memstory_reference.targets.environment_ports import PORT_OPTIONS, EnvironmentPorts, counted_ids, environment_ports
from memstory_reference.targets.system_target import SystemFactory, SystemTarget

BREAKS_AT = 1
"""In mode `garbage` a batch breaks when this record is taken from it: the first is written by then."""


def faulty_layers_store(store: LayersStore, switch: FaultSwitch) -> LayersStore:
    """Return `store` behind `switch`; in mode `garbage` every batch breaks at its second record."""
    return cast("LayersStore", _FaultyLayersStore(store, switch))


class _FaultyLayersStore(FaultyPort):
    # A real store reads the session key once: a process that has a session knows it.
    free = frozenset({"asession_key", "alost", "aclose"})

    async def aput_batch(self, records: Sequence[MemoryRecord], buffer: SessionMemoryBuffer | None = None) -> None:
        await self._switch.pass_or_fail()
        await self._inner.aput_batch(self._batch(records), buffer)

    async def aend(self, owner: str, session: str, records: Sequence[MemoryRecord]) -> bool:
        await self._switch.pass_or_fail()
        return bool(await self._inner.aend(owner, session, self._batch(records)))

    def _batch(self, records: Sequence[MemoryRecord]) -> Sequence[MemoryRecord]:
        return _Breaking(records, self._switch)


class _Breaking(Sequence[MemoryRecord]):
    """A batch whose second record cannot be had in mode `garbage`: what a store has begun by then must not stay."""

    def __init__(self, records: Sequence[MemoryRecord], switch: FaultSwitch) -> None:
        self._records = records
        self._switch = switch

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> MemoryRecord: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[MemoryRecord]: ...
    def __getitem__(self, place: int | slice) -> MemoryRecord | Sequence[MemoryRecord]:
        if (isinstance(place, slice) or place >= BREAKS_AT) and self._switch.garbles():
            raise UnavailableError("the story has broken the batch at its second record")
        return self._records[place]

    def __iter__(self) -> Iterator[MemoryRecord]:
        return (self[place] for place in range(len(self)))


CONFIG = tuple(field.name for field in fields(LayersConfig))
OPTIONS = (*CONFIG, "mode", "anonymous", "store", *PORT_OPTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersOptions:
    """`anonymous` are users without a user id, the empty text being the case's own."""

    config: LayersConfig
    mode: MemoryMode
    anonymous: frozenset[str]


def layers_options(env: Environment) -> LayersOptions:
    """Return what the options decide; InputError names the one that is wrong."""
    mode, anonymous = env.options.get("mode", MemoryMode.LOCAL), env.options.get("anonymous", [])
    if not isinstance(mode, str):
        raise InputError(f"options: mode is {mode!r:.80}; allowed: {', '.join(MemoryMode)}, guest")
    if not isinstance(anonymous, list) or not all(isinstance(name, str) for name in anonymous):
        raise InputError("options: anonymous is a list of users, the empty text being the one of steps without `as`")
    if "store" in env.options:
        check_settings({"store": env.options["store"]}, {"store": SQL_ENGINE}, "options")
    return LayersOptions(
        config=LayersConfig().merge({name: env.options[name] for name in CONFIG if name in env.options}, "options"),
        mode=parse_mode(mode),
        anonymous=frozenset(anonymous),
    )


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
        return await open_layers(
            workspace / "layers",
            embedder=self._ports.embedder if self._options.mode.is_durable else None,
            model=self._ports.chat if self._has_model else None,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._options.config,
            mode=self._options.mode,
            place=await self._place(),
            wrap=lambda store: faulty_layers_store(store, self._ports.switches["store"]),
            store_name=self._store_name(),
            is_anonymous=self._is_anonymous,
        )

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
