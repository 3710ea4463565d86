"""Each bug that a story of the topics memory speaks of is put in, and the story must fail for it."""

from dataclasses import replace
from itertools import count

import pytest

from memstory.contract.target import Query, Ref, Scope
from memstory_reference import tooling
from memstory_reference.adapters.vectors.exact_store import ExactStore
from memstory_reference.adapters.vectors.vector_rows import CheckedIndex
from memstory_reference.bus import InProcessBus
from memstory_reference.composition import topics as composition
from memstory_reference.ports import Purpose
from memstory_reference.system_memory import ForgetResult
from memstory_reference.systems.topics import entries, memory_agent, memory_service, result_texts
from memstory_reference.systems.topics import tools as topic_tools
from memstory_reference.systems.topics.agent import GeneratorAgent
from memstory_reference.systems.topics.entries import effective_score, hit_of
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.memory_agent import MemoryAgent
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.targets.environment_ports import WatchedEmbedder
from memstory_reference.targets.topics import TopicsFactory
from memstory_reference.text import lines, secret_guard

pytestmark = pytest.mark.usefixtures("minilm_weights")


def with_the_likeliest(plain):
    async def get(self, ref, scope):
        near = [one for one in await self.list(scope, ["topic"]) if one.key.startswith(ref.key)]
        return await plain(self, ref, scope) or next(iter(near), None)

    return get


def by_meaning_first(plain):
    async def get(self, ref, scope):
        await self.search(Query(text=ref.key), scope)
        return await plain(self, ref, scope)

    return get


def without_topic_beside_a_query(plain):
    def checked(*args):
        given = plain(*args)
        return {name: value for name, value in given.items() if name != "topic" or not given.get("query")}

    return checked


def with_new_rows(plain):
    numbers = count()
    return lambda owner, topic: f"{plain(owner, topic)}:{next(numbers)}"


def of_the_plain_alone(plain):
    async def nearest(self, index, vector, wanted, where, *rest):
        return [] if memory_service.REWARDED in where else await plain(self, index, vector, wanted, where, *rest)

    return nearest


def for_anybody(plain):
    async def forget(self, memory_id, scope):
        return await plain(self, memory_id, Scope(user=memory_id.split(":")[1]) if ":" in memory_id else scope)

    return forget


def only_once(plain):
    async def add(self, items, scope):
        (item,) = items
        known = await self.get(Ref(key=item.key), scope) if item.key else None
        return await plain(self, [replace(item, text=known.text)] if known else items, scope)

    return add


def under_another_name(plain):
    return lambda self, items, scope: plain(self, [replace(one, key=f"{one.key}_2") for one in items], scope)


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
    async def say(self, text, scope):
        answer = await plain(self, text, scope)
        await self.write_episodic(scope.user, answer.answer)
        return answer

    return say


def found(change):
    """Change what a search has found, before it is ranked."""
    return lambda plain: lambda candidates, **named: plain([change(one) for one in candidates], **named)


def by_another_setting(**changes):
    return lambda plain: lambda *, settings, **named: plain(settings=replace(settings, **changes), **named)


def emptied(plain):
    async def close(self):
        for owner in await self.owners("local2.memory"):
            index = await self.index("local2.memory", owner)
            await index.delete([row.id for row in await index.list()])
        await plain(self)

    return close


