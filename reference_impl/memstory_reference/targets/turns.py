"""The turns memory as a target."""

from __future__ import annotations

from pathlib import Path

from memstory.contract.target import Environment, Scope, Tree
from memstory_reference.composition.turns import open_turns
from memstory_reference.errors import InputError
from memstory_reference.systems.turns.config import TurnsConfig
from memstory_reference.systems.turns.memory import TurnsMemory
from memstory_reference.targets.environment_ports import PORT_OPTIONS, EnvironmentPorts, MakeEmbedder, text_option
from memstory_reference.targets.shared_postgres import CasesPostgres, PostgresFactory
from memstory_reference.targets.system_target import FolderTarget
from memstory_reference.targets.turns_faults import faulty_turns_store

CONFIG = ("top_k", "pool", "min_score", "context_tokens", "window_turns", "secrets", "keep_pins")
SQLITE, POSTGRES = STORES = ("sqlite", "postgres")


class TurnsTarget(FolderTarget):
    """One turns memory, in the case's workspace or in Postgres."""

    memory_class = TurnsMemory
    options = (*CONFIG, "store", *PORT_OPTIONS)
    folder = "turns"

    def __init__(self, make_embedder: MakeEmbedder, postgres: CasesPostgres) -> None:
        super().__init__(make_embedder)
        self._postgres = postgres

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        given = {name: env.options[name] for name in CONFIG if name in env.options}
        # Texts that a story gives vectors for are embedded as they are.
        self._config = TurnsConfig(cleaning=not env.vectors).changed(given, "options")
        self._store = text_option(env, "store", SQLITE)
        if self._store not in STORES:
            raise InputError(f"options: store is {self._store!r:.80}; allowed: {', '.join(STORES)}")
        return super()._ports_of(env)

    async def _job_backup(self, scope: Scope, *, folder: Tree = "backup") -> Tree:
        if self._store == POSTGRES:
            raise InputError("backup: the memory is in Postgres; back it up with pg_dump")
        return await super()._job_backup(scope, folder=folder)

    async def _opened(self, folder: Path) -> TurnsMemory:
        is_shared = self._store == POSTGRES
        place = await self._postgres.place(Path(self._env.workspace)) if is_shared else None
        system = await open_turns(
            folder,
            embedder=self._ports.embedder,
            chat=self._ports.chat,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._config,
            place=place,
            wrap=lambda store: faulty_turns_store(store, self._ports.switches["store"]),
        )
        return TurnsMemory(system, f"postgres ({self._postgres.name})" if is_shared else TurnsMemory.in_folder)


class TurnsFactory(PostgresFactory):
    """The turns memory: what was said, ranked by words, meaning, speaker, time and place in the conversation."""

    name = "turns"
    spec = "memstory_reference.targets.turns:TurnsFactory"
    target_class = TurnsTarget
