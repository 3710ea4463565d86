"""How well what people say is read: `python benchmarks/statements.py [--wrong]`.

Says the 150 sentences of `tests/memstory_reference/text/people.yaml` and 68 later ones to the three that read English
by rules: the stand-in for a chat model with its tools, the pipeline and the layers, each without a language model.
Prints how many are kept as they should be: of the half that was open while the rules were written, of the half that
was kept back, and of the later ones; `--wrong` lists those of the open half that are not.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from memstory.contract.models import ChatRequest, Message, ToolRequest
from memstory.contract.values import ToolSchema
from memstory_reference.adapters.offline_chat import OfflineChat
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.layers import open_layers
from memstory_reference.composition.pipeline import open_pipeline
from memstory_reference.ports import Purpose, Vectors
from memstory_reference.systems.layers.records import Fact, Rule
from memstory_reference.systems.layers.sessions import EndReason
from memstory_reference.systems.layers.settings import LayersSettings, MemoryMode
from memstory_reference.systems.pipeline.chunk import ChunkType
from memstory_reference.systems.pipeline.settings import PipelineSettings
from memstory_reference.text.words import stems

SENTENCES = Path(__file__).parents[1] / "tests/memstory_reference/text"
OPEN, BACK, LATER = SETS = ("open", "kept back", "later")
NOT = re.compile(r"\b(?:not|never|no|without|dislikes?|hates?|denie[sd]|cannot)\b|n't\b", re.IGNORECASE)
FILLERS = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|may|june|march|august|now|since|today|yesterday|week|month|year|these"
    r"|days|actually|well|oh|so|sorry|correction|wait|oops|way|longer)\b"
)
"""No word of a key, unless the sentence is about it."""

Row = Mapping[str, Any]
Entry = tuple[str, str]
"""What is kept: under which words, and what."""
Reader = Callable[[Sequence[str]], Awaitable[list[Entry]]]


class RandomVectors:
    """Vectors that say nothing: what is measured is read by rules."""

    model, dimension = "random", 16

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Return a vector for each text, the same for the same text."""
        drawn = [np.random.default_rng(list(text.encode())).standard_normal(self.dimension) for text in texts]
        return np.array([one / np.linalg.norm(one) for one in drawn], np.float32).reshape(-1, self.dimension)


