"""Each bug that the layers' source invites is put in, and the story that speaks of it must no longer pass."""

# ruff: noqa: ARG001  (a mutant has the signature of what it replaces)

import asyncio
import re
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from memstory.language.stories import load_stories
from memstory.playing import play
from memstory_reference.storage.database_store import Database
from memstory_reference.systems.layers import records_desk, service
from memstory_reference.systems.layers.config import LayersConfig
from memstory_reference.systems.layers.modes import MemoryMode
from memstory_reference.systems.layers.operations import dedup, promotion
from memstory_reference.systems.layers.policy import write
from memstory_reference.systems.layers.recall import prompting, retrieval
from memstory_reference.systems.layers.recall.retrieval import Retrieval
from memstory_reference.systems.layers.records import entries
from memstory_reference.systems.layers.records.candidates import Candidate, Decision
from memstory_reference.systems.layers.records.record import Standing
from memstory_reference.systems.layers.service import LayersService
from memstory_reference.systems.layers.stores import memory_store
from memstory_reference.systems.layers.stores.sqlite_rows_store import SqliteRows
from memstory_reference.systems.layers.stores.sqlite_store import SqliteStore
from memstory_reference.systems.layers.turns import lanes, session_end, writing
from memstory_reference.systems.layers.turns.session_end import SessionEnds
from memstory_reference.targets.layers import formulas as layers_formulas
from memstory_reference.targets.layers import target

STORIES = Path(__file__).parents[4] / "stories" / "layers"


@pytest.fixture(scope="module")
def stories():
    files = sorted(STORIES.glob("*.yaml"))
    loaded = [story for file in files for story in reversed(load_stories(file, file.name))]
    # Of a parametrised story the first row goes by its id alone.
    return {story.id: story for story in loaded} | {f"{story.id}-{story.row}": story for story in loaded if story.row}


@pytest.fixture(scope="module")
def factory():
    return target.LayersFactory()


@pytest.fixture
def outcome(stories, factory, tmp_path):
    async def outcome_of(story):
        return (await play(stories[story], factory, tmp_path)).outcome

    return outcome_of


def single_quotes(patch):
    patch.setattr(entries, "_quoted", lambda text: f"'{entries.one_line(text)}'")


def quotes_as_they_are(patch):
    patch.setattr(entries, "one_line", lambda text: text)


def the_quote_alone(patch):
    patch.setattr(prompting, "format_working_memory_entries", lambda all_: "\n".join(e["evidence_quote"] for e in all_))


def the_models_word_is_final(patch):
    patch.setattr(lanes, "refused", lambda *_: None)


def any_quote_is_believed(patch):
    patch.setattr(lanes, "is_quoted", lambda *_: True)


def repetition_is_not_counted(patch):
    patch.setattr(Candidate, "heard_again", lambda self, _turn: self)


def hold_means_commit(patch):
    patch.setattr(lanes.Lanes, "_is_due", lambda *_: True)


def all_that_is_held_is_promoted(patch):
    patch.setattr(promotion, "_path", lambda *_: promotion.Path.TRANSCRIPT)


def nothing_supports_anything(patch):
    patch.setattr(promotion, "coverage", lambda *_: 0.0)


