"""Parts that fail on demand, so that a story can say what a memory does when they do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, ClassVar, Final, cast

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory.models.spoiled_replies import REPLIES, STATUSES
from memstory_reference.ports import Match, Primitive, VectorStore

CHAT_MODEL: Final = "chat model"
MODES = ("ok", "down", "slow", "garbage")
"""How a part behaves; `garbage` answers in the right form with wrong content."""

SPOILED = tuple(mode for mode in REPLIES if mode not in STATUSES)
"""How a chat model may reply beside that."""


def modes_of(part: str) -> Sequence[str]:
    """Return how a part can behave."""
    return (*MODES, *REPLIES) if part == CHAT_MODEL else MODES


SLOW_SECONDS = 0.2


@dataclass(slots=True)
class FaultSwitch:
    """How one part behaves at the moment; `landed` counts how often it really failed, was slow, or told garbage."""

    part: str
    mode: str = "ok"
    landed: int = 0
    slow_seconds: float = SLOW_SECONDS

    def garbles(self) -> bool:
        """Return whether the part has to answer with wrong content now, which then counts: not each call can."""
        self.landed += self.mode == "garbage"
        return self.mode == "garbage"

    def spoiling(self) -> str | None:
        """Return in which way a reply has to be spoiled now, if at all, which then counts."""
        self.landed += self.mode in SPOILED
        return self.mode if self.mode in SPOILED else None

    async def pass_or_fail(self, error: type[UnavailableError] = UnavailableError) -> None:
        """Wait or raise as the mode says, before the part is asked."""
        self.landed += self.mode in ("down", "slow")
        if self.mode == "down":
            raise error(f"the story has taken the {self.part} down")
        if self.mode in STATUSES:
            status, self.mode = STATUSES[self.mode], "ok"
            self.landed += 1
            raise error(f"the story has had the {self.part} fail once with {status}")
        if self.mode == "slow":
            await asyncio.sleep(self.slow_seconds)


class FaultyPort:
    """Anything with async methods, behind a switch. Methods in `free` work in every mode."""

    free: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, inner: Any, switch: FaultSwitch) -> None:
        self._inner = inner
        self._switch = switch

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name in self.free or not iscoroutinefunction(method):
            return method

        async def pass_or_fail(*args: Any, **kwargs: Any) -> Any:
            await self._switch.pass_or_fail()
            return await method(*args, **kwargs)

        return pass_or_fail


class _FaultyIndex(FaultyPort):
    """An index; its garbage is that it finds nothing."""

    async def query(
        self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive] | None = None
    ) -> Sequence[Match]:
        await self._switch.pass_or_fail()
        found: Sequence[Match] = [] if self._switch.garbles() else await self._inner.query(vector, k, where)
        return found


class _FaultyVectorStore(FaultyPort):
    """A vector store and all its indexes."""

    # A store that is down is still closed: its folder must be free for the next to open it.
    free = frozenset({"close"})

    async def index(self, collection: str, owner: str) -> _FaultyIndex:
        await self._switch.pass_or_fail()
        return _FaultyIndex(await self._inner.index(collection, owner), self._switch)


def faulty_vector_store(store: VectorStore, switch: FaultSwitch) -> VectorStore:
    """Return `store` behind `switch`."""
    return cast("VectorStore", _FaultyVectorStore(store, switch))
