"""What targets on the table of memories do alike, however they find a text: look up, list, replace and forget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memstory.contract.target import Hit, Item, Receipt, Ref, Scope, Target
from memstory.targets.one_thread import OneThread
from memstory.targets.receipts import receipt_item, unknown, updated
from memstory.targets.sqlite_store import Condition, named, of_kinds, within


class TableStore(Protocol):
    """The table in a file, to be used in one thread."""

    def close(self) -> None:
        """Close the file."""
        ...

    def find(self, conditions: Sequence[Condition], limit: int | None = None) -> list[Hit]:
        """Return memories, oldest first."""
        ...

    def delete(self, conditions: Sequence[Condition]) -> bool:
        """Delete memories; return whether there were any."""
        ...


class TableTarget(Target):
    """One SQLite file in the workspace; a subclass opens it, writes to it and searches it."""

    _store: TableStore

    def __init__(self, name: str) -> None:
        self._thread = OneThread(name)

    async def rewrite(self, id_: str, item: Item) -> None:
        """Replace what a known memory says."""
        raise NotImplementedError

    async def close(self) -> None:
        await self._thread.run(self._store.close)
        self._thread.close()

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self._thread.run(self._store.find, named(ref, scope.user), 1)
        return found[0] if found else None

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return await self._thread.run(self._store.find, [*within(scope), *of_kinds(kinds)], limit)

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        known = await self.get(ref, scope)
        if known is None or known.id is None:
            raise unknown(ref)
        await self.rewrite(known.id, item)
        return updated(item, known.id)

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        names_nothing = ref.id is None and ref.key is None
        every = [*within(scope), *of_kinds([ref.kind] if ref.kind else [])]
        return await self._thread.run(self._store.delete, every if names_nothing else named(ref, scope.user))


def written(items: Sequence[Item], stored: Sequence[tuple[str, bool]]) -> Receipt:
    """Return the receipt for `items`, of which `stored` says the id, and whether it replaced what the key named."""
    pairs = zip(items, stored, strict=True)
    return Receipt(items=[receipt_item(item, id_, "updated" if known else "stored") for item, (id_, known) in pairs])
