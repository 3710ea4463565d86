"""Whatever callers give, the answer is a result or an InputError; secrets are refused; prompts have bounds."""

import json

import pytest

from memstory.contract.models import Reply, ToolRequest
from memstory.contract.target import Item, Ref, Scope
from memstory_reference.errors import InputError
from memstory_reference.systems.manager.agent import ManagerAgent, ManagerTools
from memstory_reference.systems.manager.memories import Memory, MemoryType

ANN = Scope(user="ann")
FACT, CONVERSATION = MemoryType.FACT, MemoryType.CONVERSATION
LONE = "half \ud800"
CARD = "My card is 4111 1111 1111 1111"


@pytest.mark.parametrize("session", ["", " ", LONE, 5, "a\nb", "a" * 10_000])
async def test_a_name_that_is_no_session_is_refused_and_never_the_shared_one(manager, session):
    calls = (
        lambda: manager.store("ann", "bees", CONVERSATION, session=session),
        lambda: manager.store("ann", "bees", FACT, session=session),
        lambda: manager.search_memories("ann", "bees", session=session),
        lambda: manager.memories("ann", session=session),
        lambda: manager.delete(Ref(), Scope(user="ann", session=session)),
        lambda: manager.set_context("ann", session, "k", "v"),
        lambda: manager.get_context("ann", session, "k"),
    )
    for call in calls:
        with pytest.raises(InputError, match="session"):
            await call()


async def test_arguments_of_a_wrong_kind_are_refused(manager):
    kept = await manager.store("ann", "bees", FACT)
    calls = (
        *(lambda one=one: manager.get(Ref(id=one), ANN) for one in (5, None, LONE)),
        *(lambda one=one: manager.delete(Ref(id=one), ANN) for one in (5, LONE)),
        *(lambda one=one: manager.update(Ref(id=one), Item(text="bees"), ANN) for one in (5, None, LONE)),
        *(
            lambda one=one: manager.update(Ref(id=kept.id), Item(text="bees", metadata=one), ANN)
            for one in (0, "", [], False)
        ),
        *(lambda one=one: manager.search_memories("ann", one) for one in (5, None, LONE, "a" * 20_000)),
        *(lambda one=one: manager.search_memories("ann", "bees", limit=one) for one in ("3", 1.5, 10**19, -1)),
        *(lambda one=one: manager.search_memories("ann", "bees", where=one) for one in (["a"], "a", {1: 2})),
        *(lambda one=one: manager.store("ann", "bees", FACT, one) for one in (["a"], "a", {1: 2})),
        *(lambda one=one: manager.store("ann", "bees", FACT, {one: 1}) for one in (LONE, "")),
        lambda: manager.store("ann", "bees", FACT, {"a": LONE}),
        lambda: manager.store("ann", "bees", FACT, {"a": [LONE]}),
        *(lambda one=one: manager.memories("ann", limit=one) for one in ("x", -1, 1.5)),
    )
    for call in calls:
        with pytest.raises(InputError):
            await call()
    assert await manager.memories("ann") == [kept]


async def test_a_secret_is_refused_on_every_way_in_where_they_are(make_world, clock):
    manager = make_world(secrets="refuse").manager
    kept = await manager.store("ann", "bees", FACT)
    calls = (
        lambda: manager.store("ann", CARD, FACT),
        lambda: manager.store("ann", CARD, CONVERSATION),
        lambda: manager.store("ann", "bees", FACT, {"note": CARD}),
        lambda: manager.store("ann", "bees", FACT, {"notes": {"deep": [CARD]}}),
        lambda: manager.add([Item(text="fine"), Item(text=CARD)], ANN),
        lambda: manager.set_context("ann", "s1", "card", CARD),
        lambda: manager.update(Ref(id=kept.id), Item(text=CARD), ANN),
        lambda: manager.update(Ref(id=kept.id), Item(text="bees", metadata={"note": CARD}), ANN),
        lambda: manager.put("ann", [Memory(id="v1", content=CARD, memory_type=FACT, created_at=clock.now())]),
    )
    for call in calls:
        with pytest.raises(InputError, match="payment card"):
            await call()
    assert await manager.memories("ann") == [kept]
    outcome = await ManagerTools(manager, "ann").call("store_memory", {"content": CARD})
    assert "not stored" in (outcome.error or "")


async def test_an_operator_can_let_secrets_in(make_world):
    manager = make_world(secrets="keep").manager
    await manager.store("ann", CARD, FACT)
    assert await manager.count("ann") == 1


class Talker:
    """Answers with what it is given, and keeps its prompts."""

    name = "talker"

    def __init__(self, *replies):
        self.replies, self.prompts = [*replies], []

    async def chat(self, request):
        self.prompts.append(list(request.messages))
        return self.replies.pop(0) if self.replies else Reply(content="Fine.")


def loop_of(world, model):
    return ManagerAgent(manager=world.manager, chat=model, owner="ann", session="s1")


async def test_a_turn_that_tells_a_secret_is_answered_and_not_stored_where_it_is_refused(make_world):
    world, model = make_world(secrets="refuse"), Talker()
    loop = loop_of(world, model)
    assert (await loop.process(CARD)).answer == "Fine."
    assert (loop.not_stored, await world.manager.count("ann")) == (1, 0)


async def test_a_prompt_holds_a_bounded_window_of_whole_turns(make_world):
    world, model = make_world(), Talker()
    loop = loop_of(world, model)
    for number in range(6):
        await loop.process(f"{number} " + "x" * 20_000)
    characters = sum(len(message.content) for message in model.prompts[-1][1:])
    assert characters <= 48_000
    assert [message.content[:1] for message in model.prompts[-1][1:]] == ["4", "F", "5"]


async def test_a_turn_longer_than_the_window_is_answered_and_then_out_of_it(make_world):
    world, model = make_world(), Talker()
    loop = loop_of(world, model)
    await loop.process("x" * 90_000)
    await loop.process("short")
    assert [message.content for message in model.prompts[-1][1:]] == ["short"]


async def test_one_reply_makes_a_bounded_number_of_tool_calls(make_world):
    requests = [ToolRequest(name="store_memory", arguments={"content": f"bee {n}"}) for n in range(50)]
    world = make_world()
    answer = await loop_of(world, Talker(Reply(content="", tool_requests=requests))).process("store bees")
    assert len([one for one in answer.tool_calls if one.error is None]) == 16
    assert await world.manager.count("ann", FACT) == 16


@pytest.mark.parametrize(("count", "size"), [(5, 100_000), (200, 1_000), (1, 100_000), (3, 10)])
async def test_what_a_search_tells_a_model_is_bounded(make_world, count, size):
    world = make_world()
    filling = ("bees " + "x" * size)[:size]
    await world.manager.add([Item(text=f"bees {n} {filling}"[:100_000]) for n in range(count)], ANN)
    outcome = await ManagerTools(world.manager, "ann").call("search_memories", {"query": "bees", "limit": 1000})
    assert len(outcome.text) <= 16_000
    assert outcome.result[0]["content"].startswith("bees")
    assert json.loads(outcome.text) == outcome.result


async def test_metadata_of_any_size_leaves_the_result_bounded(make_world):
    world = make_world()
    for number in range(5):
        await world.manager.store("ann", f"bees {number}", FACT, {"note": "n" * 15_000})
    outcome = await ManagerTools(world.manager, "ann").call("search_memories", {"query": "bees"})
    assert len(outcome.text) <= 16_000
    assert outcome.result[0]["id"]
