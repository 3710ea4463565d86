from __future__ import annotations

import numpy as np
import pytest

from memstory.contract.models import BrokenReplyError, ChatModelUnavailableError, ChatRequest, Message, Reply
from memstory.contract.values import ToolSchema
from memstory.models.scripted_chat import ScriptedChat
from memstory.models.spoiled_replies import STATUSES
from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.embedding.prefixes import profile_of
from memstory_reference.errors import UnknownTextError
from memstory_reference.ports import EmbedderUnavailableError, Purpose
from memstory_reference.targets.environment_ports import CHAT_MODEL, SPOILED, FaultSwitch, WatchedEmbedder, WatchedModel


def nomic_like() -> FixedVectors:
    table = {text: [1.0, 0.0] for text in ("Elixir", "databases", "c")}
    return FixedVectors(table, profile=profile_of("nomic-embed-text"))


async def test_log_shows_the_prefixes_that_were_sent():
    log = WatchedEmbedder(nomic_like())
    await log.embed(["Elixir"], Purpose.DOCUMENT)
    await log.embed(["databases"], Purpose.QUERY)
    assert log.data() == {
        "calls": 2,
        "texts": 2,
        "sent": ["search_document: Elixir", "search_query: databases"],
        "purposes": ["document", "query"],
    }


async def test_since_leaves_out_what_was_before():
    log = WatchedEmbedder(nomic_like())
    await log.embed(["Elixir", "databases"], Purpose.DOCUMENT)
    before = log.data()["calls"]
    await log.embed(["c"], Purpose.QUERY)
    assert log.data(since=before) == {"calls": 1, "texts": 1, "sent": ["search_query: c"], "purposes": ["query"]}
    assert log.data(since=2) == log.data(since=99) == {"calls": 0, "texts": 0, "sent": [], "purposes": []}


async def test_call_answered_from_the_cache_is_counted(tmp_path):
    cached = CachedEmbedder(nomic_like(), tmp_path / "cache")
    log = WatchedEmbedder(cached)
    for _ in range(2):
        await log.embed(["Elixir"], Purpose.DOCUMENT)
    await cached.close()
    assert log.data()["calls"] == 2


async def test_call_that_fails_is_counted():
    log = WatchedEmbedder(nomic_like())
    with pytest.raises(UnknownTextError):
        await log.embed(["unheard-of"], Purpose.QUERY)
    assert log.data()["sent"] == ["search_query: unheard-of"]


async def test_bounded_log_forgets_texts_but_counts_on():
    log = WatchedEmbedder(nomic_like(), kept=2)
    for _ in range(5):
        await log.embed(["Elixir", "c"], Purpose.DOCUMENT)
    data = log.data()
    assert (data["calls"], data["texts"], data["sent"]) == (5, 10, ["search_document: Elixir", "search_document: c"])


def test_log_is_the_same_embedder_to_its_callers():
    log = WatchedEmbedder(nomic_like())
    assert (log.model, log.dimension) == ("fixed-2", 2)


class Parrot:
    name = "parrot"

    async def chat(self, request):
        if request.messages[-1].content == "fail":
            raise ChatModelUnavailableError("down")
        return Reply(content=request.messages[-1].content)


async def test_every_call_is_kept_with_what_was_asked_and_replied():
    chat = WatchedModel(Parrot())
    tool = ToolSchema(name="echo", description="", parameters={})
    await chat.chat(ChatRequest([Message(role="user", content="hi")], [tool], purpose="chat", temperature=0.1))
    (entry,) = chat.data()["log"]
    assert (entry["purpose"], entry["temperature"], entry["tools"]) == ("chat", 0.1, ["echo"])
    assert (entry["messages"][0]["content"], entry["reply"]["content"]) == ("hi", "hi")


async def test_a_call_that_fails_was_made_all_the_same():
    chat = WatchedModel(Parrot())
    with pytest.raises(ChatModelUnavailableError):
        await chat.chat(ChatRequest([Message(role="user", content="fail")]))
    assert chat.data()["calls"] == 1
    assert chat.data()["log"][0]["reply"] is None


async def test_the_log_can_be_read_from_a_call_on():
    chat = WatchedModel(Parrot())
    for text in ("a", "b", "c"):
        await chat.chat(ChatRequest([Message(role="user", content=text)]))
    assert chat.data(since=2)["calls"] == 1
    assert [entry["reply"]["content"] for entry in chat.data(since=1)["log"]] == ["b", "c"]


ASK = [Message(role="user", content="Hello")]


@pytest.fixture
def switch():
    return FaultSwitch("part", slow_seconds=0.001)


