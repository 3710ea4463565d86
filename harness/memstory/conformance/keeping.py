"""What is added is kept: as it was, with what is known of it, and found by its id and key."""

from __future__ import annotations

from collections.abc import Mapping

from memstory.conformance.samples import (
    ANN,
    CHESS,
    EXACT,
    HARBOUR,
    REPLACED,
    SMALL_TALK,
    VIOLIN,
    anywhere,
    claim,
    finds,
    has,
    search,
    texts_of,
)
from memstory.conformance.under_test import UnderTest, shows
from memstory.contract.target import Item, Json, Ref

_KEY, _OTHER_KEY = "user.harbour", "user.violin"
_NOT_TAKEN = frozenset({"discarded", "dropped", "skipped"})
_FLAT: Mapping[str, Json] = {"speaker": "Ann", "page": 7}
_NESTED: Mapping[str, Json] = {"tags": ["port", "hours"], "place": {"town": "Lerwick"}}


class Keeping(UnderTest):
    """Tests of `add`, `get` and `list`."""

    @shows("add", "search")
    async def test_an_added_text_is_found(self) -> None:
        """With the id of its receipt, if there are ids."""
        async with self._opened() as target:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            hits = await search(target, HARBOUR, ANN)
        claim(has(hits, HARBOUR), f"'{HARBOUR}' was added, a search for it finds {texts_of(hits)}")
        found = next(hit for hit in hits if hit.text == HARBOUR)
        claim(None in (found.id, ids[0]) or found.id == ids[0], f"the receipt says {ids[0]!r}, the hit {found.id!r}")

    @shows("add.verbatim", given=["add", "search"])
    async def test_every_text_is_kept(self) -> None:
        """Small talk too."""
        async with self._opened() as target:
            for text in (HARBOUR, CHESS, SMALL_TALK):
                await self._remember(target, ANN, text)
            lost = [text for text in (HARBOUR, CHESS, SMALL_TALK) if not await finds(target, text)]
        claim(not lost, f"'add.verbatim' is declared, but a search does not find {lost}")

    @shows("add.exact", given=["add", "search"])
    async def test_a_text_comes_back_letter_for_letter(self) -> None:
        """With white space at its ends, two ways to write a letter, and invisible characters."""
        async with self._opened() as target:
            await self._remember(target, ANN, EXACT)
            found = texts_of(await search(target, EXACT, ANN))
        claim(EXACT in found, f"'add.exact' is declared, but {EXACT!r} comes back as {found}")

    @shows("add.metadata", given=["add", "search"])
    async def test_metadata_comes_back_with_its_text(self) -> None:
        """And not with another text."""
        await self._check_metadata("add.metadata", _FLAT)

    @shows("add.metadata.lists", given=["add", "add.metadata", "search"])
    async def test_lists_and_mappings_in_metadata_come_back(self) -> None:
        """As lists and mappings, not as texts."""
        await self._check_metadata("add.metadata.lists", _NESTED)

    async def _check_metadata(self, word: str, told: Mapping[str, Json]) -> None:
        async with self._opened() as target:
            await self._remember(target, ANN, HARBOUR, metadata=told)
            await self._remember(target, ANN, VIOLIN)
            listed = await target.list(anywhere(ANN)) if "list" in self._able else await search(target, HARBOUR, ANN)
        found = {hit.text: hit.metadata for hit in listed}
        kept = {name: value for name, value in found.get(HARBOUR, {}).items() if name in told}
        claim(kept == told, f"'{word}' is declared, but {told} comes back as {kept}")
        claim(not told.keys() & found.get(VIOLIN, {}).keys(), f"the metadata of another text came to '{VIOLIN}'")

    @shows("get.id", given=["add"])
    async def test_a_memory_is_looked_up_by_its_id(self) -> None:
        """And an unknown id is None."""
        async with self._opened() as target:
            ids = await self._remember(target, ANN, HARBOUR, VIOLIN)
            found = await target.get(Ref(id=ids[1]), anywhere(ANN))
            claim(found is not None and found.text == VIOLIN, f"get by the id of '{VIOLIN}' gives {found}")
            unknown = await target.get(Ref(id="no-such-id"), anywhere(ANN))
            claim(unknown is None, f"get by an unknown id gives {unknown}")

    @shows("get.key", given=["add", "add.key"])
    async def test_a_memory_is_looked_up_by_its_key(self) -> None:
        """And an unknown key is None."""
        async with self._opened() as target:
            await self._remember(target, ANN, HARBOUR, key=_KEY)
            await self._remember(target, ANN, VIOLIN, key=_OTHER_KEY)
            found = await target.get(Ref(key=_OTHER_KEY), anywhere(ANN))
            claim(found is not None and found.text == VIOLIN, f"get by the key of '{VIOLIN}' gives {found}")
            unknown = await target.get(Ref(key="user.nothing"), anywhere(ANN))
            claim(unknown is None, f"get by an unknown key gives {unknown}")

    @shows("add.key", given=["add", "list"])
    async def test_a_key_names_one_text(self) -> None:
        """The newer one, unless the receipt says that it was not taken."""
        async with self._opened() as target:
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
        async with self._opened() as target:
            await self._remember(target, ANN, HARBOUR, VIOLIN, CHESS)
            texts = sorted(texts_of(await target.list(anywhere(ANN))))
        claim(texts == sorted([HARBOUR, VIOLIN, CHESS]), f"three memories were added, listed are {texts}")

    @shows("dedup", given=["add", "list"])
    async def test_what_is_said_twice_is_kept_once(self) -> None:
        """And what is said once stays."""
        async with self._opened() as target:
            await self._remember(target, ANN, VIOLIN, HARBOUR)
            await self._remember(target, ANN, HARBOUR)
            texts = sorted(texts_of(await target.list(anywhere(ANN))))
        said = f"'dedup' is declared; of two texts, one of them added twice, are listed {texts}"
        claim(texts == sorted([HARBOUR, VIOLIN]), said)
