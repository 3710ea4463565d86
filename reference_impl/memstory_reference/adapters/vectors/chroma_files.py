"""Chroma's index files, looked at before Chroma loads them: it crashes on some damage and is silent on other.

A process killed while it writes these files leaves them half written (seen: an empty `index_metadata.pickle`).
The layout is hnswlib's: a header of 100 bytes with the number and size of the elements, then files of so many elements.
"""

from __future__ import annotations

import io
import pickle
import struct
from pathlib import Path

FILES = ("header.bin", "data_level0.bin", "length.bin", "link_lists.bin", "index_metadata.pickle")
HEADER = struct.Struct("<iQQQQ")
"""Version, offset, room, elements, bytes of an element."""
HEADER_BYTES = 100
LENGTH_BYTES = 4


class _PlainUnpickler(pickle._Unpickler):  # noqa: SLF001  (said below)
    """Reads dicts, texts and numbers only: a store's folder may come from somebody else.

    Python's own reader: the one in C makes room for whatever index a damaged file names.
    """

    def find_class(self, module_name: str, global_name: str) -> object:
        msg = f"{module_name}.{global_name} has no place in an index"
        raise pickle.UnpicklingError(msg)


def are_indexes_whole(folder: Path) -> bool:
    """Say whether the files of all indexes in a folder agree with their headers."""
    return all(is_index_whole(segment) for segment in _segments(folder))


def _segments(folder: Path) -> list[Path]:
    return sorted({file.parent for name in FILES for file in folder.glob(f"*/{name}")})


def is_index_whole(segment: Path) -> bool:
    """Say whether the files of one index agree with its header."""
    if _size(segment / "header.bin") != HEADER_BYTES:
        return False
    header = (segment / "header.bin").read_bytes()
    _, _, _, elements, element_bytes = HEADER.unpack_from(header)
    return (
        _size(segment / "data_level0.bin") >= elements * element_bytes
        and _size(segment / "length.bin") >= elements * LENGTH_BYTES
        and _has_all_links(segment / "link_lists.bin", elements)
        and (elements == 0 or _names_all(segment / "index_metadata.pickle", elements))
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _has_all_links(path: Path, elements: int) -> bool:
    """Say whether there is one list for each element, each led by its size in bytes."""
    content = path.read_bytes() if path.is_file() else b""
    place = 0
    for _ in range(elements):
        if place + 4 > len(content):
            return False
        place += 4 + int.from_bytes(content[place : place + 4], "little")
    return place <= len(content)


def _names_all(path: Path, elements: int) -> bool:
    """Say whether the file can be read and gives each element its id; deleted elements have none."""
    if not path.is_file():
        return False
    try:
        found = _PlainUnpickler(io.BytesIO(path.read_bytes())).load()
    except Exception:  # noqa: BLE001  (a damaged pickle may raise anything)
        return False
    labels = found.get("id_to_label") if isinstance(found, dict) else None
    return isinstance(labels, dict) and 0 < len(labels) <= elements
