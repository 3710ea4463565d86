"""A thread for a library that blocks, so that the event loop stays free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar
from weakref import finalize

Result = TypeVar("Result")
_Call: TypeAlias = "tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]]"
_Calls: TypeAlias = "SimpleQueue[_Call | None]"


class OneThread:
    """Runs calls in a thread of its own, one after the other, in the order in which they came.

    A call costs half of what it does in the standard library's executor, and a store is called for each query. The
    thread ends with this object, and does not keep the process alive.
    """

    def __init__(self, name: str) -> None:
        self._calls: _Calls = SimpleQueue()
        self._thread = Thread(target=_work, args=(self._calls,), name=name, daemon=True)
        finalize(self, self._calls.put, None)

    async def run(self, call: Callable[..., Result], *args: Any) -> Result:
        """Return what `call` returns."""
        if self._thread.ident is None:
            self._thread.start()
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._calls.put((answer, call, args))
        return await answer

    def close(self) -> None:
        """Let the thread end when its last call is done."""
        self._calls.put(None)


def _work(calls: _Calls) -> None:
    while (asked := calls.get()) is not None:
        answer, call, args = asked
        try:
            tell, result = answer.set_result, call(*args)
        except BaseException as error:  # noqa: BLE001  (raised again where it is waited for)
            tell, result = answer.set_exception, error
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            answer.get_loop().call_soon_threadsafe(_tell, answer, tell, result)
        del asked, answer, call, args, tell, result  # What a driver made may be released before the next call.


def _tell(answer: asyncio.Future[Any], tell: Callable[[Any], None], result: Any) -> None:
    if not answer.done():
        tell(result)
