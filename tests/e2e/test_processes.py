"""Agent, tools and memory in separate processes: each is killed in turn, and the others live on."""

import asyncio
import contextlib
from itertools import count

import pytest
from memstory_tests_waiting import eventually

from memstory.contract.errors import UnavailableError
from memstory.contract.target import Scope
from memstory_reference.bus.calls import Caller
from memstory_reference.systems.topics import process as topics

pytestmark = pytest.mark.slow
SOON = 20.0


@pytest.fixture
def talk(bus):
    numbers = count()

    def caller(part):
        return Caller(
            bus=bus,
            part=part,
            new_id=lambda: f"c{next(numbers)}",
            name="test",
            timeout_seconds=SOON,
        )

    return topics.RemoteTopicsMemory(
        agent=caller(topics.AGENT),
        memory=caller(topics.MEMORY),
        show_calls=lambda _: None,
    )


async def say(talk, text, session="s"):
    answer = await talk.say(text, Scope(user="ann", session=session))
    return answer, {one.name: one.text for one in answer.tool_calls}


TOOLS = {
    "save_topic",
    "recall_topic",
    "save_memory",
    "search_memory",
    "list_memories",
    "forget_memory",
    "rate_memory",
}


async def until_tools(talk):
    """Wait until the agent knows every tool: an announcement is not a reply."""

    async def are_known():
        return set((await talk.inspect("status", {}, Scope(user="ann")))["tools"]) == TOOLS

    await eventually(are_known)


async def saved(talk, number):
    """Have a topic saved, and return it once that is acknowledged."""
    answer, calls = await say(talk, f"Please remember my favorite color is {COLORS[number]}.", f"save{number}")
    assert any("saved" in text for text in calls.values()), (answer, calls)
    return COLORS[number]


COLORS = ("blue", "green", "red", "violet")


async def recalled(talk):
    _, calls = await say(talk, "What is my favorite color?", f"ask{next(ASKED)}")
    return " ".join(calls.values())


ASKED = count()


@pytest.mark.repeats
async def test_each_of_three_processes_is_killed_and_the_others_recover(processes, talk):
    begun = [processes.begin("memory", "--store", "s"), processes.begin("tools"), processes.begin("agent")]
    memory, tools, agent = [processes.ready(one) for one in begun]
    await until_tools(talk)
    assert await saved(talk, 0) in await recalled(talk)

    await talk.settle()
    memory.kill()
    answer, calls = await say(talk, "What is my favorite color?", "down")
    assert "Memory unavailable: no process serves memory" in " ".join(calls.values())
    assert answer.notes == ()
    memory = processes.serve("memory", "--store", "s")
    assert COLORS[0] in await recalled(talk)
    assert await saved(talk, 1) in await recalled(talk)

    tools.kill()
    _, calls = await say(talk, "What is my favorite color?", "no tools")
    assert {text.partition("'")[0] for text in calls.values()} == {"no tool named "}
    assert [one.text for one in await talk.list(Scope(user="ann"), ["topic"])] == [COLORS[1]]
    tools = processes.serve("tools")
    assert COLORS[1] in await recalled(talk)
    assert await saved(talk, 2) in await recalled(talk)

    agent.kill()
    # A bus that is busy has not noticed yet.
    with pytest.raises(UnavailableError, match=r"no process serves agent|agent did not answer 'alive'"):
        await say(talk, "Hello?")
    assert [one.text for one in await talk.list(Scope(user="ann"), ["topic"])] == [COLORS[2]]
    agent = processes.serve("agent")
    await until_tools(talk)
    assert COLORS[2] in await recalled(talk)
    assert await saved(talk, 3) in await recalled(talk)

    await talk.settle()
    kept = [one.text for one in await talk.list(Scope(user="ann"), ["episodic"])]
    for color in COLORS:
        # What the memory had settled is remembered, whoever died afterwards.
        assert sum(f"my favorite color is {color}" in one for one in kept) == 1
    # The one asked while no memory was there has waited for it.
    assert sum("Q: What is my favorite color?" in one for one in kept) == 9
    assert [one.stop() for one in (agent, tools, memory)] == [0, 0, 0]


async def test_the_bus_goes_away_and_everybody_finds_back(processes, talk, nats):
    begun = [processes.begin("memory", "--store", "s"), processes.begin("tools"), processes.begin("agent")]
    for one in begun:
        processes.ready(one)
    await until_tools(talk)
    await saved(talk, 0)
    nats.kill()
    await asyncio.sleep(0.2)
    with pytest.raises(UnavailableError, match="does not answer now"):
        await say(talk, "Hello?")
    nats.start()

    async def is_back():
        with contextlib.suppress(UnavailableError):
            return COLORS[0] in await recalled(talk)

    await eventually(is_back)
    assert [one.poll() for one in begun] == [None, None, None]


def test_a_second_memory_and_a_second_agent_are_refused(processes):
    processes.serve("memory", "--store", "s")
    processes.serve("agent")
    for part, options in (("memory", ("--store", "other")), ("agent", ())):
        done = processes.run("serve", part, *options)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"{part} is served on this bus already, by process" in done.stderr


async def test_of_two_processes_with_tools_one_answers_each_call(processes, talk):
    for part in (("memory", "--store", "s"), ("tools",), ("tools",), ("agent",)):
        processes.serve(*part)
    await until_tools(talk)
    for number in range(4):
        await say(talk, f"Note this: the relay number {number} is ready.", f"s{number}")
    await talk.settle()
    assert (await talk.inspect("status", {}, Scope(user="ann")))["episodic"] == 4


def test_a_person_types_what_the_page_shows(processes):
    begun = [processes.begin("memory", "--store", "s"), processes.begin("tools"), processes.begin("agent")]
    for one in begun:
        processes.ready(one)
    said = ["Please remember my preferred language is Elixir.", "/list topic", "/new", "What language do I prefer?"]
    done = processes.run("chat", "--bus", processes.bus, lines=said)
    assert done.returncode == 0, done.stderr
    assert '→ save_topic(topic="user.language_preference", content="Elixir")' in done.stdout
    assert "I remember: your language preference is Elixir." in done.stdout.splitlines()[-1]
