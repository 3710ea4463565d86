"""What is found, and by whom: users, sessions and environments are apart."""

from __future__ import annotations

from datetime import timedelta
from math import isfinite
from typing import Final

from memstory.conformance.target_tests import (
    ANN,
    BOB,
    CHESS,
    HARBOUR,
    NEARBY,
    VIOLIN,
    TargetTests,
    anywhere,
    claim,
    finds,
    has,
    search,
    shows,
    texts_of,
)
from memstory.contract.errors import Refused
from memstory.contract.target import Item, Query, Ref, Request, Scope, Target

_ALL: Final = (HARBOUR, VIOLIN, CHESS)
_MUSIC, _SHIPS = "Which melodies can strings play?", "Where do ships dock?"
_SWAPPED: Final = {HARBOUR: [1.0, 0.0], VIOLIN: [0.0, 1.0], _MUSIC: [1.0, 0.0], _SHIPS: [0.0, 1.0]}
"""By its meaning, each question would lead to the other text."""


class Recall(TargetTests):
    """Tests of `search`."""

    @shows("search.scores", given=["add", "search"])
    async def test_every_hit_has_a_score_and_the_best_is_first(self) -> None:
        """A higher score is better."""
        async with self._open_target() as target:
            await self._remember(target, ANN, *_ALL)
            scores = [hit.score for hit in await search(target, HARBOUR, ANN)]
        numbers = [score for score in scores if score is not None and isfinite(score)]
        claim(len(numbers) == len(scores), f"'search.scores' does not hold: the scores are {scores}")
        claim(numbers == sorted(numbers, reverse=True), f"higher is better and best is first: {scores}")

    @shows("search.min_score", given=["add", "search"])
    async def test_a_search_leaves_out_what_is_below_the_least_score(self) -> None:
        """For a text itself, 0.8 leaves out what is like it, and 0 does not."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR, NEARBY)
            all_, best = [
                texts_of(await target.search(Query(text=HARBOUR, top_k=5, min_score=least), anywhere(ANN)))
                for least in (0.0, 0.8)
            ]
        claim(best == [HARBOUR], f"a search for '{HARBOUR}' with min_score 0.8 finds {best}")
        claim(len(all_) > 1, f"a search for '{HARBOUR}' with min_score 0 finds no more: {all_}")

    @shows("search.where", given=["add", "add.metadata", "search"])
    async def test_a_search_finds_only_what_has_the_metadata(self) -> None:
        """Not what fits its words alone."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR, metadata={"theme": "port"})
            await self._remember(target, ANN, VIOLIN, metadata={"theme": "music"})
            await self._remember(target, ANN, CHESS)
            found = {
                text: texts_of(await target.search(Query(text=text, top_k=5, where={"theme": "music"}), anywhere(ANN)))
                for text in _ALL
            }
        claim(VIOLIN in found[VIOLIN], f"a search misses what has the metadata that it asks for: {found[VIOLIN]}")
        wrong = sorted({text for texts in found.values() for text in texts} - {VIOLIN})
        claim(not wrong, f"a search finds what does not have the metadata that it asks for: {wrong}")

    @shows("search.budget", given=["add", "search"])
    async def test_a_search_keeps_to_its_number_of_tokens(self) -> None:
        """No token is longer than a word with its dot, so that the words are at most as many."""
        budget = 16
        async with self._open_target() as target:
            await self._remember(target, ANN, *_ALL)
            hits = await target.search(Query(text=HARBOUR, token_budget=budget), anywhere(ANN))
        words = sum(len(hit.text.split()) for hit in hits)
        claim(bool(hits), f"a search within {budget} tokens finds nothing")
        claim(words <= budget, f"a search within {budget} tokens finds {words} words")

    @shows("search.explain", given=["add", "search"])
    async def test_every_hit_explains_its_score(self) -> None:
        """With names and values."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR)
            hits = await search(target, HARBOUR, ANN)
        silent = [hit.text for hit in hits if not hit.explain]
        claim(bool(hits) and not silent, f"'search.explain' does not hold: 'explain' is empty in {silent or 'no hit'}")

    @shows("search.as_of", given=["add", "search", "clock"])
    async def test_a_search_of_a_past_moment_finds_what_was_held_then(self) -> None:
        """And not what was added later."""
        async with self._open_stage() as stage:
            await self._remember(stage.target, ANN, HARBOUR)
            await stage.move_to(stage.clock.now() + timedelta(days=2))
            await self._remember(stage.target, ANN, VIOLIN)
            then = (stage.clock.now() - timedelta(days=1)).isoformat()
            asked = Query(text=f"{HARBOUR} {VIOLIN}", top_k=5, as_of=then)
            hits = await stage.target.perform(Request.of(Target.search, asked, anywhere(ANN)))
        claim(has(hits, HARBOUR), f"what was held at the moment of 'as_of' is not among {texts_of(hits)}")
        claim(not has(hits, VIOLIN), "a search finds what was added after the moment of 'as_of'")

    @shows("embedder.fixed", given=["add", "search"])
    async def test_a_search_goes_by_the_vectors_of_the_story(self) -> None:
        """Also where the meaning of the words says otherwise."""
        async with self._open_target(self._environment(vectors=_SWAPPED)) as target:
            await self._remember(target, ANN, HARBOUR, VIOLIN)
            for question, wanted in ((_MUSIC, HARBOUR), (_SHIPS, VIOLIN)):
                found = texts_of(await search(target, question, ANN))
                claim(found[:1] == [wanted], f"the vectors of the story put '{wanted}' first, the search {found}")


_LATER = Scope(user=ANN.user, session="session-2")


class Scopes(TargetTests):
    """Tests of the scope that goes with every operation."""

    @shows("scope.user", given=["add", "search"])
    async def test_users_are_apart(self) -> None:
        """In every operation that reads; each sees what is their own."""
        async with self._open_target() as target:
            ids = await self._remember(target, ANN, HARBOUR)
            await self._remember(target, BOB, VIOLIN)
            claim(not await finds(target, HARBOUR, BOB), "a search finds another user's memory")
            if "list" in self._words:
                claim(not has(await target.list(anywhere(BOB)), HARBOUR), "a list shows another user's memory")
            if "get.id" in self._words and ids[0] is not None:
                claim(await target.get(Ref(id=ids[0]), anywhere(BOB)) is None, "get gives another user's memory")
            claim(await finds(target, HARBOUR) and await finds(target, VIOLIN, BOB), "one of two users finds nothing")

    @shows("scope.session", given=["add", "search"])
    async def test_sessions_are_apart_where_asked_to(self) -> None:
        """And together where not."""
        async with self._open_target() as target:
            await self._remember(target, ANN, HARBOUR)
            await _is_apart(target)
            claim(await finds(target, HARBOUR), "a search without a session must see them all")

    @shows("scope.session_all", given=["add", "search", "scope.session"])
    async def test_every_memory_keeps_to_its_session(self) -> None:
        """Also one of the kind that the backend itself gives it."""
        async with self._open_target() as target:
            await target.add([Item(text=HARBOUR)], ANN)
            await target.settle()
            await _is_apart(target)
            if "list" in self._words:
                listed = texts_of(await target.list(_LATER))
                claim(not listed, f"a list within one session has what was said in another: {listed}")

    @shows("scope.required", given=["add", "search"])
    async def test_nothing_is_done_without_a_user(self) -> None:
        """Neither written nor read."""
        nobody = Scope(user="")
        async with self._open_target() as target:
            # What refuses all that it is told does not do so for want of a user.
            await self._remember(target, ANN, HARBOUR)
            claim(await finds(target, HARBOUR), "what a user has added is not found")
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
        async with self._open_target() as one, self._open_target() as other:
            await self._remember(one, ANN, HARBOUR)
            claim(not await search(other, HARBOUR, ANN), "a fresh workspace already holds memories")


async def _is_apart(target: Target) -> None:
    other, own = [await target.search(Query(text=HARBOUR, top_k=5), scope) for scope in (_LATER, ANN)]
    claim(not has(other, HARBOUR), "a search within one session finds what was said in another")
    claim(has(own, HARBOUR), "a search within a session misses what was said in it")
