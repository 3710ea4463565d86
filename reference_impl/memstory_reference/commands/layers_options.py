"""What is typed about the layers memory: which one, whose, and in which mode."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from memstory_reference.errors import InputError
from memstory_reference.ports import Json
from memstory_reference.systems.layers.settings import LayersSettings, default_layers, read_layers

TOPICS, LAYERS, MANAGER, PIPELINE, TURNS = "topics", "layers", "manager", "pipeline", "turns"

_SETTING_OF = {"store": "store", "embedder": "embedding_model", "chat": "chat"}


def add_system_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that says which memory is meant."""
    parser.add_argument(
        "--system",
        choices=(TOPICS, LAYERS, MANAGER, PIPELINE, TURNS),
        default=TOPICS,
        help="which memory (default: %(default)s)",
    )


def add_person_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say whose layers they are."""
    parser.add_argument("--user-id", metavar="ID", help="layers: the owner of the memory, across all threads")
    parser.add_argument("--thread-id", metavar="ID", help="layers: the conversation; without a user it owns the memory")


def add_mode_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how durable the memory is."""
    parser.add_argument(
        "--memory-mode",
        metavar="MODE",
        help="layers: local (the default), guest or incognito (nothing is written), synced (as local for now)",
    )


def refuse_foreign(parsed: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raise InputError for an option that was typed though it means nothing here."""
    for name in names:
        if getattr(parsed, name, None) is not None:
            raise InputError(f"--{name.replace('_', '-')} {why}")


def chosen_layers(parsed: argparse.Namespace) -> LayersSettings:
    """Return the settings that were typed: the settings' file first, then each option."""
    settings = read_layers(parsed.settings) if parsed.settings else default_layers()
    typed = {setting: getattr(parsed, option, None) for option, setting in _SETTING_OF.items()}
    changes: dict[str, Json] = {setting: value for setting, value in typed.items() if value is not None}
    return settings.changed(changes, "command line")
