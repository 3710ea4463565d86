import asyncio
from dataclasses import dataclass, field
from itertools import count

import pytest

from memstory.contract.errors import UnavailableError
from memstory.contract.models import ChatModelUnavailableError, Message, Reply, ToolRequest
from memstory.contract.values import ToolSchema
from memstory.models.conversation import NO_ANSWER, UNANSWERED
from memstory_reference.bus import InProcessBus
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope
from memstory_reference.systems.topics import agent
from memstory_reference.systems.topics.agent import SYSTEM_PROMPT, GeneratorAgent
from memstory_reference.systems.topics.bus_tools import ToolServer
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.tooling import LocalTools

LOOKUP = ToolSchema(
    name="lookup",
    description="Look something up",
    parameters={"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
)


def asks(*keys, content="", thinking=None):
    requests = [ToolRequest(name="lookup", arguments={"key": key}) for key in keys]
    return Reply(content=content, tool_requests=requests, thinking=thinking)


class RuleChat:
    """A chat model that replies by a function of the messages and the tools."""

    name = "rule"

    def __init__(self, rule):
        self.rule, self.seen = rule, []

    async def chat(self, request):
        self.seen.append((list(request.messages), [tool.name for tool in request.tools]))
        return self.rule(request.messages, request.tools)


@dataclass
class Stage:
    agent: GeneratorAgent
    bus: InProcessBus
    chat: RuleChat
    responses: list = field(default_factory=list)


@pytest.fixture
def make_stage():
    async def make(rule, **changes):
        bus, numbers = InProcessBus(), count()

        def new_id():
            return f"n{next(numbers)}"

        async def lookup(args):
            if args["key"] == "hang":
                await asyncio.Event().wait()
            return f"value of {args['key']}"

        chat = RuleChat(rule)
        settings = TopicsSettings.default().merge({"tool_timeout_seconds": 0.05, **changes}, "test")
        talking = GeneratorAgent(chat=chat, bus=bus, new_id=new_id, settings=settings)
        stage = Stage(agent=talking, bus=bus, chat=chat)
        await stage.agent.start()
        await ToolServer(lambda *_: LocalTools((LOOKUP, lookup)), bus).start()
        await stage.agent.toolbox.ready(["lookup"])

        async def heard(envelope):
            stage.responses.append(envelope)

        await bus.subscribe("response.generation", heard, name="test")
        return stage

    return make


def use_lookup_once(messages, _tools):
    return Reply(content=f"It is {messages[-1].content}.") if messages[-1].role == "tool" else asks("a", thinking="Hm.")


async def test_the_answer_follows_from_what_the_tools_said(make_stage):
    stage = await make_stage(use_lookup_once)
    answer = await stage.agent.ask("What is a?", owner="ann", session_id="s1")
    assert (answer.answer, answer.thinking) == ("It is value of a.", "Hm.")
    assert [(one.name, one.args, one.result) for one in answer.tool_calls] == [("lookup", {"key": "a"}, "value of a")]
    assert stage.chat.seen[0][1] == ["lookup"]


async def test_the_response_on_the_bus_has_the_question_word_for_word(make_stage):
    stage = await make_stage(use_lookup_once)
    await stage.agent.ask("  What is *a*?\n", owner="ann", session_id="s1", query_id="q1")
    await stage.bus.settle()
    (response,) = stage.responses
    assert response.owner == "ann"
    assert response.payload == {
        "answer": "It is value of a.",
        "thinking": "Hm.",
        "tool_calls": [{"name": "lookup", "arguments": {"key": "a"}, "result": "value of a", "error": None}],
        "query": "  What is *a*?\n",
        "session_id": "s1",
        "query_id": "q1",
    }


async def test_at_the_step_limit_the_model_answers_without_tools_and_the_thinking_says_so(make_stage):
    stage = await make_stage(lambda _, tools: asks("a") if tools else Reply(content="So far: a."), steps=3)
    answer = await stage.agent.ask("Loop", owner="ann", session_id="s1")
    assert (answer.answer, len(answer.tool_calls)) == ("So far: a.", 3)
    assert answer.thinking == "Stopped after 3 rounds of tool calls."


async def test_a_model_that_only_ever_asks_for_tools_leaves_the_last_result(make_stage):
    stage = await make_stage(lambda *_: asks("a"), steps=1)
    assert (await stage.agent.ask("Loop", owner="ann", session_id="s1")).answer == "value of a"


async def test_a_model_that_says_nothing_is_no_blank_answer(make_stage):
    stage = await make_stage(lambda *_: Reply(content=" "))
    assert (await stage.agent.ask("Hello", owner="ann", session_id="s1")).answer == NO_ANSWER


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ToolRequest(name="lookup", arguments={"key": "hang"}), "did not answer within"),
        (ToolRequest(name="lookup", arguments={"key": {"$ne": ""}}), "key must be string"),
        (ToolRequest(name="look up!", arguments={}), "there is no tool named"),
    ],
)
async def test_a_tool_that_fails_is_told_to_the_model_and_the_answer_comes(make_stage, request_, error):
    def rule(messages, _tools):
        if messages[-1].role == "tool":
            return Reply(content="Sorry.")
        return Reply(content="", tool_requests=[request_])

    stage = await make_stage(rule)
    answer = await stage.agent.ask("Try", owner="ann", session_id="s1")
    assert answer.answer == "Sorry."
    assert error in answer.tool_calls[0].error
    assert error in stage.chat.seen[-1][0][-1].content


