"""What is typed behind a command as settings of the topics memory: the settings' file first, then each option."""

from __future__ import annotations

import argparse
from pathlib import Path

from memstory_reference.errors import InputError
from memstory_reference.ports import Json
from memstory_reference.systems.topics.settings import TopicsSettings, default_topics, read_topics

_SETTING_OF = {"store": "chroma_path", "embedder": "embedding_model", "chat": "chat", "toolset": "toolset"}
"""Options that are one setting each."""


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which memory is meant."""
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="folder of the memory (default: .chroma here, of layers .layers); layers also take postgresql://…",
    )
    parser.add_argument(
        "--embedder",
        metavar="NAME",
        help="all-MiniLM-L6-v2 (the default), nomic-embed-text, ollama:NAME, openai:NAME; layers: or none",
    )
    parser.add_argument("--settings", metavar="FILE", type=Path, help="settings of the memory, as memory.yaml has them")


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
