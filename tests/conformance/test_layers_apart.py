"""One suite for what the layers keep apart from memory, on every backend: the crisis log and feedback (C-18, C-25)."""

from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memstory_reference.composition.layers import log_in_file, log_in_postgres
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.sql_database import IN_MEMORY
from memstory_reference.systems.layers.logs import (
    CRISES,
    FEEDBACK,
    ClassifierPath,
    CrisisLogRecord,
    FeedbackLabel,
    FeedbackSource,
    SessionFeedbackRecord,
)
from memstory_reference.systems.layers.policy import CrisisLevel

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def place(request):
    return PostgresPlace(url=request.getfixturevalue("postgres_database"))


async def log_of(kind, name, folder, request):
    match name:
        case "memory":
            return log_in_file(IN_MEMORY, kind)
        case "sqlite":
            return log_in_file(folder / f"{kind.name}.sqlite3", kind)
        case _:
            return await log_in_postgres(place(request).sibling("audit" if kind is CRISES else "feedback"), kind)


@asynccontextmanager
async def opened(kind, name, folder, request):
    backend = await log_of(kind, name, folder, request)
    yield backend
    await backend.aclose()


BACKENDS = ["memory", "sqlite", "postgres"]
DURABLE = BACKENDS[1:]


@pytest.fixture(params=BACKENDS)
async def log(request, tmp_path):
    async with opened(CRISES, request.param, tmp_path, request) as backend:
        yield backend


@pytest.fixture(params=BACKENDS)
async def said(request, tmp_path):
    async with opened(FEEDBACK, request.param, tmp_path, request) as backend:
        yield backend


def crisis(identifier="c", **changes):
    record = CrisisLogRecord(
        id=identifier,
        owner="ann",
        session="s",
        at=NOON,
        level=CrisisLevel.ACUTE,
        classifier_path=ClassifierPath.KEYWORDS,
        signals=("suicide", "self_harm"),
    )
    return replace(record, **changes)


def word(identifier="w", **changes):
    record = SessionFeedbackRecord(
        id=identifier,
        owner="ann",
        session="s",
        at=NOON,
        label=FeedbackLabel.HELPFUL,
        source=FeedbackSource.VOICE,
        comment="Grüße 猫 \0 \ud800",
    )
    return replace(record, **changes)


async def test_crisis_records_come_back_the_oldest_first(log):
    for record in (crisis("late", at=NOON + SECOND), crisis("b"), crisis("a"), crisis("other", owner="bob")):
        await log.aappend(record)
    assert await log.alist("ann") == [crisis("a"), crisis("b"), crisis("late", at=NOON + SECOND)]


async def test_a_purge_takes_everybodys_records_from_before(log):
    for record in (crisis("old", at=NOON - SECOND), crisis("edge"), crisis("other", owner="bob", at=NOON - SECOND)):
        await log.aappend(record)
    assert await log.apurge(NOON) == 2
    assert await log.alist("ann") == [crisis("edge")]
    assert await log.alist("bob") == []


async def test_feedback_comes_back_the_oldest_first_and_goes_with_its_owner(said):
    for record in (word("late", at=NOON + SECOND), word("b"), word("a"), word("other", owner="bob")):
        await said.aappend(record)
    assert await said.alist("ann") == [word("a"), word("b"), word("late", at=NOON + SECOND)]
    assert await said.adelete_owner("ann") == 3
    assert await said.alist("ann") == []
    assert await said.alist("bob") == [word("other", owner="bob")]


@pytest.mark.parametrize("name", DURABLE)
async def test_what_was_appended_outlives_the_backend(name, tmp_path, request):
    async with opened(CRISES, name, tmp_path, request) as log, opened(FEEDBACK, name, tmp_path, request) as said:
        await log.aappend(crisis())
        await said.aappend(word())
    async with opened(CRISES, name, tmp_path, request) as log, opened(FEEDBACK, name, tmp_path, request) as said:
        assert await log.alist("ann") == [crisis()]
        assert await said.alist("ann") == [word()]
