"""Agno's memory manager over SQLite: its model calls tools that add, change and delete memories."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from memstory.contract.target import Environment, Hit, Query
from memstory.models.openai_server import NO_KEY
from memstory.targets.adapter import AdapterFactory
from memstory.targets.vendors.model_inside import MODEL_CAPABILITIES, ModelInside


class AgnoTarget(ModelInside):
    """Memories of users in one file. Its search gives the last ones, whatever is asked: it costs no call."""

    capabilities = MODEL_CAPABILITIES | {"restart", "persistent"}
    _manager: Any

    async def open_memory(self, env: Environment) -> None:
        database = import_module("agno.db.sqlite").SqliteDb(db_file=str(Path(env.workspace) / "agno.db"))
        model = None
        if self.model is not None:
            model = import_module("agno.models.openai.like").OpenAILike(
                id=self.model.name, base_url=self.model.url, api_key=NO_KEY, temperature=0
            )
        self._manager = import_module("agno.memory").MemoryManager(
            model=model, db=database, delete_memories=True, update_memories=True
        )

    async def close_memory(self) -> None:
        self._manager.db.db_engine.dispose()

    def store_name(self) -> str:
        return f"agno {version('agno')}, sqlite"

    async def learn(self, text: str, user: str) -> None:
        await asyncio.to_thread(self._manager.create_user_memories, message=text, user_id=user)

    async def memories(self, user: str) -> Sequence[Hit]:
        found = await asyncio.to_thread(self._manager.get_user_memories, user_id=user)
        return [_hit(one) for one in found or ()]

    async def matches(self, query: Query, user: str) -> Sequence[Hit]:
        limit = 10 if query.top_k is None else query.top_k
        found = await asyncio.to_thread(
            self._manager.search_user_memories, limit=limit, retrieval_method="last_n", user_id=user
        )
        return [_hit(one) for one in reversed(found or ())]

    async def forget(self, hit: Hit, user: str) -> None:
        await asyncio.to_thread(self._manager.delete_user_memory, hit.id, user)


class AgnoFactory(AdapterFactory):
    """Agno's memory manager; `llm=openai:MODEL` names its model."""

    name: ClassVar[str] = "agno"
    adapter = AgnoTarget

    async def start(self, folder: Path) -> None:
        # Read when it is imported: it reports to its makers otherwise.
        os.environ["AGNO_TELEMETRY"] = "false"


def _hit(found: Any) -> Hit:
    return Hit(id=found.memory_id, text=found.memory)
