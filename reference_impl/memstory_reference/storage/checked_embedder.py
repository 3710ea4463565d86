"""An embedder whose vectors can all be stored and compared, whatever the one behind it answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memstory_reference.ports import Embedder, EmbedderUnavailableError, Purpose, Vectors

_OFF_UNIT = 1e-3
"""How far from 1 a length may be before a vector is brought to it."""


class CheckedEmbedder:
    """Refuses what no index takes: NaN, infinity, a vector without length, too few vectors, another dimension."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.model = inner.model
        self.dimension = inner.dimension

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Return one unit vector a text, (n, d) float32; EmbedderUnavailableError for anything else."""
        answer = await self._inner.embed(texts, purpose)
        self.dimension = self._inner.dimension
        try:
            rows = np.asarray(answer, np.float64)
        except (TypeError, ValueError, OverflowError):
            rows = np.empty(0)
        if rows.ndim != 2 or len(rows) != len(texts) or self.dimension not in (None, rows.shape[1]):  # noqa: PLR2004
            raise self._garbage(f"{len(texts)} vectors of {self.dimension or 'some'} numbers were expected")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._garbage("a vector is without direction: zeros, infinity, or not a number")
        is_unit = np.abs(lengths - 1) <= _OFF_UNIT
        return np.where(is_unit, rows, rows / lengths).astype(np.float32)

    def _garbage(self, why: str) -> EmbedderUnavailableError:
        return EmbedderUnavailableError(
            f"the embedder {self.model!r} gave vectors that cannot be used: {why}. Nothing was stored; check its server"
        )
