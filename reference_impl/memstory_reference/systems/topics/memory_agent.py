"""Turns every answered question into an engram, without anybody waiting for it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from memstory_reference.bus.subjects import RESPONSE_GENERATION
from memstory_reference.errors import InputError, UnavailableError
from memstory_reference.ports import Bus, Envelope, Json, Subscription
from memstory_reference.systems.topics.engrams import turn_text
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.tool_schemas import RECALL_TOOLS
from memstory_reference.text.lines import shortened

NAME = "MemoryAgent"
MAX_ID_CHARACTERS = 200

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class IngestCounts:
    """What became of the responses that were heard."""

    ingested: int = 0
    skipped_no_query: int = 0
    skipped_no_answer: int = 0
    skipped_secret: int = 0
    refused: int = 0
    failed: int = 0


class MemoryAgent:
    """Hears `response.generation` and nothing else, and publishes nothing."""

    def __init__(self, service: MemoryService, bus: Bus) -> None:
        self._service = service
        self._bus = bus
        self._counts = IngestCounts()
        self._subscription: Subscription | None = None

    async def start(self) -> None:
        """Hear responses from now on."""
        self._subscription = await self._bus.subscribe(RESPONSE_GENERATION, self._heard, name=NAME)

    async def stop(self) -> None:
        """Hear no more; what was heard is still written."""
        if self._subscription is not None:
            await self._subscription.unsubscribe()

    def counts(self) -> dict[str, int]:
        """Return what became of the responses so far."""
        return asdict(self._counts)

    async def _heard(self, envelope: Envelope) -> None:
        payload = envelope.payload
        query, answer = _text(payload.get("query")), _text(payload.get("answer"))
        if not query:
            self._counts.skipped_no_query += 1
            _log.warning("a response without its query is not kept (publisher %s)", envelope.publisher)
        elif not answer:
            self._counts.skipped_no_answer += 1
            _log.warning("a response without an answer is not kept (publisher %s)", envelope.publisher)
        else:
            turn = shortened(turn_text(query, answer), self._service.config.limits.max_memory_characters)
            await self._ingest(envelope.owner, turn, payload)

    async def _ingest(self, owner: str, content: str, payload: Mapping[str, Json]) -> None:
        guard = self._service.config.guard
        if guard and (reason := guard(content)):
            self._counts.skipped_secret += 1
            _log.warning("a response is not kept: %s", reason)
            return
        calls = payload.get("tool_calls")
        calls = calls if isinstance(calls, list) else []
        ids = {name: payload[name] for name in ("session_id", "query_id") if _is_id(payload.get(name))}
        is_recall = any(isinstance(call, dict) and str(call.get("name")) in RECALL_TOOLS for call in calls)
        metadata = {**ids, "tool_calls": len(calls), "source": "conversation"}
        try:
            await self._service.write_episodic(owner, content, metadata, is_recall=is_recall)
        except InputError as error:
            self._counts.refused += 1
            _log.warning("a response is not kept: %s", error)
        except UnavailableError as error:
            self._counts.failed += 1
            _log.warning("a response could not be kept: %s", error)
        else:
            self._counts.ingested += 1


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) else ""


def _is_id(value: Json) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID_CHARACTERS and value.isprintable()
