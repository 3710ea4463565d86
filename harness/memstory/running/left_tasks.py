"""Tasks of asyncio that a target leaves behind: nobody else would hear of an exception in one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from memstory.running.endings import describe_error

_GRACE_SECONDS = 0.1
"""How long a task that still runs at the end is waited for."""


@dataclass(slots=True)
class LeftTasks:
    """The tasks that are begun within `watch`, by whatever runs there or by other such tasks, until they end well.

    `from_process` has the warnings of a target's own process.
    """

    from_process: list[str] = field(default_factory=list)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Note the tasks that are begun in the block."""
        loop = asyncio.get_running_loop()
        before = loop.get_task_factory()
        if not isinstance(before, _Noting):
            # It stays: several cases may run in one loop, and outside of them it does what was done before.
            loop.set_task_factory(_Noting(before))
        token = _WATCHING.set(self)
        try:
            yield
        finally:
            _WATCHING.reset(token)

    def note(self, task: asyncio.Task[Any]) -> None:
        """Keep a task, unless it ends without an exception."""
        self._tasks.add(task)
        task.add_done_callback(self._forget_what_ended_well)

    async def warnings(self) -> Sequence[str]:
        """Return a line for each task that broke and was not asked for its result, or that still runs."""
        if running := [task for task in self._tasks if not task.done()]:
            await asyncio.wait(running, timeout=_GRACE_SECONDS)
        return [*self.from_process, *sorted(filter(None, map(_warning, self._tasks)))]

    def _forget_what_ended_well(self, task: asyncio.Task[Any]) -> None:
        if not _is_unheard(task):
            self._tasks.discard(task)


_WATCHING: ContextVar[LeftTasks | None] = ContextVar("memstory_left_tasks", default=None)


def pass_on(warnings: Sequence[str]) -> None:
    """Add the warnings of a target's own process to the case that is watched here."""
    if (left := _WATCHING.get()) is not None:
        left.from_process += warnings


@dataclass(frozen=True, slots=True)
class _Noting:
    """Makes tasks as `before` does, and notes those that are made where tasks are watched."""

    before: Callable[..., Any] | None

    def __call__(self, loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> Any:
        task = self.before(loop, coro, **more) if self.before else asyncio.Task(coro, loop=loop, **more)
        if (left := _WATCHING.get()) is not None and isinstance(task, asyncio.Task):
            left.note(task)
        return task


def _is_unheard(task: asyncio.Task[Any]) -> bool:
    # To ask for the exception would count as having heard it, and asyncio offers no other way.
    return bool(getattr(task, "_log_traceback", False))


def _warning(task: asyncio.Task[Any]) -> str:
    name = getattr(task.get_coro(), "__name__", "without a name")
    if not task.done():
        return f"the target left a task behind that still runs, {name}: what becomes of it is not seen"
    if not _is_unheard(task) or (error := task.exception()) is None:
        return ""
    return f"the target left a task behind that broke, {name}: {describe_error(error)}"
