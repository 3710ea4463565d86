"""What an operator decides, read once from a file or a mapping; whoever gets a settings object need not check it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

import yaml

from memstory_reference.errors import InputError
from memstory_reference.ports import Json

TOPICS_DEFAULTS = "memory.yaml"
MAX_TEXT_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsSettings:
    """Settings of the topics memory; `memory.yaml` beside the system explains each and holds the defaults."""

    chroma_path: str
    chroma_server: str | None
    collection: str
    embedding_model: str
    top_k: int
    min_score: float
    toolset: Literal["single", "dual"]
    strict_topics: bool
    retention_days: float | None
    chat: str
    ollama_host: str
    steps: int
    window_turns: int
    tool_timeout_seconds: float

    def changed(self, values: Mapping[str, Json], where: str) -> TopicsSettings:
        """Return these settings with `values` in place; InputError names `where`, the key and what is allowed."""
        for key, value in values.items():
            _check(key, value, where)
        return replace(self, **values)


@cache
def default_topics() -> TopicsSettings:
    """Return the settings that are shipped with the system."""
    text = (files("memstory_reference.systems.topics") / TOPICS_DEFAULTS).read_text(encoding="utf-8")
    values = _mapping(text, TOPICS_DEFAULTS)
    for key, value in values.items():
        _check(key, value, TOPICS_DEFAULTS)
    return TopicsSettings(**values)


def read_topics(file: Path) -> TopicsSettings:
    """Return the settings in `file`, with the defaults for what it leaves out."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read as settings: {error}") from error
    return default_topics().changed(_mapping(text, str(file)), str(file))


@dataclass(frozen=True, slots=True)
class _Rule:
    allowed: str
    fits: Callable[[Json], bool]


def _number(low: float, high: float, what: str) -> _Rule:
    def fits(value: Json) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high

    return _Rule(f"{what} from {low:g} to {high:g}", fits)


def _count(high: int) -> _Rule:
    return _Rule(f"a whole number from 1 to {high}", lambda value: type(value) is int and 1 <= value <= high)


def _or_null(rule: _Rule) -> _Rule:
    return _Rule(f"{rule.allowed}, or null", lambda value: value is None or rule.fits(value))


def _text(what: str, *starts: str) -> _Rule:
    def fits(value: Json) -> bool:
        return (
            isinstance(value, str)
            and 0 < len(value.strip()) <= MAX_TEXT_CHARACTERS
            and value.isprintable()
            and value.startswith(starts or "")
        )

    return _Rule(what, fits)


_RULES: Mapping[str, _Rule] = {
    "chroma_path": _text("the path of a folder"),
    "chroma_server": _or_null(
        _Rule(
            "HOST:PORT", lambda value: isinstance(value, str) and re.fullmatch(r"[^\s:/]+:\d{1,5}", value) is not None
        )
    ),
    "collection": _text("a name on one line"),
    "embedding_model": _text("all-MiniLM-L6-v2, nomic-embed-text or ollama:NAME"),
    "top_k": _count(1_000),
    "min_score": _number(-1, 1, "a number"),
    "toolset": _Rule("single or dual", lambda value: value in ("single", "dual")),
    "strict_topics": _Rule("true or false", lambda value: isinstance(value, bool)),
    "retention_days": _or_null(_number(0, 365_000, "a number of days")),
    "chat": _text("offline or ollama:NAME"),
    "ollama_host": _text("an address such as http://127.0.0.1:11434", "http://", "https://"),
    "steps": _count(100),
    "window_turns": _count(1_000),
    "tool_timeout_seconds": _number(0.001, 3_600, "a number of seconds"),
}


def _check(key: Json, value: Json, where: str) -> None:
    if key not in _RULES:
        near = get_close_matches(str(key), _RULES, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise InputError(f"{where}: unknown setting {key!r:.80}.{hint} Known: {', '.join(_RULES)}")
    if not _RULES[key].fits(value):
        raise InputError(f"{where}: {key} is {value!r:.80}; allowed: {_RULES[key].allowed}")


def _mapping(text: str, where: str) -> dict[str, Json]:
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{where}: is no YAML: {' '.join(str(error).split())}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InputError(f"{where}: settings are 'key: value' lines, not a {type(values).__name__}")
    return values
