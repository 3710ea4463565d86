"""Each bug of the source that a story can show is put back, and the story must no longer pass."""

from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest

from memstory.language.stories import load_stories
from memstory.playing import play
from memstory_reference.systems.manager import deadlines, loop, manager, memory_tools
from memstory_reference.systems.manager.housekeeping import Housekeeping
from memstory_reference.systems.manager.loop import AgentLoop
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memories import memory, migration, nearest, rows
from memstory_reference.systems.manager.memories.memory import MemoryType
from memstory_reference.systems.manager.memory_tools import MemoryTools
from memstory_reference.systems.manager.window import ContextWindow
from memstory_reference.targets.manager import target
from memstory_reference.targets.manager import values as manager_values

STORIES = Path(__file__).parents[4] / "stories" / "manager"


@pytest.fixture(scope="module")
def stories():
    return {story.id: story for file in sorted(STORIES.glob("*.yaml")) for story in load_stories(file, file.name)}


@pytest.fixture
def outcome(stories, tmp_path):
    async def outcome_of(story):
        return (await play(stories[story], target.ManagerFactory(), tmp_path)).outcome

    return outcome_of


def forget_never_misses(patch):  # MF-1
    plain = MemoryManager.forget

    async def forget(self, owner, memory_id):
        await plain(self, owner, memory_id)
        return True

    patch.setattr(MemoryManager, "forget", forget)
    patch.setattr(target.ManagerTarget, "delete", lambda self, ref, scope: self._manager.forget(scope.user, ref.id))


def a_context_ends_a_second_early(patch):  # MF-2
    plain = memory.expires_at

    def expires_at(memory_type, created_at, zone=UTC):
        end = plain(memory_type, created_at, zone)
        return end.replace(microsecond=0) if memory_type is MemoryType.CONTEXT else end

    patch.setattr(manager_values, "expires_at", expires_at)


def every_day_ends_in_utc(patch):  # MF-2
    patch.setattr(manager, "is_expired", lambda one, now, _zone: memory.is_expired(one, now))


def over_at_the_very_end(patch):  # M-10
    def is_expired(one, now, zone=UTC):
        end = memory.expires_at(one.memory_type, one.created_at, zone)
        return end is not None and now >= end

    patch.setattr(manager, "is_expired", is_expired)


def rows_without_a_date_are_migrated(patch):  # MF-3
    plain = migration.stored_moment
    patch.setattr(migration, "stored_moment", lambda text: plain(text or "2026-05-01T00:00:00"))


def expired_rows_are_found_until_the_cleanup(patch):  # MF-4
    patch.setattr(MemoryManager, "_is_seen", lambda *_: True)


def expired_rows_take_places(patch):  # MF-4
    plain = MemoryManager.search

    async def search(self, owner, query, *, limit=None, **options):
        before, self._is_seen = self._is_seen, lambda *_: True
        found = await plain(self, owner, query, limit=limit, **options)
        self._is_seen = before
        return [one for one in found if self._is_seen(one.memory, self._clock.now(), None)]

    patch.setattr(MemoryManager, "search", search)


def set_context_appends(patch):  # MF-5
    plain = rows.made

    def made(owner, new, now, new_id):
        return replace(plain(owner, new, now, new_id), id=new_id())

    async def context_entry(self, owner, _session, key):
        found = [one for one in await self.memories(owner) if one.metadata.get("context_key") == key]
        return found[0] if found else None

    patch.setattr(manager, "made", made)
    patch.setattr(MemoryManager, "context_entry", context_entry)


def a_look_alike_passes_for_context(patch):  # MF-5
    patch.setattr(manager, "is_context_entry", lambda *_: True)


def context_is_of_no_session(patch):  # MF-18
    patch.setattr(rows, "context_id", lambda owner, _session, key: f"context:{owner}:{key}")
    patch.setattr(manager, "context_id", lambda owner, _session, key: f"context:{owner}:{key}")
    patch.setattr(manager, "is_context_entry", lambda *_: True)
    patch.setattr(MemoryManager, "_is_seen", lambda *_: True)


def callers_may_set_the_type(patch):  # MF-6
    patch.setattr("memstory_reference.systems.manager.memories.metadata.RESERVED", frozenset())
    plain = rows.metadata_of
    patch.setattr(manager, "metadata_of", lambda one: {**plain(one), **rows.encode_metadata(one.metadata)})


def nested_values_are_flattened_to_text(patch):  # MF-7
    def encode(metadata):
        return {key: value if isinstance(value, (int, float, str)) else str(value) for key, value in metadata.items()}

    patch.setattr(rows, "encode_metadata", encode)


def a_filter_is_ignored(patch):  # MF-8
    plain = manager._conditions
    patch.setattr(manager, "_conditions", lambda _where, memory_type: plain(None, memory_type))


def found_memories_have_no_id(patch):  # MF-9
    plain = MemoryTools._search

    async def search(self, arguments):
        return [{key: value for key, value in one.items() if key != "id"} for one in await plain(self, arguments)]

    patch.setattr(MemoryTools, "_search", search)


