"""Faults of a release that opens what another release of the same memory has written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memstory.contract.clock import Clock
from memstory.contract.codec import decode, encode
from memstory.contract.target import Environment
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import OracleMemory


class _Releases(Mutant):
    """Knows which release wrote last; `_taken_over` is what today's release makes of what the older one kept."""

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        note = Path(env.workspace) / "release"
        self._trash = Path(env.workspace) / "trash"
        written_by = note.read_text() if note.exists() else ""
        note.write_text("older" if env.older else "newer")
        if written_by == "older" and not env.older:
            self._memories = [*self._taken_over(self._memories)]
        if written_by == "newer" and env.older:
            self._memories = [*self._gone_back(self._memories)]

    def _taken_over(self, memories: Sequence[OracleMemory]) -> Sequence[OracleMemory]:
        return memories

    def _gone_back(self, memories: Sequence[OracleMemory]) -> Sequence[OracleMemory]:
        return memories


class MigratingHalf(_Releases):
    """Takes over each second memory of an older release."""

    def _taken_over(self, memories: Sequence[OracleMemory]) -> Sequence[OracleMemory]:
        return memories[::2]


class MigratingTexts(_Releases):
    """Takes over the texts of an older release without their metadata."""

    def _taken_over(self, memories: Sequence[OracleMemory]) -> Sequence[OracleMemory]:
        return [replace(one, hit=replace(one.hit, metadata={})) for one in memories]


class MigratingOwners(_Releases):
    """Gives what an older release kept to the user who was there first."""

    def _taken_over(self, memories: Sequence[OracleMemory]) -> Sequence[OracleMemory]:
        return [replace(one, user=memories[0].user) for one in memories]


class MigratingDeleted(_Releases):
    """Brings back what was deleted before the upgrade."""

    def _taken_over(self, memories: Sequence[OracleMemory]) -> Sequence[OracleMemory]:
        deleted = json.loads(self._trash.read_text()) if self._trash.exists() else []
        return [*memories, *(decode(OracleMemory, one) for one in deleted)]

    def _forget(self, gone: Sequence[OracleMemory], *, durable: bool) -> None:
        self._trash.write_text(json.dumps(encode([*gone])))
        super()._forget(gone, durable=durable)


class GoingBack(_Releases):
    """Opens, as the older release, what the newer one wrote, and drops what is new in it."""

    def _gone_back(self, memories: Sequence[OracleMemory]) -> Sequence[OracleMemory]:
        return memories[:-1]
