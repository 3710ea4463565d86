"""What packages offer by entry points, and what to type where an extra of one is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from memstory.contract.errors import SetupError
from memstory.contract.texts import did_you_mean

OWN = "memstory"
"""Our own package, which no index has."""


def install_command(extras: str, package: str = OWN) -> str:
    """Return the command that installs these extras of `package` from where the package itself was installed."""
    return command_for(extras, package, _origin(package), Path.cwd())


def command_for(extras: str, package: str, origin: Mapping[str, object] | None, here: Path) -> str:
    """Return what to type in the folder `here`; `origin` is the package's direct_url.json, None for one of an index.

    >>> command_for("mem0", "memstory", {"url": "file:///src/memstory", "dir_info": {}}, Path("/src/memstory"))
    "pip install '.[mem0]'"
    >>> command_for("mem0", "memstory", {"url": "https://host/m.git", "vcs_info": {"vcs": "git"}}, Path("/"))
    "pip install 'memstory[mem0] @ git+https://host/m.git'"
    """
    if origin is None:
        known = f"{package}[{extras}]"
        return f"pip install '.[{extras}]' (in a clone of {OWN})" if package == OWN else f"pip install {quote(known)}"
    url = str(origin["url"])
    vcs = origin.get("vcs_info")
    if isinstance(vcs, Mapping):
        asked = vcs.get("requested_revision")
        url = f"{vcs.get('vcs', 'git')}+{url}{f'@{asked}' if asked else ''}"
    elif "dir_info" in origin:
        folder = Path(url2pathname(urlsplit(url).path))
        place = "." if folder == here else str(folder)
        return f"pip install {quote(f'{place}[{extras}]')}"
    return f"pip install {quote(f'{package}[{extras}] @ {url}')}"


def find_offer(group: str, kind: str, name: str) -> EntryPoint:
    """Return the entry point of `group` for NAME or NAME:REST, without importing anything.

    Raises:
        SetupError: no package offers it; the message calls it a `kind`, such as "chat model".
    """
    offered = {entry.name: entry for entry in entry_points(group=group)}
    head = name.partition(":")[0]
    if head not in offered:
        known = ", ".join(sorted(offered)) or "none is installed"
        raise SetupError(f"no {kind} is named '{name}'.{did_you_mean(head, offered)} Known: {known}.")
    return offered[head]


def make_offer(group: str, kind: str, name: str, *arguments: object, usual: str) -> Any:
    """Return what a package offers under NAME:REST: its callable is given REST and the `arguments`.

    Raises:
        SetupError: no package offers it, or what it needs is not installed; `usual` comes with the reference.
    """
    entry = find_offer(group, kind, name)
    try:
        return entry.load()(name.partition(":")[2], *arguments)
    except ImportError as error:
        raise SetupError(
            f"the {kind} '{name}' needs the package '{error.name}', which is not installed. "
            f"{usual} comes with: {install_command('reference')}"
        ) from error


def _origin(package: str) -> Mapping[str, object] | None:
    """Return what the installer has written down of where the package came from: https://peps.python.org/pep-0610."""
    try:
        written = distribution(package).read_text("direct_url.json")
        found = json.loads(written or "null")
    except (PackageNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and "url" in found else None
