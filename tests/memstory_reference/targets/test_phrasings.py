"""Stories in which one talks, with models that do right in other words than the stand-in, and with some that do wrong.

A right model does what the stand-in does: what it saves, under which key, what it looks up first and how it words its
replies is its own. A wrong one speaks as well and does something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from memstory.contract.models import ChatRequest, Message, Reply, ToolRequest
from memstory.language.stories import load_stories
from memstory.language.story import Story
from memstory.playing import play
from memstory_reference.adapters.offline_chat import OfflineChat
from memstory_reference.targets import environment_ports
from memstory_reference.targets.manager import ManagerFactory
from memstory_reference.targets.pipeline import PipelineFactory
from memstory_reference.targets.topics import TopicsFactory
from memstory_reference.targets.turns import TurnsFactory

Words = Callable[[str], str]
TEXTS = ("content", "text", "memory")
"""Arguments of the tools that save something."""

SEARCHES = {"search_memory", "memory_recall", "search_memories", "recall_memories", "recall"}


def plain(text: str) -> str:
    return text


@dataclass(frozen=True, kw_only=True)
class Phrasing:
    """How a right model words what it says and saves; `looks` first, whatever it is told."""

    answer: Words = plain
    content: Words = plain
    key: Words = plain
    looks: bool = False


def chatty(text: str) -> str:
    return f"Sure! {text} Is there anything else that I can do for you today?"


def bold(text: str) -> str:
    return "\n\n".join(f"**{line}**" for line in text.splitlines() if line.strip())


RIGHT = {
    "as the stand-in": Phrasing(),
    "chatty, by another key": Phrasing(answer=chatty, key=lambda key: key.replace("user.", "user.my_")),
    "in Markdown, whole sentences saved": Phrasing(answer=bold, content=lambda text: f"The user says: {text}"),
    "in lower case": Phrasing(answer=str.lower, content=str.lower),
    "after a look": Phrasing(looks=True, answer=lambda text: f"I looked it up. {text}"),
}


class RightModel:
    """Does what the stand-in does, in the words of a phrasing; what the stand-in sees of it is in its own words."""

    name = "a right model"

    def __init__(self, phrasing: Phrasing) -> None:
        self._inner = OfflineChat()
        self._phrasing = phrasing
        self._own: dict[str, str] = {}
        """What it said and saved, and the words of the stand-in for it."""

    async def chat(self, request: ChatRequest) -> Reply:
        own = [self._unworded(one) for one in request.messages]
        looks = [
            place
            for place, one in enumerate(own)
            if any(call.arguments.get("query") == LOOK for call in one.tool_requests)
        ]
        searches = [one.name for one in request.tools if one.name in SEARCHES]
        if self._phrasing.looks and searches and own[-1].role == "user" and not own[-1].content.startswith("Thank"):
            return Reply(
                content="Let me see.", tool_requests=[ToolRequest(name=searches[0], arguments={"query": LOOK})]
            )
        hidden = {*looks, *(place + 1 for place in looks)}
        shown = [one for place, one in enumerate(own) if place not in hidden]
        return self._worded(await self._inner.chat(replace(request, messages=shown)))

    def _worded(self, reply: Reply) -> Reply:
        calls = [replace(one, arguments=self._arguments(one.arguments)) for one in reply.tool_requests]
        words = self._phrasing.answer(reply.content) if reply.content else reply.content
        return replace(reply, content=self._noted(reply.content, words), tool_requests=calls)

    def _arguments(self, arguments: Any) -> dict[str, Any]:
        return {
            name: self._noted(value, self._phrasing.key(value))
            if name in ("topic", "key")
            else self._noted(value, self._phrasing.content(value))
            if name in TEXTS
            else value
            for name, value in arguments.items()
        }

    def _noted(self, before: str, after: str) -> str:
        if before != after:
            self._own[after] = before
        return after

    def _unworded(self, message: Message) -> Message:
        if message.role in ("user", "system"):
            return message
        calls = [
            replace(one, arguments={name: self._own_argument(name, value) for name, value in one.arguments.items()})
            for one in message.tool_requests
        ]
        return replace(message, content=self._back(message.content), tool_requests=calls)

    def _own_argument(self, name: str, value: Any) -> Any:
        # Only what was worded: a word of a saved text may be a part of a key or a query, too.
        return self._back(value) if name in TEXTS else self._own.get(value, value) if isinstance(value, str) else value

    def _back(self, value: Any) -> Any:
        if isinstance(value, str):
            for after in sorted(self._own, key=len, reverse=True):
                value = value.replace(after, self._own[after])
        return value


LOOK = "what was said before"


def wrong_value(text: str) -> str:
    return re.sub("Elixir|Canberra|Plimquart", "Haskell", text)


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """What a wrong model makes of a right reply; `calls` of None makes no call at all, and says what `says` does."""

    calls: Callable[[Sequence[ToolRequest]], Sequence[ToolRequest]] | None = list
    says: Words = plain


def saves_not(calls: Sequence[ToolRequest]) -> Sequence[ToolRequest]:
    return [one for one in calls if not set(TEXTS) & set(one.arguments)]


def saves_other(calls: Sequence[ToolRequest]) -> Sequence[ToolRequest]:
    return [
        replace(one, arguments={name: "Haskell" if name in TEXTS else value for name, value in one.arguments.items()})
        for one in calls
    ]


WRONG = {
    "does not save": Wrong(calls=saves_not, says=lambda text: text or "Understood."),
    "says that it saved, and called no tool": Wrong(calls=None, says=lambda _: "I will remember it: I have saved it."),
    "invents an answer": Wrong(calls=None, says=lambda _: "I remember that: it is Haskell."),
    "answers without a look": Wrong(calls=None, says=lambda _: "I remember that: Elixir, Canberra, Plimquart."),
    "answers with the wrong value": Wrong(says=wrong_value),
    "saves something else": Wrong(calls=saves_other),
}


class WrongModel:
    """Does wrong in what it calls or says."""

    name = "a wrong model"

    def __init__(self, wrong: Wrong) -> None:
        self._inner = OfflineChat()
        self._wrong = wrong

    async def chat(self, request: ChatRequest) -> Reply:
        reply = await self._inner.chat(request)
        calls = self._wrong.calls(reply.tool_requests) if self._wrong.calls else ()
        return replace(reply, content="" if calls else self._wrong.says(reply.content), tool_requests=tuple(calls))


FACTORIES = {
    "topics": TopicsFactory,
    "manager": ManagerFactory,
    "pipeline": PipelineFactory,
    "turns": TurnsFactory,
}
TALKS = [
    *(("topics", story) for story in ("S5", "S5b", "S5c", "S5d", "S5e", "S6", "S6b", "S6c", "S6d", "S6e")),
    *((system, story) for system in FACTORIES for story in ("HON1", "HON2", "HON4", "HON5")),
    *(
        ("topics", story)
        for story in (
            "L4",
            "L17-sentence",
            "L17-name",
            "L17-place",
            "L17d",
            "L17e-sentence",
            "L17e-name",
            "L17e-place",
            "X4",
            "X6-value",
            "X6-question",
        )
    ),
    *(("manager", story) for story in ("M10c", "M11", "M13", "X6-value", "X6-question")),
    *(("turns", story) for story in ("T48", "T50", "X6-question")),
]


@pytest.fixture(scope="module")
def stories():
    folder = Path(__file__).parents[3] / "stories"
    read = [story for file in sorted(folder.rglob("*.yaml")) for story in load_stories(file, file.name)]
    return {f"{story.id}-{story.row}" if story.row else story.id: story for story in read if isinstance(story, Story)}


@pytest.fixture
def play_with(stories, tmp_path, monkeypatch):
    """Play a story on a memory whose agent is this model."""

    async def play_with(system: str, story: str, model: Callable[[], Any]) -> Any:
        monkeypatch.setattr(environment_ports, "make_chat", lambda *_, **__: model())
        return await play(stories[story], FACTORIES[system](), tmp_path)

    return play_with


@pytest.mark.parametrize("phrasing", RIGHT)
@pytest.mark.parametrize(("system", "story"), TALKS)
async def test_a_model_that_does_right_passes_in_any_words(play_with, system, story, phrasing):
    result = await play_with(system, story, lambda: RightModel(RIGHT[phrasing]))
    assert (result.outcome, result.reason) == ("passed", None)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("story", ["S5", "S5b", "S5c", "S6", "S6b", "S6c"])
async def test_a_model_that_does_wrong_fails(play_with, story, wrong):
    result = await play_with("topics", story, lambda: WrongModel(WRONG[wrong]))
    # In S5 nobody asks to save anything.
    is_right_all_the_same = story.startswith("S5") and wrong in ("does not save", "saves something else")
    assert result.outcome == ("passed" if is_right_all_the_same else "failed"), result.reason