def the_window_begins_with_an_answer(patch):  # MF-10
    def add(self, entry):
        self._entries = (*self._entries, entry)[-2 * self._turns :]

    patch.setattr(ContextWindow, "add", add)


def the_question_stays_when_the_model_fails(patch):  # MF-11
    patch.setattr(ContextWindow, "restore", lambda *_: None)


def turns_are_not_stored(patch):  # MF-12
    async def keep(*_):
        pass

    patch.setattr(AgentLoop, "_keep", keep)


def no_cleanup_is_scheduled(patch):  # MF-14
    async def start(self):
        await self.clean_up()

    patch.setattr(Housekeeping, "start", start)


def no_cleanup_at_the_start(patch):  # M-19
    async def clean_up(self):
        self.runs += 1
        return 0

    patch.setattr(Housekeeping, "clean_up", clean_up)


def every_cleanup_is_told(patch):  # M-19
    plain = Housekeeping.clean_up

    async def clean_up(self):
        self.events.append({"event": "memory_cleanup", "deleted": 0})
        return await plain(self)

    patch.setattr(Housekeeping, "clean_up", clean_up)


def nothing_is_copied(patch):  # MF-15
    patch.setattr(target, "copy_closed", lambda _folder, to: to.mkdir(exist_ok=True))


def scores_below_zero(patch):  # MF-16
    patch.setattr(nearest, "score_of", lambda similarity: similarity)


def a_limit_of_zero_is_taken_for_one(patch):  # MF-16
    plain = manager.checked_limit
    patch.setattr(manager, "checked_limit", lambda limit: plain(limit) or 1)


def an_unknown_type_is_a_fact(patch):  # MF-17
    patch.setattr(memory_tools, "memory_type_of", lambda name: MemoryType(name) if name in set(MemoryType) else "fact")


def nothing_is_warned_of(patch):  # MF-19
    plain = migration.migrated
    patch.setattr(target, "migrated", lambda given: replace(plain(given), warnings=()))


def the_same_fact_is_stored_again_and_again(patch):  # MF-20
    numbers = iter(range(1000))
    patch.setattr(rows, "fact_id", lambda _content: f"fact-{next(numbers)}")


def owners_share_one_index(patch):  # SEC-6
    patch.setattr(MemoryManager, "_index", lambda self, _owner: self._store.index("memories", "all"))


def a_day_more_for_conversations(patch):  # M-04
    patch.setattr(memory, "CONVERSATION_DAYS", 31)
    patch.setattr(deadlines, "expires_at", lambda *_: None)


def everything_similar_is_found(patch):  # M-08
    patch.setattr(manager, "checked_floor", lambda _floor: -1.0)


def the_input_is_in_the_prompt_twice(patch):  # M-14
    plain = AgentLoop._prompt
    patch.setattr(
        AgentLoop, "_prompt", lambda self, text: [*plain(self, text), loop.Message(role="user", content=text)]
    )


pytestmark = pytest.mark.usefixtures("minilm_weights")

MUTANTS = [
    (forget_never_misses, "M6"),
    (a_context_ends_a_second_early, "M2"),
    (every_day_ends_in_utc, "M3d"),
    (over_at_the_very_end, "M3"),
    (rows_without_a_date_are_migrated, "M8"),
    (expired_rows_are_found_until_the_cleanup, "M4"),
    (expired_rows_take_places, "M4"),
    (set_context_appends, "M5"),
    (a_look_alike_passes_for_context, "M5"),
    (context_is_of_no_session, "M5"),
    (callers_may_set_the_type, "M7"),
    (nested_values_are_flattened_to_text, "M7"),
    (a_filter_is_ignored, "M7"),
    (found_memories_have_no_id, "M12"),
    (the_window_begins_with_an_answer, "M10"),
    (the_window_begins_with_an_answer, "M10b"),
    (the_question_stays_when_the_model_fails, "M10c"),
    (turns_are_not_stored, "M11b"),
    (no_cleanup_is_scheduled, "M3b"),
    (no_cleanup_at_the_start, "M3c"),
    (every_cleanup_is_told, "M3b"),
    (nothing_is_copied, "M9"),
    (scores_below_zero, "M1"),
    (a_limit_of_zero_is_taken_for_one, "M12"),
    (an_unknown_type_is_a_fact, "M12"),
    (nothing_is_warned_of, "M8"),
    (the_same_fact_is_stored_again_and_again, "M7b"),
    (owners_share_one_index, "X3m"),
    (a_day_more_for_conversations, "M3"),
    (everything_similar_is_found, "M1"),
    (the_input_is_in_the_prompt_twice, "M10"),
]
KILLERS = sorted({story for _, story in MUTANTS})


@pytest.mark.parametrize(("mutate", "story"), MUTANTS, ids=[f"{mutate.__name__}-{story}" for mutate, story in MUTANTS])
async def test_the_story_notices(mutate, story, outcome, monkeypatch):
    # In this process: a crash would run a healthy child.
    mutate(monkeypatch)
    assert await outcome(story) == "failed"


@pytest.mark.parametrize("story", KILLERS)
async def test_without_the_bug_the_story_passes(story, outcome):
    assert await outcome(story) == "passed"