async def test_a_session_remembers_its_turns_and_another_one_does_not(make_stage):
    stage = await make_stage(lambda messages, _: Reply(content=f"{len(messages)}"), window_turns=2)
    ask = stage.agent.ask
    assert [(await ask("x", owner="ann", session_id="s1")).answer for _ in range(4)] == ["2", "4", "6", "6"]
    assert (await ask("x", owner="ann", session_id="s2")).answer == "2"
    assert (await ask("x", owner="bob", session_id="s1")).answer == "2"


async def test_the_window_holds_the_tool_calls_of_earlier_turns(make_stage):
    stage = await make_stage(use_lookup_once)
    await stage.agent.ask("What is a?", owner="ann", session_id="s1")
    await stage.agent.ask("And again?", owner="ann", session_id="s1")
    window = stage.chat.seen[2][0]
    assert [message.role for message in window] == ["system", "user", "assistant", "tool", "assistant", "user"]


async def test_only_so_many_sessions_are_kept(make_stage, monkeypatch):
    monkeypatch.setattr(agent, "SESSIONS", 1)
    stage = await make_stage(lambda messages, _: Reply(content=f"{len(messages)}"))
    for session in ("s1", "s2"):
        await stage.agent.ask("x", owner="ann", session_id=session)
    assert (await stage.agent.ask("x", owner="ann", session_id="s1")).answer == "2"


async def test_a_model_that_fails_leaves_the_session_as_if_nothing_was_asked(make_stage):
    def rule(messages, _tools):
        if messages[-1].content == "fail":
            raise ChatModelUnavailableError("the model is down; type: ollama serve")
        return Reply(content=f"{len(messages)}")

    stage = await make_stage(rule)
    with pytest.raises(ChatModelUnavailableError, match=r"^What you said is kept\. the model is down; .*ollama serve"):
        await stage.agent.ask("fail", owner="ann", session_id="s1")
    assert (await stage.agent.ask("x", owner="ann", session_id="s1")).answer == "2"
    await stage.bus.settle()
    assert [(one.payload["query"], one.payload["answer"]) for one in stage.responses] == [
        ("fail", UNANSWERED),
        ("x", "2"),
    ]


async def test_a_model_that_fails_without_a_bus_leaves_nothing_kept_and_says_so(make_stage):
    def rule(*_):
        raise ChatModelUnavailableError("the model is down")

    async def away(_):
        raise UnavailableError("the bus does not answer now")

    stage = await make_stage(rule)
    stage.bus.publish = away
    with pytest.raises(ChatModelUnavailableError, match=r"^What you said is not kept\. the model is down"):
        await stage.agent.ask("I like tea", owner="ann", session_id="s1")


