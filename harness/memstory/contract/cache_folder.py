"""Where this machine keeps what can be had again: weights, embeddings and data sets, never a user's memories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return `MEMSTORY_CACHE`, or `memstory` under the XDG cache folder; the folder may not exist yet.

    >>> cache_folder({"MEMSTORY_CACHE": "/var/cache/m"}).as_posix()
    '/var/cache/m'
    >>> cache_folder({"XDG_CACHE_HOME": "/home/ada/.cache"}).as_posix()
    '/home/ada/.cache/memstory'
    """
    if chosen := environ.get("MEMSTORY_CACHE"):
        return Path(chosen).expanduser().absolute()
    # The XDG specification says to ignore a relative path.
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "memstory"
