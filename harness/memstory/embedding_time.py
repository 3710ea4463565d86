"""How much of an operation went into embedding: what runs a case opens a stopwatch, the embedder starts and stops it.

Nothing is handed through the target: whoever embeds says so here, in whatever task or thread it happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from threading import Lock
from time import perf_counter
from types import TracebackType
from typing import Final, Self

_PRESENT: ContextVar[EmbeddingTime | None] = ContextVar("memstory_embedding_time", default=None)
_OPEN: Final[set[EmbeddingTime]] = set()
_LOCK: Final = Lock()


class EmbeddingTime:
    """The time that one operation spent in the embedder, counted while it is entered; two at once count once.

    `is_told` says that an embedder has made itself known as one whose time is taken. `is_lost` says that something was
    embedded of which nobody knows for which of several operations at once.
    """

    def __init__(self) -> None:
        self.is_told = False
        self.is_lost = False
        self._seconds = 0.0
        self._busy = 0
        self._since = 0.0
        self._token: Token[EmbeddingTime | None] | None = None

    @classmethod
    def present(cls) -> EmbeddingTime | None:
        """Return that of the operation in which this task is."""
        return _PRESENT.get()

    def __enter__(self) -> Self:
        self._token = _PRESENT.set(self)
        _OPEN.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with _LOCK:
            _OPEN.discard(self)
            if self._busy:
                self._seconds += perf_counter() - self._since
        if self._token is not None:
            _PRESENT.reset(self._token)

    def seconds(self, *, told: bool = False) -> float | None:
        """Return the time; None where nobody can say: no embedder made itself known, here or before (`told`)."""
        return self._seconds if (self.is_told or told) and not self.is_lost else None

    def take(self, seconds: float | None, *, told: bool) -> None:
        """Add what was counted in another process."""
        self.is_told = self.is_told or told
        self.is_lost = self.is_lost or (told and seconds is None)
        self._seconds += seconds or 0.0

    def _begin(self) -> None:
        if not self._busy:
            self._since = perf_counter()
        self._busy += 1

    def _end(self) -> None:
        self._busy -= 1
        if not self._busy and self in _OPEN:
            self._seconds += perf_counter() - self._since


def announce() -> None:
    """Say that the target which is being opened embeds with something whose time is taken here."""
    with _LOCK:
        for one in _meant():
            one.is_told = True


@contextmanager
def embedding() -> Iterator[None]:
    """Count the time inside as embedding, for the operation in which it happens."""
    with _LOCK:
        meant = _meant()
        for one in meant:
            one.is_told = True
            one.is_lost = one.is_lost or len(meant) > 1
            one._begin()  # noqa: SLF001  (the two are one thing; nobody else may start it)
    try:
        yield
    finally:
        with _LOCK:
            for one in meant:
                one._end()  # noqa: SLF001  (the same)


def _meant() -> tuple[EmbeddingTime, ...]:
    """Return the operation of this task; in a thread or an older task that has none, all that are under way."""
    present = _PRESENT.get()
    return (present,) if present in _OPEN and present is not None else tuple(_OPEN)