class Noon:
    """A clock that goes on by a second each time it is asked."""

    def __init__(self) -> None:
        self._seconds = count()

    def now(self) -> datetime:
        """Return the next second."""
        at = next(self._seconds)
        return datetime(2026, 1, 1, 12, at // 60, at % 60, tzinfo=UTC)

    async def sleep_until(self, moment: datetime) -> None:
        """Wait for good: nothing here is due."""
        await asyncio.Event().wait()


def _tool(name: str, description: str, *required: str) -> ToolSchema:
    properties = {key: {"type": "string"} for key in required}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSchema(name=name, description=description, parameters=schema)


TOOLS = (
    _tool("memory_save", "Save a fact to memory under a topic.", "topic", "content"),
    _tool("memory_recall", "Look up what a topic holds.", "topic"),
    _tool("memory_search", "Search past sessions.", "query"),
    _tool("memory_forget", "Forget what a topic holds.", "topic"),
)


async def by_the_stand_in(said: Sequence[str]) -> list[Entry]:
    """Talk with the stand-in; return what it has saved by its tools."""
    topics: dict[str, str] = {}
    window: list[Message] = []

    def answer(call: ToolRequest) -> str:
        topic, content = str(call.arguments.get("topic", "")), call.arguments.get("content")
        if content is not None:
            topics[topic] = str(content)
            return f"Memory saved: {topic}"
        if call.name == "memory_forget":
            return "forgotten" if topics.pop(topic, None) else '{"success": false}'
        return f"[Memory: {topic}] {topics[topic]}" if topic in topics else "No memories found."

    for text in said:
        window.append(Message(role="user", content=text))
        turn: list[Message] = []
        while (reply := await OfflineChat().chat(ChatRequest([*window, *turn], TOOLS))).tool_requests:
            turn.append(Message(role="assistant", content=reply.content, tool_requests=reply.tool_requests))
            turn += [Message(role="tool", content=answer(call), tool=call.name) for call in reply.tool_requests]
        window.append(Message(role="assistant", content=reply.content))
    return [(re.sub(r"[._]", " ", topic), value) for topic, value in topics.items()]


async def by_the_pipeline(said: Sequence[str]) -> list[Entry]:
    """Tell the pipeline; return what it takes for preferences and facts. Of all else it keeps that it was said."""
    ids = count()
    with TemporaryDirectory() as folder:
        ports = MemoryPorts(embedder=RandomVectors(), clock=Noon(), new_id=lambda: f"id-{next(ids)}")
        service = await open_pipeline(PipelineSettings(path=folder), ports)
        for text in said:
            await service.ingest(text, "user", "session")
        found = await service.memories("user", [ChunkType.PROCEDURAL, ChunkType.SEMANTIC])
        await service.close()
    return [(one.key or "", one.content) for one in found]


async def by_the_layers(said: Sequence[str]) -> list[Entry]:
    """Talk with the layers; return the facts and rules that are active after the session."""
    ids = count()
    ports = MemoryPorts(embedder=RandomVectors(), clock=Noon(), new_id=lambda: f"id-{next(ids)}")
    service = await open_layers(LayersSettings(mode=MemoryMode.INCOGNITO), ports)
    who = await service.who("user", "session")
    for text in said:
        await service.turn(text, who)
        await service.settle()
    await service.end(who, EndReason.EXPLICIT)
    contents = [record.content for record in await service.records.list_records(who.owner)]
    await service.close()
    kept = [
        (f"{one.subject} {one.predicate} {one.category}".replace("_", " ").casefold(), f"{one.predicate} {one.object}")
        for one in contents
        if isinstance(one, Fact)
    ]
    return kept + [("rule", one.rule) for one in contents if isinstance(one, Rule)]


READERS: Mapping[str, Reader] = {"stand-in": by_the_stand_in, "pipeline": by_the_pipeline, "layers": by_the_layers}


async def is_right(row: Row, read: Reader, *, keyed: bool) -> bool:
    """Say whether a sentence is kept as its row says; an old value has to go where it has a key."""
    before = await read(row.get("first", []))
    after = await read([*row.get("first", []), row["say"]])
    if not all(_holds(after, one, keyed=keyed) for one in row.get("keep", [])):
        return False
    old = str(row.get("gone", ""))
    stale = [value for key, value in after if _has(value, old) and (keyed or key)] if old else []
    if not all(NOT.search(value.replace("_", " ")) for value in stale):
        return False
    if row["kind"] == "correction" and keyed:
        return len(after) <= len(before)
    return bool(row.get("keep") or old) or after == before


def _holds(entries: Sequence[Entry], wanted: Row, *, keyed: bool) -> bool:
    holding = [(key, value) for key, value in entries if _has(value, str(wanted["value"]))]
    if not keyed:
        return bool(holding)
    about, who = set(stems(str(wanted["about"]))), set(stems(wanted["who"]))
    for key, value in holding:
        words = set(stems(key))
        is_theirs = "user" in who or not who.isdisjoint(stems(f"{key} {value}"))
        is_denied = not wanted.get("not") or NOT.search(f"{key} {value}".replace("_", " "))
        is_clean = set(FILLERS.findall(key.casefold())) <= set(str(wanted["about"]).split())
        if is_theirs and is_denied and is_clean and not about.isdisjoint(words):
            return True
    return False


def _has(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def applies(row: Row, name: str) -> bool:
    """Say whether a reader is asked: the pipeline reads no wishes to forget and ends no fact, by its specification."""
    return name != "pipeline" or not (row["kind"] == "forget" or ("gone" in row and "keep" not in row))


async def main(*, wrong: bool) -> None:
    """Print the figures."""
    rows, later = (
        yaml.safe_load((SENTENCES / name).read_text("utf-8")) for name in ("people.yaml", "people_more.yaml")
    )
    placed = [*((row, (OPEN, BACK)[at % 2]) for at, row in enumerate(rows)), *((row, LATER) for row in later)]
    kinds = list(dict.fromkeys(row["kind"] for row, _ in placed))
    for name, read in READERS.items():
        judged = [
            (row, part, await is_right(row, read, keyed=name != "pipeline"))
            for row, part in placed
            if applies(row, name)
        ]
        for title in SETS:
            mine = [(row, right) for row, part, right in judged if part == title]
            parts = [(kind, [right for row, right in mine if row["kind"] == kind]) for kind in kinds]
            told = ", ".join(f"{kind} {sum(rights)}/{len(rights)}" for kind, rights in parts if rights)
            print(f"{name:9} {title:9} {sum(right for _, right in mine):3}/{len(mine)}: {told}")
        if wrong:
            for row, part, right in judged:
                if part == OPEN and not right:
                    said = [*row.get("first", []), row["say"]]
                    print("   ", said, "->", await read(said))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--wrong", action="store_true", help="list what is read wrongly of the open half")
    asyncio.run(main(wrong=options.parse_args().wrong))
