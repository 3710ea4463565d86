import pytest

from memstory_reference.systems.manager.memories.memory import MemoryType
from memstory_reference.systems.manager.memories.migration import migrate_rows

OLD_TYPES = ("CONVERSATION", "OBSERVATION", "FACT", "PREFERENCE", "EVENT", "TASK")


def row(**changes):
    plain = {"id": "v1-1", "type": "FACT", "content": "Bees are insects.", "created_at": "2026-05-01T12:00:00"}
    return {**plain, **changes}


def test_six_types_become_three_two_each():
    found = migrate_rows([row(id=name, type=name) for name in OLD_TYPES])
    types = [memory.memory_type for memory in found.memories]
    assert types == [memory_type for memory_type in MemoryType for _ in range(2)]
    assert found.skipped == ()


def test_a_row_keeps_its_id_its_age_and_its_metadata():
    (memory,) = migrate_rows([row(metadata={"category": "user_profile"})]).memories
    assert (memory.id, memory.metadata) == ("v1-1", {"category": "user_profile"})
    assert memory.created_at.isoformat() == "2026-05-01T12:00:00+00:00"


@pytest.mark.parametrize("name", ["EVENT", "TASK"])
def test_what_will_end_tonight_is_warned_of(name):
    (warning,) = migrate_rows([row(type=name)]).warnings
    assert warning == f"v1-1: {name} became context, and ends with the day on which it was made"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"created_at": ""}, "is not allowed; allowed: ISO 8601"),
        ({"created_at": None}, "is not allowed; allowed: ISO 8601"),
        ({"type": "DREAM"}, "none of conversation, observation"),
        ({"type": None}, "none of"),
        ({"content": " "}, "content is blank"),
        ({"content": None}, "content must be text"),
        ({"id": ""}, "id is missing"),
        ({"id": "context:ann:s1:task", "type": "EVENT"}, "the memory's own"),
        ({"metadata": {"type": "fact"}}, "reserved"),
        ({"metadata": "none"}, "must be a mapping"),
    ],
)
def test_a_row_that_cannot_be_read_is_skipped_by_name_and_stops_no_other(changes, said):
    found = migrate_rows([row(**changes), row(id="v1-2")])
    assert [memory.id for memory in found.memories] == ["v1-2"]
    (skipped,) = found.skipped
    assert said in skipped


def test_what_is_no_row_is_skipped():
    found = migrate_rows(["nonsense", None, row()])
    assert (len(found.memories), len(found.skipped)) == (1, 2)
