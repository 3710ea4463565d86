"""The topics memory in its own process, and the same memory as other processes see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from memstory.contract.clock import Clock
from memstory.contract.values import Tree
from memstory_reference.bus.calls import Act, Caller, CallServer, refuse_a_second
from memstory_reference.errors import InputError
from memstory_reference.ports import Bus, NewId
from memstory_reference.systems.topics.engrams import EngramEntry, FoundEngram, TopicEntry
from memstory_reference.systems.topics.forgetting import ForgottenEntry
from memstory_reference.systems.topics.memory_agent import MemoryAgent
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.retention import Retention

PART = "memory"
START_BY = "memstory-reference serve memory"

_TEXTS: Mapping[str, Sequence[str]] = {
    "write_topic": ("topic", "content"),
    "topic_entry": ("topic",),
    "write_episodic": ("content",),
    "search_episodic": ("query",),
    "list_topics": ("prefix",),
    "list_engrams": (),
    "entry": ("entry_id",),
    "forget": ("entry_id",),
    "forget_repeats": ("entry_id",),
    "reward": ("engram_id",),
    "rate_turn": ("query_id",),
}
"""The methods of the service that other processes may call, each with the arguments that must be texts."""

_OTHERS: Mapping[str, Sequence[str]] = {
    "write_episodic": ("metadata",),
    "search_episodic": ("top_k", "min_score", "where"),
    "list_engrams": ("where",),
    "reward": ("value",),
    "rate_turn": ("value",),
}


class MemoryPart:
    """The one process that has the store: it answers calls, and turns every response into an engram."""

    def __init__(self, service: MemoryService, bus: Bus, new_id: NewId, clock: Clock) -> None:
        self._service = service
        self._retention = Retention(service, clock)
        self._bus = bus
        self._agent = MemoryAgent(service, bus)
        self._server = CallServer(PART, self._acts(), bus, store="", new_id=new_id)
        self._caller = Caller(bus=bus, part=PART, new_id=new_id, name=PART, start_by=START_BY)

    async def start(self) -> None:
        """Serve from now on; SetupError if another process does already."""
        await refuse_a_second(self._caller, store="")
        await self._retention.start()
        await self._agent.start()
        await self._server.start()

    async def stop(self) -> None:
        """Answer and write what was taken, then serve no more."""
        await self._retention.stop()
        await self._server.stop()
        await self._agent.stop()

    async def come_back(self) -> None:
        """Do nothing: a server that is there again knows what we listen to."""

    def _acts(self) -> dict[str, Act]:
        called = {name: self._act(name, texts) for name, texts in _TEXTS.items()}
        return {**called, "status": self._status, "settle": self._settle}

    def _act(self, name: str, texts: Sequence[str]) -> Act:
        async def act(args: Mapping[str, Tree], owner: str) -> Tree:
            for text in texts:
                if not isinstance(args.get(text), str):
                    raise InputError(f"{text} must be text, not {type(args.get(text)).__name__}")
            if not isinstance(args.get("metadata"), dict | None):
                raise InputError("metadata must be an object")
            known = {one: args[one] for one in (*texts, *_OTHERS.get(name, ())) if one in args}
            return _data(await getattr(self._service, name)(owner, **known))

        return act

    async def _status(self, _: Mapping[str, Tree], owner: str) -> Tree:
        return {
            "topics": await self._service.count(owner, "topic"),
            "episodic": await self._service.count(owner, "episodic"),
            **self._agent.counts(),
        }

    async def _settle(self, _: Mapping[str, Tree], __: str) -> Tree:
        await self._bus.settle()
        return None


class RemoteMemory:
    """The topics memory over the bus, for tools and for people; each method is as `MemoryService` has it."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def write_topic(self, owner: str, topic: str, content: str) -> str:
        return str(await self._caller.call("write_topic", owner, topic=topic, content=content))

    async def topic_entry(self, owner: str, topic: str) -> TopicEntry | None:
        found = await self._caller.call("topic_entry", owner, topic=topic)
        return None if found is None else _topic(found)

    async def write_episodic(self, owner: str, content: str, metadata: Mapping[str, Tree] | None = None) -> str:
        attached = None if metadata is None else dict(metadata)
        return str(await self._caller.call("write_episodic", owner, content=content, metadata=attached))

    async def search_episodic(
        self,
        owner: str,
        query: str,
        top_k: int | None = None,
        *,
        min_score: float | None = None,
        where: Mapping[str, Tree] | None = None,
    ) -> list[FoundEngram]:
        found = await self._caller.call(
            "search_episodic", owner, query=query, top_k=top_k, min_score=min_score, where=where and dict(where)
        )
        return [FoundEngram(**one) for one in found]

    async def list_topics(self, owner: str, prefix: str = "") -> list[TopicEntry]:
        return [_topic(one) for one in await self._caller.call("list_topics", owner, prefix=prefix)]

    async def list_engrams(self, owner: str, where: Mapping[str, Tree] | None = None) -> list[EngramEntry]:
        found = await self._caller.call("list_engrams", owner, where=where and dict(where))
        return [EngramEntry(**one) for one in found]

    async def entry(self, owner: str, entry_id: str) -> TopicEntry | EngramEntry | None:
        found = await self._caller.call("entry", owner, entry_id=entry_id)
        return None if found is None else _entry(found)

    async def reward(self, owner: str, engram_id: str, value: float) -> bool:
        return bool(await self._caller.call("reward", owner, engram_id=engram_id, value=value))

    async def rate_turn(self, owner: str, query_id: str, value: float) -> bool:
        return bool(await self._caller.call("rate_turn", owner, query_id=query_id, value=value))

    async def forget_repeats(self, owner: str, entry_id: str) -> ForgottenEntry | None:
        found = await self._caller.call("forget_repeats", owner, entry_id=entry_id)
        if found is None:
            return None
        engrams, mentions = ([EngramEntry(**one) for one in found[name]] for name in ("engrams", "mentions"))
        topics = [_topic(one) for one in found["topics"]]
        return ForgottenEntry(entry=_entry(found["entry"]), engrams=engrams, mentions=mentions, topics=topics)

    async def forget(self, owner: str, entry_id: str) -> bool:
        return bool(await self._caller.call("forget", owner, entry_id=entry_id))


def _data(found: object) -> Tree:
    if isinstance(found, list):
        return [_data(one) for one in found]
    return asdict(found) if isinstance(found, TopicEntry | EngramEntry | FoundEngram | ForgottenEntry) else found


def _entry(found: Mapping[str, Tree]) -> TopicEntry | EngramEntry:
    return _topic(found) if "topic" in found else EngramEntry(**found)


def _topic(found: Mapping[str, Tree]) -> TopicEntry:
    return TopicEntry(**{**found, "since": [EngramEntry(**one) for one in found["since"]]})
