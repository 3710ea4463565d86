"""Each flaw of the specification that a story can show is put in, and the story must no longer pass."""

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from memstory.language.stories import load_stories
from memstory.playing import play
from memstory_reference.errors import MemorySystemError
from memstory_reference.systems.pipeline import compression, prompt_block, recall, selection, service
from memstory_reference.systems.pipeline.ingest import chunking, planning
from memstory_reference.systems.pipeline.memory import MemoryType
from memstory_reference.systems.pipeline.reading import detectors
from memstory_reference.systems.pipeline.stores import (
    archive_store,
    changes_store,
    pipeline_store,
    rows_store,
    vectors_store,
)
from memstory_reference.targets.pipeline import target
from memstory_reference.targets.pipeline import values as pipeline_values
from memstory_reference.text import chunks

STORIES = Path(__file__).parents[4] / "stories" / "pipeline"


@pytest.fixture(scope="module")
def stories():
    return {story.id: story for file in sorted(STORIES.glob("*.yaml")) for story in load_stories(file, file.name)}


@pytest.fixture
def outcome(stories, tmp_path):
    async def outcome_of(story):
        return (await play(stories[story], target.PipelineFactory(), tmp_path)).outcome

    return outcome_of


def code_is_reflowed(patch):
    def clean(text):
        return re.sub(r"\n{2,}", "\n\n", text.strip())

    patch.setattr(chunking, "clean", clean)


def short_chunks_join_whatever_comes_out(patch):
    plain = chunks._merged
    patch.setattr(chunks, "_merged", lambda pieces, _most, least, count: plain(pieces, 10**9, least, count))


def titles_end_sentences(patch):
    patch.setattr("memstory_reference.text.sentences._abbreviates", lambda *_: False)


def each_chunk_is_embedded_alone(patch):
    plain = service.PipelineService._embedded

    async def one_by_one(self, user, given):
        vectors, fresh = {}, {}
        for one in given:
            found, new = await plain(self, user, [one])
            vectors, fresh = vectors | found, fresh | new
        return vectors, fresh

    patch.setattr(service.PipelineService, "_embedded", one_by_one)


def nothing_is_cached(patch):
    patch.setattr(pipeline_store.PipelineStore, "embeddings", lambda *_: {})


def the_centroid_moves_within_a_text(patch):
    plain = planning.Planner._decide
    patch.setattr(planning.Planner, "_decide", lambda self, piece, known, _: plain(self, piece, known, known.centroid))


def the_centroid_belongs_to_everybody(patch):
    plain = pipeline_store.PipelineStore.known

    def known(self, owner, *rest):
        mine = plain(self, owner, *rest)
        for (other,) in self._db.execute("SELECT DISTINCT owner FROM memories WHERE owner <> ?", (owner,)).fetchall():
            theirs = plain(self, other)
            mine.total = theirs.total if mine.total is None else mine.total + theirs.total
            mine.count += theirs.count
        return mine

    patch.setattr(pipeline_store.PipelineStore, "known", known)


def changed_preferences_are_dropped(patch):
    plain = planning.Planner._weigh

    def weigh(self, *given):
        *rest, known, before = given
        return plain(self, *rest, replace(known, preferences={}), before)

    patch.setattr(planning.Planner, "_weigh", weigh)


def a_preference_is_known_by_its_words(patch):
    patch.setattr(chunking, "preference_key", lambda _, content_hash: f"content:{content_hash}")


def novelty_stands_in_for_sameness(patch):
    patch.setattr(planning.Planner, "_same", lambda *_: None)


def the_threshold_itself_is_too_little(patch):
    patch.setattr(planning, "_ROUNDING", -1e-6)


def working_comes_before_preference(patch):
    def route(text, used, *, is_from_user=True):
        return MemoryType.WORKING if used.present(text) else plain(text, used, is_from_user=is_from_user)

    plain = planning.route
    patch.setattr(planning, "route", route)


def a_hint_is_only_a_hint(patch):
    def kind(self, piece):
        return planning.route(piece.content, self.detectors)

    patch.setattr(planning.Planner, "_kind", kind)


def everybody_is_the_user(patch):
    patch.setattr(planning, "USER", "assistant")


def signals_inside_code_count(patch):
    patch.setattr(detectors, "prose", lambda text: text)


def signals_count_each_time(patch):
    def salience(signals):
        return 0.3 * signals.has_entity + 0.4 * signals.has_number + 0.4 * signals.has_preference

    patch.setattr(pipeline_values.weighing, "salience", salience)


def fitted(patch, fitting):
    patch.setattr(recall, "fitting", fitting)
    patch.setattr(pipeline_values, "fitting", fitting)


