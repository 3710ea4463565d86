"""The options of memstory for pytest: each has a long name that is ours, and a short one that others may have too."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Final

PREFIX: Final = "--memstory-"
VALUED: Final = (
    *("target", "target-option", "chat", "chat-url", "chat-key", "embedder", "report", "case-timeout", "trials"),
    *("max-tokens", "max-cost", "price"),
    *("on", "shard", "shard-by", "redact", "judge", "judge-file", "answer", "sample"),
)
FLAGS: Final = ("isolate", "any-path", "measure", "quick", "resume")
BUNDLED: Final = "--bundled"
"""The option that `memstory run` takes itself."""

SHORT: Final = tuple(f"--{name}" for name in (*VALUED, *FLAGS))
_END: Final = "--"


def spelled_out(words: Sequence[str], short: Collection[str] = SHORT) -> list[str]:
    """Return the words of a command line with the names in `short` written out.

    >>> spelled_out(["--target", "topics", "--report=out", "-x"])
    ['--memstory-target', 'topics', '--memstory-report=out', '-x']
    """
    end = words.index(_END) if _END in words else len(words)
    return [
        f"{PREFIX}{word.removeprefix('--')}" if place < end and word.partition("=")[0] in short else word
        for place, word in enumerate(words)
    ]


def values(words: Sequence[str]) -> list[str]:
    """Return what follows a short name as its value."""
    return [value for word, value in pairwise(words) if word in SHORT[: len(VALUED)]]
