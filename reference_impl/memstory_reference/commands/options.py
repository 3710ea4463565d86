"""The options that several commands have. Nothing here needs an extra: help is shown without any."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from memstory_reference.errors import InputError
from memstory_reference.system_memory import SYSTEM_NAMES

BUS_VARIABLE = "MEMSTORY_NATS"
DEFAULT_BUS = "nats://127.0.0.1:4222"


def add_system_option(parser: argparse.ArgumentParser, default: str = SYSTEM_NAMES[0]) -> None:
    """Add the option that says which memory is meant."""
    parser.add_argument("--system", choices=SYSTEM_NAMES, default=default, help="which memory (default: %(default)s)")


def add_owner_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say whose memory is meant."""
    parser.add_argument("--owner", "--user-id", metavar="NAME", help="whose memory it is, across all conversations")
    parser.add_argument(
        "--thread-id",
        metavar="ID",
        help="the conversation; of layers it owns the memory where no owner is named",
    )


def add_mode_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how durable the memory is."""
    parser.add_argument(
        "--memory-mode",
        metavar="MODE",
        help="layers: local (the default), guest or incognito (nothing is written), synced (as local for now)",
    )


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which memory is meant."""
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="folder of the memory (default: .chroma here for topics, ~/.reachy/memory for manager, else a dot and its "
        "name here), or postgresql://…",
    )
    parser.add_argument(
        "--embedder",
        metavar="NAME",
        help="all-MiniLM-L6-v2 (the default), nomic-embed-text, ollama:NAME, openai:NAME; layers: or none",
    )
    add_settings_option(parser)


def add_settings_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a file of settings."""
    parser.add_argument("--settings", metavar="FILE", type=Path, help="settings of the memory, as memory.yaml has them")


def add_chat_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the language model."""
    parser.add_argument(
        "--chat",
        metavar="MODEL",
        help="offline (the default), ollama:NAME, openai:NAME (see OPENAI_BASE_URL), replay:FILE",
    )


def add_bus_option(parser: argparse.ArgumentParser, *, by_default: bool) -> None:
    """Add the option; a command that can do without a bus has none unless it is typed."""
    default = os.environ.get(BUS_VARIABLE, DEFAULT_BUS) if by_default else None
    ends = "; without it everything runs in this process"
    if by_default:
        ends = f" (default: {BUS_VARIABLE}, else {DEFAULT_BUS})"
    parser.add_argument(
        "--bus",
        metavar="URL",
        default=default,
        help=f"the NATS server on which processes meet, as nats://HOST:PORT or tls://USER:PASSWORD@HOST:PORT{ends}",
    )


def refuse_foreign(parsed: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raise InputError for an option that was typed though it means nothing here."""
    for name in names:
        if getattr(parsed, name, None) is not None:
            raise InputError(f"--{name.replace('_', '-')} {why}")
