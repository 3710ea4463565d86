"""The turns memory as a target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from memstory.contract.target import Capability, Environment, Scope, Tree
from memstory.contract.values import HELD
from memstory_reference.adapters.faults import FaultSwitch, FaultyPort
from memstory_reference.composition.turns import open_turns
from memstory_reference.errors import InputError
from memstory_reference.setting_rules import POSTGRES, SQL_ENGINE, check_settings
from memstory_reference.storage.postgres.place import PostgresPlace, parse_place
from memstory_reference.systems.turns.memory import TurnsMemory
from memstory_reference.systems.turns.ranking.pool import Pool, empty_pool
from memstory_reference.systems.turns.settings import TurnsConfig
from memstory_reference.systems.turns.stores.folder_store import OWNERS_FILE
from memstory_reference.systems.turns.stores.turns_store import TurnsStore
from memstory_reference.targets.environment_ports import PORT_OPTIONS, EnvironmentPorts, options_of, text_option
from memstory_reference.targets.system_target import FolderTarget, SystemFactory


def faulty_turns_store(store: TurnsStore, switch: FaultSwitch) -> TurnsStore:
    """Return `store` behind `switch`; in mode `garbage` it finds nothing."""
    return cast("TurnsStore", _FaultyTurnsStore(store, switch))


class _FaultyTurnsStore(FaultyPort):
    # A store that is down is still closed: its folder must be free for the next to open it.
    free = frozenset({"close"})

    async def pool(self, *args: Any) -> Pool:
        await self._switch.pass_or_fail()
        found: Pool = await self._inner.pool(*args)
        return empty_pool() if self._switch.garbles() else found


CONFIG = options_of(TurnsConfig, but=["cleaning"])
AT = "at"
"""The option that names the memory of a story with `preloaded`: the folder or the URL that was given as its store."""


class TurnsTarget(FolderTarget):
    """One turns memory, in the case's workspace or in Postgres."""

    memory_class = TurnsMemory
    options = (*CONFIG, "store", AT, *PORT_OPTIONS)
    folder = "turns"
    _memory: TurnsMemory

    @property
    def _is_in_postgres(self) -> bool:
        return self._own is None and super()._is_in_postgres

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        # Texts that a story gives vectors for are embedded as they are.
        self._config = TurnsConfig(cleaning=not env.vectors).merge(self._given(env, CONFIG), "options")
        check_settings(self._given(env, ["store"]), {"store": SQL_ENGINE}, "options")
        self._own = _own_place(text_option(env, AT, "")) if env.preloaded else None
        return super()._ports_of(env)

    async def about(self) -> Mapping[str, str]:
        about = await super().about()
        if not self._env.preloaded:
            return about
        return {**about, HELD: str(await self._memory.count(Scope(user=self._env.owner)))}

    async def _open_memory(self, workspace: Path) -> TurnsMemory:
        return await self._open_folder(self._own if isinstance(self._own, Path) else workspace / self.folder)

    async def _open_folder(self, folder: Path) -> TurnsMemory:
        place, engine = await self._place(), self._engine(TurnsMemory.in_folder)
        if isinstance(self._own, PostgresPlace):
            place, engine = self._own, f"{POSTGRES} (schema {self._own.schema})"
        return await open_turns(
            folder,
            embedder=self._ports.embedder,
            chat=self._ports.chat,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._config,
            place=place,
            engine=engine,
            is_fixed=place is not None and place is self._own,
            wrap=lambda store: faulty_turns_store(store, self._ports.switches["store"]),
        )


class TurnsFactory(SystemFactory):
    """The turns memory: what was said, ranked by words, meaning, speaker, time and place in the conversation."""

    name = "turns"
    target_class = TurnsTarget

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        return super().capabilities(options) | (frozenset({"preloaded"}) if AT in options else frozenset())


def _own_place(at: str) -> Path | PostgresPlace:
    """Return where a memory is that somebody has filled; InputError where there is none."""
    if "://" in at:
        return parse_place(at)
    folder = Path(at).expanduser()
    if not (folder / OWNERS_FILE).is_file():
        raise InputError(f"options: {AT} is {at!r:.200}, where no turns are stored; allowed: their folder or URL")
    return folder
