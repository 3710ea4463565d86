"""A file that is one JSON list, element by element: some have gigabytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memstory.contract.target import Tree

_CHUNK: Final = 1 << 22


def list_elements(path: Path) -> Iterator[Tree]:
    """Yield the elements of the file's one list, each as soon as all of it is read; ValueError for anything else."""
    decoder, text, begun = json.JSONDecoder(), "", False
    with path.open(encoding="utf-8") as file:
        while chunk := file.read(_CHUNK):
            text += chunk
            while text := text.lstrip(" \t\r\n," if begun else " \t\r\n"):
                if not begun:
                    if text[0] != "[":
                        raise ValueError(f"it begins with {text[:20]!r}, not with a list")
                    begun, text = True, text[1:]
                    continue
                try:
                    entry, end = decoder.raw_decode(text)
                except ValueError:
                    break  # the rest of it is in the next chunk
                yield entry
                text = text[end:]
    if text.strip() != "]":
        raise ValueError(f"the list does not end: {text[:40]!r}")
