from datetime import UTC, datetime, timedelta

from memstory_reference.systems.manager.memories.memory import Memory, MemoryType
from memstory_reference.systems.manager.memories.rows import Deadlines

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MONTH = timedelta(days=30)
MOMENT = timedelta(microseconds=1)


def memory(memory_type):
    return Memory(id="m", content="x", memory_type=memory_type, created_at=NOON)


def read(*types):
    deadlines = Deadlines(UTC)
    deadlines.begin("ann")
    deadlines.note("ann", [memory(one) for one in types])
    return deadlines


def test_an_owner_whose_rows_were_never_read_is_always_due():
    deadlines = Deadlines(UTC)
    deadlines.note("ann", [memory(MemoryType.FACT)])
    assert deadlines.is_due("ann", NOON)


def test_facts_alone_are_never_due():
    assert not read(MemoryType.FACT).is_due("ann", NOON + 1000 * MONTH)


def test_the_first_to_expire_decides():
    deadlines = read(MemoryType.CONVERSATION, MemoryType.CONTEXT)
    assert not deadlines.is_due("ann", NOON.replace(hour=23))
    assert deadlines.is_due("ann", NOON + timedelta(days=1))


def test_an_owner_is_due_only_after_the_last_moment():
    deadlines = read(MemoryType.CONVERSATION)
    assert (deadlines.is_due("ann", NOON + MONTH), deadlines.is_due("ann", NOON + MONTH + MOMENT)) == (False, True)


def test_what_could_not_be_read_is_due_again():
    deadlines = read(MemoryType.FACT)
    deadlines.forget("ann")
    assert deadlines.is_due("ann", NOON)
