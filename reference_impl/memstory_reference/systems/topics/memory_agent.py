"""Turns every answered question into an engram, and takes ratings of answers, without anybody waiting for it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.values import Json, Tree
from memstory_reference.bus import Bus, Subscription
from memstory_reference.bus.subjects import RESPONSE_FEEDBACK, RESPONSE_GENERATION, RESPONSES, WRITER
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope
from memstory_reference.storage.recurring import Recurring
from memstory_reference.systems.topics.entries import is_key, lookup_key, turn_text
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.tools import FORGET_MEMORY, RECALL_TOOLS, SAVING_TOOLS
from memstory_reference.text.lines import shorten

NAME = "MemoryAgent"
MAX_ID_CHARACTERS = 200
EVERY = timedelta(hours=1)

_log = logging.getLogger(__name__)


OUTCOMES = (
    *("ingested", "skipped_no_query", "skipped_no_answer", "skipped_secret", "skipped_forgetting"),
    *("rated", "refused", "failed", "purged"),
)
"""What happens to the responses and ratings that are heard, and how many engrams are purged."""


class MemoryAgent:
    """Hears `response.generation` and `response.feedback`, nothing else, and publishes nothing.

    It also deletes every owner's engrams once the settings' retention is over, if they name one.
    """

    def __init__(self, service: MemoryService, bus: Bus) -> None:
        self._service = service
        self._bus = bus
        self._purging = Recurring("deleting engrams beyond the retention", self._purge, service.clock)
        self._counts = dict.fromkeys(OUTCOMES, 0)
        self._subscription: Subscription | None = None

    async def start(self) -> None:
        """Purge what is too old, from now on every hour, and hear responses, those first that waited for it."""
        if self._service.settings.retention_days is not None:
            await self._purge()
            await self._purging.start(EVERY)
        self._subscription = await self._bus.subscribe(RESPONSES, self._on_message, name=NAME, durable=WRITER)

    async def stop(self) -> None:
        """Hear no more; what was heard is still written."""
        await self._purging.stop()
        if self._subscription is not None:
            await self._subscription.unsubscribe()

    async def settle(self) -> None:
        """Return when what was heard is written, or will not be, and nothing is being purged."""
        await self._purging.settle()
        if self._subscription is not None:
            await self._subscription.settle()

    def counts(self) -> dict[str, int]:
        """Return what happened to the responses so far, and how many engrams were purged."""
        return dict(self._counts)

    async def _purge(self) -> None:
        try:
            self._counts["purged"] += await self._service.purge_all()
        except MemstoryError as error:
            _log.warning("engrams beyond the retention could not be deleted: %s", error)

    async def _on_message(self, envelope: Envelope) -> None:
        # One subscription: a rating comes after its answer.
        if envelope.subject == RESPONSE_GENERATION:
            await self._on_answer(envelope)
        elif envelope.subject == RESPONSE_FEEDBACK:
            await self._on_rating(envelope)

    async def _on_answer(self, envelope: Envelope) -> None:
        payload = envelope.payload
        query, answer = _text(payload.get("query")), _text(payload.get("answer"))
        if not query:
            self._skip("skipped_no_query", f"it is without its query (publisher {envelope.publisher})")
        elif not answer:
            self._skip("skipped_no_answer", f"it is without an answer (publisher {envelope.publisher})")
        else:
            turn = shorten(turn_text(query, answer), self._service.settings.limits.max_memory_characters)
            await self._ingest(envelope, turn)

    async def _ingest(self, envelope: Envelope, content: str) -> None:
        payload = envelope.payload
        if reason := self._service.settings.refusal(content):
            self._skip("skipped_secret", reason)
            return
        found = payload.get("tool_calls")
        calls = [call for call in found if isinstance(call, dict)] if isinstance(found, list) else []
        if any(str(call.get("name")) == FORGET_MEMORY.name and not call.get("error") for call in calls):
            # "Forget that my name is Carla" would keep what was to be forgotten.
            self._counts["skipped_forgetting"] += 1
            return
        ids = {name: payload[name] for name in ("session_id", "query_id") if _is_id(payload.get(name))}
        is_recall = any(str(call.get("name")) in RECALL_TOOLS for call in calls)
        metadata = {**ids, "tool_calls": len(found) if isinstance(found, list) else 0, "source": "conversation"}
        try:
            saved = _topics([call for call in calls if str(call.get("name")) in SAVING_TOOLS and not call.get("error")])
            await self._service.write_turn(
                envelope.owner,
                content,
                metadata,
                message_id=envelope.request_id,
                is_recall=is_recall,
                topics=_topics(calls),
                saved=saved,
            )
        except InputError as error:
            self._skip("refused", error)
        except UnavailableError as error:
            self._counts["failed"] += 1
            _log.warning("a response could not be kept: %s", error)
            raise
        else:
            self._counts["ingested"] += 1

    def _skip(self, outcome: str, why: object) -> None:
        self._counts[outcome] += 1
        _log.warning("a response is not kept: %s", why)

    async def _on_rating(self, envelope: Envelope) -> None:
        query_id, value = envelope.payload.get("query_id"), envelope.payload.get("value")
        if not isinstance(query_id, str) or not isinstance(value, int | float):
            raise InputError(f"{RESPONSE_FEEDBACK}: the payload has 'query_id', a text, and 'value', from -1 to 1")
        if not await self._service.rate_turn(envelope.owner, query_id, value):
            raise InputError(f"{RESPONSE_FEEDBACK}: no turn with the query_id {query_id!r:.80} is remembered")
        self._counts["rated"] += 1


def _topics(calls: Sequence[Mapping[str, Tree]]) -> list[str]:
    """Return the topics that tools were called with, each once."""
    given = (call.get("arguments") for call in calls)
    named = (args.get("topic") for args in given if isinstance(args, dict))
    keys = (lookup_key(topic) for topic in named if isinstance(topic, str))
    return list(dict.fromkeys(key for key in keys if key and is_key(key)))


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) else ""


def _is_id(value: Json) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID_CHARACTERS and value.isprintable()
