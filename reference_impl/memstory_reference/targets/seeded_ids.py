"""Ids that are the same in every run of a case, and never come twice in one workspace."""

from __future__ import annotations

from hashlib import blake2b
from itertools import count
from pathlib import Path

from memstory.contract.errors import SetupError
from memstory_reference.ports import NewId

FILE = "opened"


def seeded_ids(workspace: Path, seed: int) -> NewId:
    """Return a source of ids from `seed`, how often the workspace was opened, and a count.

    The opening is written before the first id is given, so that ids go on without collision after a restart or crash.
    SetupError where it cannot be written.
    """
    file = workspace / FILE
    try:
        opened = _open_once_more(file)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SetupError(f"{file}: the workspace cannot be written ({reason}); choose another folder") from error
    numbers = count()
    return lambda: blake2b(f"{seed}/{opened}/{next(numbers)}".encode(), digest_size=16).hexdigest()


def counted_ids(seed: int) -> NewId:
    """Return a source of ids that writes nothing down: what has them ends with the process."""
    numbers = count()
    return lambda: blake2b(f"incognito/{seed}/{next(numbers)}".encode(), digest_size=16).hexdigest()


def _open_once_more(file: Path) -> int:
    """Add a byte to the file; return how many it has with that one: of several processes, each gets its own number."""
    # Not waited for until it is on the disk: stories kill processes, never the machine.
    with file.open("ab", buffering=0) as opened:
        opened.write(b".")
        return opened.tell()