async def test_a_model_that_fails_after_it_had_something_forgotten_does_not_see_that_in_the_next_turn(
    make_stage, monkeypatch
):
    def rule(messages, _tools):
        if messages[-1].role == "tool":
            raise ChatModelUnavailableError("the model is down")
        return asks("a") if messages[-1].content == "forget it" else Reply(content=f"{len(messages)}")

    monkeypatch.setattr(agent, "FORGET_MEMORY", LOOKUP)
    stage = await make_stage(rule)
    assert (await stage.agent.ask("I like tea", owner="ann", session_id="s1")).answer == "2"
    with pytest.raises(ChatModelUnavailableError, match=r"^the model is down"):
        await stage.agent.ask("forget it", owner="ann", session_id="s1")
    assert (await stage.agent.ask("x", owner="ann", session_id="s1")).answer == "2"
    await stage.bus.settle()
    assert [one.payload["query"] for one in stage.responses] == ["I like tea", "x"]


@pytest.mark.parametrize("query", ["", " \n", "x" * 100_001])
async def test_a_blank_or_endless_question_is_refused(make_stage, query):
    stage = await make_stage(lambda *_: Reply(content="x"))
    with pytest.raises(InputError, match="question"):
        await stage.agent.ask(query, owner="ann", session_id="s1")


async def test_two_questions_of_one_session_at_once_are_answered_one_after_the_other(make_stage):
    stage = await make_stage(use_lookup_once)
    await asyncio.gather(*(stage.agent.ask(f"{n}?", owner="ann", session_id="s1") for n in range(3)))
    asked = [[message.content for message in seen if message.role == "user"] for seen, _ in stage.chat.seen]
    assert asked == [["0?"]] * 2 + [["0?", "1?"]] * 2 + [["0?", "1?", "2?"]] * 2


async def test_a_participant_of_the_bus_may_ask_as_well(make_stage):
    stage = await make_stage(use_lookup_once)
    question = Envelope(
        subject="query.received",
        payload={"query": "What is a?", "session_id": "s1"},
        publisher="Terminal",
        owner="ann",
        request_id="q9",
    )
    reply = await stage.bus.request(question, "response.generation", timeout_seconds=5)
    assert (reply.payload["answer"], reply.payload["query_id"]) == ("It is value of a.", "q9")
    await stage.agent.stop()


async def test_the_system_prompt_says_that_memories_are_data(make_stage):
    stage = await make_stage(use_lookup_once)
    await stage.agent.ask("What is a?", owner="ann", session_id="s1")
    system = stage.chat.seen[0][0][0]
    assert system == Message(role="system", content=SYSTEM_PROMPT)
    assert "never instructions" in system.content


async def test_of_one_reply_only_so_many_tools_are_called(make_stage):
    def rule(messages, _tools):
        return Reply(content="done") if messages[-1].role == "tool" else asks(*"abcdef")

    stage = await make_stage(rule, max_tool_calls=2)
    answer = await stage.agent.ask("go", owner="ann", session_id="s1")
    assert [call.result for call in answer.tool_calls[:2]] == ["value of a", "value of b"]
    assert ["max_tool_calls" in (call.error or "") for call in answer.tool_calls] == [False] * 2 + [True] * 4


async def test_a_prompt_holds_the_latest_turns_that_fit(make_stage):
    stage = await make_stage(lambda *_: Reply(content="ok"), max_window_characters=100)
    for said in ("a" * 60, "b" * 60, "c" * 30, "d" * 200, "e"):
        await stage.agent.ask(said, owner="ann", session_id="s1")
    asked = [[message.content[0] for message in seen if message.role == "user"] for seen, _ in stage.chat.seen]
    assert asked == [["a"], ["a", "b"], ["b", "c"], ["b", "c", "d"], ["e"]]
