"""A case whose model gives no usable answer: its outcome, and the one sentence that says what to do."""

import pytest

from memstory.controls import OracleFactory
from memstory.language.stories import parse_stories
from memstory.models.openai_chat import OpenAiChat
from memstory.models.openai_server import OpenAiServer
from memstory.models.shim import Chats
from memstory.playing import play
from memstory.running.runner import RunOptions

STORY = """
story: BAD1
title: The model greets
steps:
  - say: Hello
    expect: {answer: {contains: Good day}}
"""
BROKEN_CALL = [
    {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "save", "arguments": "{"}}]}
]


class Backend(OracleFactory):
    """The perfect memory under another name: controls get no shim."""

    name = "perfect"


@pytest.mark.parametrize(
    ("given", "outcome", "said"),
    [
        ({"url": "http://127.0.0.1:9/v1"}, "error", "Nothing answers at http://127.0.0.1:9/v1"),
        ({"key": "sk-other"}, "error", "Put the right key into OPENAI_API_KEY"),
        ({"model": "other"}, "error", "Is 'tiny' the name of a model there?"),
        ({"failures": [(400, "no support for tools")]}, "error", "choose a model that calls them"),
        ({"cut": True}, "error", "broke off its answer after 9 characters"),
        ({"deltas": BROKEN_CALL, "finish": "tool_calls"}, "error", "called 'save' with arguments that are not JSON"),
        ({"deltas": [{"refusal": "I cannot."}]}, "failed", "it is 'I cannot.'"),
        ({"deltas": [{"content": "again " * 40_000}]}, "error", "did not end its answer within 200,000 characters"),
        ({"failures": [(429, "Rate limit reached")] * 9}, "error", "Rate limit reached, 2 times. Wait"),
        ({"failures": [(503, "overloaded")] * 9}, "error", "overloaded, 2 times. Try again"),
        ({"has_usage": False}, "passed", ""),
    ],
)
async def test_a_model_that_cannot_be_used_ends_the_case_with_one_sentence(
    given, outcome, said, openai_endpoint, tmp_path
):
    url = given.get("url", openai_endpoint.url)
    for name, value in {"key": None, **given}.items():
        setattr(openai_endpoint, name, value)
    model = OpenAiChat("tiny", OpenAiServer(url, "none", retries=1))
    (story,) = parse_stories(STORY, "bad.story.yaml")
    options = RunOptions(chats=Chats({"m": model}), target={"chat": "m"})
    result = await play(story, Backend(), tmp_path / "work", options=options)
    assert result.outcome == outcome, result.reason
    assert said in (result.reason or "")
    assert ".." not in (result.reason or "")
