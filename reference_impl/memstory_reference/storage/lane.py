"""The one thread through which a blocking library is called, off the event loop; and a lock for each name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from memstory.contract.errors import UnavailableError


class NamedLocks:
    """Enough for a store that no other process has; others have their tasks wait here before they wait in the store."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def hold(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock of this name; not to be taken twice by one task."""
        return self._locks.setdefault(name, asyncio.Lock())


P = ParamSpec("P")
T = TypeVar("T")


class SerialThread:
    """Runs blocking calls in order, one at a time; a call that has begun is finished even if its caller is cancelled.

    `translated` turns the errors of the library into those that callers know.
    """

    def __init__(self, place: str, translated: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._place = place
        self._translated = translated
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lane")
        self._is_open = True

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns; UnavailableError after `close`."""
        self.check_open()

        def work() -> T:
            with self._translated():
                return call(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def check_open(self) -> None:
        """Raise UnavailableError after `close`."""
        if not self._is_open:
            raise UnavailableError(f"the store at {self._place} was closed; open it again")

    async def close(self, last: Callable[[], object]) -> None:
        """Run `last` after all that waits, then take no more calls; closing twice is harmless."""
        if not self._is_open:
            return
        self._is_open = False
        ending = asyncio.get_running_loop().run_in_executor(self._thread, last)
        self._thread.shutdown(wait=False)
        await asyncio.shield(ending)  # a cancelled caller must not leave a file or a folder locked
