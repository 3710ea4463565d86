"""Faults of durability: what a restart, a crash or a reused id loses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from memstory.contract.clock import Clock
from memstory.contract.target import Environment, Hit, Item, Query, Receipt, Ref, Scope
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import OracleMemory


class Renumbering(Mutant):
    """Gives its memories new ids each time it is opened."""

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        for old in list(self._memories):
            self._put(replace(old, hit=replace(old.hit, id=f"r{self._new(Item(text='')).id}")), old)


class CountingAnew(Mutant):
    """Restarts its count of ids after a restart, and overwrites the memories that have them."""

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        self._count = 0

    def _put(self, new: OracleMemory, old: OracleMemory | None) -> None:
        super()._put(new, old or next((one for one in self._memories if one.hit.id == new.hit.id), None))


class RecyclingIds(Mutant):
    """Gives the id of a deleted memory to the next one."""

    def _new(self, item: Item) -> Hit:
        taken = {one.hit.id for one in self._memories}
        self._count = next(number for number in range(len(taken) + 1) if f"m{self._seed}-{number + 1}" not in taken)
        return super()._new(item)


class _Unwritten(Mutant):
    """Can leave the file as it is."""

    _is_writing = True

    def _save(self) -> None:
        if self._is_writing:
            super()._save()

    @contextmanager
    def _unwritten(self) -> Iterator[None]:
        self._is_writing = False
        yield
        self._is_writing = True


class UnwrittenUpdates(_Unwritten):
    """Never writes updates to disk: after a restart the old texts are back."""

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        with self._unwritten():
            return await super().update(ref, item, scope)


class UnwrittenKeys(_Unwritten):
    """Never writes a key's new value to disk: after a restart the old one is back."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        is_known = any(self._find(Ref(key=item.key), scope) for item in items if item.key is not None)
        with self._unwritten() if is_known else nullcontext():
            return await super().add(items, scope)


class UnwrittenDeletions(_Unwritten):
    """Never writes deletions to disk: after a restart the deleted memories are back."""

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        with self._unwritten():
            return await super().delete(ref, scope)


class WritingAtTheEnd(_Unwritten):
    """Writes when it is closed, and loses what was acknowledged when it is killed."""

    can_be_killed: ClassVar[bool] = True
    _is_writing = False

    async def close(self) -> None:
        self._is_writing = True
        self._save()
        await super().close()


class RedatingAtOpening(Mutant):
    """Changes the dates of its memories each time it is opened."""

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        for old in list(self._memories):
            self._put(replace(old, hit=replace(old.hit, created_at=clock.now().isoformat())), old)


class LeavingLocks(Mutant):
    """Leaves a lock behind when it is killed, and finds nothing while it is there."""

    can_be_killed: ClassVar[bool] = True
    _lock: Path | None = None
    _is_locked_out = False

    async def open(self, env: Environment, clock: Clock) -> None:
        self._lock = Path(env.workspace) / "lock"
        self._is_locked_out = self._lock.exists()
        self._lock.touch()
        await super().open(env, clock)

    async def close(self) -> None:
        if self._lock:
            self._lock.unlink(missing_ok=True)
        await super().close()

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return [] if self._is_locked_out else super()._searchable(scope)


class TrustingIndex(Mutant):
    """Finds nothing, and says nothing, where the files of its index are gone."""

    _has_index = True

    async def open(self, env: Environment, clock: Clock) -> None:
        folder = Path(env.workspace)
        self._has_index = (folder / "oracle.index").exists() or not (folder / "oracle.json").exists()
        await super().open(env, clock)

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return super()._searchable(scope) if self._has_index else []


class MixingEmbedders(Mutant):
    """Compares what it embedded with one model with questions that another one embedded."""

    _is_mixed = False

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        self._is_mixed = env.other_embedder and bool(self._memories)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(query, scope)
        return [*reversed(await self.list(scope))][: query.top_k] if self._is_mixed else found


class CrowdedOut(Mutant):
    """Finds only what is among its last hundred memories."""

    def _searchable(self, scope: Scope) -> Sequence[OracleMemory]:
        return super()._searchable(scope)[-100:]


class LosingUnread(Mutant):
    """Acknowledges a text of which its model did not say what to remember, and loses it."""

    def _read(self, items: Sequence[Item]) -> Sequence[Item]:
        self._misreads += self._reader != "ok"
        return items

    def _loses(self, new: OracleMemory, old: OracleMemory | None) -> bool:
        return self._reader != "ok"


class ReadingOnce(Mutant):
    """Reads its file only when it is opened: it never sees what another process writes, and overwrites it."""

    can_be_killed: ClassVar[bool] = True

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        self._turns.news = lambda: None  # type: ignore[method-assign]


class KeepingDeletedByOthers(Mutant):
    """Sees what another process adds, but not what it deletes."""

    can_be_killed: ClassVar[bool] = True

    def _catch_up(self) -> None:
        mine = self._memories
        super()._catch_up()
        present = {one.hit.id for one in self._memories}
        self._memories = [*self._memories, *(one for one in mine if one.hit.id not in present)]


class TakingNoTurns(Mutant):
    """Reads, then writes the whole file, whatever another process has written meanwhile."""

    can_be_killed: ClassVar[bool] = True
    _adding = 0

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        self._turns.turn = nullcontext  # type: ignore[method-assign,assignment]

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        # The later, the slower, so that some of both processes meet.
        self._adding += 1
        await asyncio.sleep(0.01 * self._adding)
        return await super().add(items, scope)

    def _save(self) -> None:
        with suppress(FileNotFoundError):  # the other process has just put the file that both wrote into its place
            super()._save()
