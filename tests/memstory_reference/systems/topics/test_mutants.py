"""Each bug that a story of the topics memory speaks of is put in, and the story must fail for it."""

from dataclasses import replace
from itertools import count

import pytest

from memstory_reference.adapters.vectors.checked_index import CheckedIndex
from memstory_reference.adapters.vectors.exact_store import ExactStore
from memstory_reference.adapters.watched import WatchedEmbedder
from memstory_reference.bus import InProcessBus
from memstory_reference.composition import topics as composition
from memstory_reference.ports import Purpose
from memstory_reference.systems.topics import engrams, memory_agent, memory_service, result_texts, topic_tools
from memstory_reference.systems.topics.engrams import effective_score
from memstory_reference.systems.topics.memory_agent import MemoryAgent
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.system import TopicsSystem
from memstory_reference.targets.topics.target import TopicsFactory
from memstory_reference.text.secret_guard import secret_in
from memstory_reference.tooling import tools

pytestmark = pytest.mark.usefixtures("minilm_weights")


def with_the_likeliest(plain):
    async def topic_entry(self, owner, topic):
        near = [one for one in await self.list_topics(owner) if one.topic.startswith(topic)]
        return await plain(self, owner, topic) or next(iter(near), None)

    return topic_entry


def by_meaning_first(plain):
    async def topic_entry(self, owner, topic):
        await self.search_episodic(owner, topic)
        return await plain(self, owner, topic)

    return topic_entry


def without_topic_beside_a_query(plain):
    def checked(*args):
        given = plain(*args)
        return {name: value for name, value in given.items() if name != "topic" or not given.get("query")}

    return checked


def with_new_rows(plain):
    numbers = count()
    return lambda owner, topic: f"{plain(owner, topic)}:{next(numbers)}"


def only_once(plain):
    async def write_topic(self, owner, topic, content):
        entry = await self.topic_entry(owner, topic)
        return entry.id if entry else await plain(self, owner, topic, content)

    return write_topic


def under_another_name(plain):
    return lambda self, owner, topic, content: plain(self, owner, f"{topic}_2", content)


def of_payloads(change):
    """Change what is published."""
    return lambda plain: lambda self, envelope: plain(self, replace(envelope, payload=change(dict(envelope.payload))))


def with_thoughts(payload):
    return {**payload, "answer": f"{payload['answer']} {payload['thinking']}"} if payload.get("thinking") else payload


def with_a_question(payload):
    return {**payload, "query": str(payload.get("query", "")).strip() or "?"} if "answer" in payload else payload


def with_one_call(plain):
    return lambda self, owner, content, metadata, **named: plain(
        self, owner, content, {**metadata, "tool_calls": 1}, **named
    )


def with_one_id(plain):
    return lambda self, envelope, reply_subject, *, timeout_seconds: plain(
        self, replace(envelope, request_id="r"), reply_subject, timeout_seconds=timeout_seconds
    )


def not_before_it_is_embedded(plain):
    async def say(self, text, *, owner, session_id):
        answer = await plain(self, text, owner=owner, session_id=session_id)
        await self.service.write_episodic(owner, answer.answer)
        return answer

    return say


def found(change):
    """Change what a search has found, before it is ranked."""
    return lambda plain: lambda candidates, **named: plain([change(one) for one in candidates], **named)


def emptied(plain):
    async def close(self):
        for owner in await self.owners("local2.memory"):
            index = await self.index("local2.memory", owner)
            await index.delete([row.id for row in await index.list()])
        await plain(self)

    return close


