import asyncio
import logging

import pytest

from memstory.contract.errors import UnavailableError
from memstory.contract.models import ChatModelUnavailableError
from memstory_reference.systems.pipeline import service as service_module
from memstory_reference.systems.pipeline.chunk import Utterance
from memstory_reference.systems.pipeline.compression import NoSummaryError


@pytest.fixture
def fill(clock):
    """Writes sessions of one memory each, an hour apart."""

    async def write(service, sessions, user="ann", importance=0.5):
        for number in range(sessions):
            clock.move(hours=1)
            await service.import_rows(
                [{"text": f"event {number}", "session": f"s{number:04}", "importance": importance}], user
            )

    return write


async def compressed(service, user="ann"):
    return sorted({one.session_id for one in await service.memories(user) if one.compressed})


@pytest.mark.parametrize(("sessions", "expected"), [(10, []), (11, ["s0000", "s0001", "s0002", "s0003", "s0004"])])
async def test_above_ten_sessions_the_five_oldest_are_compressed(make_service, fill, summariser, sessions, expected):
    service = make_service(chat=summariser)
    await fill(service, sessions)
    await fill(service, 3, user="bob")
    report = await service.compress("ann")
    assert (report.triggered, report.sessions, list(report.compressed)) == (bool(expected), sessions, expected)
    assert await compressed(service) == expected
    assert len(summariser.prompts) == len(expected)


@pytest.mark.parametrize(("threshold", "size"), [(10, 5), (5, 2), (3, 1), (1, 1)])
async def test_half_the_threshold_is_compressed(make_service, fill, summariser, threshold, size):
    service = make_service(chat=summariser, compression_threshold=threshold)
    await fill(service, threshold + 1)
    assert len((await service.compress("ann")).compressed) == size


async def test_a_number_of_sessions_can_be_given(make_service, fill, summariser):
    service = make_service(chat=summariser, compression_threshold=2, sessions_to_compress=9)
    await fill(service, 3)
    assert len((await service.compress("ann")).compressed) == 3


async def test_a_summary_is_semantic_and_says_where_it_came_from(make_service, fill, summariser):
    service = make_service(chat=summariser, compression_threshold=1)
    await fill(service, 2, importance=0.1)
    await service.compress("ann")
    (summary,) = await service.memories("ann", ["semantic"])
    assert (summary.source_session_id, summary.compression_source, summary.compressed) == ("s0000", True, False)
    assert (summary.content, summary.importance) == ("Summary 1 of event.", 0.3)
    originals = await service.memories("ann", ["episodic"])
    assert {(one.session_id, one.compressed, one.summary_id) for one in originals} == {
        ("s0000", True, summary.id),
        ("s0001", False, None),
    }


async def test_a_session_is_told_in_the_order_of_time_and_only_its_episodes(make_service, summariser):
    service = make_service(chat=summariser, compression_threshold=1)
    moments = ["2026-01-01T12:00:00Z", "2026-01-01T10:00:00Z", "2026-01-01T11:00:00+00:00"]
    rows = [{"text": moment[11:13], "session": "a", "created_at": moment} for moment in moments]
    other = [{"text": "fact", "kind": "semantic", "session": "a"}, {"text": "later", "session": "b"}]
    await service.import_rows([*rows, *other], "ann")
    await service.compress("ann")
    assert summariser.prompts[0].endswith("Conversation:\n10\n11\n12")


async def test_originals_are_hidden_and_can_be_asked_for(make_service, fill, summariser):
    service = make_service(chat=summariser, compression_threshold=1)
    await fill(service, 2)
    await service.compress("ann")

    async def found(**given):
        return {one.memory.content for one in (await service.recall("event 0", "ann", **given)).memories}

    assert await found() == {"Summary 1 of event.", "event 1"}
    assert await found(include_compressed=True) == {"Summary 1 of event.", "event 1", "event 0"}


@pytest.mark.parametrize(
    ("says", "error"), [(None, ChatModelUnavailableError), ("", NoSummaryError), ("...", NoSummaryError)]
)
async def test_a_failed_summary_marks_nothing_and_is_tried_again(make_service, fill, summariser, says, error):
    service = make_service(chat=summariser, compression_threshold=1)
    await fill(service, 2)
    summariser.fails, summariser.says = says is None, says
    with pytest.raises(error):
        await service.compress("ann")
    assert await compressed(service) == []
    assert await service.memories("ann", ["semantic"]) == []
    summariser.fails, summariser.says = False, None
    assert (await service.compress("ann")).compressed == ("s0000",)


async def test_a_failure_after_ingestion_is_logged_and_the_text_is_stored(
    make_service, fill, summariser, caplog, monkeypatch
):
    # import-linter switches loggers off when it runs in the same process.
    monkeypatch.setattr(logging.getLogger(service_module.__name__), "disabled", False)
    service = make_service(chat=summariser, compression_threshold=1)
    await fill(service, 1)
    summariser.fails = True
    await service.ingest("another event", "ann", "new")
    await service.settle()
    assert "compression is put off: down" in caplog.text
    assert "another event" not in caplog.text
    assert (await service.status("ann"))["sessions"] == 2


