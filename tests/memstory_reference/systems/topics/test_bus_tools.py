import asyncio
from itertools import count

import pytest

from memstory.contract.errors import UnavailableError
from memstory.contract.values import ToolSchema
from memstory_reference.bus import InProcessBus
from memstory_reference.ports import Envelope
from memstory_reference.systems.topics.bus_tools import ToolBox, ToolServer
from memstory_reference.tooling import LocalTools

ECHO = ToolSchema(
    name="echo",
    description="Say it again",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


def echo_server(bus, call=None, **rest):
    def tools_of(owner, session):
        async def echo(args):
            return f"{owner}/{session}: {args['text']}"

        return LocalTools((ECHO, call or echo))

    return ToolServer(tools_of, bus, **rest)


@pytest.fixture
async def bus():
    return InProcessBus()


@pytest.fixture
async def box(bus):
    numbers = count()
    toolbox = ToolBox(bus=bus, new_id=lambda: f"r{next(numbers)}", caller="GeneratorAgent", timeout_seconds=0.05)
    await toolbox.listen()
    return toolbox


async def test_a_toolbox_knows_what_was_announced_and_forgets_what_was_withdrawn(bus, box):
    server = echo_server(bus)
    assert box.specs() == []
    await server.start()
    await box.ready(["echo"])
    assert box.specs() == [ECHO]
    await server.stop()
    await bus.settle()
    assert box.specs() == []


async def test_a_tool_that_is_never_announced_is_named(box):
    with pytest.raises(TimeoutError, match="missing_tool"):
        await box.ready(["missing_tool"], timeout_seconds=0.01)


async def test_a_call_carries_the_owner_and_the_session_of_its_caller(bus, box):
    await echo_server(bus).start()
    await box.ready(["echo"])
    outcome = await box.call("echo", {"text": "hi"}, owner="ann", session_id="s1")
    assert (outcome.name, outcome.result, outcome.error) == ("echo", "ann/s1: hi", None)


async def test_an_alias_is_called_by_its_own_name(bus, box):
    await echo_server(bus, aliases={"parrot": "echo"}).start()
    await box.ready(["echo"])
    outcome = await box.call("parrot", {"text": "hi"}, owner="ann")
    assert (outcome.name, outcome.result) == ("echo", "ann/None: hi")
    assert [spec.name for spec in box.specs()] == ["echo"]


async def test_an_unknown_tool_is_an_error_that_names_the_nearest(bus, box):
    await echo_server(bus).start()
    await box.ready(["echo"])
    outcome = await box.call("ecco", {}, owner="ann")
    assert outcome.error == "there is no tool named 'ecco'; there are: echo. Did you mean 'echo'?"


async def test_a_tool_that_stopped_without_a_word_is_not_running(bus, box):
    await bus.publish(
        Envelope(
            subject="tool.schema",
            payload={"tool": "ghost", "schema": {"description": "", "parameters": {}}, "aliases": []},
            publisher="GhostTool",
            owner="",
        )
    )
    await box.ready(["ghost"])
    assert (await box.call("ghost", {}, owner="ann")).error == "no tool named 'ghost' is running"


async def test_a_tool_that_does_not_answer_is_given_up(bus, box):
    async def hang(_args):
        await asyncio.Event().wait()

    server = echo_server(bus, hang)
    await server.start()
    await box.ready(["echo"])
    assert "did not answer within 0.05 seconds" in (await box.call("echo", {"text": "hi"}, owner="ann")).error


async def test_a_refusal_is_the_tools_answer(bus, box):
    async def refuse(_args):
        raise UnavailableError("down\nstart it")

    await echo_server(bus, refuse).start()
    await box.ready(["echo"])
    outcome = await box.call("echo", {"text": "hi"}, owner="ann")
    assert (outcome.result, outcome.error, outcome.text) == (None, *["Memory unavailable: down start it"] * 2)
    assert bus.failures == 0


async def test_a_broken_tool_answers_its_caller_and_is_logged(bus, box, caplog):
    async def broken(_args):
        raise RuntimeError("a secret of the store")

    await echo_server(bus, broken).start()
    await box.ready(["echo"])
    outcome = await box.call("echo", {"text": "hi"}, owner="ann")
    await bus.settle()
    assert outcome.error == "the tool failed (RuntimeError); the log of its process says more"
    assert bus.failures == 1
    assert "a secret of the store" in caplog.text


@pytest.mark.parametrize(
    "payload",
    [{}, {"tool": 5}, {"tool": "x", "aliases": "y"}, {"tool": "x", "schema": []}, {"tool": "x", "schema": {"a": 1}}],
)
async def test_a_wrong_announcement_announces_nothing(bus, box, payload):
    await bus.publish(Envelope(subject="tool.schema", payload=payload, publisher="test", owner=""))
    await bus.settle()
    assert (box.specs(), bus.refusals, bus.failures) == ([], 1, 0)


async def test_a_toolbox_that_comes_later_hears_of_the_tools_when_it_inquires(bus):
    server = echo_server(bus)
    await server.start()
    late = ToolBox(bus=bus, new_id=str, caller="Late")
    await late.listen()
    assert late.specs() == []
    await late.inquire()
    await late.ready(["echo"])
    assert late.specs() == [ECHO]
    await server.stop()
    await late.inquire()
    await bus.settle()
    assert late.specs() == []


async def test_of_two_servers_of_a_tool_one_answers_a_call(bus, box):
    calls = []

    async def count_call(args):
        calls.append(args["text"])
        return "done"

    for _ in range(2):
        await echo_server(bus, count_call).start()
    await box.ready(["echo"])
    assert (await box.call("echo", {"text": "hi"}, owner="ann")).result == "done"
    await bus.settle()
    assert calls == ["hi"]


async def test_a_bus_that_is_away_is_in_the_outcome(bus, box):
    await echo_server(bus).start()
    await box.ready(["echo"])

    async def away(*_, **__):
        raise UnavailableError("the bus does not answer now")

    box.bus.request = away
    assert (await box.call("echo", {"text": "hi"}, owner="ann")).error == "the bus does not answer now"


async def test_what_a_tool_answers_is_shortened_to_its_limit_and_says_so(bus, box):
    await echo_server(bus, result_characters=200).start()
    await box.ready(["echo"])
    outcome = await box.call("echo", {"text": "x" * 5_000}, owner="ann", session_id="s1")
    assert len(outcome.result) <= 200
    assert outcome.result.endswith(" characters)")