def the_walk_stops_at_what_does_not_fit(patch):
    def fitting(sizes, budget, most):
        places = []
        for place, size in enumerate(sizes[:most]):
            if sum(sizes[: place + 1]) > budget:
                break
            places += [place] if size else []
        return places

    fitted(patch, fitting)


def no_places_still_take_one(patch):
    plain = selection.fitting
    fitted(patch, lambda sizes, budget, most: plain(sizes, budget, max(1, most)))


def nothing_is_divided_by_nothing(patch):
    plain = recall.Recaller.recall

    async def divided(self, ask):
        return await plain(self, ask) if 1 / ask.token_budget else None

    patch.setattr(recall.Recaller, "recall", divided)


def preferences_take_places(patch):
    plain = recall.Recaller._found

    async def found(self, ask):
        candidates, by = await plain(self, ask)
        return candidates[: max(0, ask.top_k - 7)], by

    patch.setattr(recall.Recaller, "_found", found)


def preferences_come_last(patch):
    plain = recall.Recaller._result
    patch.setattr(recall.Recaller, "_result", lambda self, found, *rest: plain(self, list(found)[::-1], *rest))


def preferences_ignore_the_types(patch):
    plain = recall.Recaller._procedural

    def procedural(self, ask, newest):
        return plain(self, replace(ask, kinds=tuple(MemoryType)), newest)

    patch.setattr(recall.Recaller, "_procedural", procedural)


def admission(patch, **changes):
    plain = rows_store.condition
    patch.setattr(pipeline_store, "condition", lambda wanted, **how: plain(replace(wanted, **changes), **how))


def importance_is_not_looked_at(patch):
    admission(patch, least_importance=0.0)


def sessions_share_what_is_going_on(patch):
    admission(patch, session=None)


def whatever_is_compressed_is_hidden(patch):
    plain = rows_store.condition

    def condition(wanted, **how):
        sql, parameters = plain(wanted, **how)
        return f"{sql} AND compressed = 0", parameters

    patch.setattr(pipeline_store, "condition", condition)


def what_was_filtered_out_is_not_made_up_for(patch):
    patch.setattr(pipeline_store.PipelineStore, "nearest", lambda *_: {})


def users_share_one_index_of_preferences(patch):
    everybody = "everybody"
    for name in ("preferences", "preference"):
        plain = getattr(pipeline_store.PipelineStore, name)
        patch.setattr(
            pipeline_store.PipelineStore, name, lambda self, _, *rest, plain=plain: plain(self, everybody, *rest)
        )
    plain_set = changes_store.Rows.set

    def set_for_everybody(self, memory, content_hash):
        plain_set(self, replace(memory, user_id=everybody), content_hash)

    patch.setattr(changes_store.Rows, "set", set_for_everybody)


def the_reranker_is_not_asked(patch):
    async def reranked(_query, candidates, reranker):
        return list(candidates), reranker.name

    patch.setattr(recall, "reranked", reranked)


def a_missing_reranker_leaves_the_cosine(patch):
    patch.setattr(selection, "blend", lambda similarity, _: similarity)


def ten_sessions_are_enough(patch):
    plain = archive_store.ArchiveStore.sessions
    patch.setattr(archive_store.ArchiveStore, "sessions", lambda self, owner: ["none", *plain(self, owner)])


def the_newest_sessions_are_compressed(patch):
    plain = archive_store.ArchiveStore.sessions
    patch.setattr(archive_store.ArchiveStore, "sessions", lambda self, owner: plain(self, owner)[::-1])


def a_session_is_told_as_it_was_written(patch):
    plain = archive_store.ArchiveStore.episodes
    patch.setattr(archive_store.ArchiveStore, "episodes", lambda self, *rest: sorted(plain(self, *rest), key=by_row))


def by_row(told):
    return told[0].content != "second, with {braces}"


def the_prompt_is_a_format_string(patch):
    def prompt(contents):
        return ("Summarize.\nConversation:\n" + "\n".join(contents)).format(session_content="")

    patch.setattr(compression, "summary_prompt", prompt)


def originals_are_deleted(patch):
    plain = archive_store.ArchiveStore.archive

    def archive(self, summary, originals):
        done = plain(self, summary, originals)
        for memory, _ in originals:
            self._db.execute("DELETE FROM memories WHERE owner = ? AND id = ?", (memory.user_id, memory.id))
        return done

    patch.setattr(archive_store.ArchiveStore, "archive", archive)


def the_archive_is_always_hidden(patch):
    plain = recall.Recaller.recall
    patch.setattr(recall.Recaller, "recall", lambda self, ask: plain(self, replace(ask, include_compressed=False)))


def the_archive_is_never_hidden(patch):
    plain = recall.Recaller.recall
    patch.setattr(recall.Recaller, "recall", lambda self, ask: plain(self, replace(ask, include_compressed=True)))


