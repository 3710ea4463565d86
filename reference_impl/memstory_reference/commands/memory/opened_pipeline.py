"""The pipeline memory as commands open it, and how its memories are named and shown there."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from memstory.contract.values import Json
from memstory_reference.commands.memory_rows import SHORT_ID_CHARACTERS, Row
from memstory_reference.composition.pipeline import PIPELINE_FILE
from memstory_reference.errors import InputError
from memstory_reference.systems.pipeline.chunk import MemoryChunk
from memstory_reference.systems.pipeline.service import PipelineService
from memstory_reference.systems.pipeline.settings import PipelineSettings, default_pipeline, read_pipeline

FOREIGN = ("user_id", "thread_id", "memory_mode", "toolset", "bus")
_SETTING_OF = {"store": "path", "embedder": "embedding_model", "chat": "chat"}


def chosen_pipeline(parsed: argparse.Namespace) -> PipelineSettings:
    """Return the settings that were typed: the settings' file first, then each option."""
    settings = read_pipeline(parsed.settings) if parsed.settings else default_pipeline()
    typed = {setting: getattr(parsed, option, None) for option, setting in _SETTING_OF.items()}
    changes: dict[str, Json] = {setting: value for setting, value in typed.items() if value is not None}
    return settings.changed(changes, "command line")


def check_is_stored(settings: PipelineSettings) -> None:
    """Raise InputError where there is no memory yet: to look at one makes none."""
    if not (settings.folder / PIPELINE_FILE).is_file():
        raise InputError(
            f"{settings.folder}: no pipeline memory is stored here. Name its folder with --store, or make one with "
            "'chat --system pipeline'"
        )


def row_of_chunk(memory: MemoryChunk) -> Row:
    """Return a memory as commands print it; a preference's key is its topic."""
    key = memory.key if memory.key and not memory.key.startswith("content:") else None
    shown = {"session": memory.session_id, "importance": round(memory.importance, 3), "times_seen": memory.times_seen}
    links = {"replaced_by": memory.replaced_by, "summary_id": memory.summary_id}
    return {
        "owner": memory.user_id,
        "kind": str(memory.memory_type),
        "id": memory.id,
        "topic": key,
        "text": memory.content,
        "created_at": memory.created_at.isoformat(),
        "metadata": {**shown, **{name: value for name, value in links.items() if value is not None}},
    }


async def chunk_named(memory: PipelineService, owner: str, name: str) -> MemoryChunk:
    """Return the memory of this key, id or beginning of an id; InputError for none, or for more than one."""
    found: Sequence[MemoryChunk] = [
        one for one in await memory.memories(owner, include_replaced=True) if name == one.id
    ]
    if not found and (preference := await memory.preference(name, owner)):
        found = [preference]
    if not found and len(name) >= SHORT_ID_CHARACTERS:
        found = [one for one in await memory.memories(owner, include_replaced=True) if one.id.startswith(name)]
    if len(found) > 1:
        raise InputError(f"{name!r:.80} begins several ids: {', '.join(one.id for one in found[:3])}, …")
    if not found:
        raise InputError(f"{owner} has no memory {name!r:.80}; a list or a search shows the ids")
    return found[0]
