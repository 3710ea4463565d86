"""What a system asked of its embedder: the port's log, above every cache, for `inspect: embedder`."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence

from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder, sent_texts
from memstory_reference.ports import Json, Purpose, Vectors

KEPT_TEXTS = 10_000
"""Texts that are kept; the counts go on beyond."""


class LoggedEmbedder:
    """Counts the calls of `inner` and keeps what was really sent, with the prefixes of its profile."""

    def __init__(self, inner: ProfiledEmbedder, *, kept: int = KEPT_TEXTS) -> None:
        self.model = inner.model
        self.dimension = inner.dimension
        self.profile = inner.profile
        self._inner = inner
        self._texts_after = array("q", [0])  # position n: how many texts the first n calls held
        self._sent: deque[tuple[int, Purpose, str]] = deque(maxlen=kept)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        # Noted before the call: one that fails was made all the same.
        call = len(self._texts_after)
        self._texts_after.append(self._texts_after[-1] + len(texts))
        self._sent.extend((call, purpose, text) for text in sent_texts(self.profile, texts, purpose))
        vectors = await self._inner.embed(texts, purpose)
        self.dimension = self._inner.dimension
        return vectors

    def data(self, since: int = 0) -> dict[str, Json]:
        """Return `calls`, `texts`, `sent` and `purposes` of the calls after call number `since` (all by default).

        `sent` and `purposes` run in parallel, oldest first, and hold the latest texts only.
        """
        calls = len(self._texts_after) - 1
        since = min(max(since, 0), calls)
        kept = [(purpose, text) for call, purpose, text in self._sent if call > since]
        return {
            "calls": calls - since,
            "texts": self._texts_after[calls] - self._texts_after[since],
            "sent": [text for _, text in kept],
            "purposes": [purpose.value for purpose, _ in kept],
        }