async def test_ingestion_starts_one_pass_when_it_adds_an_episode(make_service, fill, summariser):
    service = make_service(chat=summariser, compression_threshold=2)
    await fill(service, 5)
    await service.ingest("I prefer tabs", "ann", "new")
    await service.settle()
    assert await compressed(service) == []
    await service.ingest("another event", "ann", "new")
    await service.settle()
    assert await compressed(service) == ["s0000"]


async def test_closing_stops_a_compression_and_nothing_is_marked(make_service, fill, summariser):
    service = make_service(chat=summariser, compression_threshold=1)
    await fill(service, 1)
    waiting = asyncio.Event()

    async def never(*_, **__):
        waiting.set()
        await asyncio.Event().wait()

    summariser.chat = never
    await service.ingest("another event", "ann", "new")
    await waiting.wait()
    await service.close()
    again = make_service(compression_threshold=1)
    assert await compressed(again) == []


@pytest.mark.parametrize("change", ["delete", "update"])
async def test_what_is_changed_while_it_is_summarised_is_not_archived(make_service, fill, summariser, change):
    service = make_service(chat=summariser, compression_threshold=1)
    await fill(service, 2)
    plain = summariser.chat

    async def slow(*args, **kwargs):
        (oldest,) = [one for one in await service.memories("ann") if one.content == "event 0"]
        await (service.delete([oldest.id], "ann") if change == "delete" else service.update(oldest.id, "new", "ann"))
        return await plain(*args, **kwargs)

    summariser.chat = slow
    assert (await service.compress("ann")).compressed == ()
    assert await service.memories("ann", ["semantic"]) == []


@pytest.mark.parametrize("forgotten", ["an original", "the summary"])
async def test_forgetting_a_part_undoes_the_compression(make_service, clock, summariser, forgotten):
    service = make_service(chat=summariser, compression_threshold=1)
    rows = [{"text": "secret", "session": "a", "id": "1"}, {"text": "harmless", "session": "a", "id": "2"}]
    await service.import_rows(rows, "ann")
    clock.move(hours=1)
    await service.import_rows([{"text": "later", "session": "b", "id": "3"}], "ann")
    await service.compress("ann")
    (summary,) = await service.memories("ann", ["semantic"])
    await service.delete(["1" if forgotten == "an original" else summary.id], "ann")
    left = {one.content: one.compressed for one in await service.memories("ann")}
    assert left == ({} if forgotten == "an original" else {"secret": False}) | {"harmless": False, "later": False}
    assert {one.memory.content for one in (await service.recall("x", "ann")).memories} == set(left)
    assert await service.centroid_drift("ann") <= 1e-6


async def test_a_text_said_again_after_its_compression_is_a_new_memory(make_service, fill, summariser):
    service = make_service(chat=summariser, compression_threshold=1, store_threshold=0, auto_compress=False)
    await fill(service, 2)
    await service.compress("ann")
    ((receipt,),) = await service.ingest_all([Utterance(text="event 0", session_id="new")], "ann")
    assert receipt.outcome == "stored"


async def test_compression_goes_on_until_the_threshold(make_service, fill):
    service = make_service(compression_threshold=4)
    await fill(service, 11)
    report = await service.compress("ann", until_quiet=True)
    assert (len(report.compressed), report.by) == (8, "rules (deterministic stand-in)")
    assert (await service.status("ann"))["sessions"] == 3
    assert not (await service.compress("ann")).triggered


async def test_one_silent_session_holds_up_no_other(make_service, fill, summariser):
    service = make_service(chat=summariser, compression_threshold=4)
    await fill(service, 5)
    plain = summariser.chat

    async def sometimes(request):
        reply = await plain(request)
        return reply if "event 0" not in request.messages[0].content else type(reply)(content="")

    summariser.chat = sometimes
    with pytest.raises(UnavailableError, match="s0000"):
        await service.compress("ann", until_quiet=True)
    assert await compressed(service) == ["s0001"]


async def test_a_session_of_signs_alone_can_be_summarised_by_rules(make_service):
    service = make_service(compression_threshold=1)
    await service.import_rows([{"text": "🎉🎉", "session": "a"}, {"text": "x", "session": "b"}], "ann")
    assert (await service.compress("ann")).compressed == ("a",)


async def test_a_prompt_is_bounded_and_what_it_does_not_hold_waits_for_the_next(make_service, fill, summariser):
    service = make_service(chat=summariser, compression_threshold=1, max_prompt_characters=1_000, auto_compress=False)
    rows = [{"text": f"event {number} {'x' * 390}", "session": "a", "importance": 0.5} for number in range(5)]
    await service.import_rows([*rows, {"text": f"long {'y' * 5_000}", "session": "a"}], "ann")
    await fill(service, 1)
    report = await service.compress("ann", until_quiet=True)
    assert [prompt.count("event") for prompt in summariser.prompts] == [2, 2, 1, 0]
    assert max(map(len, summariser.prompts)) < 1_000 + 300
    assert (report.compressed, len(report.summaries)) == (("a",) * 4, 4)
    memories = await service.memories("ann", ["episodic"])
    assert {one.session_id: one.is_archived for one in memories} == {"a": True, "s0000": False}
