"""One lock a name, for the tasks of one process; it is kept while somebody holds or wants it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from weakref import WeakValueDictionary


class NamedLocks:
    """Enough for a store that no other process has; others have their tasks wait here before they wait in the store."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def hold(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock of this name; not to be taken twice by one task."""
        return self._locks.setdefault(name, asyncio.Lock())
