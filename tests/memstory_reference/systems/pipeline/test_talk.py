"""What a turn leaves in the memory and in sight where the model fails in it, or does not act on a wish to forget."""

import pytest

from memstory.contract.models import ChatModelUnavailableError, Reply, ToolRequest
from memstory.contract.target import Scope
from memstory_reference.systems.pipeline.memory import NOTHING_FORGOTTEN, without_wishes

ANN = Scope(user="ann", session="s")
DOWN = ChatModelUnavailableError("The model is down.")


class Written:
    """Gives one reply after the other, and has the prompts; an error is raised."""

    name = "written"

    def __init__(self, *replies):
        self.replies, self.prompts = list(replies), []

    async def chat(self, request):
        self.prompts.append(" ".join(one.content for one in request.messages))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Reply) else Reply(content=reply)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Please forget my allergy.", ""),
        ("Could you forget that I live in Graz? My sister is a pilot.", "My sister is a pilot."),
        ("Don't forget my shoe size, it is 44.", "Don't forget my shoe size, it is 44."),
        ("I always forget my car keys.", "I always forget my car keys."),
        ("Remove Bob's ladder from the garage.", "Remove Bob's ladder from the garage."),
        ("Delete my old drafts on Friday. I am a nurse.", "Delete my old drafts on Friday. I am a nurse."),
        ("Remove Bob's ladder from your memory, please. I am a nurse.", "I am a nurse."),
        ("Please delete what you know about Bob.", ""),
    ],
)
def test_a_wish_to_forget_is_left_out_and_all_else_stays_as_it_was_said(said, told):
    assert without_wishes(said) == told


async def test_a_wish_to_forget_that_no_model_hears_is_no_memory_and_the_error_says_that_it_is_open(make_pipeline):
    memory = make_pipeline(talker=Written(DOWN), store_threshold=0)
    with pytest.raises(ChatModelUnavailableError) as failure:
        await memory.say("Please forget my allergy.", ANN)
    assert str(failure.value) == f"{DOWN} {NOTHING_FORGOTTEN}"
    assert await memory.memories("ann") == []


async def test_a_wish_to_forget_on_which_the_model_does_not_act_is_no_memory(make_pipeline):
    memory = make_pipeline(talker=Written("I cannot do that."), store_threshold=0)
    await memory.say("Please forget my allergy.", ANN)
    assert await memory.memories("ann") == []


async def test_what_was_told_beside_a_wish_to_forget_is_kept_while_the_model_is_down(make_pipeline):
    memory = make_pipeline(talker=Written(DOWN), store_threshold=0)
    with pytest.raises(ChatModelUnavailableError, match=f"What you said is kept. {DOWN} {NOTHING_FORGOTTEN}"):
        await memory.say("Forget my allergy. My sister Ilse is a pilot.", ANN)
    assert [one.content for one in await memory.memories("ann")] == ["My sister Ilse is a pilot."]


async def test_what_was_forgotten_before_the_model_failed_is_out_of_its_sight(make_pipeline):
    memory = make_pipeline(talker=(chat := Written("You are allergic to nuts.")), store_threshold=0)
    (kept,) = await memory.ingest("I am allergic to nuts.", "ann", "s")
    forget = ToolRequest(name="forget_memory", arguments={"memory_id": kept.id})
    chat.replies += [Reply(content="", tool_requests=[forget]), DOWN, "Hello."]
    await memory.say("What am I allergic to?", ANN)
    with pytest.raises(ChatModelUnavailableError) as failure:
        await memory.say("Please forget my allergy.", ANN)
    assert str(failure.value) == str(DOWN)
    await memory.say("Hello?", ANN)
    assert "nuts" in chat.prompts[1]
    assert "nuts" not in chat.prompts[-1]
    assert await memory.memories("ann") == []
