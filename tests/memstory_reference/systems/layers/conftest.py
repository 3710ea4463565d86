"""What the tests of the layers share: a service over real stores, with a clock and models of the test's own."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
import pytest

from memstory.contract.models import ChatModelUnavailableError, Reply
from memstory_reference.composition import layers
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.systems.layers.settings import LayersSettings, MemoryMode

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class MovableClock:
    """Stands still until it is moved, also backwards."""

    def __init__(self):
        self.moment = NOON
        self.sleepers = []

    def now(self):
        return self.moment

    async def sleep_until(self, moment):
        if moment <= self.moment:
            return
        woken = asyncio.get_running_loop().create_future()
        self.sleepers.append((moment, woken))
        await woken

    async def move(self, **by):
        self.moment += timedelta(**by)
        for moment, woken in self.sleepers:
            if moment <= self.moment and not woken.done():
                woken.set_result(None)
        for _ in range(8):
            await asyncio.sleep(0)


class LetterEmbedder:
    """A vector from the letters of a text: equal texts are equal, others rarely."""

    model = "letters"
    dimension = 16

    async def embed(self, texts, purpose):
        rows = np.zeros((len(texts), 16), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[0] = 1
            for letter in text.lower():
                row[ord(letter) % 16] += 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class ByPurpose:
    """A model that answers each purpose by a function of the prompt, by a text, or not at all."""

    name = "by purpose"

    def __init__(self, **answers):
        self.answers = {
            "chat": "I see.",
            "extract_semantic": '{"facts": []}',
            "extract_procedural": '{"rules": []}',
            "write_policy": '{"decision": "commit"}',
            **answers,
        }
        self.prompts = []

    async def chat(self, request):
        self.prompts.append((request.purpose, "\n".join(message.content for message in request.messages)))
        answer = self.answers.get(request.purpose)
        if callable(answer):
            answer = answer(request.messages[-1].content)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            raise ChatModelUnavailableError(request.purpose)
        return Reply(content=answer)


@pytest.fixture
def by_purpose():
    return ByPurpose


@pytest.fixture
def clock():
    return MovableClock()


@pytest.fixture
async def open_layers(tmp_path, clock):
    """Open the layers in the test's folder; what is still open at the end is closed."""
    opened, openings = [], count()

    async def open_(
        *, model=None, mode=MemoryMode.LOCAL, place=None, wrap=lambda store: store, embedder=None, **config
    ):
        numbers, opening = count(), next(openings)
        ports = MemoryPorts(
            embedder=embedder or LetterEmbedder(),
            clock=clock,
            new_id=lambda: f"id-{opening}-{next(numbers):04}",
            place=place,
            wrap=wrap,
            **({} if model is None else {"chat": model, "has_model": True}),
        )
        settings = LayersSettings(store=str(tmp_path / "layers"), mode=mode, min_similarity=-1, **config)
        service = await layers.open_layers(settings, ports)
        opened.append(service)
        return service

    yield open_
    for service in opened:
        await service.close()
