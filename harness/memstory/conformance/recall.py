"""What a search says and obeys: scores, conditions, a moment in the past, the vectors of a story."""

from __future__ import annotations

from datetime import timedelta
from math import isfinite
from typing import Final

from memstory.conformance.samples import ANN, CHESS, HARBOUR, NEARBY, VIOLIN, anywhere, claim, has, search, texts_of
from memstory.conformance.under_test import UnderTest, shows
from memstory.contract.target import Query, Request, Target

_ALL: Final = (HARBOUR, VIOLIN, CHESS)
_MUSIC, _SHIPS = "Which melodies can strings play?", "Where do ships dock?"
_SWAPPED: Final = {HARBOUR: [1.0, 0.0], VIOLIN: [0.0, 1.0], _MUSIC: [1.0, 0.0], _SHIPS: [0.0, 1.0]}
"""By its meaning, each question would lead to the other text."""


class Recall(UnderTest):
    """Tests of `search`."""

    @shows("search.scores", given=["add", "search"])
    async def test_every_hit_has_a_score_and_the_best_is_first(self) -> None:
        """A higher score is better."""
        async with self._opened() as target:
            await self._remember(target, ANN, *_ALL)
            scores = [hit.score for hit in await search(target, HARBOUR, ANN)]
        numbers = [score for score in scores if score is not None and isfinite(score)]
        claim(len(numbers) == len(scores), f"'search.scores' is declared, the scores are {scores}")
        claim(numbers == sorted(numbers, reverse=True), f"higher is better and best is first: {scores}")

    @shows("search.min_score", given=["add", "search"])
    async def test_a_search_leaves_out_what_is_below_the_least_score(self) -> None:
        """For a text itself, 0.8 leaves out what is like it, and 0 does not."""
        async with self._opened() as target:
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
        async with self._opened() as target:
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
        async with self._opened() as target:
            await self._remember(target, ANN, *_ALL)
            hits = await target.search(Query(text=HARBOUR, token_budget=budget), anywhere(ANN))
        words = sum(len(hit.text.split()) for hit in hits)
        claim(bool(hits), f"a search within {budget} tokens finds nothing")
        claim(words <= budget, f"a search within {budget} tokens finds {words} words")

    @shows("search.explain", given=["add", "search"])
    async def test_every_hit_explains_its_score(self) -> None:
        """With names and values."""
        async with self._opened() as target:
            await self._remember(target, ANN, HARBOUR)
            hits = await search(target, HARBOUR, ANN)
        silent = [hit.text for hit in hits if not hit.explain]
        claim(
            bool(hits) and not silent, f"'search.explain' is declared, but 'explain' is empty in {silent or 'no hit'}"
        )

    @shows("search.as_of", given=["add", "search", "clock"])
    async def test_a_search_of_a_past_moment_finds_what_was_held_then(self) -> None:
        """And not what was added later."""
        async with self._staged() as stage:
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
        async with self._opened(self._environment(vectors=_SWAPPED)) as target:
            await self._remember(target, ANN, HARBOUR, VIOLIN)
            for question, wanted in ((_MUSIC, HARBOUR), (_SHIPS, VIOLIN)):
                found = texts_of(await search(target, question, ANN))
                claim(found[:1] == [wanted], f"the vectors of the story put '{wanted}' first, the search {found}")