FACTORY = TopicsFactory
MUTANTS = [
    ("L1: a topic is found by its beginning", "hits are 1", (MemoryService, "get", with_the_likeliest)),
    (
        "L2: any word is a topic",
        "does not contain 'user.'",
        (memory_service, "topic_key", lambda plain: lambda topic, **_: plain(topic, strict=False)),
    ),
    ("L2b: another row for each writing of a topic", "'id' is", (memory_service, "topic_id", with_new_rows)),
    ("L3: looking up a topic embeds it", "'calls' is", (MemoryService, "get", by_meaning_first)),
    ("L4: a query beats the topic", "result is", (tooling, "check_arguments", without_topic_beside_a_query)),
    ("L5: nothing found is told in other words", "result is 'None.'", (result_texts, "NO_MEMORIES", "None.")),
    (
        "L5: a topic is saved under another name",
        "result is 'Memory saved: user.name_2'",
        (MemoryService, "add", under_another_name),
    ),
    (
        "L6: topics are found by meaning",
        "hits include 'topic'",
        (CheckedIndex, "query", lambda plain: lambda self, vector, k, _where: plain(self, vector, k)),
    ),
    ("L7: what was thought is remembered", "cheese", (InProcessBus, "publish", of_payloads(with_thoughts))),
    ("L7: tool calls are not counted", "'tool_calls' is 1", (MemoryService, "write_turn", with_one_call)),
    ("L7: engrams get lost", "hits count 0", (MemoryService, "write_turn", "")),
    ("L8: a question is made up", "hits are 2", (InProcessBus, "publish", of_payloads(with_a_question))),
    ("L8b: secrets become engrams", "hits count 2", (secret_guard, "secrets_in", ())),
    (
        "L8c: the operator is not asked about secrets",
        "4111",
        (composition, "TopicsMemory", by_another_setting(secrets="redact")),
    ),
    (
        "L9: distances are taken for scores",
        "hits lack 'near'",
        (memory_service, "rank_engrams", found(lambda one: replace(one, similarity=1 - one.similarity))),
    ),
    (
        "L9: nothing is too far",
        "hits include 'out'",
        (
            memory_service,
            "rank_engrams",
            lambda plain: lambda some, **named: plain(some, **{**named, "min_score": -1.0}),
        ),
    ),
    ("L9b: all candidates are told", "hits count 8", (memory_service, "checked_count", 8)),
    (
        "L10: queries are embedded as documents",
        "'sent' is",
        (WatchedEmbedder, "embed", lambda plain: lambda self, texts, _: plain(self, texts, Purpose.DOCUMENT)),
    ),
    ("L11: an engram takes several lines", "result is", (lines, "one_line", lambda _: lambda text: text)),
    ("L12: the answer waits for its engram", "unavailable", (TopicsMemory, "say", not_before_it_is_embedded)),
    ("L13: rewards do not count", "hits have", (entries, "REWARD_WEIGHT", 0.0)),
    (
        "L13: a reward changes the cosine",
        "scores that is",
        (memory_service, "rank_engrams", found(lambda one: replace(one, similarity=effective_score(one)))),
    ),
    (
        "L13b: a reward counts among the nearest alone",
        "do not have 'praised' first",
        (MemoryService, "nearest", of_the_plain_alone),
    ),
    ("L14b: a recall's own engram comes first", "scores that is", (entries, "is_empty", False)),
    ("L14c: questions stand before what was told", "hits", (entries, "is_empty", False)),
    ("L14b: no recall is known as one", "scores that is", (memory_agent, "RECALL_TOOLS", frozenset())),
    (
        "L17: only the topic is forgotten",
        "but must not",
        (
            memory_service,
            "find_forgotten",
            lambda _: lambda entry, *_: ForgetResult(gone=[hit_of(entry)]),
        ),
    ),
    (
        "L17d: a turn leaves the topic that it saved",
        "walnut|hazelnut",
        (memory_service, "find_forgotten", lambda plain: lambda entry, engrams, _: plain(entry, engrams)),
    ),
    ("L17: the talk still holds what was forgotten", "but must not", (GeneratorAgent, "forget_windows", None)),
    (
        "L17: the wish to forget is remembered word for word",
        "but must not",
        (memory_agent, "FORGET_MEMORY", lambda plain: replace(plain, name="no_tool")),
    ),
    ("L17c: a memory is forgotten whoever asks", "was not refused", (MemoryService, "forget", for_anybody)),
    ("L23: a rating over the bus is not heard", "hits do not have 'praised' first", (MemoryService, "rate_turn", True)),
    ("L24: what is past its time is found until it is purged", "hits count 2", (MemoryService, "oldest_kept", "")),
    ("L24: nothing is ever purged", "hits count 3", (MemoryService, "purge_all", 0)),
    ("L25: nothing that was said later counts", "'Bert'", (entries, "speaks_of", False)),
    (
        "L15: a tool does not say what it is for",
        "'description'",
        (topic_tools, "SAVE_MEMORY", lambda plain: replace(plain, description="")),
    ),
    (
        "L15b: a tool does not say what it needs",
        "'required'",
        (topic_tools, "MEMORY_SAVE", lambda plain: replace(plain, parameters={**plain.parameters, "required": []})),
    ),
    ("L16: callers share an id", "result is", (InProcessBus, "request", with_one_id)),
    ("S5b: no answer becomes an engram", "'Canberra'", (MemoryAgent, "start", None)),
    ("S5: the dual search finds nothing", "'Canberra'", (MemoryService, "search", [])),
    ("S5e: the memory ends with the process", "'Plimquart'", (ExactStore, "close", emptied)),
    (
        "S6: a tool has another name",
        "memory_save",
        (topic_tools, "MEMORY_SAVE", lambda plain: replace(plain, name="store_fact")),
    ),
    ("S6c: a preference ends with the process", "'Elixir'", (ExactStore, "close", emptied)),
    ("S6d: what was saved first stays", "'Rust'", (MemoryService, "add", only_once)),
    ("X1: remembered text forges a line", "matches", (result_texts, "as_data", lambda _: lambda text: text)),
    (
        "X2: nobody checks arguments",
        "does not contain 'topic' in any case",
        (tooling, "check_arguments", lambda _: lambda _spec, given: given),
        (memory_service, "checked_text", lambda _: lambda text, *_: text),
        (memory_service, "checked_memory", lambda _: lambda text, *_: text),
    ),
    (
        "X3: owners share one index",
        "hits have a memory of another user",
        (ExactStore, "index", lambda plain: lambda self, collection, _: plain(self, collection, "all")),
    ),
]


async def test_the_story_notices(mutant, play_story):
    assert (await play_story(mutant.story)).reason is None
    with mutant.at_work():
        assert mutant.why in ((await play_story(mutant.story)).reason or "")
