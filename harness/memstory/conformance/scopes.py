"""Who sees what: users, sessions and environments are apart."""

from __future__ import annotations

from memstory.conformance.samples import ANN, BOB, HARBOUR, VIOLIN, anywhere, claim, finds, has, search, texts_of
from memstory.conformance.under_test import UnderTest, shows
from memstory.contract.errors import Refused
from memstory.contract.target import Item, Query, Ref, Scope, Target

_LATER = Scope(user=ANN.user, session="session-2")


class Scopes(UnderTest):
    """Tests of the scope that goes with every operation."""

    @shows("scope.user", given=["add", "search"])
    async def test_users_are_apart(self) -> None:
        """In every operation that reads; each sees what is their own."""
        async with self._opened() as target:
            ids = await self._remember(target, ANN, HARBOUR)
            await self._remember(target, BOB, VIOLIN)
            claim(not await finds(target, HARBOUR, BOB), "a search finds another user's memory")
            if "list" in self._able:
                claim(not has(await target.list(anywhere(BOB)), HARBOUR), "a list shows another user's memory")
            if "get.id" in self._able:
                claim(await target.get(Ref(id=ids[0]), anywhere(BOB)) is None, "get gives another user's memory")
            claim(await finds(target, HARBOUR) and await finds(target, VIOLIN, BOB), "one of two users finds nothing")

    @shows("scope.session", given=["add", "search"])
    async def test_sessions_are_apart_where_asked_to(self) -> None:
        """And together where not."""
        async with self._opened() as target:
            await self._remember(target, ANN, HARBOUR)
            await _is_apart(target)
            claim(await finds(target, HARBOUR), "a search without a session must see them all")

    @shows("scope.session_all", given=["add", "search", "scope.session"])
    async def test_every_memory_keeps_to_its_session(self) -> None:
        """Also one of the kind that the backend itself gives it."""
        async with self._opened() as target:
            await target.add([Item(text=HARBOUR)], ANN)
            await target.settle()
            await _is_apart(target)
            if "list" in self._able:
                listed = texts_of(await target.list(_LATER))
                claim(not listed, f"a list within one session has what was said in another: {listed}")

    @shows("scope.required", given=["add", "search"])
    async def test_nothing_is_done_without_a_user(self) -> None:
        """Neither written nor read."""
        nobody = Scope(user="")
        async with self._opened() as target:
            for name, call in (
                ("add", lambda: target.add([Item(text=HARBOUR, kind=self.kind)], nobody)),
                ("search", lambda: target.search(Query(text=HARBOUR), nobody)),
            ):
                try:
                    done = await call()
                except Refused:
                    continue
                raise AssertionError(f"'{name}' without a user must be Refused; it returned {done!r:.200}")

    @shows(given=["add", "search"])
    async def test_every_environment_is_a_memory_of_its_own(self) -> None:
        """Two that are open at once share nothing, although their users have the same name."""
        async with self._opened() as one, self._opened() as other:
            await self._remember(one, ANN, HARBOUR)
            claim(not await search(other, HARBOUR, ANN), "a fresh workspace already holds memories")


async def _is_apart(target: Target) -> None:
    other, own = [await target.search(Query(text=HARBOUR, top_k=5), scope) for scope in (_LATER, ANN)]
    claim(not has(other, HARBOUR), "a search within one session finds what was said in another")
    claim(has(own, HARBOUR), "a search within a session misses what was said in it")
