"""Whether a release may be made: `python packaging/release_check.py v0.1.0` names all that is missing."""  # noqa: INP001

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PLACEHOLDER = "_OWNER_"


def faults(root: Path, tag: str) -> Iterator[str]:
    """Yield what keeps the tree from being the release of a tag."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    version = project["version"]
    if tag != f"v{version}":
        yield f"the tag is {tag}, and pyproject.toml has version {version}"
    alias = tomllib.loads((root / "packaging/pytest-memstory/pyproject.toml").read_text("utf-8"))["project"]
    if (alias["version"], alias["dependencies"]) != (version, [f"memstory=={version}"]):
        yield "packaging/pytest-memstory/pyproject.toml is of another version"
    if not re.search(rf"^version: {re.escape(version)}$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE):
        yield "CITATION.cff is of another version"
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.MULTILINE):
        yield f"CHANGELOG.md has no heading '## {version} (DATE)'"
    if PLACEHOLDER in project["urls"]["Source"]:
        yield f"the address of the repository is not set: {project['urls']['Source']}"


if __name__ == "__main__":
    (_, name) = sys.argv
    found = list(faults(Path(__file__).parents[1], name))
    sys.stdout.writelines(f"release: {fault}\n" for fault in found)
    sys.exit(bool(found))
