"""A cross-encoder as re-ranker, where its user has installed sentence-transformers and a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from memstory.contract.errors import SetupError

LIBRARY = "sentence_transformers"
MODEL = "cross-encoder/ms-marco-MiniLM-L-6-v2"


class CrossEncoderReranker:
    """Scores a query with each text by the model at `model`: a name on a hub, or a folder. Loaded by the first use."""

    def __init__(self, model: str = MODEL) -> None:
        self.name = f"cross-encoder:{model}"
        self._model = model
        self._loading = asyncio.Lock()
        self._loaded: Any = None

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score a text, in any range; SetupError where library or model are missing."""
        if not texts:
            return []
        async with self._loading:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(self._load)
        predicted = await asyncio.to_thread(self._loaded.predict, [(query, text) for text in texts])
        return [float(score) for score in predicted]

    def _load(self) -> Any:
        try:
            return import_module(LIBRARY).CrossEncoder(self._model)
        except (ImportError, OSError) as problem:
            raise SetupError(
                f"the cross-encoder {self._model!r} cannot be loaded: {problem}. Type "
                f"'pip install sentence-transformers', and give a model that is on this machine"
            ) from problem