FACTORY = TopicsFactory
MUTANTS = [
    ("a topic is found by its beginning", "L1", "hits are 1", (MemoryService, "topic_entry", with_the_likeliest)),
    (
        "any word is a topic",
        "L2",
        "does not contain 'user.'",
        (memory_service, "topic_key", lambda plain: lambda topic, **_: plain(topic, strict=False)),
    ),
    ("another row for each writing of a topic", "L2b", "'id' is", (memory_service, "topic_id", with_new_rows)),
    ("looking up a topic embeds it", "L3", "'calls' is", (MemoryService, "topic_entry", by_meaning_first)),
    ("a query beats the topic", "L4", "result is", (tools, "check_arguments", without_topic_beside_a_query)),
    ("nothing found is told in other words", "L5", "result is 'None.'", (result_texts, "NO_MEMORIES", "None.")),
    (
        "a topic is saved under another name",
        "L5",
        "result is 'No memories found.'",
        (MemoryService, "write_topic", under_another_name),
    ),
    (
        "topics are found by meaning",
        "L6",
        "hits include 'topic'",
        (CheckedIndex, "query", lambda plain: lambda self, vector, k, _where: plain(self, vector, k)),
    ),
    ("what was thought is remembered", "L7", "cheese", (InProcessBus, "publish", of_payloads(with_thoughts))),
    ("tool calls are not counted", "L7", "'tool_calls' is 1", (MemoryService, "write_episodic", with_one_call)),
    ("engrams get lost", "L7", "hits count 0", (MemoryService, "write_episodic", "")),
    ("a question is made up", "L8", "hits are 2", (InProcessBus, "publish", of_payloads(with_a_question))),
    ("secrets become engrams", "L8b", "hits count 2", (composition, "secret_in", None)),
    (
        "the operator is not asked about secrets",
        "L8c",
        "hits count 0",
        (composition, "TopicsConfig", lambda plain: lambda **named: plain(**{**named, "guard": secret_in})),
    ),
    (
        "distances are taken for scores",
        "L9",
        "hits lack 'near'",
        (memory_service, "ranked", found(lambda one: replace(one, score=1 - one.score))),
    ),
    (
        "nothing is too far",
        "L9",
        "hits include 'out'",
        (memory_service, "ranked", lambda plain: lambda some, **named: plain(some, **{**named, "min_score": -1.0})),
    ),
    ("all candidates are told", "L9b", "hits count 8", (memory_service, "check_top_k", 8)),
    (
        "queries are embedded as documents",
        "L10",
        "'sent' is",
        (WatchedEmbedder, "embed", lambda plain: lambda self, texts, _: plain(self, texts, Purpose.DOCUMENT)),
    ),
    ("an engram takes several lines", "L11", "result is", (result_texts, "one_line", lambda _: lambda text: text)),
    ("the answer waits for its engram", "L12", "unavailable", (TopicsSystem, "say", not_before_it_is_embedded)),
    ("rewards do not count", "L13", "hits have", (engrams, "REWARD_WEIGHT", 0.0)),
    (
        "a reward changes the cosine",
        "L13",
        "scores that is",
        (memory_service, "ranked", found(lambda one: replace(one, score=effective_score(one)))),
    ),
    ("a recall's own engram comes first", "L14b", "scores that is", (engrams, "ECHO_MARGIN", 0.0)),
    ("no recall is known as one", "L14b", "scores that is", (memory_agent, "RECALL_TOOLS", frozenset())),
    (
        "a tool does not say what it is for",
        "L15",
        "'description'",
        (topic_tools, "SAVE_MEMORY", lambda plain: replace(plain, description="")),
    ),
    (
        "a tool does not say what it needs",
        "L15b",
        "'required'",
        (topic_tools, "MEMORY_SAVE", lambda plain: replace(plain, parameters={**plain.parameters, "required": []})),
    ),
    ("callers share an id", "L16", "result is", (InProcessBus, "request", with_one_id)),
    ("no answer becomes an engram", "S5b", "'Canberra'", (MemoryAgent, "start", None)),
    ("the dual search finds nothing", "S5", "'Canberra'", (MemoryService, "search_episodic", [])),
    ("the memory ends with the process", "S5e", "'Plimquart'", (ExactStore, "close", emptied)),
    (
        "a tool has another name",
        "S6",
        "memory_save",
        (topic_tools, "MEMORY_SAVE", lambda plain: replace(plain, name="store_fact")),
    ),
    ("a preference ends with the process", "S6c", "'Elixir'", (ExactStore, "close", emptied)),
    ("what was saved first stays", "S6d", "'Rust'", (MemoryService, "write_topic", only_once)),
    ("remembered text forges a line", "X1", "matches", (result_texts, "as_data", lambda _: lambda text: text)),
    (
        "nobody checks arguments",
        "X2",
        "does not contain 'topic' in any case",
        (tools, "check_arguments", lambda _: lambda _spec, given: given),
        (memory_service, "check_text", lambda _: lambda text, *_: text),
    ),
    (
        "owners share one index",
        "X3",
        "1. ann_engram",
        (ExactStore, "index", lambda plain: lambda self, collection, _: plain(self, collection, "all")),
    ),
]


async def test_the_story_notices(mutant, play_story):
    assert (await play_story(mutant.story)).reason is None
    with mutant.at_work():
        assert mutant.why in ((await play_story(mutant.story)).reason or "")
