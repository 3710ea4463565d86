import asyncio
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import UnavailableError
from memstory.contract.models import ChatModelUnavailableError
from memstory.contract.target import Item, Ref, Scope
from memstory_reference.systems.pipeline import memory as memory_module
from memstory_reference.systems.pipeline.chunk import Utterance
from memstory_reference.systems.pipeline.compression import (
    NoSummaryError,
    summary_by_rules,
    summary_prompt,
    usable_summary,
)
from memstory_reference.text.words import count_tokens

ANN = Scope(user="ann")


@pytest.fixture
def fill(clock):
    """Writes sessions of one memory each, an hour apart."""

    async def write(pipeline, sessions, user="ann", importance=0.5):
        for number in range(sessions):
            clock.move(hours=1)
            await pipeline.import_memories(
                [{"text": f"event {number}", "session": f"s{number:04}", "importance": importance}], user
            )

    return write


async def compressed(pipeline, user="ann"):
    return sorted({one.session_id for one in await pipeline.memories(user) if one.compressed})


@pytest.mark.parametrize(("sessions", "expected"), [(10, []), (11, ["s0000", "s0001", "s0002", "s0003", "s0004"])])
async def test_above_ten_sessions_the_five_oldest_are_compressed(make_pipeline, fill, summariser, sessions, expected):
    pipeline = make_pipeline(chat=summariser)
    await fill(pipeline, sessions)
    await fill(pipeline, 3, user="bob")
    report = await pipeline.compress("ann")
    assert (report.triggered, report.sessions, list(report.compressed)) == (bool(expected), sessions, expected)
    assert await compressed(pipeline) == expected
    assert len(summariser.prompts) == len(expected)


@pytest.mark.parametrize(("threshold", "size"), [(10, 5), (5, 2), (3, 1), (1, 1)])
async def test_half_the_threshold_is_compressed(make_pipeline, fill, summariser, threshold, size):
    pipeline = make_pipeline(chat=summariser, compression_threshold=threshold)
    await fill(pipeline, threshold + 1)
    assert len((await pipeline.compress("ann")).compressed) == size


async def test_a_number_of_sessions_can_be_given(make_pipeline, fill, summariser):
    pipeline = make_pipeline(chat=summariser, compression_threshold=2, sessions_to_compress=9)
    await fill(pipeline, 3)
    assert len((await pipeline.compress("ann")).compressed) == 3


async def test_a_summary_is_semantic_and_says_where_it_came_from(make_pipeline, fill, summariser):
    pipeline = make_pipeline(chat=summariser, compression_threshold=1)
    await fill(pipeline, 2, importance=0.1)
    await pipeline.compress("ann")
    (summary,) = await pipeline.memories("ann", ["semantic"])
    assert (summary.source_session_id, summary.compression_source, summary.compressed) == ("s0000", True, False)
    assert (summary.content, summary.importance) == ("Summary 1 of event.", 0.3)
    originals = await pipeline.memories("ann", ["episodic"])
    assert {(one.session_id, one.compressed, one.summary_id) for one in originals} == {
        ("s0000", True, summary.id),
        ("s0001", False, None),
    }


async def test_a_session_is_told_in_the_order_of_time_and_only_its_episodes(make_pipeline, summariser):
    pipeline = make_pipeline(chat=summariser, compression_threshold=1)
    moments = ["2026-01-01T12:00:00Z", "2026-01-01T10:00:00Z", "2026-01-01T11:00:00+00:00"]
    rows = [{"text": moment[11:13], "session": "a", "created_at": moment} for moment in moments]
    other = [{"text": "fact", "kind": "semantic", "session": "a"}, {"text": "later", "session": "b"}]
    await pipeline.import_memories([*rows, *other], "ann")
    await pipeline.compress("ann")
    assert summariser.prompts[0].endswith("Conversation:\n10\n11\n12")


async def test_originals_are_hidden_and_can_be_asked_for(make_pipeline, fill, summariser):
    pipeline = make_pipeline(chat=summariser, compression_threshold=1)
    await fill(pipeline, 2)
    await pipeline.compress("ann")

    async def found(**given):
        return {one.memory.content for one in (await pipeline.recall("event 0", "ann", **given)).memories}

    assert await found() == {"Summary 1 of event.", "event 1"}
    assert await found(include_compressed=True) == {"Summary 1 of event.", "event 1", "event 0"}


@pytest.mark.parametrize(
    ("says", "error"), [(None, ChatModelUnavailableError), ("", NoSummaryError), ("...", NoSummaryError)]
)
async def test_a_failed_summary_marks_nothing_and_is_tried_again(make_pipeline, fill, summariser, says, error):
    pipeline = make_pipeline(chat=summariser, compression_threshold=1)
    await fill(pipeline, 2)
    summariser.fails, summariser.says = says is None, says
    with pytest.raises(error):
        await pipeline.compress("ann")
    assert await compressed(pipeline) == []
    assert await pipeline.memories("ann", ["semantic"]) == []
    summariser.fails, summariser.says = False, None
    assert (await pipeline.compress("ann")).compressed == ("s0000",)


