"""A story's options as settings of the manager system."""

from __future__ import annotations

from collections.abc import Mapping

from memstory.target import Json
from memstory_reference.errors import InputError
from memstory_reference.systems.manager.settings import ManagerSettings, default_manager

SETTINGS = ("chat", "cleanup_interval", "context_window_size", "min_score", "ollama_host", "timezone")
"""Options that are settings of the same name; where the memory lies is the case's own business."""

OPTIONS = (*SETTINGS, "embedder")


def manager_settings(options: Mapping[str, Json]) -> ManagerSettings:
    """Return what `options` say, or raise InputError that names the option and what is allowed."""
    foreign = [name for name in options if name not in OPTIONS]
    if foreign:
        raise InputError(f"options: unknown option {foreign[0]!r:.80}; known: {', '.join(sorted(OPTIONS))}")
    given = {"embedding_model" if name == "embedder" else name: value for name, value in options.items()}
    return default_manager().changed(given, "options")
