"""What is kept, replaced and removed, and what outlives a close, a crash and its time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from unittest import SkipTest

from memstory.conformance.target_tests import (
    ANN,
    BOB,
    CHESS,
    EXACT,
    HARBOUR,
    REPLACED,
    SMALL_TALK,
    VIOLIN,
    TargetTests,
    anywhere,
    claim,
    finds,
    has,
    named,
    search,
    shows,
    texts_of,
)
from memstory.contract.errors import Refused
from memstory.contract.target import Connection, Item, Json, Query, Ref, Request, Target
from memstory.running.workspace_files import has_files, texts_in_files

_KEY, _OTHER_KEY = "user.harbour", "user.violin"
_NOT_TAKEN = frozenset({"discarded", "dropped", "skipped"})
_FLAT: Mapping[str, Json] = {"speaker": "Ann", "page": 7}
_NESTED: Mapping[str, Json] = {"tags": ["port", "hours"], "place": {"town": "Lerwick"}}


class Keeping(TargetTests):
    """Tests of `add`, `get` and `list`."""

    @shows("add", "search")
    async def test_an_added_text_is_found(self) -> None:
        """With the id of its receipt, if there are ids."""
        async with self._open_target() as target:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            hits = await search(target, HARBOUR, ANN)
        claim(has(hits, HARBOUR), f"'{HARBOUR}' was added, a search for it finds {texts_of(hits)}")
        found = next(hit for hit in hits if hit.text == HARBOUR)
        claim(None in (found.id, ids[0]) or found.id == ids[0], f"the receipt says {ids[0]!r}, the hit {found.id!r}")

    @shows(given=["add", "search"])
    async def test_a_search_without_a_number_of_hits_finds_what_was_added(self) -> None:
        """Its `top_k` is None where a story leaves the number to the memory."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR)
            hits = await target.search(Query(text=HARBOUR), anywhere(ANN))
        claim(has(hits, HARBOUR), f"'{HARBOUR}' was added, a search without top_k finds {texts_of(hits)}")

    @shows("add.verbatim", given=["add", "search"])
    async def test_every_text_is_kept(self) -> None:
        """Small talk too."""
        async with self._open_target() as target:
            for text in (HARBOUR, CHESS, SMALL_TALK):
                await self._remember(target, ANN, text)
            lost = [text for text in (HARBOUR, CHESS, SMALL_TALK) if not await finds(target, text)]
        claim(not lost, f"'add.verbatim' does not hold: a search does not find {lost}")

    @shows("load", given=["search"])
    async def test_what_is_loaded_is_found(self) -> None:
        """With a line of a receipt for each text."""
        texts = (HARBOUR, VIOLIN, CHESS)
        async with self._open_stage() as stage:
            receipts = stage.target.load((Item(text=text, kind=self.kind) for text in texts), ANN)
            lines = [line async for receipt in receipts for line in receipt.items]
            await stage.settle()
            lost = [text for text in texts if not await finds(stage.target, text)]
        claim(len(lines) == len(texts), f"{len(texts)} texts were loaded, the receipts have {lines}")
        claim(not lost, f"'load' does not hold: a search does not find {lost}")

    @shows("add.exact", given=["add", "search"])
    async def test_a_text_comes_back_letter_for_letter(self) -> None:
        """With white space at its ends, two ways to write a letter, and invisible characters."""
        async with self._open_target() as target:
            await self._remember(target, ANN, EXACT)
            found = texts_of(await search(target, EXACT, ANN))
        claim(EXACT in found, f"'add.exact' does not hold: {EXACT!r} comes back as {found}")

    @shows("add.metadata", given=["add", "search"])
    async def test_metadata_comes_back_with_its_text(self) -> None:
        """And not with another text."""
        await self._check_metadata("add.metadata", _FLAT)

    @shows("add.metadata.lists", given=["add", "add.metadata", "search"])
    async def test_lists_and_mappings_in_metadata_come_back(self) -> None:
        """As lists and mappings, not as texts."""
        await self._check_metadata("add.metadata.lists", _NESTED)

    async def _check_metadata(self, word: str, told: Mapping[str, Json]) -> None:
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR, metadata=told)
            await self._remember(target, ANN, VIOLIN)
            listed = await (target.list(anywhere(ANN)) if "list" in self._words else search(target, HARBOUR, ANN))
        found = {hit.text: hit.metadata for hit in listed}
        kept = {name: value for name, value in found.get(HARBOUR, {}).items() if name in told}
        claim(kept == told, f"'{word}' does not hold: {told} comes back as {kept}")
        claim(not told.keys() & found.get(VIOLIN, {}).keys(), f"the metadata of another text came to '{VIOLIN}'")

    @shows("get.id", given=["add"])
    async def test_a_memory_is_looked_up_by_its_id(self) -> None:
        """And an unknown id is None."""
        async with self._open_target() as target:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            found = await target.get(named(ids[1]), anywhere(ANN))
            claim(found is not None and found.text == VIOLIN, f"get by the id of '{VIOLIN}' gives {found}")
            unknown = await target.get(Ref(id="no-such-id"), anywhere(ANN))
            claim(unknown is None, f"get by an unknown id gives {unknown}")

    @shows("get.key", given=["add", "add.key"])
    async def test_a_memory_is_looked_up_by_its_key(self) -> None:
        """And an unknown key is None."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR, key=_KEY)
            await self._remember(target, ANN, VIOLIN, key=_OTHER_KEY)
            found = await target.get(Ref(key=_OTHER_KEY), anywhere(ANN))
            claim(found is not None and found.text == VIOLIN, f"get by the key of '{VIOLIN}' gives {found}")
            unknown = await target.get(Ref(key="user.nothing"), anywhere(ANN))
            claim(unknown is None, f"get by an unknown key gives {unknown}")

    @shows("add.key", given=["add", "list"])
    async def test_a_key_names_one_text(self) -> None:
        """The newer one, unless the receipt says that it was not taken."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR, key=_KEY)
            await self._remember(target, ANN, VIOLIN, key=_OTHER_KEY)
            receipt = await target.add([Item(text=REPLACED, kind=self.kind, key=_KEY)], ANN)
            await target.settle()
            texts = sorted(texts_of(await target.list(anywhere(ANN))))
        outcomes = [one.outcome for one in receipt.items]
        kept = HARBOUR if _NOT_TAKEN.intersection(outcomes) else REPLACED
        said = f"two texts were added under one key, the second is {outcomes}, one under another; listed: {texts}"
        claim(texts == sorted([kept, VIOLIN]), said)

    @shows("list", given=["add"])
    async def test_everything_that_was_added_is_listed(self) -> None:
        """Once each."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR, VIOLIN, CHESS)
            texts = sorted(texts_of(await target.list(anywhere(ANN))))
        claim(texts == sorted([HARBOUR, VIOLIN, CHESS]), f"three memories were added, listed are {texts}")

    @shows("dedup", given=["add", "list"])
    async def test_what_is_said_twice_is_kept_once(self) -> None:
        """And what is said once stays."""
        async with self._open_target() as target:
            await self._remember(target, ANN, VIOLIN, HARBOUR)
            await self._remember(target, ANN, HARBOUR)
            texts = sorted(texts_of(await target.list(anywhere(ANN))))
        said = f"'dedup' does not hold: of two texts, one of them added twice, are listed {texts}"
        claim(texts == sorted([HARBOUR, VIOLIN]), said)


_OFFICE: Final = ["harbour office"]


class Removal(TargetTests):
    """Tests of `update`, `delete`, and of memories that end by themselves."""

    @shows("update", given=["add", "search"])
    async def test_an_update_replaces_the_text(self) -> None:
        """Of this memory alone; an unknown one is refused."""
        async with self._open_target() as target:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            await target.update(named(ids[0]), Item(text=REPLACED, kind=self.kind), anywhere(ANN))
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
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR, VIOLIN)
            await target.update_about(_OFFICE, Item(text=REPLACED, kind=self.kind), anywhere(ANN))
            await target.settle()
            await _is_replaced(target)

    @shows("delete", given=["add", "search"])
    async def test_a_deleted_memory_is_gone(self) -> None:
        """And the next one stays."""
        async with self._open_target() as target:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            claim(await target.delete(named(ids[0]), anywhere(ANN)), "delete of a known id must return True")
            await target.settle()
            await _is_gone(target, "a deleted memory is still found")

    @shows("delete.reports_missing", given=["add", "delete"])
    async def test_deleting_what_is_unknown_says_so(self) -> None:
        """By its answer, which is False."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR)
            claim(not await target.delete(Ref(id="no-such-id"), anywhere(ANN)), "an unknown id must return False")

    @shows("delete.scope", given=["add", "search", "delete", "scope.user"])
    async def test_deleting_everything_of_a_user_leaves_only_what_others_have(self) -> None:
        """A deletion that names no memory is one of all."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR)
            await self._remember(target, BOB, VIOLIN)
            await target.delete(Ref(), anywhere(BOB))
            await target.settle()
            claim(not await search(target, VIOLIN, BOB), "'delete.scope' left memories of the user")
            claim(await finds(target, HARBOUR), "another user's deletion took this user's memory")

    @shows("delete.about", given=["add", "search"])
    async def test_deleting_by_words_takes_what_they_name(self) -> None:
        """And nothing else; it says how many memories there were."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR, VIOLIN)
            gone = await target.delete_about(_OFFICE, anywhere(ANN))
            await target.settle()
            claim(gone >= 1, f"a deletion about {_OFFICE} says that {gone} memories are gone")
            await _is_gone(target, f"what was deleted about {_OFFICE} is still found")

    @shows("delete.durable", given=["add", "delete", "search"])
    async def test_what_is_deleted_for_good_does_not_come_back_with_its_source(self) -> None:
        """The memory may refuse it, or take it and keep nothing."""
        async with self._open_target() as target:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            await target.delete(replace(named(ids[0]), durable=True), anywhere(ANN))
            with suppress(Refused):
                await target.perform(Request.of(Target.add, [Item(text=HARBOUR, kind=self.kind)], ANN))
            await target.settle()
            await _is_gone(target, "what was deleted for good is found again after its source was added again")

    @shows("delete.erases", given=["add", "delete"])
    async def test_what_is_deleted_is_in_no_file(self) -> None:
        """Of its workspace."""
        async with self._open_stage() as stage:
            ids = await self._remember(stage.target, ANN, HARBOUR, VIOLIN)
            await stage.target.perform(Request.of(Target.delete, named(ids[0]), anywhere(ANN)))
            await stage.settle()
            # An index keeps words where the text itself may be stored compressed.
            left = texts_in_files(Path(stage.env.workspace), [HARBOUR, "harbour"])
            if not has_files(Path(stage.env.workspace)):
                raise SkipTest("no file was written: where a memory writes none, nothing can be left in one")
        claim(not left, f"'delete.erases' does not hold: a file has {left} after its deletion")

    @shows("add.ttl", given=["add", "search"])
    async def test_a_memory_is_gone_when_its_time_is_over(self) -> None:
        """And one that has more time stays; without 'clock' it is real time, and some databases count whole seconds."""
        async with self._open_stage() as stage:
            await self._remember(stage.target, ANN, HARBOUR, ttl=1.0)
            await self._remember(stage.target, ANN, VIOLIN, ttl=3600.0)
            await stage.wait(timedelta(seconds=2.2))
            await _is_gone(stage.target, "a memory is still found when its 'ttl' is over")

    @shows("expiry.at", given=["add", "add.metadata", "search", "clock"])
    async def test_a_memory_is_gone_at_the_moment_that_its_metadata_names(self) -> None:
        """And not before."""
        async with self._open_stage() as stage:
            for text, days in ((HARBOUR, 1), (VIOLIN, 3)):
                moment = stage.clock.now() + timedelta(days=days)
                await self._remember(stage.target, ANN, text, metadata={"expires_at": moment.isoformat()})
            await stage.move_to(stage.clock.now() + timedelta(days=2))
            await _is_gone(stage.target, "a memory is still found after its 'expires_at'")

    @shows("clock", given=["add", "search"])
    async def test_a_memory_is_dated_by_the_clock_of_the_story(self) -> None:
        """Where its hits have dates; what else a memory does by the clock, stories show."""
        async with self._open_stage() as stage:
            await stage.move_to(stage.clock.now() + timedelta(days=400))
            await self._remember(stage.target, ANN, HARBOUR)
            told = [hit.created_at for hit in await search(stage.target, HARBOUR, ANN) if hit.text == HARBOUR]
            now = stage.clock.now()
        if not any(told):
            raise SkipTest("hits have no 'created_at': stories show whether the memory goes by their clock")
        wrong = [one for one in told if one and datetime.fromisoformat(one).date() != now.date()]
        claim(not wrong, f"'clock' does not hold: at {now.isoformat()} a memory was added that says {wrong}")


