from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.target import Item, Scope
from memstory_reference.errors import InputError
from memstory_reference.ports import Match, Record
from memstory_reference.systems.manager.memories import (
    MAX_CHARACTERS,
    MAX_KEYS,
    RESERVED,
    Deadlines,
    Memory,
    MemoryType,
    context_id,
    decode_metadata,
    encode_metadata,
    expires_at,
    fact_id,
    is_context_entry,
    is_expired,
    make_memory,
    memory_of,
    memory_type_of,
    metadata_of,
    migrate_rows,
    nearest_memories,
    score_of,
    stored_moment,
)

ZONES = [UTC, ZoneInfo("America/Los_Angeles"), ZoneInfo("Pacific/Kiritimati"), ZoneInfo("America/Havana")]
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  (a bound)


def memory(memory_type, created_at):
    return Memory(id="m", content="x", memory_type=memory_type, created_at=created_at)


@pytest.mark.parametrize(
    ("memory_type", "created", "expected"),
    [
        ("conversation", "2026-05-01T12:00:00+00:00", "2026-05-31T12:00:00+00:00"),
        ("context", "2026-05-01T10:00:00+00:00", "2026-05-01T23:59:59.999999+00:00"),
        ("context", "2026-05-01T23:59:59.900000+00:00", "2026-05-01T23:59:59.999999+00:00"),
        ("fact", "2026-05-01T12:00:00+00:00", None),
    ],
)
def test_each_type_has_its_end(memory_type, created, expected):
    end = expires_at(MemoryType(memory_type), datetime.fromisoformat(created))
    assert (end and end.isoformat()) == expected


@given(MOMENTS, st.sampled_from(ZONES))
def test_a_context_lives_through_its_own_day_and_not_into_the_next(created, zone):
    end = expires_at(MemoryType.CONTEXT, created, zone)
    assert created <= end
    assert end.astimezone(zone).date() == created.astimezone(zone).date()
    assert (end + timedelta(microseconds=1)).astimezone(zone).date() > created.astimezone(zone).date()


@given(MOMENTS, st.sampled_from(MemoryType))
def test_a_memory_is_alive_to_its_end_and_over_a_microsecond_later(created, memory_type):
    one, end = memory(memory_type, created), expires_at(memory_type, created)
    if end is None:
        assert not is_expired(one, created + timedelta(days=3650))
    else:
        assert not is_expired(one, end)
        assert is_expired(one, end + timedelta(microseconds=1))


def test_a_day_may_end_where_the_user_lives():
    created = datetime(2026, 1, 15, 12, tzinfo=UTC)
    end = expires_at(MemoryType.CONTEXT, created, ZoneInfo("America/Los_Angeles"))
    assert end == datetime(2026, 1, 16, 7, 59, 59, 999999, tzinfo=UTC)


def test_an_old_timestamp_without_zone_is_read_as_utc():
    assert stored_moment("2026-05-01T12:00:00") == datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_a_timestamp_of_another_zone_becomes_utc():
    assert stored_moment("2026-05-01T12:00:00+02:00").isoformat() == "2026-05-01T10:00:00+00:00"


@pytest.mark.parametrize("text", ["", "yesterday", None, 5, "9999-12-31T23:59:59", "0001-01-01T00:00:00+14:00"])
def test_what_is_no_timestamp_is_refused(text):
    with pytest.raises(InputError, match=r"created_at .* is not allowed"):
        stored_moment(text)


@pytest.mark.parametrize("name", ["dream", "", None, 3, ["fact"], {"$ne": ""}, "FACT"])
def test_an_unknown_type_is_refused_with_the_three_that_exist(name):
    with pytest.raises(InputError, match="allowed: conversation, fact, context"):
        memory_type_of(name)


@pytest.mark.parametrize(("distance", "score"), [(0, 1.0), (0.4, 0.6), (0.7, 0.3), (0.7001, 0.2999), (2.0, 0.0)])
def test_score_is_one_minus_distance_cut_to_zero_and_one(distance, score):
    assert score_of(1 - distance) == pytest.approx(score, abs=1e-9)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
KEYS = st.text(min_size=1).filter(lambda key: key not in RESERVED)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_whatever_json_can_hold_comes_back_as_it_was_given(metadata):
    assert decode_metadata(encode_metadata(metadata)) == metadata


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_the_store_gets_simple_values_only(metadata):
    for value in encode_metadata(metadata).values():
        assert isinstance(value, (str, bool, float)) or -(2**63) <= value < 2**63


def test_a_text_that_looks_like_an_encoding_stays_a_text():
    metadata = {"note": '@json:{"type": "fact"}'}
    assert decode_metadata(encode_metadata(metadata)) == metadata


