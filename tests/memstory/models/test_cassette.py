from __future__ import annotations

import asyncio
import json

import pytest

from memstory.contract.errors import SetupError
from memstory.contract.models import BrokenReplyError, ChatRequest, Message, Reply, ToolRequest
from memstory.contract.values import ToolSchema
from memstory.models.cassette import CassetteMissError, RecordingChat, ReplayingChat

SEARCH = ToolSchema(
    name="search_memory",
    description="Search.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}},
)
SAVE = ToolSchema(name="save_topic", description="Save.", parameters={"type": "object", "properties": {}})
ASK = [Message(role="system", content="Be short."), Message(role="user", content="Wer ist Özgür?\nUnd wo?")]
REPLY = Reply(
    content="", tool_requests=(ToolRequest(name="search_memory", arguments={"query": "Özgür"}),), thinking="Hm."
)


class CountingModel:
    """A model that never says the same twice."""

    name = "ollama:test"

    def __init__(self, first: Reply | None = None) -> None:
        self.asked = 0
        self._first = first

    async def chat(self, request) -> Reply:
        self.asked += 1
        if isinstance(self._first, Exception):
            raise self._first
        return self._first if self._first and self.asked == 1 else Reply(content=f"answer {self.asked}")


async def test_replay_gives_the_recorded_reply_without_the_model(tmp_path):
    tape = tmp_path / "sub" / "run.json"
    assert await RecordingChat(CountingModel(REPLY), tape).chat(ChatRequest(ASK, [SEARCH])) == REPLY
    assert await ReplayingChat(tape).chat(ChatRequest(ASK, [SEARCH])) == REPLY


async def test_a_reply_that_broke_off_breaks_off_in_the_replay(tmp_path):
    model, tape = CountingModel(BrokenReplyError("its JSON has no end")), tmp_path / "run.json"
    for chat in (lambda: RecordingChat(model, tape), lambda: RecordingChat(model, tape), lambda: ReplayingChat(tape)):
        with pytest.raises(BrokenReplyError, match="its JSON has no end"):
            await chat().chat(ChatRequest(ASK))
    assert model.asked == 1


async def test_replay_says_so_in_its_name(tmp_path):
    await RecordingChat(CountingModel(), tmp_path / "run.json").chat(ChatRequest(ASK))
    assert ReplayingChat(tmp_path / "run.json").name == "ollama:test (replayed)"


async def test_recording_names_its_model_and_can_be_read(tmp_path):
    await RecordingChat(CountingModel(REPLY), tmp_path / "run.json").chat(ChatRequest(ASK, [SEARCH]))
    text = (tmp_path / "run.json").read_text(encoding="utf-8")
    assert "Özgür" in text
    tree = json.loads(text)
    assert tree["model"] == "ollama:test"
    assert tree["calls"][0]["messages"][1]["content"] == ASK[1].content


async def test_miss_shows_the_nearest_recorded_request_as_a_difference(tmp_path):
    tape = tmp_path / "run.json"
    recorder = RecordingChat(CountingModel(), tape)
    await recorder.chat(ChatRequest(ASK, [SEARCH]))
    await recorder.chat(ChatRequest([Message(role="user", content="Something else")], purpose="title"))
    with pytest.raises(CassetteMissError) as miss:
        await ReplayingChat(tape).chat(
            ChatRequest([ASK[0], Message(role="user", content="Wer ist Özgür?\nUnd wann?")], [SEARCH])
        )
    shown = str(miss.value).splitlines()
    assert shown[0].endswith(f"--chat record:ollama:test@{tape}")
    assert "-[user] Und wo?" in shown
    assert "+[user] Und wann?" in shown
    assert "Something else" not in str(miss.value)


@pytest.mark.parametrize(
    "change",
    [
        {"tools": [SAVE]},
        {"tools": []},
        {"purpose": "title"},
        {"temperature": 0.5},
        {"response_schema": {"type": "object"}},
        {"messages": ASK[1:]},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_another_request_is_no_hit(tmp_path, change):
    tape = tmp_path / "run.json"
    await RecordingChat(CountingModel(), tape).chat(ChatRequest(ASK, [SEARCH]))
    request = {"messages": ASK, "tools": [SEARCH], **change}
    with pytest.raises(CassetteMissError):
        await ReplayingChat(tape).chat(ChatRequest(**request))


async def test_order_of_tools_does_not_matter(tmp_path):
    tape = tmp_path / "run.json"
    await RecordingChat(CountingModel(), tape).chat(ChatRequest(ASK, [SEARCH, SAVE]))
    assert (await ReplayingChat(tape).chat(ChatRequest(ASK, [SAVE, SEARCH]))).content == "answer 1"


async def test_file_does_not_depend_on_the_order_of_the_run(tmp_path):
    requests = [[Message(role="user", content=text)] for text in ("b", "a", "c")]
    for name, order in (("one", requests), ("two", requests[::-1])):
        chat = RecordingChat(EchoModel(), tmp_path / name)
        for messages in order:
            await chat.chat(ChatRequest(messages))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


class EchoModel:
    name = "echo"

    async def chat(self, request) -> Reply:
        return Reply(content=request.messages[-1].content)


async def test_recording_goes_on_where_it_was_broken_off(tmp_path):
    tape, model = tmp_path / "run.json", CountingModel()
    await RecordingChat(model, tape).chat(ChatRequest(ASK))
    again = RecordingChat(model, tape)
    assert (await again.chat(ChatRequest(ASK))).content == "answer 1"
    assert (await again.chat(ChatRequest(ASK[1:]))).content == "answer 2"
    assert model.asked == 2


async def test_recorders_of_one_file_lose_nothing(tmp_path):
    tape = tmp_path / "run.json"
    recorders = [RecordingChat(EchoModel(), tape) for _ in range(8)]
    await asyncio.gather(
        *(chat.chat(ChatRequest([Message(role="user", content=str(number))])) for number, chat in enumerate(recorders))
    )
    replay = ReplayingChat(tape)
    for number in range(8):
        assert (await replay.chat(ChatRequest([Message(role="user", content=str(number))]))).content == str(number)


async def test_file_of_another_model_is_not_mixed(tmp_path):
    await RecordingChat(CountingModel(), tmp_path / "run.json").chat(ChatRequest(ASK))
    with pytest.raises(SetupError, match="recorded with ollama:test"):
        RecordingChat(EchoModel(), tmp_path / "run.json")


def test_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(SetupError, match="record:ollama"):
        ReplayingChat(tmp_path / "none.json")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "memstory.cassette/9"}', '{"schema": "memstory.cassette/1"}', "\x00", "1"]
)
def test_file_that_is_no_recording_is_refused_in_words(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(SetupError, match=r"ecord"):
        ReplayingChat(tmp_path / "run.json")
