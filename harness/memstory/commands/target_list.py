"""The targets that can be chosen here: those that load, and why the others do not."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from memstory.commands.output import say_listing, table
from memstory.contract.errors import MemstoryError, SetupError
from memstory.contract.target import TargetFactory, Tree
from memstory.results.runs import quantity
from memstory.targets.discovery import (
    FILE,
    bundled_tables,
    installation_problem,
    known_names,
    load_targets,
    project_tables,
)
from memstory.targets.embedders import EmbeddingFactory


def load_known() -> tuple[Mapping[str, Mapping[str, TargetFactory]], Mapping[str, str]]:
    """Return by name what can be loaded, a group with all its members, and by name why something cannot."""
    offers = project_tables(Path.cwd())
    found: dict[str, Mapping[str, TargetFactory]] = {}
    problems: dict[str, str] = {}
    for name in known_names(offers):
        try:
            factories = load_targets([name], offers)
        except SetupError as error:
            problems[name] = str(error)
            continue
        if len(factories) == 1 and (missing := installation_problem(_extras(name, *factories.values()))):
            problems[name] = missing
        else:
            found[name] = factories
    return found, problems


def load_typed(names: Sequence[str]) -> Mapping[str, TargetFactory]:
    """Return the targets that were typed; their modules may lie in the folder where that was, as for `python -m`."""
    sys.path.insert(0, str(Path.cwd()))
    return load_targets(names, project_tables(Path.cwd()))


def list_targets(*, as_json: bool) -> None:
    """Print every target with where it comes from and what it can do."""
    found, problems = load_known()
    rows = [_row(name, factories) for name, factories in found.items()]
    rows += [{"target": name, "from": _origin(name), "problem": why} for name, why in problems.items()]
    cells = [[row["target"], row["from"], row.get("problem") or " ".join(row["can"])] for row in rows]
    targets = table(["target", "comes from", "can"], cells, [None, None, 80])
    say_listing(rows, targets, quantity(len(rows), "target"), as_json=as_json)


def _row(name: str, factories: Mapping[str, TargetFactory]) -> dict[str, Tree]:
    row: dict[str, Tree] = {"target": name, "from": _origin(name)}
    if list(factories) != [name]:
        return {**row, "can": ["group:", *factories]}
    try:
        return {**row, "can": sorted(factories[name].abilities({}))}
    except MemstoryError as error:
        return {**row, "problem": str(error)}


def _extras(name: str, factory: TargetFactory) -> Sequence[str]:
    """Return what brings the packages that a target imports when it starts: extras are named after it or its kind."""
    return [name, factory.name, *(["reference"] if isinstance(factory, EmbeddingFactory) else [])]


def _origin(name: str) -> str:
    if name in project_tables(Path.cwd()):
        return FILE
    return "memstory" if ":" in name or name in bundled_tables() else "a package"
