"""The servers that tables start: from the table to a command, and one server for many cases."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from memstory.contract.errors import SetupError
from memstory.contract.target import OLDER, Capability, Target, Tree
from memstory.targets.child_server import ChildServer, Launch, free_port, is_hosted
from memstory.targets.promises import PromisingFactory
from memstory.targets.tables.reading import template_of
from memstory.targets.tables.table import (
    STARTING,
    STARTING_NAMES,
    ToolTable,
    capabilities_of,
    check_sharing,
    names_user,
)
from memstory.targets.tables.templates import Values, render

START_SECONDS: Final = 60.0
ONE_SERVER: Final = "one_server"
"""The option, and the key of a table, by which all cases of a worker use one server."""

AUTO: Final = "auto"
"""Its value by which those cases do that can."""

_SOURCES: Final = frozenset({".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".jar", ".rb", ".php", ".sh", ".toml"})
"""What the names of a program's own files end with; other files, such as a database, are not taken from the project."""

_MODULE: Final = re.compile(r"(?P<module>[A-Za-z_][\w.]*)(?P<attribute>:\w+)?")


def launch_of(table: ToolTable, values: Values) -> Launch:
    """Return how the server of `table` is started, with `values` for `{workspace}`, `{port}` and the others.

    It runs in the workspace. Files and Python modules of its command that are beside the table's file are found there.
    """
    templates = (
        template_of(f"{table.where} '{key}'", table.settings.get(key), STARTING_NAMES[table.type]) for key in STARTING
    )
    # A port alone stays a number.
    filled = {name: str(value) for name, value in {"python": sys.executable, **values}.items()}
    command, env, cwd, older = (render(template, filled) for template in templates)
    if values.get(OLDER):
        command = older
    folder = Path(table.folder).absolute()
    return Launch(
        command=[_find(word, folder, is_program=not place) for place, word in enumerate(command)],
        env={**_module_path(command, folder), **(env or {})},
        cwd=folder / cwd if cwd else Path(filled["workspace"]),
        by_pipes=table.type == "mcp",
    )


def _find(word: str, folder: Path, *, is_program: bool) -> str:
    """Return the file of `folder` that a word of the command names, or the word; as in a shell, a program has a '/'."""
    path = folder / word
    is_named = word.startswith(("./", "../")) or (is_program and "/" in word)
    return str(path) if path.is_file() and (path.suffix in _SOURCES or is_named) else word


def _module_path(command: Sequence[str], folder: Path) -> Mapping[str, str]:
    """Return PYTHONPATH where the command names a module of `folder`, as `-m server` and `server:app` do."""
    named = any((folder / name).is_dir() or (folder / f"{name}.py").is_file() for name in _modules(command))
    return {"PYTHONPATH": str(folder)} if named else {}


def _modules(command: Sequence[str]) -> Iterator[str]:
    for before, word in zip(["", *command], command, strict=False):
        found = _MODULE.fullmatch(word)
        if found and (before == "-m" or found["attribute"]):
            yield found["module"].partition(".")[0]


async def start_server(table: ToolTable, values: Values) -> ChildServer:
    """Return the server that the table's command starts, once it takes connections at a free port.

    Raises:
        SetupError: it ends before, or does not listen in time.
    """
    seconds = float(table.settings.get("start_seconds", START_SECONDS))
    port = free_port()
    launch = launch_of(table, {**values, "port": port})
    server = ChildServer(launch)
    if await server.start_at(port, seconds):
        return server
    raise SetupError(
        f"{table.where} 'command' did not listen at 127.0.0.1:{port} within {seconds:g} s ('start_seconds'); "
        f"{server.last_words() or 'it printed nothing'}{_left_behind(launch, Path(table.folder))}"
    )


def _left_behind(launch: Launch, folder: Path) -> str:
    """Say which files the server may have looked for in vain; a database of that name is not to be taken from there."""
    left = [word for word in launch.command if not Path(word).is_absolute() and (folder / word).is_file()]
    said = [
        f"\nit was not given the {word} beside memstory.toml: write './{word}' if it is to have it" for word in left
    ]
    return "".join(said)


def can_share(table: ToolTable) -> bool:
    """Return whether several cases can use one server of this table: a command that is not a user's own."""
    return "command" in table.settings and not names_user(table)


