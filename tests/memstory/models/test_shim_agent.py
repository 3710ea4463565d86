"""How the shim's agent takes a turn, what it remembers itself, and what it leaves to the backend."""

from __future__ import annotations

import asyncio

import pytest
from memstory_tests_waiting import eventually

from memstory.contract.errors import Refused, SetupError
from memstory.contract.models import ChatModelUnavailableError, Reply
from memstory.contract.target import Scope
from memstory.models.conversation import NO_ANSWER, ROUNDS, WINDOW_TURNS
from memstory.models.shim import Agent
from memstory.models.shim_tools import TOOLSETS, MemoryTools

ABLE = frozenset({"add", "search", "add.key", "get.key"})
ANN = Scope(user="ann", session="session-1")
LATER = Scope(user="ann", session="session-2")


@pytest.fixture
def agent(oracle):
    def make(model):
        return Agent(model, MemoryTools(target=oracle, able=ABLE, schemas=TOOLSETS["dual"]))

    return make


async def remembered(target):
    return [hit.text for hit in await target.list(Scope(user="ann"))]


async def test_calls_are_recorded_in_order_and_the_model_reads_their_results(agent, written):
    model = written(
        [("memory_save", {"topic": "user.name", "content": "Ilse"})],
        [("memory_recall", {"topic": "user.name"})],
        "You are Ilse.",
    )
    turn = await agent(model).say("I am Ilse. Who am I?", ANN)
    assert turn.answer == "You are Ilse."
    assert [(call.name, call.result) for call in turn.tool_calls] == [
        ("memory_save", "Memory saved: user.name"),
        ("memory_recall", "[Memory: user.name] Ilse"),
    ]
    said, tools = model.asked[-1]
    assert said[-1] == "[Memory: user.name] Ilse"
    assert tools == ["memory_recall", "memory_save"]


async def test_what_the_user_said_is_in_the_backend_and_questions_do_not_find_themselves(agent, oracle, written):
    model = written([("memory_recall", {"query": "kiln"})], "I do not know.")
    turn = await agent(model).say("Where is the kiln?", ANN)
    assert turn.tool_calls[0].result == "No memories found."
    assert await remembered(oracle) == ["Where is the kiln?"]


async def test_the_window_holds_the_last_turns_of_its_session_only(agent, written):
    model = written(*[f"answer {number}" for number in range(WINDOW_TURNS + 2)], "elsewhere")
    talking = agent(model)
    for number in range(WINDOW_TURNS + 2):
        await talking.say(f"message {number}", ANN)
    said = model.asked[-1][0]
    assert "message 0" not in said
    assert said[1:3] == ["message 1", "answer 1"]
    await talking.say("hello", LATER)
    assert model.asked[-1][0][1:] == ["hello"]


async def test_a_new_agent_knows_nothing_of_the_conversation(agent, written):
    model = written("noted", "who?")
    await agent(model).say("I am Ilse.", ANN)
    await agent(model).say("Who am I?", ANN)
    assert model.asked[-1][0][1:] == ["Who am I?"]


async def test_a_model_that_fails_leaves_no_trace_of_the_turn(agent, oracle, written):
    model = written("fine", SetupError("the model is down"), "and now?")
    talking = agent(model)
    await talking.say("one", ANN)
    with pytest.raises(SetupError, match="down"):
        await talking.say("two", ANN)
    await talking.say("three", ANN)
    assert model.asked[-1][0][1:] == ["one", "fine", "three"]
    assert await remembered(oracle) == ["one", "three"]


async def test_a_model_that_never_stops_asking_is_asked_once_without_tools(agent, written):
    call = [("memory_recall", {"query": "kiln"})]
    model = written(*[call] * ROUNDS, "enough")
    turn = await agent(model).say("Where is the kiln?", ANN)
    assert turn.answer == "enough"
    assert model.asked[-1][1] == []
    assert len(turn.tool_calls) == ROUNDS
    assert "Stopped" in turn.thinking


async def test_a_model_without_words_gives_the_last_result_or_says_that_there_is_none(agent, written):
    model = written([("memory_recall", {"query": "kiln"})], "", " ")
    talking = agent(model)
    assert (await talking.say("Where is the kiln?", ANN)).answer == "No memories found."
    assert (await talking.say("Well?", ANN)).answer == NO_ANSWER


async def test_blank_speech_is_refused_before_any_model_is_asked(agent, oracle, written):
    model = written("fine")
    with pytest.raises(Refused):
        await agent(model).say(" \n", ANN)
    assert model.asked == []
    assert await remembered(oracle) == []


async def test_turns_of_a_session_wait_for_each_other_and_those_of_others_do_not(oracle):
    class Slow:
        name = "slow (stand-in)"

        def __init__(self):
            self.now, self.most, self.windows = {}, {}, []

        async def chat(self, request):
            who = request.messages[-1].content
            self.now[who] = self.now.get(who, 0) + 1
            self.most[who] = max(self.most.get(who, 0), self.now[who])
            self.most["all"] = max(self.most.get("all", 0), sum(self.now.values()))
            self.windows.append(len(request.messages))
            await eventually(lambda: self.most["all"] == 2)
            self.now[who] -= 1
            return Reply(content=who)

    model = Slow()
    talking = Agent(model, MemoryTools(target=oracle, able=ABLE, schemas=TOOLSETS["dual"]))
    bob = Scope(user="bob", session="session-1")
    await asyncio.gather(*(talking.say(scope.user, scope) for scope in (ANN, bob) for _ in range(3)))
    assert (model.most["ann"], model.most["bob"], model.most["all"]) == (1, 1, 2)
    assert sorted(model.windows) == [2, 2, 4, 4, 6, 6]


async def test_calls_of_a_language_model_are_counted_also_where_it_fails_and_those_of_a_stand_in_are_not(
    agent, written
):
    model = written("Hi.", SetupError("down"))
    talking = agent(model)
    assert talking.use is None
    model.name = "openai:m"
    talking = agent(model)
    await talking.say("Hello", ANN)
    with pytest.raises(SetupError):
        await talking.say("Again", ANN)
    assert (talking.use.calls, talking.use.failed, talking.use.prompt_tokens) == (2, 1, None)


async def test_a_model_that_is_down_is_the_machines_and_not_the_backends(agent, oracle, written):
    with pytest.raises(SetupError, match="chat model cannot answer: start Ollama"):
        await agent(written(ChatModelUnavailableError("start Ollama with 'ollama serve'"))).say("Hi.", ANN)
    assert await remembered(oracle) == ["Hi."]
