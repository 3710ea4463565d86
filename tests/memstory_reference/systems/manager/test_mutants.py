"""Each bug of the source that a story can show is put back, and the story must fail for it."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest

from memstory.contract.models import ChatModelUnavailableError
from memstory_reference.adapters.vectors.exact_store import ExactStore
from memstory_reference.systems.manager import agent, manager, memories
from memstory_reference.systems.manager import memory as interface
from memstory_reference.systems.manager.agent import ContextWindow, ManagerAgent, ManagerTools, WindowEntry
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memories import MemoryType
from memstory_reference.targets import system_target
from memstory_reference.targets.manager import ManagerFactory
from memstory_reference.text import secret_guard

pytestmark = pytest.mark.usefixtures("minilm_weights")


def sure_of_deletion(plain):
    async def delete(*args):
        await plain(*args)
        return True

    return delete


def to_the_second(plain):
    def expires_at(memory_type, *when):
        end = plain(memory_type, *when)
        return end.replace(microsecond=0) if memory_type is MemoryType.CONTEXT else end

    return expires_at


def at_the_very_end(_plain):
    def is_expired(one, now, zone=UTC):
        end = memories.expires_at(one.memory_type, one.created_at, zone)
        return end is not None and now >= end

    return is_expired


def filtered_afterwards(plain):
    async def found(*args, is_wanted, limit, **named):
        nearest_ones = await plain(*args, is_wanted=lambda _: True, limit=limit // manager.AHEAD, **named)
        return [one for one in nearest_ones if is_wanted(one.memory)]

    return found


def with_fresh_ids(plain):
    return lambda owner, new, now, new_id, limits: replace(plain(owner, new, now, new_id, limits), id=new_id())


def first_entry_of_a_key(_plain):
    async def context_entry(self, owner, _session, key):
        found = [one for one in await self.memories(owner) if one.metadata.get("context_key") == key]
        return found[0] if found else None

    return context_entry


def flattened(_plain):
    return lambda given: {key: one if isinstance(one, (int, float, str)) else str(one) for key, one in given.items()}


def without_filter(plain):
    return lambda *args, **named: plain(*args, **{**named, "where": None})


def without_ids(plain):
    async def call(*args):
        outcome = await plain(*args)
        found = outcome.result if isinstance(outcome.result, list) else []
        rows = [{key: value for key, value in one.items() if key != "id"} for one in found]
        return replace(outcome, result=rows or outcome.result)

    return call


def cut_by_messages(plain):
    def with_entry(self, entry):
        kept = plain(self, entry)
        return (*self.entries[1:], entry) if len(kept) < len(self.entries) else kept

    return with_entry


def without_turns(plain):
    async def store(self, owner, content, memory_type, *rest, **named):
        if memory_type is not MemoryType.CONVERSATION:
            await plain(self, owner, content, memory_type, *rest, **named)

    return store


def leaving_the_question(plain):
    async def process(self, user_input):
        try:
            return await plain(self, user_input)
        except ChatModelUnavailableError:
            self.window.add(WindowEntry(role="user", content=user_input, timestamp=datetime(2026, 5, 1, tzinfo=UTC)))
            raise

    return process


def at_once_and_never_again(_plain):
    return lambda self: self.cleanup_expired()


def skipped(_plain):
    async def cleanup_expired(self):
        self.cleanup_runs += 1
        return 0

    return cleanup_expired


def loudly(plain):
    async def cleanup_expired(self):
        self.cleanups.append({"event": "memory_cleanup", "deleted": 0})
        return await plain(self)

    return cleanup_expired


def numbered(_plain):
    numbers = count()
    return lambda _content: f"fact-{next(numbers)}"


FACTORY = ManagerFactory
MUTANTS = [
    ("M6: forget never misses (MF-1)", "result is true", (interface.ManagerMemory, "delete", sure_of_deletion)),
    ("M2: a context ends a second early (MF-2)", "data is", (interface, "expires_at", to_the_second)),
    (
        "M3d: every day ends in UTC (MF-2)",
        "hits count 0",
        (manager, "is_expired", lambda plain: lambda one, now, _zone: plain(one, now)),
    ),
    ("M3: over at the very end (M-10)", "hits count 0", (manager, "is_expired", at_the_very_end)),
    (
        "M8: rows without a date are migrated (MF-3)",
        "'migrated' is 7",
        (memories, "stored_moment", lambda plain: lambda text: plain(text or "2026-05-01T00:00:00")),
    ),
    ("M4: expired rows are found (MF-4)", "hits lack 'four'", (manager, "is_expired", False)),
    ("M4: expired rows take places (MF-4)", "hits lack 'four'", (manager, "nearest_memories", filtered_afterwards)),
    (
        "M5: set context appends (MF-5)",
        "1. 'review'; 2. 'write'",
        (manager, "make_memory", with_fresh_ids),
        (MemoryManager, "context_entry", first_entry_of_a_key),
    ),
    ("M5: a look-alike passes for context (MF-5)", "1. 'forged'", (manager, "is_context_entry", True)),
    (
        "M5: context is of no session (MF-18)",
        "1. 'review'",
        (MemoryManager, "context_entry", lambda plain: lambda self, owner, _, key: plain(self, owner, None, key)),
    ),
    (
        "M7: callers may set the type (MF-6)",
        "was not refused",
        (memories, "RESERVED", frozenset()),
        (memories, "metadata_of", lambda plain: lambda one: {**plain(one), **memories.encode_metadata(one.metadata)}),
    ),
    (
        "M7: nested values are flattened to text (MF-7)",
        "'nested' has no fields",
        (memories, "encode_metadata", flattened),
    ),
    ("M7: a filter is ignored (MF-8)", "'alex' first", (MemoryManager, "search_memories", without_filter)),
    ("M12: found memories have no id (MF-9)", "has no 'id'", (ManagerTools, "call", without_ids)),
    (
        "M10: the prompt begins with an answer (MF-10)",
        "a length that is 11",
        (ContextWindow, "with_entry", cut_by_messages),
    ),
    (
        "M10b: a window of no turns keeps all (MF-10)",
        "data is",
        (ContextWindow, "add", lambda _: lambda self, entry: self.restore([*self.entries, entry])),
    ),
    (
        "M10c: the question stays when the model fails (MF-11)",
        "a length that is 3",
        (ManagerAgent, "process", leaving_the_question),
    ),
    ("M11b: turns are not stored (MF-12)", "no hits", (MemoryManager, "store", without_turns)),
    ("M3b: no cleanup is scheduled (MF-14)", "'rows' is 1", (interface.ManagerMemory, "open", at_once_and_never_again)),
    ("M3c: no cleanup at the start (M-19)", "'rows' is 2", (interface.ManagerMemory, "cleanup_expired", skipped)),
    (
        "M3b: every cleanup is told (M-19)",
        "'cleanups' has a length that is 100",
        (interface.ManagerMemory, "cleanup_expired", loudly),
    ),
    (
        "M9: nothing is copied (MF-15)",
        "'memories' is 0",
        (system_target, "copy_folder", lambda _: lambda _folder, to: to.mkdir(exist_ok=True)),
    ),
    ("M1: scores below zero (MF-16)", "hits count 4", (memories, "score_of", lambda _: lambda similarity: similarity)),
    (
        "M12: a limit of zero is taken for one (MF-16)",
        "result is [{",
        (manager, "checked_count", lambda plain: lambda *given: plain(*given) or 1),
    ),
    (
        "M12: an unknown type is a fact (MF-17)",
        "does not contain 'dream'",
        (agent, "memory_type_of", lambda plain: lambda name: plain(name if name in set(MemoryType) else "fact")),
    ),
    (
        "M8: nothing is warned of (MF-19)",
        "'warnings' has a length that is 0",
        (interface, "migrate_rows", lambda plain: lambda given: (*plain(given)[:2], [])),
    ),
    (
        "M7b: the same fact is stored again and again (MF-20)",
        "hits lack 'bees'",
        (memories, "fact_id", numbered),
        (manager, "same_fact", None),
    ),
    ("M7c: a fact is known by its id alone (MF-20)", "hits count 7", (manager, "same_fact", None)),
    (
        "M7d: the nearer statement of a profile field comes first (MF-20)",
        "'sam' first",
        (manager, "newest_of_each_field_first", lambda _: list),
    ),
    (
        "M5b: a search by tool knows no session (MF-18)",
        "a length that is 2",
        (
            MemoryManager,
            "search_memories",
            lambda plain: lambda *given, **named: plain(*given, **{**named, "session": None}),
        ),
    ),
    (
        "M13: turns that repeat what is forgotten stay",
        "contains 'Plimquart'",
        (manager, "repeating_turns", lambda _: lambda *_: []),
    ),
    ("M7e: a secret is stored (SEC-12)", "payment card", (secret_guard, "secrets_in", ())),
    (
        "X3m: owners share one index (SEC-6)",
        "hits have a memory of another user",
        (ExactStore, "index", lambda plain: lambda self, collection, _owner: plain(self, collection, "all")),
    ),
    (
        "M3: a day more for conversations (M-04)",
        "hits are 1, expected none",
        (memories, "CONVERSATION_DAYS", 31),
    ),
    ("M1: everything similar is found (M-08)", "hits include 'far'", (manager, "checked_number", -1.0)),
    (
        "M10: the input is in the prompt twice (M-14)",
        "is counted 2 times",
        (agent, "take_turn", lambda plain: lambda chat, prompt, **named: plain(chat, [*prompt, prompt[-1]], **named)),
    ),
]


async def test_the_story_notices(mutant, play_story):
    assert (await play_story(mutant.story)).reason is None
    with mutant.at_work():
        assert mutant.why in ((await play_story(mutant.story)).reason or "")
