"""The commands over a real store, with an embedder of a few lines and typed input."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pytest

from memstory_reference import cli
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES
from memstory_reference.composition import embedders
from memstory_reference.ports import Purpose, Vectors


class WordEmbedder:
    """Texts that share words are near; stands for MiniLM, so that a store of one opens with the other."""

    model = embedders.MINILM
    dimension: int | None = 384
    profile = NO_PREFIXES

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        vectors = np.full((len(texts), 384), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                vectors[row, crc32(word.encode()) % 384] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Typed(io.StringIO):
    """Input as from a keyboard: a terminal, where an empty read is Ctrl-D."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def typed(monkeypatch, capsys, tmp_path) -> Callable[..., Ran]:
    """Run `memstory-reference` in an empty folder, with these lines on a pipe or at a terminal."""
    monkeypatch.chdir(tmp_path)
    embedder = WordEmbedder()
    monkeypatch.setattr(embedders, "make_embedder", lambda *_, **__: embedder)
    monkeypatch.delenv("OLLAMA_HOST", raising=False)

    def run(*arguments: str, lines: Sequence[str] = (), at_terminal: bool = False) -> Ran:
        text = "".join(f"{line}\n" for line in lines)
        monkeypatch.setattr(sys, "stdin", Typed(text) if at_terminal else io.StringIO(text))
        if at_terminal:
            monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        code = cli.main(arguments)
        return Ran(code, *capsys.readouterr())

    return run
