from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.errors import InputError
from memstory_reference.systems.manager.memories.memory import (
    Memory,
    MemoryType,
    expires_at,
    is_expired,
    memory_type_of,
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