@pytest.fixture
def embedder(switch):
    return WatchedEmbedder(FixedVectors({"a": [1.0, 0.0], "b": [0.6, 0.8]}), switch)


@pytest.fixture
def chat(switch):
    return WatchedModel(ScriptedChat([{"reply": "fine"}]), switch)


async def test_embedder_that_is_ok_or_slow_answers_right(embedder, switch):
    for mode in ("ok", "slow"):
        switch.mode = mode
        assert np.allclose(await embedder.embed(["b"], Purpose.DOCUMENT), [[0.6, 0.8]])


async def test_embedder_that_is_down_is_unavailable_until_it_is_up_again(embedder, switch):
    switch.mode = "down"
    with pytest.raises(EmbedderUnavailableError):
        await embedder.embed(["a"], Purpose.QUERY)
    switch.mode = "ok"
    assert len(await embedder.embed(["a"], Purpose.QUERY)) == 1


async def test_garbage_of_the_embedder_tells_no_texts_apart_and_has_length_one(embedder, switch):
    switch.mode = "garbage"
    vectors = await embedder.embed(["a", "b"], Purpose.DOCUMENT)
    assert np.array_equal(vectors[0], vectors[1])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


async def test_chat_behaves_as_its_switch_says(chat, switch):
    for mode in ("ok", "slow"):
        switch.mode = mode
        assert (await chat.chat(ChatRequest(ASK))).content == "fine"
    switch.mode = "garbage"
    assert (await chat.chat(ChatRequest(ASK))).content != "fine"
    switch.mode = "down"
    with pytest.raises(ChatModelUnavailableError):
        await chat.chat(ChatRequest(ASK))


async def test_real_failures_are_kept_and_faults_of_the_story_are_not(embedder, chat, switch):
    with pytest.raises(UnknownTextError):
        await embedder.embed(["c"], Purpose.QUERY)
    switch.mode = "down"
    with pytest.raises(EmbedderUnavailableError):
        await embedder.embed(["a"], Purpose.QUERY)
    with pytest.raises(ChatModelUnavailableError):
        await chat.chat(ChatRequest(ASK))
    assert (embedder.failures, chat.failures) == ([], [])
    broken = WatchedModel(Parrot())
    with pytest.raises(ChatModelUnavailableError):
        await broken.chat(ChatRequest([Message(role="user", content="fail")]))
    assert len(broken.failures) == 1


async def test_a_reply_that_breaks_off_is_what_the_model_does_and_no_failure_of_the_machine():
    class Stammering:
        name = "stammering"

        async def chat(self, request):
            raise BrokenReplyError("no end")

    chat = WatchedModel(Stammering())
    with pytest.raises(BrokenReplyError):
        await chat.chat(ChatRequest(ASK))
    assert chat.failures == []


async def test_what_is_asked_after_the_reply_may_have_a_switch_of_its_own(switch):
    chat = WatchedModel(ScriptedChat([{"reply": "fine"}]), after_reply=switch)
    switch.mode = "down"
    assert (await chat.chat(ChatRequest(ASK))).content == "fine"
    with pytest.raises(ChatModelUnavailableError):
        await chat.chat(ChatRequest(ASK, purpose="extract"))


async def said_with(mode: str, reply: object) -> Reply:
    model = WatchedModel(ScriptedChat([{"reply": reply}]), FaultSwitch(CHAT_MODEL, mode))
    return await model.chat(ChatRequest([Message(role="user", content="?")]))


@pytest.mark.parametrize("mode", SPOILED)
async def test_a_story_spoils_what_a_model_says(mode):
    said = '{"place": "Bergen"}'
    assert (await said_with(mode, said)).content != said


async def test_a_spoiled_call_of_a_tool_breaks_the_reply_off():
    call = {"tool_calls": [{"name": "search", "args": {"query": "Bergen"}}]}
    with pytest.raises(BrokenReplyError, match="search"):
        await said_with("cut", call)
    assert (await said_with("fenced", call)).tool_requests[0].arguments == {"query": "Bergen"}
    assert (await said_with("refusal", call)).tool_requests == ()


@pytest.mark.parametrize("mode", STATUSES)
async def test_a_model_that_fails_once_answers_the_next_time(mode):
    model = WatchedModel(ScriptedChat([{"reply": "Yes."}]), FaultSwitch(CHAT_MODEL, mode))
    request = ChatRequest([Message(role="user", content="?")])
    with pytest.raises(ChatModelUnavailableError, match=str(STATUSES[mode])):
        await model.chat(request)
    assert (await model.chat(request)).content == "Yes."