async def _is_replaced(memory: Connection) -> None:
    claim(await finds(memory, REPLACED), "the new text of an update is not found")
    claim(not await finds(memory, HARBOUR), "the text from before the update is still found")
    claim(await finds(memory, VIOLIN), "an update took a memory that it does not name")


async def _is_gone(memory: Connection, otherwise: str) -> None:
    claim(not await finds(memory, HARBOUR), otherwise)
    claim(await finds(memory, VIOLIN), "a memory that was to stay is gone")


class Lifetime(TargetTests):
    """Tests of opening the same environment again, as a story does it."""

    @shows("restart", given=["add", "search"])
    async def test_a_closed_memory_can_be_opened_again(self) -> None:
        """And be used as before, whatever it still knows."""
        async with self._open_stage() as stage:
            await self._remember(stage.target, ANN, HARBOUR)
            await stage.reopen()
            await self._remember(stage.target, ANN, VIOLIN)
            claim(await finds(stage.target, VIOLIN), "what is added after a restart is not found")

    @shows("persistent", given=["add", "search", "restart"])
    async def test_what_was_acknowledged_outlives_a_restart(self) -> None:
        """By a new target that knows nothing of the first."""
        async with self._open_stage() as stage:
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
        async with self._open_stage() as stage:
            await self._remember(stage.target, ANN, HARBOUR)
            with suppress(Refused):
                await stage.change_embedder()
            claim(await finds(stage.target, HARBOUR), "after a restart with another embedder the memory is not found")

    @shows("crash", given=["add", "search", "persistent"])
    async def test_what_was_acknowledged_outlives_a_kill(self) -> None:
        """Of its process and all that it has started."""
        self._needs_spec()
        async with self._open_stage(hosted=True) as stage:
            await self._remember(stage.target, ANN, HARBOUR)
            await stage.kill()
            await stage.revive()
            claim(await finds(stage.target, HARBOUR), "what was acknowledged before a kill is not found after it")

    @shows("other_process", given=["add", "search"])
    async def test_a_second_process_finds_what_was_acknowledged(self) -> None:
        """Before it opened the memory, and while both have it open."""
        self._needs_spec()
        async with self._open_stage() as stage:
            await self._remember(stage.target, ANN, HARBOUR)
            other = await stage.open_other()
            found = [await finds(other.target, HARBOUR)]
            await self._remember(stage.target, ANN, VIOLIN)
            found.append(await finds(other.target, VIOLIN))
        claim(found[0], "a second process does not find what was acknowledged before it opened the memory")
        claim(found[1], "a second process does not find what was acknowledged while it had the memory open")

    def _needs_spec(self) -> None:
        if self._factory.spec is None:
            raise SkipTest("no 'spec', and test_factory_can_be_made_by_its_spec says so")
