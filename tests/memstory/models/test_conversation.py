"""The loop of a conversation with a model that fails, or that reads less than there is."""

import pytest

from memstory.contract.models import ChatModelUnavailableError, Message, PromptTooLongError, Reply
from memstory.contract.values import ToolCall
from memstory.models.conversation import ask_for_reply, converse

PROMPT = [
    Message(role="system", content="Be short."),
    *(
        Message(role=role, content=f"{role} {turn}")
        for turn in (1, 2, 3)
        for role in ("user", "assistant")
        if (role, turn) != ("assistant", 3)
    ),
]


class Narrow:
    """A model that reads so many messages, and says which."""

    name = "narrow"

    def __init__(self, most):
        self._most = most

    async def chat(self, request):
        if len(request.messages) > self._most:
            raise PromptTooLongError("too long")
        return Reply(content=", ".join(message.content for message in request.messages))


@pytest.mark.parametrize(
    ("most", "read"),
    [
        (6, "Be short., user 1, assistant 1, user 2, assistant 2, user 3"),
        (5, "Be short., user 2, assistant 2, user 3"),
        (2, "Be short., user 3"),
    ],
)
async def test_the_oldest_turns_go_until_the_model_can_read_the_rest(most, read):
    assert (await ask_for_reply(Narrow(most), PROMPT)).content == read


async def test_a_question_that_is_too_long_by_itself_is_said_to_be():
    with pytest.raises(PromptTooLongError):
        await ask_for_reply(Narrow(1), PROMPT)


async def test_what_tools_answered_in_this_turn_stays_where_older_turns_go():
    talk = [Message(role="assistant", content="looks"), Message(role="tool", content="found", tool="search")]
    assert (await ask_for_reply(Narrow(4), PROMPT, talk)).content == "Be short., user 3, looks, found"


@pytest.mark.parametrize(
    ("kept", "start"),
    [(True, "What you said is kept. "), (False, "What you said is not kept. "), (None, "")],
)
async def test_a_failure_says_whether_what_was_said_is_kept_and_ends_with_what_to_type(written, kept, start):
    given = []

    async def keep(used):
        given.append([one.name for one in used])
        return kept

    async def use(request):
        return ToolCall(name=request.name, args=request.arguments, result="done")

    model = written([("save", {})], ChatModelUnavailableError("It is down. Start it with: serve"))
    with pytest.raises(ChatModelUnavailableError) as failure:
        await converse(model, PROMPT, tools=list, use=use, keep=keep)
    assert str(failure.value) == f"{start}It is down. Start it with: serve"
    assert given == [["save"]]
