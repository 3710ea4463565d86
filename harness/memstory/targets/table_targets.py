"""Targets that are tables: `[targets.NAME]` of a project's `memstory.toml`, and those that come with memstory.

The spec of such a target is `path/of/memstory.toml#NAME`, by which any process makes the same factory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.resources import as_file, files
from pathlib import Path
from typing import ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.errors import SetupError
from memstory.contract.target import Capability, Environment, Target, TargetFactory, Tree
from memstory.targets.project_file import FILE, read_tables

_MARK: Final = ".toml#"
_FACTORIES: Final[Mapping[str, str]] = {
    "mcp": "memstory.targets.services.mcp_target:McpFactory",
    "http": "memstory.targets.services.http_target:HttpFactory",
}


def is_table_spec(spec: str) -> bool:
    """Return whether `spec` names a table in a file."""
    return _MARK in spec


def project_tables(folder: Path) -> Mapping[str, str]:
    """Return the tables of the `memstory.toml` in `folder`: name -> spec; none if there is no such file."""
    path = folder / FILE
    return {name: f"{path.absolute()}#{name}" for name in read_tables(path)}


def bundled_tables() -> Mapping[str, str]:
    """Return the tables that come with memstory: name -> spec. Each file has the one table that it is named after."""
    with as_file(files("memstory.targets") / "tables") as folder:
        return {path.stem: f"{path}#{path.stem}" for path in sorted(folder.glob("*.toml"))}


def load_table(spec: str, load: Callable[[str], TargetFactory]) -> TargetFactory:
    """Return the factory of the table that `spec` names; `load` makes one of `module:Class`.

    Raises:
        SetupError: no such file or table, or something in it is wrong.
    """
    # Their JSON Schema is dear to read, and few runs have such a target.
    from memstory.language.registry import unknown  # noqa: PLC0415
    from memstory.targets.mapping.table_check import check_table  # noqa: PLC0415
    from memstory.targets.mapping.table_reading import parse_table  # noqa: PLC0415

    file, _, name = spec.rpartition("#")
    path = Path(file)
    if not path.is_file():
        raise SetupError(f"there is no file {file} (target '{spec}')")
    tables = read_tables(path)
    if name not in tables:
        raise SetupError(f"{path.name}: {unknown(name, 'target', tables)}")
    tree = tables[name]
    if "target" in tree:
        check_table(f"{path.name}: [targets.{name}]", tree)
        factory: TargetFactory = _WithOptions(load(tree["target"]), tree.get("options", {}))
    else:
        table = parse_table(name, tree, path.name)
        module, _, attribute = _FACTORIES[table.type].partition(":")
        factory = getattr(import_module(module), attribute)(table)
    # Each table is a separate target, though all of one type share a class.
    factory.spec = f"{path.absolute()}#{name}"  # type: ignore[misc]
    return factory


class _WithOptions(TargetFactory):
    """A factory whose targets have their own options, where neither run nor story says otherwise."""

    name: ClassVar[str] = "table"

    def __init__(self, factory: TargetFactory, options: Mapping[str, Tree]) -> None:
        self._factory = factory
        self._options = options

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        return self._factory.capabilities({**self._options, **options})

    def shares(self, options: Mapping[str, Tree]) -> bool:
        return self._factory.shares({**self._options, **options})

    def suited(self, options: Mapping[str, Tree], needs: frozenset[Capability]) -> Mapping[str, Tree]:
        return self._factory.suited({**self._options, **options}, needs)

    async def start(self, folder: Path) -> None:
        await self._factory.start(folder)

    def target(self) -> Target:
        target = self._factory.target()
        opened = target.open

        async def open_with_options(env: Environment, clock: Clock) -> None:
            await opened(replace(env, options={**self._options, **env.options}), clock)

        # On the instance: its class says what it can do, and stays the one that the adapter wrote.
        target.open = open_with_options  # type: ignore[method-assign]
        return target

    async def stop(self) -> None:
        await self._factory.stop()
