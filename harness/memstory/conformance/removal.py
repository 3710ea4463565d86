"""What changes and ends: updates, deletions, and what the time takes."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from unittest import SkipTest

from memstory.conformance.samples import ANN, BOB, HARBOUR, REPLACED, VIOLIN, anywhere, claim, finds, search
from memstory.conformance.under_test import UnderTest, shows
from memstory.contract.errors import Refused
from memstory.contract.target import Connection, Item, Ref, Request, Target
from memstory.running.evidence.workspace_files import texts_in_files

_OFFICE: Final = ["harbour office"]


class Removal(UnderTest):
    """Tests of `update`, `delete`, and of memories that end by themselves."""

    @shows("update", given=["add", "search"])
    async def test_an_update_replaces_the_text(self) -> None:
        """Of this memory alone; an unknown one is refused."""
        async with self._opened() as target:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            await target.update(Ref(id=ids[0]), Item(text=REPLACED, kind=self.kind), anywhere(ANN))
            await target.settle()
            await _is_replaced(target)
            try:
                await target.update(Ref(id="no-such-id"), Item(text=REPLACED, kind=self.kind), anywhere(ANN))
            except Refused:
                return
        raise AssertionError("an update of an unknown id must be Refused")

    @shows("update.about", given=["add", "search"])
    async def test_an_update_by_words_replaces_what_they_name(self) -> None:
        """And nothing else."""
        async with self._opened() as target:
            await self._remember(target, ANN, HARBOUR, VIOLIN)
            await target.update_about(_OFFICE, Item(text=REPLACED, kind=self.kind), anywhere(ANN))
            await target.settle()
            await _is_replaced(target)

    @shows("delete", given=["add", "search"])
    async def test_a_deleted_memory_is_gone(self) -> None:
        """And the next one stays."""
        async with self._opened() as target:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            claim(await target.delete(Ref(id=ids[0]), anywhere(ANN)), "delete of a known id must return True")
            await target.settle()
            await _is_gone(target, "a deleted memory is still found")

    @shows("delete.reports_missing", given=["add", "delete"])
    async def test_deleting_what_is_unknown_says_so(self) -> None:
        """By its answer, which is False."""
        async with self._opened() as target:
            await self._remember(target, ANN, HARBOUR)
            claim(not await target.delete(Ref(id="no-such-id"), anywhere(ANN)), "an unknown id must return False")

    @shows("delete.scope", given=["add", "search", "delete", "scope.user"])
    async def test_deleting_everything_of_a_user_leaves_only_what_others_have(self) -> None:
        """A deletion that names no memory is one of all."""
        async with self._opened() as target:
            await self._remember(target, ANN, HARBOUR)
            await self._remember(target, BOB, VIOLIN)
            await target.delete(Ref(), anywhere(BOB))
            await target.settle()
            claim(not await search(target, VIOLIN, BOB), "'delete.scope' left memories of the user")
            claim(await finds(target, HARBOUR), "another user's deletion took this user's memory")

    @shows("delete.about", given=["add", "search"])
    async def test_deleting_by_words_takes_what_they_name(self) -> None:
        """And nothing else; it says how many memories there were."""
        async with self._opened() as target:
            await self._remember(target, ANN, HARBOUR, VIOLIN)
            gone = await target.delete_about(_OFFICE, anywhere(ANN))
            await target.settle()
            claim(gone >= 1, f"a deletion about {_OFFICE} says that {gone} memories are gone")
            await _is_gone(target, f"what was deleted about {_OFFICE} is still found")

    @shows("delete.durable", given=["add", "delete", "search"])
    async def test_what_is_deleted_for_good_does_not_come_back_with_its_source(self) -> None:
        """The memory may refuse it, or take it and keep nothing."""
        async with self._opened() as target:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            await target.delete(Ref(id=ids[0], durable=True), anywhere(ANN))
            with suppress(Refused):
                await target.perform(Request.of(Target.add, [Item(text=HARBOUR, kind=self.kind)], ANN))
            await target.settle()
            await _is_gone(target, "what was deleted for good is found again after its source was added again")

    @shows("delete.erases", given=["add", "delete"])
    async def test_what_is_deleted_is_in_no_file(self) -> None:
        """Of its workspace."""
        async with self._staged() as stage:
            ids = await self._remember(stage.target, ANN, HARBOUR, VIOLIN)
            await stage.target.perform(Request.of(Target.delete, Ref(id=ids[0]), anywhere(ANN)))
            await stage.settle()
            left = texts_in_files(Path(stage.env.workspace), [HARBOUR])
        claim(not left, f"'delete.erases' is declared, but a file has {left} after its deletion")

    @shows("add.ttl", given=["add", "search"])
    async def test_a_memory_is_gone_when_its_time_is_over(self) -> None:
        """And one that has more time stays; without 'clock' it is real time, and some databases count whole seconds."""
        async with self._staged() as stage:
            await self._remember(stage.target, ANN, HARBOUR, ttl=1.0)
            await self._remember(stage.target, ANN, VIOLIN, ttl=3600.0)
            await stage.wait(timedelta(seconds=2.2))
            await _is_gone(stage.target, "a memory is still found when its 'ttl' is over")

    @shows("expiry.at", given=["add", "add.metadata", "search", "clock"])
    async def test_a_memory_is_gone_at_the_moment_that_its_metadata_names(self) -> None:
        """And not before."""
        async with self._staged() as stage:
            for text, days in ((HARBOUR, 1), (VIOLIN, 3)):
                moment = stage.clock.now() + timedelta(days=days)
                await self._remember(stage.target, ANN, text, metadata={"expires_at": moment.isoformat()})
            await stage.move_to(stage.clock.now() + timedelta(days=2))
            await _is_gone(stage.target, "a memory is still found after its 'expires_at'")

    @shows("clock", given=["add", "search"])
    async def test_a_memory_is_dated_by_the_clock_of_the_story(self) -> None:
        """Where its hits have dates; what else a memory does by the clock, stories show."""
        async with self._staged() as stage:
            await stage.move_to(stage.clock.now() + timedelta(days=400))
            await self._remember(stage.target, ANN, HARBOUR)
            told = [hit.created_at for hit in await search(stage.target, HARBOUR, ANN) if hit.text == HARBOUR]
            now = stage.clock.now()
        if not any(told):
            raise SkipTest("hits have no 'created_at': stories show whether the memory goes by their clock")
        wrong = [one for one in told if one and datetime.fromisoformat(one).date() != now.date()]
        claim(not wrong, f"'clock' is declared; at {now.isoformat()} a memory was added that says {wrong}")


async def _is_replaced(memory: Connection) -> None:
    claim(await finds(memory, REPLACED), "the new text of an update is not found")
    claim(not await finds(memory, HARBOUR), "the text from before the update is still found")
    claim(await finds(memory, VIOLIN), "an update took a memory that it does not name")


async def _is_gone(memory: Connection, otherwise: str) -> None:
    claim(not await finds(memory, HARBOUR), otherwise)
    claim(await finds(memory, VIOLIN), "a memory that was to stay is gone")
