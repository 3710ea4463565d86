from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.errors import InputError
from memstory_reference.ports import Record
from memstory_reference.systems.manager.memories.memory import MemoryType
from memstory_reference.systems.manager.memories.rows import (
    NewMemory,
    context_id,
    fact_id,
    is_context_entry,
    make_memory,
    memory_of,
    metadata_of,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
PART = st.text(min_size=1, max_size=8)


def new(**fields):
    return make_memory("ann", NewMemory(content="Bees are insects.", **fields), NOON, lambda: "id-1")


@given(st.tuples(PART, PART, PART), st.tuples(PART, PART, PART))
def test_no_two_context_entries_share_an_id(one, other):
    assert (context_id(*one) == context_id(*other)) == (one == other)


def test_a_row_comes_back_as_the_memory_that_it_was():
    memory = new(memory_type=MemoryType.CONVERSATION, metadata={"nested": {"a": [1, None]}}, session="s1")
    assert memory_of(Record(id=memory.id, text=memory.content, metadata=metadata_of(memory))) == memory


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"type": "fact"},
        {"type": "fact", "created_at": ""},
        {"type": "dream", "created_at": NOON.isoformat()},
        {"type": "fact", "created_at": NOON.isoformat(), "broken": "@json:{"},
    ],
)
def test_a_row_that_is_no_memory_is_none(metadata):
    assert memory_of(Record(id="r", text="x", metadata=metadata)) is None


def test_a_fact_belongs_to_no_session():
    assert new(session="s1").metadata == {}


def test_a_conversation_carries_its_session():
    assert new(memory_type=MemoryType.CONVERSATION, session="s1").metadata == {"session_id": "s1"}


def test_the_same_words_are_the_same_fact():
    assert new().id == fact_id("Bees  are\ninsects. ")


def test_a_context_entry_is_told_from_what_only_says_so():
    real = new(memory_type=MemoryType.CONTEXT, key="task", session="s1")
    posing = new(memory_type=MemoryType.CONTEXT, metadata={"context_key": "task", "session_id": "s1"})
    assert (is_context_entry("ann", real), is_context_entry("ann", posing)) == (True, False)


def test_callers_cannot_move_a_context_entry_to_another_key():
    entry = new(memory_type=MemoryType.CONTEXT, key="task", session="s1", metadata={"context_key": "other"})
    assert entry.metadata["context_key"] == "task"


@pytest.mark.parametrize("memory_type", [MemoryType.FACT, MemoryType.CONVERSATION])
def test_only_a_context_has_a_key(memory_type):
    with pytest.raises(InputError, match="only a context has a key"):
        new(memory_type=memory_type, key="task")