class Server(Protocol):
    """A running server; `has_failed` says that others should not count on it."""

    @property
    def has_failed(self) -> bool: ...

    async def close(self) -> None: ...


AnyServer = TypeVar("AnyServer", bound=Server)


class SharedServer(Generic[AnyServer]):
    """A server that all cases of a worker use; where it has failed, the next case starts it again."""

    def __init__(self, table: ToolTable, start: Callable[[Values], Awaitable[AnyServer]]) -> None:
        self.folder = Path()
        self._table = table
        self._start = start
        self._server: AnyServer | None = None
        self._starting = asyncio.Lock()

    def is_wanted(self, options: Mapping[str, Tree]) -> bool:
        """Return whether cases with these options share a server; SetupError for a value that is not allowed."""
        return self.setting(options) is True

    def setting(self, options: Mapping[str, Tree]) -> Tree:
        """Return the value of `one_server`, true, false or `AUTO`; SetupError where this table cannot have it."""
        found = options.get(ONE_SERVER, self._table.settings.get(ONE_SERVER, False))
        if not isinstance(found, bool) and found != AUTO:
            raise SetupError(f"{self._table.name}: the option {ONE_SERVER} is true, false or auto, not {found!r}")
        if found and not can_share(self._table):
            why = "starts a server for each user" if names_user(self._table) else "has a 'url' and no 'command'"
            raise SetupError(f"{self._table.where} {why}, so that {ONE_SERVER} cannot be {str(found).lower()}")
        if found:
            check_sharing(self._table)
        return found

    async def start(self) -> None:
        """Start the server; where cases do not share it, start another one on trial, and end it."""
        if self.is_wanted({}):
            await self.server()
        else:
            first = await self._start({"workspace": str(self.folder / "first start"), "case": "first", "seed": 0})
            await first.close()

    async def server(self) -> AnyServer:
        """Return the server, which is started if it does not run."""
        async with self._starting:
            if self._server is not None and self._server.has_failed:
                await self.close()
            if self._server is None:
                place = {"workspace": str(self.folder / "one server"), "case": "all", "seed": 0}
                self._server = await self._start(place)
            return self._server

    async def close(self) -> None:
        """End it."""
        server, self._server = self._server, None
        if server is not None:
            await server.close()


class ServerFactory(PromisingFactory, Generic[AnyServer]):
    """Makes targets of one table, on a server for each case, on one for the worker or on one that runs already."""

    def __init__(
        self,
        table: ToolTable,
        target: Callable[[ToolTable, SharedServer[AnyServer]], Target],
        start: Callable[[Values], Awaitable[AnyServer]],
    ) -> None:
        self.table = table
        self.common = SharedServer(table, start)
        self.is_declared = bool(table.can)
        self.taken_back = table.cannot
        self._target = target

    def target(self) -> Target:
        return self._target(self.table, self.common)

    async def start(self, folder: Path) -> None:
        """Start a server once: no story waits for what it downloads first, or for one that does not come up."""
        self.common.folder = folder
        if not is_hosted():
            await self.common.start()

    def shares(self, options: Mapping[str, Tree]) -> bool:
        return "command" not in self.table.settings or self.common.is_wanted(options)

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        able = {*capabilities_of(self.table), *self.found, *([f"option.{ONE_SERVER}"] if can_share(self.table) else [])}
        if not self.shares(options):
            # What it keeps must be there when it is started again; who keeps nothing says so with `lacks`.
            able |= {"persistent", "restart", "crash", *(["upgrade"] if OLDER in self.table.settings else [])}
        elif "command" in self.table.settings:
            # A server that others use cannot be ended to see what it kept.
            able -= {"persistent"}
        return frozenset(able) - self.table.cannot

    def abilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        # What is older is a command of the table, and no option.
        return super().abilities(options) - {f"option.{OLDER}"}

    def cheapest_options(self, options: Mapping[str, Tree], needs: frozenset[Capability]) -> Mapping[str, Tree]:
        if self.common.setting(options) != AUTO:
            return options
        shared = {**options, ONE_SERVER: True}
        lost = self.abilities(options) - self.abilities(shared)
        return shared if needs.isdisjoint(lost) else options

    def remark(self, options: Mapping[str, Tree]) -> str:
        said = self.findings_remark("it maps", self.table.name)
        return f"The table {self.table.name}: {said}" if said else ""

    async def stop(self) -> None:
        await self.common.close()
