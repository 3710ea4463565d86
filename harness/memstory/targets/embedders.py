"""Embedders by name, for adapters to backends that take one: so that backends differ, and not what they embed with.

A package offers one under the entry point group `memstory.embedders`: a callable that is given what follows the first
colon of NAME:REST, an empty text where there is none, and the options of the target, and returns it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Final, Literal, Protocol, TypeAlias, cast

from memstory.contract.clock import Stopwatch
from memstory.contract.errors import Refused, SetupError, StoryError
from memstory.contract.installation import make_offer
from memstory.contract.target import Answer, Capability, Environment, Request, Target, Tree
from memstory.models.static_vectors import StaticVectors
from memstory.models.word_vectors import WordVectors
from memstory.targets.adapter import Adapter, AdapterFactory

GROUP: Final = "memstory.embedders"
DEFAULT: Final = "minilm"
_SLOW_SECONDS: Final = 0.2
_PROBE: Final = "How many numbers has a vector?"

Purpose: TypeAlias = Literal["document", "query"]


class TextEmbedder(Protocol):
    """Texts to vectors; `model` names it in reports.

    One that holds something open has `async close()` too; another `embed` may open it again.
    """

    @property
    def model(self) -> str:
        """Return the name of the model."""
        ...

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return one vector of length 1 a text; some models treat documents and queries differently."""
        ...


class StoryVectors:
    """The vectors that a story gives its texts."""

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self._vectors = vectors
        self.model = f"fixed-{len(next(iter(vectors.values())))}"

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return the given vectors; a text without one is a StoryError."""
        missing = [text for text in texts if text not in self._vectors]
        if missing:
            raise StoryError(f"the story has no vector for {missing[0]!r:.80}: give it one, as it has for other texts")
        # Lists, as every model answers: Chroma refuses tuples, and Postgres reads them as something else.
        return [[*self._vectors[text]] for text in texts]


class TimedEmbedder:
    """An embedder whose time is measured by `watch`; `failure` is its latest SetupError, None before there is one."""

    def __init__(self, inner: TextEmbedder) -> None:
        self.watch = Stopwatch()
        self._inner = inner
        self.failure: SetupError | None = None

    @property
    def model(self) -> str:
        """Return the name of the model."""
        return self._inner.model

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return what `inner` does."""
        try:
            with self.watch.running():
                return await self._inner.embed(texts, purpose)
        except SetupError as error:
            self.failure = error
            raise

    async def close(self) -> None:
        """Close `inner`, if it holds something open."""
        if (close := getattr(self._inner, "close", None)) is not None:
            await close()


class FaultyEmbedder:
    """An embedder that a story can take down, slow down, or have answer alike or NaN; `landed` counts that."""

    def __init__(self, inner: TextEmbedder) -> None:
        self.model = inner.model
        self.mode, self.landed = "ok", 0
        self._inner = inner

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return what `inner` does, unless a story says otherwise."""
        self.landed += self.mode != "ok"
        if self.mode == "down":
            raise ConnectionError("the story has taken the embedder down")
        if self.mode == "slow":
            await asyncio.sleep(_SLOW_SECONDS)
        vectors = await self._inner.embed(texts, purpose)
        if self.mode == "nan":
            return [[math.nan] * len(vector) for vector in vectors]
        return [[*vectors[0]] for _ in vectors] if self.mode == "garbage" else vectors


class OtherEmbedder:
    """A stand-in for a different model: vectors of the length of `inner`, which are not like those of `inner`."""

    def __init__(self, inner: TextEmbedder) -> None:
        self.model = f"other-{inner.model}"
        self._inner = inner

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return the vectors of `inner` backwards."""
        return [[*reversed(vector)] for vector in await self._inner.embed(texts, purpose)]


class Embedders:
    """The embedders of one worker, each loaded once, when it is first asked for; `known` are loaded already."""

    def __init__(self, known: Mapping[str, TextEmbedder] | None = None, *, usual: str = DEFAULT) -> None:
        self._usual = usual
        self._loaded = {name: TimedEmbedder(embedder) for name, embedder in (known or {}).items()}

    def of(self, env: Environment) -> TimedEmbedder:
        """Return the vectors of the story where it has some, else the embedder that the option `embedder` names.

        Where the story opens a memory with another one, it is neither.

        Raises:
            SetupError: nothing offers that embedder, or it cannot be loaded here.
        """
        if env.other_embedder:
            return TimedEmbedder(OtherEmbedder(self.of(replace(env, other_embedder=False))))
        if env.vectors:
            return TimedEmbedder(StoryVectors(env.vectors))
        name = str(env.options.get("embedder", self._usual))
        if name not in self._loaded:
            self._loaded[name] = TimedEmbedder(load_embedder(name, env.options))
        return self._loaded[name]

    async def close(self) -> None:
        """Close every embedder that was loaded."""
        for embedder in self._loaded.values():
            await embedder.close()


