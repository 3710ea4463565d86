"""The turns memory as a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from memstory.contract.target import Capability, Environment, Scope, Tree
from memstory.contract.values import HELD
from memstory_reference.composition.turns import TURNS, check_shared_turns
from memstory_reference.errors import InputError
from memstory_reference.setting_rules import POSTGRES
from memstory_reference.storage.postgres.place import PostgresPlace, parse_place
from memstory_reference.system_memory import SystemMemory
from memstory_reference.systems.turns.memory import TurnsMemory
from memstory_reference.systems.turns.ranking import empty_pool
from memstory_reference.systems.turns.settings import TurnsSettings
from memstory_reference.systems.turns.stores.turns_store import OWNERS_FILE
from memstory_reference.targets.environment_ports import FaultyPort
from memstory_reference.targets.system_target import FolderTarget, SystemFactory


class _FaultyTurnsStore(FaultyPort):
    """A store behind a switch; in mode `garbage` it finds nothing."""

    # A store that is down is still closed: its folder must be free for the next to open it.
    free = frozenset({"close"})
    garbage: ClassVar = {"pool": empty_pool}


AT = "at"
"""The option that names the memory of a story with `preloaded`: the folder or the URL that was given as its store."""


class TurnsTarget(FolderTarget):
    """One turns memory, in the case's workspace or in Postgres."""

    system = TURNS
    folder = "turns"
    decided = ("cleaning",)
    own_options = (AT,)
    faulty_store = _FaultyTurnsStore
    _memory: TurnsMemory

    @property
    def _is_in_postgres(self) -> bool:
        return self._own is None and super()._is_in_postgres

    def _settings_of(self, env: Environment) -> TurnsSettings:
        self._own = _own_place(env.options.get(AT, "")) if env.preloaded else None
        # Texts that a story gives vectors for are embedded as they are.
        settings: TurnsSettings = replace(super()._settings_of(env), cleaning=not env.vectors)
        return settings

    async def about(self) -> Mapping[str, str]:
        about = await super().about()
        if not self._env.preloaded:
            return about
        return {**about, HELD: str(await self._memory.count(Scope(user=self._env.owner)))}

    async def _open_memory(self, folder: Path) -> SystemMemory:
        return await super()._open_memory(self._own if isinstance(self._own, Path) else folder)

    async def _place(self) -> PostgresPlace | None:
        if not isinstance(self._own, PostgresPlace):
            return await super()._place()
        await check_shared_turns(self._own)
        return replace(self._own, name=f"{POSTGRES} (schema {self._own.schema})")


class TurnsFactory(SystemFactory):
    """The turns memory: what was said, ranked by words, meaning, speaker, time and place in the conversation."""

    name = "turns"
    target_class = TurnsTarget

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        return super().capabilities(options) | (frozenset({"preloaded"}) if AT in options else frozenset())


def _own_place(at: Tree) -> Path | PostgresPlace:
    """Return where a memory is that somebody has filled; InputError where there is none."""
    if "://" in str(at):
        return parse_place(at)
    folder = Path(str(at)).expanduser()
    if not (folder / OWNERS_FILE).is_file():
        raise InputError(f"options: {AT} is {at!r:.200}, where no turns are stored; allowed: their folder or URL")
    return folder
