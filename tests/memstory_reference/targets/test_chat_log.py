import pytest

from memstory_reference.ports import ChatModelUnavailableError, Message, Reply, ToolSpec
from memstory_reference.targets.chat_log import LoggedChat


class Parrot:
    name = "parrot"

    async def chat(self, messages, tools=(), *, purpose="chat", temperature=None, response_schema=None):
        if messages[-1].content == "fail":
            raise ChatModelUnavailableError("down")
        return Reply(content=messages[-1].content)


async def test_every_call_is_kept_with_what_was_asked_and_replied():
    chat = LoggedChat(Parrot())
    tool = ToolSpec(name="echo", description="", parameters={})
    await chat.chat([Message(role="user", content="hi")], [tool], purpose="chat", temperature=0.1)
    (entry,) = chat.data()["log"]
    assert (entry["purpose"], entry["temperature"], entry["tools"]) == ("chat", 0.1, ["echo"])
    assert (entry["messages"][0]["content"], entry["reply"]["content"]) == ("hi", "hi")


async def test_a_call_that_fails_was_made_all_the_same():
    chat = LoggedChat(Parrot())
    with pytest.raises(ChatModelUnavailableError):
        await chat.chat([Message(role="user", content="fail")])
    assert chat.data()["calls"] == 1
    assert chat.data()["log"][0]["reply"] is None


async def test_the_log_can_be_read_from_a_call_on():
    chat = LoggedChat(Parrot())
    for text in ("a", "b", "c"):
        await chat.chat([Message(role="user", content=text)])
    assert chat.data(since=2)["calls"] == 1
    assert [entry["reply"]["content"] for entry in chat.data(since=1)["log"]] == ["b", "c"]