async def test_a_failure_after_ingestion_is_logged_and_the_text_is_stored(
    make_pipeline, fill, summariser, caplog, monkeypatch
):
    # import-linter switches loggers off when it runs in the same process.
    monkeypatch.setattr(logging.getLogger(memory_module.__name__), "disabled", False)
    pipeline = make_pipeline(chat=summariser, compression_threshold=1)
    await fill(pipeline, 1)
    summariser.fails = True
    await pipeline.ingest("another event", "ann", "new")
    await pipeline.settle()
    assert "compression is put off: down" in caplog.text
    assert "another event" not in caplog.text
    assert (await pipeline.inspect("status", {}, ANN))["sessions"] == 2


async def test_ingestion_starts_one_pass_when_it_adds_an_episode(make_pipeline, fill, summariser):
    pipeline = make_pipeline(chat=summariser, compression_threshold=2)
    await fill(pipeline, 5)
    await pipeline.ingest("I prefer tabs", "ann", "new")
    await pipeline.settle()
    assert await compressed(pipeline) == []
    await pipeline.ingest("another event", "ann", "new")
    await pipeline.settle()
    assert await compressed(pipeline) == ["s0000"]


async def test_closing_stops_a_compression_and_nothing_is_marked(make_pipeline, fill, summariser):
    pipeline = make_pipeline(chat=summariser, compression_threshold=1)
    await fill(pipeline, 1)
    waiting = asyncio.Event()

    async def never(*_, **__):
        waiting.set()
        await asyncio.Event().wait()

    summariser.chat = never
    await pipeline.ingest("another event", "ann", "new")
    await waiting.wait()
    await pipeline.close()
    again = make_pipeline(compression_threshold=1)
    assert await compressed(again) == []


@pytest.mark.parametrize("change", ["delete", "update"])
async def test_what_is_changed_while_it_is_summarised_is_not_archived(make_pipeline, fill, summariser, change):
    pipeline = make_pipeline(chat=summariser, compression_threshold=1)
    await fill(pipeline, 2)
    plain = summariser.chat

    async def slow(*args, **kwargs):
        (oldest,) = [one for one in await pipeline.memories("ann") if one.content == "event 0"]
        await (
            pipeline.delete(Ref(id=oldest.id), ANN)
            if change == "delete"
            else pipeline.update(Ref(id=oldest.id), Item(text="new"), ANN)
        )
        return await plain(*args, **kwargs)

    summariser.chat = slow
    assert (await pipeline.compress("ann")).compressed == ()
    assert await pipeline.memories("ann", ["semantic"]) == []


@pytest.mark.parametrize("forgotten", ["an original", "the summary"])
async def test_forgetting_a_part_undoes_the_compression(make_pipeline, clock, summariser, forgotten):
    pipeline = make_pipeline(chat=summariser, compression_threshold=1)
    rows = [{"text": "secret", "session": "a", "id": "1"}, {"text": "harmless", "session": "a", "id": "2"}]
    await pipeline.import_memories(rows, "ann")
    clock.move(hours=1)
    await pipeline.import_memories([{"text": "later", "session": "b", "id": "3"}], "ann")
    await pipeline.compress("ann")
    (summary,) = await pipeline.memories("ann", ["semantic"])
    await pipeline.delete(Ref(id="1" if forgotten == "an original" else summary.id), ANN)
    left = {one.content: one.compressed for one in await pipeline.memories("ann")}
    assert left == ({} if forgotten == "an original" else {"secret": False}) | {"harmless": False, "later": False}
    assert {one.memory.content for one in (await pipeline.recall("x", "ann")).memories} == set(left)
    assert await pipeline.inspect("drift", {}, ANN) <= 1e-6


async def test_a_text_said_again_after_its_compression_is_a_new_memory(make_pipeline, fill, summariser):
    pipeline = make_pipeline(chat=summariser, compression_threshold=1, store_threshold=0, auto_compress=False)
    await fill(pipeline, 2)
    await pipeline.compress("ann")
    ((receipt,),) = await pipeline.ingest_all([Utterance(text="event 0", session_id="new")], "ann")
    assert receipt.outcome == "stored"


async def test_compression_goes_on_until_the_threshold(make_pipeline, fill):
    pipeline = make_pipeline(compression_threshold=4)
    await fill(pipeline, 11)
    report = await pipeline.compress("ann", until_quiet=True)
    assert (len(report.compressed), report.by) == (8, "rules (deterministic stand-in)")
    assert (await pipeline.inspect("status", {}, ANN))["sessions"] == 3
    assert not (await pipeline.compress("ann")).triggered


