"""A machine-wide cache of embeddings in SQLite, found by model and content; it can always be thrown away."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder, sent_texts
from memstory_reference.adapters.embedding.vector_file import CacheLostError, VectorFile
from memstory_reference.ports import Purpose, Vectors

FILE = "embeddings.sqlite3"
MAX_BYTES = 512 * 1024 * 1024
READ_AT_ONCE = 256
"""Texts that are looked up where the caller stands: fewer than what waking a thread would pay for."""

LENGTH_TOLERANCE = 1e-3

Row: TypeAlias = NDArray[np.float32]

log = logging.getLogger(__name__)


class CachedEmbedder:
    """Asks `inner` only for texts it has not seen; with `path=None` (incognito) it asks for all and keeps nothing.

    `identity` returns what tells the model from every other, such as the digest of its weights, and is asked once; by
    default that is `inner.model`: never put it over `FixedVectors`.
    A cache that cannot be read or written is left out with one warning: it never stops an embedding.
    """

    def __init__(
        self,
        inner: ProfiledEmbedder,
        path: Path | None,
        *,
        identity: Callable[[], Awaitable[str]] | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.model = inner.model
        self.dimension = inner.dimension
        self.profile = inner.profile
        self._inner = inner
        self._ask_identity = identity
        self._identity = "" if identity else inner.model
        self._file = VectorFile(path, max_bytes=max_bytes) if path else None

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        if self._file is None or not texts:
            return await self._ask(texts, purpose)
        if self._ask_identity and not self._identity:
            self._identity = await self._ask_identity()
        keys = _keys(self._identity, sent_texts(self.profile, texts, purpose))
        wanted = dict(zip(keys, texts, strict=True))
        known = await self._read_rows(list(wanted))
        missing = {key: text for key, text in wanted.items() if key not in known}
        fresh = await self._fresh(missing, purpose) if missing else {}
        if len({len(vector) for vector in (*known.values(), *fresh.values())}) > 1:
            # A server may exchange a model under its name: what was kept is of the old one.
            fresh = await self._fresh(wanted, purpose)
        if fresh:
            await self._keep(fresh)
            known |= fresh
        vectors = np.stack([known[key] for key in keys])
        self.dimension = vectors.shape[1]
        return vectors

    async def close(self) -> None:
        """Close the file; another `embed` opens it again."""
        if self._file is not None:
            await asyncio.to_thread(self._file.close)

    async def _ask(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        vectors = await self._inner.embed(texts, purpose)
        self.dimension = self._inner.dimension
        return vectors

    async def _fresh(self, texts: Mapping[bytes, str], purpose: Purpose) -> dict[bytes, Row]:
        return dict(zip(texts, await self._ask(list(texts.values()), purpose), strict=True))

    async def _read_rows(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        if self._file is None:
            return {}
        try:
            found = self._file.get(keys) if len(keys) <= READ_AT_ONCE else await asyncio.to_thread(self._file.get, keys)
        except CacheLostError as error:
            self._leave_out(error)
            return {}
        return _sound(found, self._inner.dimension)

    async def _keep(self, vectors: Mapping[bytes, Row]) -> None:
        if self._file is None:
            return
        try:
            await asyncio.to_thread(self._file.put, vectors)
        except CacheLostError as error:
            self._leave_out(error)

    def _leave_out(self, error: CacheLostError) -> None:
        if self._file is not None:
            log.warning("%s; going on without a cache", error)
        self._file = None


def _keys(model: str, sent: Sequence[str]) -> list[bytes]:
    # The model's name is hashed once; its length keeps ("ab", "c") apart from ("a", "bc").
    start = hashlib.blake2b(f"{len(model)}:{model}".encode(), digest_size=16)
    keys = []
    for text in sent:
        key = start.copy()
        key.update(text.encode())
        keys.append(key.digest())
    return keys


def _sound(found: Mapping[bytes, Row], dimension: int | None) -> dict[bytes, Row]:
    # SQLite does not notice a flipped bit in a vector; its length does.
    return {
        key: vector
        for key, vector in found.items()
        if dimension in (None, len(vector)) and abs(float(vector @ vector) - 1) <= LENGTH_TOLERANCE
    }
