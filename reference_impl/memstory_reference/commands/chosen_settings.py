"""What is typed behind a command as settings of a memory: the settings' file first, then each option."""

from __future__ import annotations

import argparse

from memstory.contract.values import Json
from memstory_reference.errors import InputError
from memstory_reference.systems.layers.settings import LayersSettings, default_layers, read_layers
from memstory_reference.systems.topics.settings import TopicsSettings, default_topics, read_topics

_SETTING_OF = {"store": "chroma_path", "embedder": "embedding_model", "chat": "chat", "toolset": "toolset"}
"""Options that are one setting each."""

_LAYERS_SETTING_OF = {"store": "store", "embedder": "embedding_model", "chat": "chat"}


def chosen_settings(parsed: argparse.Namespace) -> TopicsSettings:
    """Return the settings that were typed; InputError says which option or line is wrong."""
    settings = read_topics(parsed.settings) if parsed.settings else default_topics()
    typed = {option: getattr(parsed, option, None) for option in _SETTING_OF}
    changes: dict[str, Json] = {_SETTING_OF[option]: value for option, value in typed.items() if value is not None}
    if typed["store"] is not None:
        # A folder that was typed is meant, whatever server the file names.
        changes["chroma_server"] = None
        if "://" in typed["store"]:
            # Not repeated, for it may hold a password.
            raise InputError("--store is a URL; the topics memory is in a folder, and layers can be in Postgres")
    return settings.changed(changes, "command line")


def chosen_layers(parsed: argparse.Namespace) -> LayersSettings:
    """Return the settings that were typed: the settings' file first, then each option."""
    settings = read_layers(parsed.settings) if parsed.settings else default_layers()
    typed = {setting: getattr(parsed, option, None) for option, setting in _LAYERS_SETTING_OF.items()}
    changes: dict[str, Json] = {setting: value for setting, value in typed.items() if value is not None}
    return settings.changed(changes, "command line")
