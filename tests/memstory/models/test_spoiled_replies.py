"""Replies of a scripted model that a story spoils."""

import json
from typing import get_args

import pytest

pytest.importorskip("httpx", reason="the extra proxy is not installed")

from memstory.language.words import lifecycle
from memstory.models.answering import RuleAnswerer
from memstory.models.spoiled_replies import REPLIES, STATUSES, spoil

FACTS = json.dumps({"memory": [{"id": "0", "text": "Ana lives in Porto"}]})
TOOL = {"name": "keep", "args": {"memory": "Ana lives in Porto", "topics": ["home"]}}
ASKED = {"model": "m", "messages": [{"role": "user", "content": "I live in Porto"}]}


def content_of(mode, content=FACTS):
    return spoil(mode, {"role": "assistant", "content": content})["content"]


def test_the_language_names_the_ways_that_a_reply_can_be_spoiled():
    assert set(get_args(lifecycle._Reply)) == set(REPLIES)


def test_a_reply_is_cut_wrapped_flattened_or_replaced():
    assert FACTS.startswith(content_of("cut"))
    assert len(content_of("cut")) == len(FACTS) // 2
    assert f"```json\n{FACTS}\n```" in content_of("fenced")
    assert json.loads(content_of("list")) == [json.loads(FACTS)]
    assert json.loads(content_of("strings")) == {"memory": ["Ana lives in Porto"]}
    assert content_of("strings", "<facts><fact>Ana</fact></facts>") == "Ana"
    assert content_of("empty") == ""
    assert "Porto" not in content_of("refusal") + content_of("foreign")


@pytest.mark.parametrize("mode", ["cut", "list", "strings"])
def test_the_arguments_of_a_tool_call_are_spoiled_too(mode):
    call = {"id": "1", "type": "function", "function": {"name": "keep", "arguments": json.dumps(TOOL["args"])}}
    (spoiled,) = spoil(mode, {"role": "assistant", "content": None, "tool_calls": [call]})["tool_calls"]
    assert spoiled["function"]["arguments"] != call["function"]["arguments"]
    assert spoiled["function"]["name"] == "keep"


@pytest.mark.parametrize("mode", sorted(set(REPLIES) - set(STATUSES)))
async def test_five_replies_are_spoiled_and_counted_and_no_more(mode):
    answerer = RuleAnswerer([{"reply": FACTS}])
    answerer.spoil(mode)
    contents = [
        (await answerer.answer("chat/completions", ASKED, None)).body["choices"][0]["message"]["content"]
        for _ in range(7)
    ]
    assert [content == FACTS for content in contents] == [False] * 5 + [True] * 2
    assert answerer.spoiled == 5


@pytest.mark.parametrize(("mode", "status"), STATUSES.items())
async def test_a_reply_that_fails_comes_at_the_next_try(mode, status):
    answerer = RuleAnswerer([{"reply": FACTS}])
    answerer.spoil(mode)
    answers = [await answerer.answer("chat/completions", ASKED, None) for _ in range(3)]
    assert [answer.status for answer in answers] == [status, 200, 200]
    assert answerer.spoiled == 1


async def test_a_healed_model_replies_whole():
    answerer = RuleAnswerer([{"reply": FACTS}])
    answerer.spoil("cut")
    answerer.spoil("ok")
    answer = await answerer.answer("chat/completions", ASKED, None)
    assert answer.body["choices"][0]["message"]["content"] == FACTS
    assert answerer.spoiled == 0
