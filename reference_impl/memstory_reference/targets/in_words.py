"""Forgetting and correcting what is named in words, by a system that says which of its memories are about a thing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from memstory.contract.errors import Refused
from memstory.contract.target import Item, Receipt, Ref, Scope, Target


class ForgettingInWords(Target):
    """Deletes by id what its system names."""

    @abstractmethod
    async def _ids_about(self, things: Sequence[str], scope: Scope) -> Sequence[str]:
        """Return the ids of all of a user's memories that are about any of these things."""

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        ids = await self._ids_about(about, scope)
        return sum([await self.delete(Ref(id=one, durable=durable), scope) for one in ids])


class CorrectingInWords(ForgettingInWords):
    """Replaces the first of them, too, and deletes the others."""

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        ids = await self._ids_about(about, scope)
        if not ids:
            raise Refused(f"update: nothing is remembered about {', '.join(about)}")
        receipt = await self.update(Ref(id=ids[0]), item, scope)
        for one in ids[1:]:
            await self.delete(Ref(id=one), scope)
        return receipt
