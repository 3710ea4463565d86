"""The one thread through which a store speaks to Chroma, and the place where Chroma's errors become ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import httpx
from chromadb.errors import ChromaError

from memstory_reference.errors import SetupProblem, UnavailableError

T = TypeVar("T")

NO_ROOM = ("disk is full", "readonly database", "disk I/O error", "unable to open database", "File exists")
"""What the messages of Chroma's core say when the folder, not the request, is at fault."""


class Lane:
    """Runs blocking work in order, one piece at a time: Chroma serialises anyway, and no two writes can mix."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="chroma")
        self._is_open = True

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns; work that has begun is finished even if the caller is cancelled."""
        if not self._is_open:
            msg = f"the store at {self.place} was closed; open it again"
            raise UnavailableError(msg)
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._translated, work)

    async def close(self, last: Callable[[], None]) -> None:
        """Run `last` after all that waits, then take no more work; a second call does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        ending = asyncio.get_running_loop().run_in_executor(self._executor, last)
        self._executor.shutdown(wait=False)
        await asyncio.shield(ending)  # a cancelled caller must not leave the folder locked

    def _translated(self, work: Callable[[], T]) -> T:
        with translated(self.place):
            return work()


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn errors of Chroma and of its transport into the few that callers know."""
    try:
        yield
    except httpx.HTTPError as problem:
        msg = f"the Chroma server at {place} does not answer ({problem}). Start it with 'chroma run', or use a folder."
        raise UnavailableError(msg) from problem
    except ChromaError as problem:
        if any(sign in str(problem) for sign in NO_ROOM):
            msg = f"{place} cannot be used as a store: {problem}. Give a folder with room that this user may write to."
            raise SetupProblem(msg) from problem
        msg = f"Chroma failed at {place}: {problem}. If it goes on, restore a backup of the folder or use another one."
        raise UnavailableError(msg) from problem