async def test_one_silent_session_holds_up_no_other(make_pipeline, fill, summariser):
    pipeline = make_pipeline(chat=summariser, compression_threshold=4)
    await fill(pipeline, 5)
    plain = summariser.chat

    async def sometimes(request):
        reply = await plain(request)
        return reply if "event 0" not in request.messages[0].content else type(reply)(content="")

    summariser.chat = sometimes
    with pytest.raises(UnavailableError, match="s0000"):
        await pipeline.compress("ann", until_quiet=True)
    assert await compressed(pipeline) == ["s0001"]


async def test_a_session_of_signs_alone_can_be_summarised_by_rules(make_pipeline):
    pipeline = make_pipeline(compression_threshold=1)
    await pipeline.import_memories([{"text": "🎉🎉", "session": "a"}, {"text": "x", "session": "b"}], "ann")
    assert (await pipeline.compress("ann")).compressed == ("a",)


async def test_a_prompt_is_bounded_and_what_it_does_not_hold_waits_for_the_next(make_pipeline, fill, summariser):
    pipeline = make_pipeline(chat=summariser, compression_threshold=1, max_prompt_characters=1_000, auto_compress=False)
    rows = [{"text": f"event {number} {'x' * 390}", "session": "a", "importance": 0.5} for number in range(5)]
    await pipeline.import_memories([*rows, {"text": f"long {'y' * 5_000}", "session": "a"}], "ann")
    await fill(pipeline, 1)
    report = await pipeline.compress("ann", until_quiet=True)
    assert [prompt.count("event") for prompt in summariser.prompts] == [2, 2, 1, 0]
    assert max(map(len, summariser.prompts)) < 1_000 + 300
    assert (report.compressed, len(report.summaries)) == (("a",) * 4, 4)
    memories = await pipeline.memories("ann", ["episodic"])
    assert {one.session_id: one.is_archived for one in memories} == {"a": True, "s0000": False}


def rule_summary(contents, most=300):
    return summary_by_rules(contents, max_tokens=most, count=count_tokens)


def test_the_prompt_holds_the_contents_in_order_whatever_braces_they_have():
    assert summary_prompt(["one {session_content}", "{0} two"]) == (
        "Summarize the following conversation into 2-3 sentences capturing key facts,\n"
        "decisions, and topics discussed. Be specific and preserve names, numbers, and\n"
        "technical details. Do not include pleasantries.\n"
        "Conversation:\n"
        "one {session_content}\n"
        "{0} two"
    )


def test_names_and_numbers_outweigh_pleasantries_and_keep_their_order():
    contents = [
        "Good morning!",
        "Ilse moves to Graz on 3 May.",
        "How nice.",
        "We use PostgreSQL 16.",
        "See you.",
        "Bye.",
    ]
    assert "Ilse moves to Graz on 3 May." in rule_summary(contents)
    assert "We use PostgreSQL 16." in rule_summary(contents)
    assert rule_summary(contents).index("Ilse") < rule_summary(contents).index("PostgreSQL")


def test_a_summary_has_three_sentences_at_most():
    assert (
        rule_summary([f"We met person {number}." for number in range(9)])
        == "We met person 0. We met person 1. We met person 2."
    )


def test_a_reply_that_says_nothing_is_no_summary():
    assert [
        usable_summary(reply, ["We met Ilse."], max_tokens=9, count=count_tokens)
        for reply in ("", " \n", "...", '{"": [[[ ...')
    ] == [""] * 4


@pytest.mark.parametrize(
    ("reply", "is_one"),
    [
        ("Ilse moved to Graz on 3 May.", True),
        ("**They spoke of moving to Graz.**", True),
        ('The user said: "I will move."', True),
        ("Ilse moved to Gr", False),
        ("I'm sorry, but I can't help with that.", False),
        ("Nat\u00fcrlich! Das merke ich mir gern, danke f\u00fcr den Hinweis.", False),
    ],
)
def test_a_summary_is_whole_and_has_something_of_what_it_hides(reply, is_one):
    contents = ["Ilse moves to Graz on 3 May.", "How nice!"]
    assert bool(usable_summary(reply, contents, max_tokens=99, count=count_tokens)) is is_one


def test_a_reply_that_is_too_long_is_cut_at_a_sentence():
    assert (
        usable_summary("One two. Three four. Five six.", ["Four."], max_tokens=6, count=count_tokens)
        == "One two. Three four."
    )


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5), st.integers(8, 50))
def test_rules_always_give_the_same_summary_that_fits(contents, most):
    assert rule_summary(contents, most) == rule_summary(contents, most)
    assert count_tokens(rule_summary(contents, most)) <= most
