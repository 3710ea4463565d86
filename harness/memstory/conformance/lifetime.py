"""What outlives a process: restarts, crashes, and a second process with the same memory."""

from __future__ import annotations

from contextlib import suppress
from unittest import SkipTest

from memstory.conformance.samples import ANN, HARBOUR, VIOLIN, claim, finds
from memstory.conformance.under_test import UnderTest, shows
from memstory.contract.errors import Refused


class Lifetime(UnderTest):
    """Tests of opening the same environment again, as a story does it."""

    @shows("restart", given=["add", "search"])
    async def test_a_closed_memory_can_be_opened_again(self) -> None:
        """And be used as before, whatever it still knows."""
        async with self._staged() as stage:
            await self._remember(stage.target, ANN, HARBOUR)
            await stage.reopen()
            await self._remember(stage.target, ANN, VIOLIN)
            claim(await finds(stage.target, VIOLIN), "what is added after a restart is not found")

    @shows("persistent", given=["add", "search", "restart"])
    async def test_what_was_acknowledged_outlives_a_restart(self) -> None:
        """By a new target that knows nothing of the first."""
        async with self._staged() as stage:
            first, *_ = await self._remember(stage.target, ANN, HARBOUR)
            await stage.reopen()
            claim(await finds(stage.target, HARBOUR), "after a restart the memory is not found")
            second, *_ = await self._remember(stage.target, ANN, VIOLIN)
            claim(first is None or first != second, f"after a restart the id {first!r} is given again")
            found = [text for text in (HARBOUR, VIOLIN) if await finds(stage.target, text)]
            claim(found == [HARBOUR, VIOLIN], f"after a restart and an add there is {found}")

    @shows("restart.embedder", given=["add", "search", "restart", "persistent"])
    async def test_another_embedder_is_named_or_refused(self) -> None:
        """Refused, the memory is open with its own one again."""
        async with self._staged() as stage:
            await self._remember(stage.target, ANN, HARBOUR)
            with suppress(Refused):
                await stage.change_embedder()
            claim(await finds(stage.target, HARBOUR), "after a restart with another embedder the memory is not found")

    @shows("crash", given=["add", "search", "persistent"])
    async def test_what_was_acknowledged_outlives_a_kill(self) -> None:
        """Of its process and all that it has started."""
        self._needs_spec()
        async with self._staged(hosted=True) as stage:
            await self._remember(stage.target, ANN, HARBOUR)
            await stage.kill()
            await stage.revive()
            claim(await finds(stage.target, HARBOUR), "what was acknowledged before a kill is not found after it")

    @shows("other_process", given=["add", "search"])
    async def test_a_second_process_finds_what_was_acknowledged(self) -> None:
        """It opens the same memory while the first one has it open."""
        self._needs_spec()
        async with self._staged() as stage:
            await self._remember(stage.target, ANN, HARBOUR)
            other = await stage.open_other()
            found = await finds(other.target, HARBOUR)
        claim(found, "a second process does not find what was acknowledged before it opened the memory")

    def _needs_spec(self) -> None:
        if self._made.spec is None:
            raise SkipTest("no 'spec', and test_factory_can_be_made_by_its_spec says so")
