"""Which turn stands before and after which, within a session; pure."""

from __future__ import annotations

import numpy as np

_NOBODY = -1


class Neighbours:
    """Turns by number, appended in their order; 8 bytes a turn."""

    def __init__(self) -> None:
        self._before = np.full(0, _NOBODY, np.int32)
        self._after = np.full(0, _NOBODY, np.int32)
        self._last: dict[str, int] = {}

    def append(self, number: int, session: str | None) -> None:
        """Note a turn behind the last one of its session; one without a session has no neighbours."""
        if session is None:
            return
        if number >= len(self._before):
            size = max(64, 2 * len(self._before), number + 1)
            self._before, self._after = _grown(self._before, size), _grown(self._after, size)
        earlier = self._last.get(session)
        if earlier is not None:
            self._before[number], self._after[earlier] = earlier, number
        self._last[session] = number

    def of(self, number: int) -> tuple[int | None, int | None]:
        """Return the turns before and after one."""
        if number >= len(self._before):
            return None, None
        before, after = int(self._before[number]), int(self._after[number])
        return (None if before == _NOBODY else before), (None if after == _NOBODY else after)


def _grown(
    numbers: np.ndarray[tuple[int], np.dtype[np.int32]], size: int
) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    wider = np.full(size, _NOBODY, np.int32)
    wider[: len(numbers)] = numbers
    return wider
