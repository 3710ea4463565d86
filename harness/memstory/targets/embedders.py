"""Embedders by name, for adapters to backends that take one: so that backends differ, and not what they embed with.

A package offers one under the entry point group `memstory.embedders`: a callable without arguments that returns it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from typing import ClassVar, Final, Literal, Protocol, TypeAlias, cast

from memstory.contract.clock import Stopwatch
from memstory.contract.errors import SetupError, StoryError, install_command
from memstory.contract.target import Environment, Target
from memstory.contract.texts import did_you_mean
from memstory.targets.adapter import Adapter, AdapterFactory

GROUP: Final = "memstory.embedders"
DEFAULT: Final = "minilm"
_PROBE: Final = "How many numbers has a vector?"

Purpose: TypeAlias = Literal["document", "query"]


class TextEmbedder(Protocol):
    """Texts to vectors; `model` names it in reports."""

    @property
    def model(self) -> str:
        """Return the name of the model."""
        ...

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return one vector of length 1 a text; some models treat documents and queries differently."""
        ...

    async def close(self) -> None:
        """Release what it holds; another `embed` may open it again."""
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
        return [self._vectors[text] for text in texts]

    async def close(self) -> None:
        """Hold nothing."""


class TimedEmbedder:
    """`inner`; `watch` runs while it works."""

    def __init__(self, inner: TextEmbedder) -> None:
        self.watch = Stopwatch()
        self._inner = inner

    @property
    def model(self) -> str:
        """Return the name of the model."""
        return self._inner.model

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return what `inner` does."""
        with self.watch.running():
            return await self._inner.embed(texts, purpose)

    async def close(self) -> None:
        """Close `inner`."""
        await self._inner.close()


class OtherEmbedder:
    """Another model than `inner`: its vectors have the same length, and no likeness to those of `inner`."""

    def __init__(self, inner: TextEmbedder) -> None:
        self.model = f"other-{inner.model}"
        self._inner = inner

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return the vectors of `inner` backwards."""
        return [[*reversed(vector)] for vector in await self._inner.embed(texts, purpose)]

    async def close(self) -> None:
        """Leave `inner` open: it is not its own."""


class Embedders:
    """What one worker's targets embed with: each embedder is loaded once. `known` are those that are already there."""

    def __init__(self, known: Mapping[str, TextEmbedder] | None = None) -> None:
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
        name = str(env.options.get("embedder", DEFAULT))
        if name not in self._loaded:
            self._loaded[name] = TimedEmbedder(load_embedder(name))
        return self._loaded[name]

    async def close(self) -> None:
        """Close every embedder that was loaded."""
        for embedder in self._loaded.values():
            await embedder.close()


def load_embedder(name: str) -> TextEmbedder:
    """Return the embedder that a package offers under `name`.

    Raises:
        SetupError: nothing offers it, or what it needs is not installed.
    """
    offered = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in offered:
        known = ", ".join(sorted(offered)) or "none is installed"
        raise SetupError(f"no embedder is named '{name}'.{did_you_mean(str(name), offered)} Known: {known}.")
    try:
        return cast("TextEmbedder", offered[name].load()())
    except ImportError as error:
        raise SetupError(
            f"the embedder '{name}' needs the package '{error.name}', which is not installed. "
            f"The reference's own comes with: {install_command('reference')}"
        ) from error


class BlockingEmbedder:
    """The chosen embedder for libraries that call theirs in their own thread and wait: made in the event loop."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self._embedder = embedder
        self._loop = asyncio.get_running_loop()

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return one vector a text."""
        return asyncio.run_coroutine_threadsafe(self._embed(texts, purpose), self._loop).result()

    async def _embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Sequence[float]]:
        return await self._embedder.embed(texts, purpose)


class EmbeddingTarget(Adapter):
    """A target that searches by meaning; its embedder is chosen when it is opened, and its time counted."""

    embedder: TimedEmbedder

    def __init__(self, embedders: Embedders) -> None:
        self._embedders = embedders

    def choose_embedder(self, env: Environment) -> None:
        """Take the embedder that the environment asks for."""
        self.embedder = self._embedders.of(env)
        self.embedding = self.embedder.watch


class EmbeddingFactory(AdapterFactory):
    """Makes targets that search by meaning: their embedders are loaded once, and closed with the factory."""

    adapter: ClassVar[type[EmbeddingTarget]]

    def __init__(self, embedders: Embedders | None = None) -> None:
        self._embedders = embedders or Embedders()

    def target(self) -> Target:
        return self.adapter(self._embedders)

    async def stop(self) -> None:
        await self._embedders.close()


async def vector_length(embedder: TextEmbedder, env: Environment) -> int:
    """Return how many numbers a vector has: some stores must know it before there is anything to store."""
    (probe,) = await embedder.embed([next(iter(env.vectors), _PROBE)], "document")
    return len(probe)