def load_embedder(name: str, options: Mapping[str, Tree] = MappingProxyType({})) -> TextEmbedder:
    """Return the embedder that a package offers under `name`: `minilm`, `openai:MODEL`, `ollama:MODEL`.

    Raises:
        SetupError: nothing offers it, or what it needs is not installed.
    """
    return cast("TextEmbedder", make_offer(GROUP, "embedder", name, options, usual="The reference's own"))


def words(more: str, options: Mapping[str, Tree]) -> TextEmbedder:  # noqa: ARG001  (as every embedder is made)
    """Return an embedder that counts words, without weights and without sense."""
    return _without_more("words", more, WordVectors)


def static(more: str, options: Mapping[str, Tree]) -> TextEmbedder:  # noqa: ARG001  (as every embedder is made)
    """Return the embedder that comes with memstory: a table of vectors, without onnxruntime."""
    return _without_more("static", more, StaticVectors)


def _without_more(name: str, more: str, make: Callable[[], TextEmbedder]) -> TextEmbedder:
    if more:
        raise SetupError(f"the embedder '{name}' takes no name behind a colon, as in '{name}:{more}'")
    return make()


class BlockingEmbedder:
    """An embedder for libraries that call it from a thread of their own and wait; it is made in the event loop."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self._embedder = embedder
        self._loop = asyncio.get_running_loop()

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return one vector a text."""
        return asyncio.run_coroutine_threadsafe(self._embed(texts, purpose), self._loop).result()

    async def _embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        return await self._embedder.embed(texts, purpose)


class EmbeddingTarget(Adapter):
    """A target that searches by vectors; `choose_embedder`, called when it is opened, sets its `embedder`."""

    embedder: TimedEmbedder

    def __init__(self, embedders: Embedders) -> None:
        self._embedders = embedders
        self._faulty: FaultyEmbedder | None = None

    def choose_embedder(self, env: Environment) -> None:
        """Take the embedder that the environment asks for."""
        self._faulty = FaultyEmbedder(self._embedders.of(env))
        self.embedder = TimedEmbedder(self._faulty)
        self.embedding = self.embedder.watch

    async def about(self) -> Mapping[str, str]:
        return {"embedder": self.embedder.model, **await super().about()}

    async def fault(self, part: str, mode: str) -> None:
        if part != "embedder" or self._faulty is None:
            await super().fault(part, mode)
        else:
            self._faulty.mode = mode

    async def fault_counts(self) -> Mapping[str, int]:
        return {**await super().fault_counts(), "embedder": self._faulty.landed if self._faulty else 0}

    async def perform(self, request: Request[Answer]) -> Answer:
        """Do what `request` says; that the embedder gave no vectors comes before what the memory made of it."""
        before = self.embedder.failure
        try:
            return await super().perform(request)
        except Exception as error:
            # What a memory raises because a story took its embedder away, it says to its user.
            if self._faulty is None or self._faulty.mode not in ("down", "nan"):
                raise
            raise Refused(f"{type(error).__name__}: {error}") from error
        finally:
            if self.embedder.failure is not None and self.embedder.failure is not before:
                raise self.embedder.failure


class EmbeddingFactory(AdapterFactory):
    """Makes targets that search by meaning: their embedders are loaded once, and closed with the factory."""

    adapter: ClassVar[type[EmbeddingTarget]]
    usual_embedder: ClassVar[str] = DEFAULT

    def __init__(self, embedders: Embedders | None = None) -> None:
        self._embedders = embedders or Embedders(usual=self.usual_embedder)

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        return super().capabilities(options) | {"fault.embedder", "fault.nan"}

    def target(self) -> Target:
        return self.adapter(self._embedders)

    async def stop(self) -> None:
        await self._embedders.close()


async def vector_length(embedder: TextEmbedder, env: Environment) -> int:
    """Return the length of the embedder's vectors, which some stores must know before the first text is stored."""
    (probe,) = await embedder.embed([next(iter(env.vectors), _PROBE)], "document")
    return len(probe)
