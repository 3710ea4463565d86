"""Faults of forgetting for good: a deleted text comes back when its source is added again, or others are kept out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memstory.contract.clock import Clock
from memstory.contract.target import Environment, Item, Json, Receipt, Ref, Scope
from memstory.controls.matching import fingerprints, words_of
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import OracleMemory


class Returning(Mutant):
    """Remembers again what was deleted for good."""

    def _was_forgotten(self, item: Item, scope: Scope) -> bool:
        return False


class ReturningByOthers(Mutant):
    """Remembers again what was deleted for good when somebody other than the user says it."""

    def _was_forgotten(self, item: Item, scope: Scope) -> bool:
        return item.source in (None, "user") and super()._was_forgotten(item, scope)


class ReturningReworded(Mutant):
    """Remembers again what was deleted for good when it is worded differently."""

    def _was_forgotten(self, item: Item, scope: Scope) -> bool:
        is_reworded = item.text != " ".join(item.text.split()) or item.text.isupper()
        return not is_reworded and super()._was_forgotten(item, scope)


class ReturningQuoted(Mutant):
    """Remembers again what was deleted for good when a longer text has it."""

    def _was_forgotten(self, item: Item, scope: Scope) -> bool:
        whole = min(fingerprints(" ".join(sorted(words_of(item.text)))))
        return f"{scope.user}/{whole}" in self._forgotten and super()._was_forgotten(item, scope)


class ReturningUnderKeys(Mutant):
    """Remembers again what was deleted for good when it comes under a key."""

    def _was_forgotten(self, item: Item, scope: Scope) -> bool:
        return item.key is None and super()._was_forgotten(item, scope)


class ReturningInBatches(Mutant):
    """Checks only the first item of a batch for what was deleted for good."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        first = await super().add(items[:1], scope)
        forgotten, self._forgotten = self._forgotten, set()
        try:
            rest = await super().add(items[1:], scope)
        finally:
            self._forgotten = forgotten
            self._save()
        return Receipt(items=(*first.items, *rest.items))


class ReturningInSessions(Mutant):
    """Forgets for good in one session alone."""

    def _was_forgotten(self, item: Item, scope: Scope) -> bool:
        return super()._was_forgotten(item, scope) and scope.session in {one.session for one in self._deleted}


class ReturningAfterRestarts(Mutant):
    """Does not write down what was deleted for good."""

    async def open(self, env: Environment, clock: Clock) -> None:
        await super().open(env, clock)
        self._forgotten = set()


class ReturningAfterWiping(Mutant):
    """Forgets for good when one memory is deleted, but not when all are."""

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        return await super().delete(ref if ref.id or ref.key else Ref(), scope)


class ReturningAbout(Mutant):
    """Forgets for good only by id, not by words."""

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        return await super().delete_about(about, scope)


class RefusingNew(Mutant):
    """Also refuses texts that are only similar to one that was deleted for good."""

    def __init__(self) -> None:
        super().__init__()
        self._words: list[frozenset[str]] = []

    def _forget(self, gone: Sequence[OracleMemory], *, durable: bool) -> None:
        self._words += [words_of(one.hit.text) for one in gone if durable]
        super()._forget(gone, durable=durable)

    def _was_forgotten(self, item: Item, scope: Scope) -> bool:
        mine = words_of(item.text)
        return any(2 * len(mine & words) > len(mine) for words in self._words) or super()._was_forgotten(item, scope)


class ForgettingForAll(Mutant):
    """Refuses to every user what one user has deleted for good."""

    def _was_forgotten(self, item: Item, scope: Scope) -> bool:
        users = {mark.rpartition("/")[0] for mark in self._forgotten}
        return any(super(ForgettingForAll, self)._was_forgotten(item, Scope(user=user)) for user in users)


class ReturningByRestoring(Mutant):
    """Remembers again what was deleted for good when a snapshot of an earlier time is restored."""

    _is_restoring = False

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        self._is_restoring = job == "restore"
        return await super().run(job, args, scope)

    def _was_forgotten(self, item: Item, scope: Scope) -> bool:
        return not self._is_restoring and super()._was_forgotten(item, scope)