def the_buffer_dies_with_the_process(patch):
    plain = SqliteRows.__init__

    def opened(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        self._db.execute("DELETE FROM sessions")

    patch.setattr(SqliteRows, "__init__", opened)


def duplicates_are_stored_again(patch):
    patch.setattr(writing, "duplicate_of", lambda *_: None)


def the_superseded_stays_active(patch):
    plain = writing.Plan.change

    def change(self, record):
        if record.standing is not Standing.SUPERSEDED:
            plain(self, record)

    patch.setattr(writing.Plan, "change", change)


def nearly_alike_is_always_the_same(patch):
    patch.setattr(dedup, "agree", lambda *_: True)


def the_threshold_itself_is_out(patch):
    plain = layers_formulas.compare_texts
    patch.setattr(layers_formulas, "compare_texts", lambda a, b, threshold: plain(a, b, threshold + 1e-9))


def ranks_begin_at_zero(patch):
    patch.setattr(layers_formulas, "rrf_score", lambda row: sum(1 / (59 + rank) for rank in row if rank))


def meaning_alone_ranks(patch):
    patch.setattr(retrieval, "query_tokens", lambda _: frozenset())


def only_ascii_is_text(patch):
    patch.setattr(memory_store, "token_set", lambda text: frozenset(re.findall(r"[a-z0-9]+", text.lower())))


def a_failing_policy_loses_the_candidate(patch):
    plain = lanes.decide

    async def decide(*args):
        verdict = await plain(*args)
        return replace(verdict, decision=Decision.DROP) if verdict.by == "fallback" else verdict

    patch.setattr(lanes, "decide", decide)


def the_reply_waits_for_the_lanes_and_fails_with_them(patch):
    async def keep(self, who, said, answer, trouble):
        number = await self._save_turn(who, said, answer)
        await self._lanes.extract(who.owner, who.session, number)
        if any("error" in (report.get("semantic") or {}) for report in self.diagnostics(who)):
            raise RuntimeError("the extractor failed")

    patch.setattr(LayersService, "_keep", keep)


def every_session_is_worth_an_arc(patch):
    patch.setattr(session_end, "is_substantive", lambda *_: True)


def an_ended_session_stays_active(patch):
    def end(self, owner, session, records):
        return self.put(records)

    patch.setattr(SqliteRows, "end", end)


def shutdown_is_another_path(patch):
    async def end_all(self, reason, owner=None):
        return 0

    patch.setattr(LayersService, "end_all", end_all)


def twenty_minutes_are_not_enough(patch):
    patch.setattr(SessionEnds, "is_idle", lambda self, buffer: self._clock.now() - buffer.last_at > self._config.idle)


def silence_counts_from_the_first_word(patch):
    plain = LayersService._save_turn

    async def save(self, who, said, answer):
        number = await plain(self, who, said, answer)
        buffer = await self._store.aload(who.owner, who.session)
        await self._store.asave(replace(buffer, last_at=buffer.started_at))
        self._watch.touched(who.owner, who.session, buffer.started_at)
        return number

    patch.setattr(LayersService, "_save_turn", save)


def thirty_days_are_too_old(patch):
    patch.setattr(LayersConfig, "episodic_age", timedelta(days=30) - timedelta(microseconds=1))


def age_does_not_matter(patch):
    patch.setattr(LayersConfig, "episodic_age", timedelta(days=3_000))


def _first_turn(patch, *, always):
    plain = Retrieval.load_memory_for_turn

    async def load(self, owner, query, *, now, is_first_turn):
        return await plain(self, owner, query, now=now, is_first_turn=always)

    patch.setattr(Retrieval, "load_memory_for_turn", load)


def no_turn_is_caught_up(patch):
    _first_turn(patch, always=False)


def every_turn_is_caught_up(patch):
    _first_turn(patch, always=True)


def no_guard_at_writing_nor_at_promotion(patch):
    patch.setattr(lanes, "refused", lambda *_: None)
    patch.setattr(promotion, "refused", lambda *_: None)


def no_guard_at_promotion(patch):
    patch.setattr(promotion, "refused", lambda *_: None)


def the_guard_reads_one_turn_at_a_time(patch):
    for module in (lanes, promotion):
        plain = module.refused
        patch.setattr(module, "refused", lambda content, _around, plain=plain: plain(content, ()))


def a_conflict_that_the_model_sees_is_ignored(patch):
    plain = write._read
    patch.setattr(write, "_read", lambda answer: plain({**answer, "safety_conflict": False}))


def hints_are_taken_for_instructions(patch):
    plain = write.decision_by_rules

    def decision(content):
        verdict = plain(content)
        return replace(verdict, decision=Decision.COMMIT) if verdict.decision is Decision.HOLD else verdict

    patch.setattr(write, "decision_by_rules", decision)


def rules_have_no_cap(patch):
    async def cap(self, plan):
        pass

    patch.setattr(writing.Writer, "cap", cap)


def writers_do_not_wait_for_each_other(patch):
    plain = SqliteStore.aput_batch

    async def put(self, *args, **named):
        await asyncio.sleep(0.05)  # all have read before the first one writes: the race is not left to chance
        return await plain(self, *args, **named)

    patch.setattr(SqliteStore, "lock", lambda *_: nullcontext())
    patch.setattr(SqliteStore, "aput_batch", put)


def each_row_is_its_own_transaction(patch):
    @contextmanager
    def transaction(self):
        yield

    patch.setattr(Database, "transaction", transaction)


def a_lost_store_costs_the_answer(patch):
    async def buffer(self, who, trouble):
        return await self._store.aload(who.owner, who.session)

    patch.setattr(LayersService, "_buffer", buffer)


def what_has_no_vector_is_never_embedded(patch):
    async def embed_missing(self, owner):
        return 0

    patch.setattr(records_desk.RecordsDesk, "embed_missing", embed_missing)


def incognito_is_local(patch):
    patch.setattr(MemoryMode, "is_durable", property(lambda _: True))


def synced_pretends(patch):
    patch.setattr(MemoryMode, "sync", property(lambda _: "on"))


def users_and_threads_share_names(patch):
    def owner(state, key):
        if not (state.get("user_id") or state.get("session_id")):
            raise service.InputError("user_id session_id")
        return state.get("user_id") or state["session_id"]

    patch.setattr(service, "resolve_owner_id", owner)


def nobody_is_local_default(patch):
    plain = service.resolve_owner_id

    def owner(state, key):
        is_known = state.get("user_id") or state.get("session_id")
        return plain(state, key) if is_known else "user:local-default"

    patch.setattr(service, "resolve_owner_id", owner)


def sessions_are_kept_by_name(patch):
    patch.setattr(service, "hash_session_id", lambda session, _key: session)


def recall_off_switches_all_off(patch):
    plain = LayersService._notice

    async def notice(self, said, who, trouble):
        if who.owner not in self._recall_off:
            await plain(self, said, who, trouble)

    patch.setattr(LayersService, "_notice", notice)


def recall_is_never_off(patch):
    patch.setattr(LayersService, "set_recall", lambda *_, **__: None)


def crisis_words_become_memory(patch):
    patch.setattr("memstory_reference.systems.layers.policy.guards._is_acute", lambda _: False)


def crisis_records_are_kept_for_ever(patch):
    async def purge(self):
        return 0

    patch.setattr(LayersService, "purge_crisis_log", purge)


def moods_last(patch):
    patch.setattr(promotion, "must_not_last", lambda _: None)


def an_id_is_enough(patch):
    def get(self, owner, ids):
        (row,) = self._db.execute("SELECT min(n.owner) FROM namespaces AS n").fetchone()
        return plain(self, row, ids)

    plain = SqliteRows.get
    patch.setattr(SqliteRows, "get", get)


def what_is_deleted_stays_in_the_file(patch):
    patch.setattr(Database, "forget_log", lambda _: None)


def edits_pass_no_guard(patch):
    patch.setattr(records_desk.RecordsDesk, "_guarded", lambda _self, content: (content, None))


pytestmark = pytest.mark.usefixtures("minilm_weights")

MUTANTS = [
    (single_quotes, "C1"),
    (quotes_as_they_are, "C1"),
    (the_quote_alone, "C1"),
    (the_models_word_is_final, "C2"),
    (any_quote_is_believed, "C2"),
    (repetition_is_not_counted, "C2"),
    (hold_means_commit, "C2"),
    (all_that_is_held_is_promoted, "C3"),
    (nothing_supports_anything, "C3"),
    (the_buffer_dies_with_the_process, "C3"),
    (duplicates_are_stored_again, "C4"),
    (the_superseded_stays_active, "C4"),
    (nearly_alike_is_always_the_same, "C5"),
    (the_threshold_itself_is_out, "C5"),
    (ranks_begin_at_zero, "C6"),
    (meaning_alone_ranks, "C7"),
    (only_ascii_is_text, "C7"),
    (a_failing_policy_loses_the_candidate, "C8"),
    (the_reply_waits_for_the_lanes_and_fails_with_them, "C8"),
    (every_session_is_worth_an_arc, "C9"),
    (an_ended_session_stays_active, "C10"),
    (shutdown_is_another_path, "C10-shutdown"),
    (twenty_minutes_are_not_enough, "C10b"),
    (silence_counts_from_the_first_word, "C10b"),
    (thirty_days_are_too_old, "C11"),
    (age_does_not_matter, "C11"),
    (no_turn_is_caught_up, "C11"),
    (every_turn_is_caught_up, "C11"),
    (no_guard_at_writing_nor_at_promotion, "C12"),
    (hints_are_taken_for_instructions, "C12"),
    (no_guard_at_promotion, "C12b"),
    (the_guard_reads_one_turn_at_a_time, "C12b"),
    (a_conflict_that_the_model_sees_is_ignored, "C12b"),
    (rules_have_no_cap, "C13"),
    (writers_do_not_wait_for_each_other, "C13b"),
    (each_row_is_its_own_transaction, "C14"),
    (a_lost_store_costs_the_answer, "C14b"),
    (what_has_no_vector_is_never_embedded, "C14c"),
    (incognito_is_local, "C15"),
    (synced_pretends, "C15b"),
    (crisis_words_become_memory, "C15b"),
    (users_and_threads_share_names, "C16"),
    (nobody_is_local_default, "C16"),
    (sessions_are_kept_by_name, "C16"),
    (recall_off_switches_all_off, "C17"),
    (recall_is_never_off, "C17"),
    (crisis_records_are_kept_for_ever, "C17b"),
    (moods_last, "C18"),
    (an_id_is_enough, "C19"),
    (what_is_deleted_stays_in_the_file, "C19"),
    (edits_pass_no_guard, "C19"),
]


@pytest.mark.parametrize(("mutate", "story"), MUTANTS, ids=[mutate.__name__ for mutate, _ in MUTANTS])
async def test_the_story_notices(mutate, story, outcome, monkeypatch):
    # In this process: a crash would run a healthy child.
    mutate(monkeypatch)
    assert await outcome(story) != "passed"


@pytest.mark.parametrize("story", sorted({story for _, story in MUTANTS}))
async def test_without_the_bug_the_story_passes(story, outcome):
    assert await outcome(story) == "passed"
