"""Files that are written atomically, as a whole or line by line, and the error where one cannot be written."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from memstory.contract.errors import NO_ROOM, SetupError
from memstory.contract.values import Tree


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError into a SetupError that names `path`: that of a write or of a close names no file."""
    try:
        yield
    except OSError as error:
        remedy = ". Give its disk room, or choose another folder" if error.errno in NO_ROOM else ""
        raise SetupError(f"{path} cannot be written: {error.strerror or error}{remedy}") from error


def make_again(folder: Path) -> None:
    """Make `folder` of a run that goes on, where a target removed it; a file that it put there is set aside."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        folder.replace(folder.with_name(f"{folder.name}.set-aside"))
        folder.mkdir()


def append_line(path: Path, tree: Tree) -> None:
    """Add a line of JSON by one write, for several processes may append at once.

    Raises:
        SetupError: the disk does not take the whole line.
    """
    # It begins with a line end, so that a torn line before it does not spoil it.
    line = f"\n{json.dumps(tree, separators=(',', ':'))}\n".encode()
    with writing(path):
        make_again(path.parent)
        descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o644)
        try:
            written = os.write(descriptor, line)
        finally:
            os.close(descriptor)
        if written < len(line):
            raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes found room")


def lines_of_json(path: Path) -> Iterator[Tree]:
    """Yield each line that is not empty, None for one whose writer died in the middle; nothing of an absent file."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        if line:
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                yield None


def write_text(path: Path, text: str) -> None:
    """Put `text` at `path`; a lone surrogate becomes its escape, which JSON reads back as what it was."""
    write_whole(path, text.encode("utf-8", "backslashreplace"))


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` at `path`; as `whole_file` does."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that is put at `path` at the end: a reader, or a kill between, finds the old file or the new one.

    Raises:
        SetupError: it cannot be written.
    """
    with writing(path), NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            yield file
            file.close()
            Path(file.name).chmod(0o644)
            os.replace(file.name, path)  # noqa: PTH105  (the same call, and what the docstring speaks of)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