def test_equal_nested_values_are_encoded_alike_so_that_they_can_be_filtered_on():
    assert encode_metadata({"a": {"x": 1, "y": 2}}) == encode_metadata({"a": {"y": 2, "x": 1}})


@pytest.mark.parametrize("key", sorted(RESERVED))
def test_a_reserved_key_is_refused(key):
    with pytest.raises(InputError, match=f"'{key}' is reserved"):
        encode_metadata({key: "fact"})


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        {1, 2},
        (1, 2),
        {1: "a"},
        {"a": (1,)},
        pytest.param(object(), id="object"),
        b"bytes",
        [float("nan")],
    ],
    ids=repr,
)
def test_what_would_not_come_back_as_it_was_is_refused(value):
    with pytest.raises(InputError, match="'odd'"):
        encode_metadata({"odd": value})


def test_a_value_that_holds_itself_is_refused():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InputError, match="cannot be kept"):
        encode_metadata({"endless": endless})


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"huge": "x" * (MAX_CHARACTERS + 1)}, "characters; at most"),
        ({str(number): 1 for number in range(MAX_KEYS + 1)}, "keys; at most"),
        ({"": 1}, "must be text"),
        ({5: 1}, "must be text"),
        (["a"], "must be a mapping, not list"),
    ],
)
def test_metadata_that_is_too_much_or_of_the_wrong_form_is_refused(metadata, said):
    with pytest.raises(InputError, match=said):
        encode_metadata(metadata)


NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
PART = st.text(min_size=1, max_size=8)


def new(session=None, **fields):
    return make_memory(
        Item(text="Bees are insects.", **fields), Scope(user="ann", session=session), NOON, lambda: "id-1"
    )


@given(st.tuples(PART, PART, PART), st.tuples(PART, PART, PART))
def test_no_two_context_entries_share_an_id(one, other):
    assert (context_id(*one) == context_id(*other)) == (one == other)


def test_a_row_comes_back_as_the_memory_that_it_was():
    memory = new(kind=MemoryType.CONVERSATION, metadata={"nested": {"a": [1, None]}}, session="s1")
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
    assert new(kind=MemoryType.CONVERSATION, session="s1").metadata == {"session_id": "s1"}


def test_the_same_words_are_the_same_fact():
    assert new().id == fact_id("Bees  are\ninsects. ")


def test_a_context_entry_is_told_from_what_only_says_so():
    real = new(kind=MemoryType.CONTEXT, key="task", session="s1")
    posing = new(kind=MemoryType.CONTEXT, metadata={"context_key": "task", "session_id": "s1"})
    assert (is_context_entry("ann", real), is_context_entry("ann", posing)) == (True, False)


def test_callers_cannot_move_a_context_entry_to_another_key():
    entry = new(kind=MemoryType.CONTEXT, key="task", session="s1", metadata={"context_key": "other"})
    assert entry.metadata["context_key"] == "task"


@pytest.mark.parametrize("memory_type", [MemoryType.FACT, MemoryType.CONVERSATION])
def test_only_a_context_has_a_key(memory_type):
    with pytest.raises(InputError, match="only a context has a key"):
        new(kind=memory_type, key="task")


NOON_UTC = datetime(2026, 5, 1, 12, tzinfo=UTC)
MONTH = timedelta(days=30)
MOMENT = timedelta(microseconds=1)


def made_at(memory_type):
    return Memory(id="m", content="x", memory_type=memory_type, created_at=NOON_UTC)


def read(*types):
    deadlines = Deadlines(UTC)
    deadlines.begin("ann")
    deadlines.note("ann", [made_at(one) for one in types])
    return deadlines


def test_an_owner_whose_rows_were_never_read_is_always_due():
    deadlines = Deadlines(UTC)
    deadlines.note("ann", [made_at(MemoryType.FACT)])
    assert deadlines.is_due("ann", NOON_UTC)


def test_facts_alone_are_never_due():
    assert not read(MemoryType.FACT).is_due("ann", NOON_UTC + 1000 * MONTH)


def test_the_first_to_expire_decides():
    deadlines = read(MemoryType.CONVERSATION, MemoryType.CONTEXT)
    assert not deadlines.is_due("ann", NOON_UTC.replace(hour=23))
    assert deadlines.is_due("ann", NOON_UTC + timedelta(days=1))


def test_an_owner_is_due_only_after_the_last_moment():
    deadlines = read(MemoryType.CONVERSATION)
    assert (deadlines.is_due("ann", NOON_UTC + MONTH), deadlines.is_due("ann", NOON_UTC + MONTH + MOMENT)) == (
        False,
        True,
    )


def test_what_could_not_be_read_is_due_again():
    deadlines = read(MemoryType.FACT)
    deadlines.forget("ann")
    assert deadlines.is_due("ann", NOON_UTC)


MIDDAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
VECTOR = np.array([1, 0], np.float32)
ROWS = st.lists(
    st.tuples(
        st.integers(-100, 100).map(lambda hundredths: hundredths / 100), st.sampled_from(MemoryType), st.booleans()
    ),
    max_size=40,
)


class Index:
    """Rows by similarity, with and without a filter on the type; it notes how it was asked."""

    def __init__(self, rows):
        ordered = sorted(enumerate(rows), key=lambda row: (-row[1][0], row[0]))
        self.matches = [self.match(number, *row) for number, row in ordered]
        self.asked = []

    def match(self, number, similarity, memory_type, is_alive):
        metadata = {"type": memory_type.value, "created_at": MIDDAY.isoformat(), "is_alive": is_alive}
        return Match(record=Record(id=f"{number:03d}", text="x", metadata=metadata), similarity=similarity)

    async def query(self, vector, k, where=None):
        self.asked.append((k, where))
        fitting = (one for one in self.matches if (where or {}).items() <= one.record.metadata.items())
        return [one for _, one in zip(range(k), fitting, strict=False)]


async def search(index, memory_type, limit, floor, ahead):
    found = await nearest_memories(
        index,
        VECTOR,
        limit=limit,
        floor=floor,
        conditions={"type": memory_type.value} if memory_type else None,
        is_wanted=lambda one: memory_type in (None, one.memory_type) and one.metadata["is_alive"],
        ahead=ahead,
    )
    return [(one.memory.id, one.score) for one in found]


@given(
    rows=ROWS,
    memory_type=st.none() | st.sampled_from(MemoryType),
    limit=st.integers(1, 8),
    floor=st.sampled_from([-1.0, 0.0, 0.3, 0.99]),
    is_ahead=st.booleans(),
)
async def test_the_wanted_are_found_as_if_nothing_else_were_there(rows, memory_type, limit, floor, is_ahead):
    ahead = 4 * limit if is_ahead and memory_type else 0
    alone = [
        (f"{number:03d}", max(0.0, similarity))
        for number, (similarity, kind, is_alive) in enumerate(rows)
        if is_alive and memory_type in (None, kind) and max(0.0, similarity) >= floor
    ]
    found = await search(Index(rows), memory_type, limit, floor, ahead)
    assert [score for _, score in found] == sorted((score for _, score in alone), reverse=True)[:limit]
    assert set(found) <= set(alone)


@pytest.mark.parametrize(
    ("types", "asked"),
    [
        ([MemoryType.FACT] * 10, [(8, None)]),
        ([MemoryType.CONTEXT] * 100 + [MemoryType.FACT] * 2, [(8, None), (2, {"type": "fact"})]),
    ],
    ids=["common", "rare"],
)
async def test_a_type_is_filtered_by_the_store_only_where_the_nearest_hold_too_few(types, asked):
    index = Index([(0.9, memory_type, True) for memory_type in types])
    assert len(await search(index, MemoryType.FACT, 2, 0.3, 8)) == 2
    assert index.asked == asked


async def test_nothing_wider_is_asked_once_the_floor_is_met():
    index = Index([(0.9, MemoryType.FACT, False), *[(0.1, MemoryType.FACT, True)] * 100])
    assert await search(index, None, 2, 0.3, 0) == []
    assert index.asked == [(2, None)]


OLD_TYPES = ("CONVERSATION", "OBSERVATION", "FACT", "PREFERENCE", "EVENT", "TASK")


def row(**changes):
    plain = {"id": "v1-1", "type": "FACT", "content": "Bees are insects.", "created_at": "2026-05-01T12:00:00"}
    return {**plain, **changes}


def test_six_types_become_three_two_each():
    memories, skipped, _ = migrate_rows([row(id=name, type=name) for name in OLD_TYPES])
    types = [memory.memory_type for memory in memories]
    assert types == [memory_type for memory_type in MemoryType for _ in range(2)]
    assert skipped == []


def test_a_row_keeps_its_id_its_age_and_its_metadata():
    (memory,), _, _ = migrate_rows([row(metadata={"category": "user_profile"})])
    assert (memory.id, memory.metadata) == ("v1-1", {"category": "user_profile"})
    assert memory.created_at.isoformat() == "2026-05-01T12:00:00+00:00"


@pytest.mark.parametrize("name", ["EVENT", "TASK"])
def test_what_will_end_tonight_is_warned_of(name):
    _, _, (warning,) = migrate_rows([row(type=name)])
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
    memories, (skipped,), _ = migrate_rows([row(**changes), row(id="v1-2")])
    assert [memory.id for memory in memories] == ["v1-2"]
    assert said in skipped


def test_what_is_no_row_is_skipped():
    memories, skipped, _ = migrate_rows(["nonsense", None, row()])
    assert (len(memories), len(skipped)) == (1, 2)
