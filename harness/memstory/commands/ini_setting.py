"""The file that holds pytest's settings, and those settings of ours that commands read, without starting pytest."""

from __future__ import annotations

import configparser
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from memstory.contract.errors import SetupError

SETTING: Final = "memstory_stories"
REQUIREMENTS: Final = "memstory_requirements"

_Sections = Sequence[Sequence[str]]
# In pytest's order; of a file that others use too, only one with a section for pytest counts.
_FILES: Final[Mapping[str, tuple[_Sections, bool]]] = {
    "pytest.toml": ((("pytest",),), True),
    ".pytest.toml": ((("pytest",),), True),
    "pytest.ini": ((("pytest",),), True),
    ".pytest.ini": ((("pytest",),), True),
    "pyproject.toml": ((("tool", "pytest"), ("tool", "pytest", "ini_options")), False),
    "tox.ini": ((("pytest",),), False),
    "setup.cfg": ((("tool:pytest",),), False),
}


def story_folders(start: Path) -> Sequence[Path]:
    """Return the folders that the setting names, for a command that is typed in `start`."""
    file, settings = pytest_settings(start)
    return [(file.parent / word).resolve() for word in _words(settings.get(SETTING, []))] if file else []


def requirements_file(start: Path) -> Path | None:
    """Return the file that holds the ids of the project's requirements, for a command that is typed in `start`."""
    file, settings = pytest_settings(start)
    return file.parent / settings[REQUIREMENTS] if file and settings.get(REQUIREMENTS) else None


def pytest_settings(start: Path) -> tuple[Path | None, Mapping[str, Any]]:
    """Return the file from which pytest takes its settings if it is started in `start`, if any, and what it says."""
    for folder in (start, *start.parents):
        for name, (sections, always) in _FILES.items():
            path = folder / name
            if path.is_file():
                found = _settings(path, sections)
                if found is not None or always:
                    return path, found or {}
    return None, {}


def _settings(path: Path, sections: _Sections) -> Mapping[str, Any] | None:
    """Return what the sections say, or None if the file has none of them."""
    tree = _read(path)
    found: dict[str, Any] | None = None
    for section in sections:
        inner: Any = tree
        for key in section:
            inner = inner.get(key) if isinstance(inner, Mapping) else None
        if inner is not None:
            found = {**(found or {}), **inner}
    return found


def _read(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text("utf-8")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        parser = configparser.RawConfigParser()
        parser.read_string(text)
    except (ValueError, configparser.Error) as error:
        raise SetupError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    return {section: dict(parser[section]) for section in parser.sections()}


def _words(value: str | Sequence[str]) -> Sequence[str]:
    return shlex.split(value) if isinstance(value, str) else value
