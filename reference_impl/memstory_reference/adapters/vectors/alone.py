"""One after the other with an owner: what reads rows and writes what follows from them."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from weakref import WeakValueDictionary


class OwnerLocks:
    """Keeps the tasks of this process apart, which is enough for a store that no other process has."""

    is_shared = False

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def alone(self, owner: str) -> AbstractAsyncContextManager[None]:
        """Hold off who else wants to be alone with this owner."""
        return self._locks.setdefault(owner, asyncio.Lock())