def a_failure_is_a_summary(patch):
    plain = compression.Compressor._summarise

    async def summarise(self, *rest):
        with suppress(MemorySystemError):
            return await plain(self, *rest)
        return "The session could not be summarised."

    patch.setattr(compression.Compressor, "_summarise", summarise)


def one_silent_session_stops_all(patch):
    plain = compression.Compressor._tell

    async def tell(self, user, sessions):
        told, problem = await plain(self, user, sessions)
        return ([] if problem else told), problem

    patch.setattr(compression.Compressor, "_tell", tell)


def a_summary_keeps_what_was_forgotten(patch):
    patch.setattr(changes_store.Rows, "release", lambda *_: None)


def the_centroid_forgets_nothing(patch):
    plain = changes_store.Rows._shift
    patch.setattr(
        changes_store.Rows, "_shift", lambda self, owner, vector, step: step > 0 and plain(self, owner, vector, step)
    )


def the_vectors_are_read_once(patch):
    patch.setattr(vectors_store.MemoryVectors, "changed", lambda *_: None)


def content_is_told_as_it_is(patch):
    patch.setattr(prompt_block, "harmless", lambda content: content)


def only_plain_tags_are_escaped(patch):
    plain = prompt_block._without_tags
    patch.setattr(
        prompt_block,
        "_without_tags",
        lambda text: plain(text) if "\uff1c" not in text else text.replace("</memory>", ""),
    )


def nothing_is_an_empty_block(patch):
    plain = service.prompt_block
    patch.setattr(service, "prompt_block", lambda memories, **given: plain(memories, **given) or "<memory>\n</memory>")


def types_are_told_in_small_letters(patch):
    plain = service.prompt_block
    patch.setattr(
        service, "prompt_block", lambda memories, **given: plain(memories, **given).replace("[SEMANTIC]", "[semantic]")
    )


pytestmark = pytest.mark.usefixtures("minilm_weights")

MUTANTS = [
    (code_is_reflowed, "P1"),
    (short_chunks_join_whatever_comes_out, "P2"),
    (titles_end_sentences, "P2b"),
    (each_chunk_is_embedded_alone, "P3"),
    (nothing_is_cached, "P3"),
    (the_centroid_moves_within_a_text, "P4b"),
    (the_centroid_belongs_to_everybody, "P4"),
    (the_threshold_itself_is_too_little, "P5"),
    (signals_inside_code_count, "P6"),
    (signals_count_each_time, "P6"),
    (working_comes_before_preference, "P7"),
    (a_hint_is_only_a_hint, "P7"),
    (changed_preferences_are_dropped, "P9"),
    (a_preference_is_known_by_its_words, "P9"),
    (novelty_stands_in_for_sameness, "P9b"),
    (everybody_is_the_user, "P9c"),
    (the_walk_stops_at_what_does_not_fit, "P10"),
    (no_places_still_take_one, "P10"),
    (nothing_is_divided_by_nothing, "P10"),
    (preferences_take_places, "P11"),
    (preferences_come_last, "P11"),
    (preferences_ignore_the_types, "P11"),
    (importance_is_not_looked_at, "P12"),
    (whatever_is_compressed_is_hidden, "P12"),
    (what_was_filtered_out_is_not_made_up_for, "P13"),
    (the_reranker_is_not_asked, "P14"),
    (a_missing_reranker_leaves_the_cosine, "P14b"),
    (sessions_share_what_is_going_on, "P14c"),
    (the_centroid_forgets_nothing, "P14d"),
    (the_vectors_are_read_once, "P14d"),
    (ten_sessions_are_enough, "P15"),
    (the_newest_sessions_are_compressed, "P15"),
    (a_session_is_told_as_it_was_written, "P16"),
    (the_prompt_is_a_format_string, "P16"),
    (originals_are_deleted, "P16"),
    (the_archive_is_always_hidden, "P16"),
    (the_archive_is_never_hidden, "P16"),
    (a_failure_is_a_summary, "P17"),
    (one_silent_session_stops_all, "P17b"),
    (a_summary_keeps_what_was_forgotten, "P17c"),
    (nothing_is_an_empty_block, "P18"),
    (types_are_told_in_small_letters, "P18"),
    (content_is_told_as_it_is, "X1p"),
    (only_plain_tags_are_escaped, "X1p"),
    (users_share_one_index_of_preferences, "X3p"),
]


@pytest.mark.parametrize(("mutate", "story"), MUTANTS, ids=[mutate.__name__ for mutate, _ in MUTANTS])
async def test_the_story_notices(mutate, story, outcome, monkeypatch):
    # In this process: a crash would run a healthy child.
    mutate(monkeypatch)
    assert await outcome(story) != "passed"


@pytest.mark.parametrize("story", sorted({story for _, story in MUTANTS}))
async def test_without_the_bug_the_story_passes(story, outcome):
    assert await outcome(story) == "passed"
