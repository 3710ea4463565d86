"""A target's name -> its factory: entry points, tables, `module:Class`, a project's own hook, the controls.

Only what was chosen is imported, so that a backend that is not installed harms nobody who does not use it. The spec of
a table is `path/of/memstory.toml#NAME`, by which any process makes the same factory.
"""

from __future__ import annotations

import re
import sys
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.errors import SetupError
from memstory.contract.installation import install_command
from memstory.contract.target import Capability, Environment, Target, TargetFactory, Tree
from memstory.contract.texts import did_you_mean
from memstory.controls import CONTROLS, FAULTS
from memstory.targets.objects.target import ObjectFactory, says_what_it_makes
from memstory.targets.promises import PromisingFactory

FILE: Final = "memstory.toml"


def read_tables(path: Path) -> Mapping[str, Mapping[str, Tree]]:
    """Return the tables under `targets` by name, unchecked; none if there is no such file.

    Raises:
        SetupError: the file is not TOML, or `targets` holds something that is not a table.
    """
    try:
        tree = tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SetupError(f"{path.name}: the file cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path.name}: this is not TOML: {error}") from error
    unknown = sorted(set(tree) - {"targets"})
    if unknown:
        raise SetupError(f"{path.name}: unknown table [{unknown[0]}]. Allowed: [targets.NAME].")
    tables = tree.get("targets", {})
    for name, table in tables.items() if isinstance(tables, dict) else [("", tables)]:
        if not isinstance(table, dict):
            place = f"[targets] '{name}'" if name else "'targets'"
            raise SetupError(f"{path.name}: {place} is not a table; write [targets.NAME] and its keys below")
    return tables  # type: ignore[no-any-return]  # checked just above


_MARK: Final = ".toml#"
_FACTORIES: Final[Mapping[str, str]] = {
    "mcp": "memstory.targets.tables.mcp:McpFactory",
    "http": "memstory.targets.tables.http:HttpFactory",
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
    from memstory.language.registry import unknown_name_message  # noqa: PLC0415
    from memstory.targets.tables.reading import check_table, parse_table  # noqa: PLC0415

    file, _, name = spec.rpartition("#")
    path = Path(file)
    if not path.is_file():
        raise SetupError(f"there is no file {file} (target '{spec}')")
    tables = read_tables(path)
    if name not in tables:
        raise SetupError(f"{path.name}: {unknown_name_message(name, 'target', tables)}")
    tree = tables[name]
    if "target" in tree:
        check_table(f"{path.name}: [targets.{name}]", tree)
        factory: TargetFactory = _WithOptions(load(tree["target"]), tree.get("options", {}))
    else:
        table = parse_table(name, tree, path.name, str(path.absolute().parent))
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

    def abilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        return self._factory.abilities({**self._options, **options})

    def shares(self, options: Mapping[str, Tree]) -> bool:
        return self._factory.shares({**self._options, **options})

    def older_release(self, options: Mapping[str, Tree]) -> Path | None:
        return self._factory.older_release({**self._options, **options})

    def isolates(self, options: Mapping[str, Tree]) -> bool:
        return self._factory.isolates({**self._options, **options})

    def cheapest_options(self, options: Mapping[str, Tree], needs: frozenset[Capability]) -> Mapping[str, Tree]:
        return self._factory.cheapest_options({**self._options, **options}, needs)

    def remark(self, options: Mapping[str, Tree]) -> str:
        return self._factory.remark({**self._options, **options})

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


def promising_within(factory: TargetFactory) -> PromisingFactory | None:
    """Return the object or table that a target is, also where a table gives it options; None for any other target."""
    inner = factory._factory if isinstance(factory, _WithOptions) else factory  # noqa: SLF001  (its own module)
    return inner if isinstance(inner, PromisingFactory) else None


def object_within(factory: TargetFactory) -> ObjectFactory | None:
    """Return the object that a target is, also where a table gives it options; None for any other target."""
    inner = promising_within(factory)
    return inner if isinstance(inner, ObjectFactory) else None


GROUP = "memstory.targets"
CONTROL = "control:"
ALL_CONTROLS = f"{CONTROL}all"
# The narrow faults are chosen by `control:all`, or one by one; nobody wants to read all of them in a message.
_BROAD_CONTROLS = [f"{CONTROL}{name}" for name in CONTROLS if name not in FAULTS]

_import_seconds: Final[dict[str, float]] = {}
"""Module of a target -> how long it took to import it."""

Offers = Mapping[str, Any]
"""What a project offers by its hook or its tables: name -> factory, its class, `module:Class` or `FILE.toml#NAME`."""


def known_names(offers: Offers | None = None) -> Sequence[str]:
    """Return every name that can be chosen, the controls last and of these no narrow fault; imports nothing."""
    return [*sorted({*(offers or {}), *_installed(tuple(sys.path)), *bundled_tables()}), *_BROAD_CONTROLS]


@lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> frozenset[str]:  # noqa: ARG001  (where packages are looked for)
    # Of each story for certain targets it is asked, and to look takes longer than to read the story.
    return frozenset(entry.name for entry in entry_points(group=GROUP))


def check_names(names: Sequence[str], offers: Offers | None = None) -> None:
    """Raise SetupError for a name that nothing answers to; imports nothing."""
    for name in names:
        if ":" not in name and not is_table_spec(name) and name not in known_names(offers):
            raise _unknown(name, known_names(offers))


def load_targets(names: Sequence[str], offers: Offers | None = None) -> Mapping[str, TargetFactory]:
    """Return a factory for every chosen target, in order; the name of a group stands for all of its members."""
    found: dict[str, TargetFactory] = {}
    for name in names:
        for member, factory in _load(name, offers or {}, ()):
            found.setdefault(member, factory)
    return found


def load_spec(spec: str) -> TargetFactory:
    """Return the factory that `module:Class` or `control:NAME` names, or the table that `FILE.toml#NAME` does."""
    if is_table_spec(spec):
        return load_table(spec, load_spec)
    if spec.startswith(CONTROL):
        if spec.removeprefix(CONTROL) not in CONTROLS:
            raise _unknown(spec, [*_BROAD_CONTROLS, ALL_CONTROLS])
        return CONTROLS[spec.removeprefix(CONTROL)]()
    module, _, attribute = spec.partition(":")
    if module.endswith(".py"):
        said = f"{module.removesuffix('.py').replace('/', '.')}:{attribute or 'CLASS'}"
        raise SetupError(f"the target '{spec}' names a file, and a module is wanted: write '{said}', in its folder")
    began = time.perf_counter()
    imported = _load_or_explain(spec, lambda: import_module(module))
    # Only the first import of a module takes its time.
    seconds = _import_seconds.setdefault(module, time.perf_counter() - began)
    if not hasattr(imported, attribute):
        own = [name for name, one in vars(imported).items() if getattr(one, "__module__", None) == module]
        has = f" It has: {', '.join(own)}." if own else ""
        near = did_you_mean(attribute, own)
        raise SetupError(f"the module '{module}' has no '{attribute}' (target '{spec}').{near}{has}")
    factory = factory_of(spec, getattr(imported, attribute))
    if isinstance(factory, ObjectFactory):
        factory.import_seconds = seconds
    return factory


def installation_problem(extras: Sequence[str]) -> str:
    """Say which of these extras to install because a package that they bring is not here; nothing if all are."""
    for owner in _owners():
        missing = {extra for package, extra in _extras(owner) if extra in extras and not _is_here(package)}
        if missing:
            return f"not installed: {install_command(','.join(sorted(missing)), owner.name)}"
    return ""


def missing_vendor(target: str, error: ImportError, distribution: Distribution | None = None) -> str:
    """Say what to install: the extra that brings the missing package, where a distribution tells of it."""
    missing, dot, _ = (error.name or "").partition(".")
    if not missing or (dot and find_spec(missing)):
        return f"the target '{target}' cannot be imported: {error}"
    for owner in filter(None, [distribution, *_owners()]):
        extra = _extra_for(owner, missing)
        if extra:
            hint = f"Install it with: {install_command(extra, owner.name)}"
            break
    else:
        hint = f"Install what provides '{missing}' or, if it is a module of yours, type the command in its folder."
    return f"the target '{target}' needs the package '{missing}', which is not installed. {hint}"


@contextmanager
def vendors_named(target: str) -> Iterator[None]:
    """Make a vendor's package that is missing an error that says what to install; it shows when a target is started.

    Raises:
        SetupError: what is done here imports a package that is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise SetupError(missing_vendor(target, error)) from error


def _load(name: str, offers: Offers, within: Sequence[str]) -> Iterator[tuple[str, TargetFactory]]:
    if name in within:
        raise SetupError(f"the target group '{name}' contains itself: {' -> '.join([*within, name])}")
    distribution = None
    if name == ALL_CONTROLS:
        yield from ((f"{CONTROL}{control}", factory()) for control, factory in CONTROLS.items())
        return
    if name.startswith(CONTROL):
        yield name, load_spec(name)
        return
    if name in offers:
        found = offers[name]
    else:
        entry = next(iter(entry_points(group=GROUP, name=name)), None)
        spec = bundled_tables().get(name, name)
        if entry is None and (is_table_spec(spec) or ":" in spec):
            yield name, load_spec(spec)
            return
        if entry is None:
            raise _unknown(name, known_names(offers))
        found, distribution = _load_or_explain(name, entry.load, entry.dist), entry.dist
    if isinstance(found, (tuple, list)):
        for member in found:
            yield from _load(member, offers, (*within, name))
    else:
        yield name, factory_of(name, found, distribution)


def _load_or_explain(name: str, load: Callable[[], Any], distribution: Distribution | None = None) -> Any:
    try:
        return load()
    except ImportError as error:
        near = _suggestion(name) if ":" in name and error.name == re.split("[.:]", name)[0] else ""
        raise SetupError(f"{missing_vendor(name, error, distribution)}{near}") from error
    except (Exception, SystemExit) as error:  # whatever a person's own module does
        frames = traceback.extract_tb(error.__traceback__)
        is_theirs = len(frames) > 1 and not isinstance(error, SyntaxError)
        where = f", at {frames[-1].filename}:{frames[-1].lineno}" if is_theirs else ""
        reason = " ".join(str(error).split()) or "no reason given"
        raise SetupError(f"the target '{name}' cannot be loaded: {type(error).__name__}: {reason}{where}") from error


def factory_of(name: str, found: Any, distribution: Distribution | None = None) -> TargetFactory:
    """Return the factory of what is offered as `name`: a factory, its class, a class of one's own, or an object."""
    if isinstance(found, str):
        return load_spec(found)
    if isinstance(found, TargetFactory):
        return found
    if isinstance(found, type) and issubclass(found, Target):
        raise SetupError(f"the target '{name}' is a memstory.Target: name its memstory.TargetFactory")
    if not callable(found) or says_what_it_makes(found):
        return ObjectFactory(name, found)
    made = _load_or_explain(name, found, distribution)
    return made if isinstance(made, TargetFactory) else ObjectFactory(name, found, type(made))


def _suggestion(name: str, known: Sequence[str] = ()) -> str:
    every = [*(known or known_names()), ALL_CONTROLS, *(f"{CONTROL}{fault}" for fault in FAULTS)]
    return did_you_mean(name, every)


def _unknown(name: str, known: Sequence[str]) -> SetupError:
    if Path(f"{name}.py").is_file():
        return SetupError(f"unknown target '{name}'. There is a {name}.py here: name a class of it, as {name}:CLASS")
    choice = ", ".join(known) or "none is installed"
    return SetupError(f"unknown target '{name}'.{_suggestion(name, known)} Known: {choice}; or give module:Class.")


def _owners() -> Iterator[Distribution]:
    """Yield the distributions that offer targets: their extras may bring what is missing."""
    yield from {entry.dist.name: entry.dist for entry in entry_points(group=GROUP) if entry.dist is not None}.values()


def _extra_for(distribution: Distribution, package: str) -> str | None:
    """Return the smallest of the extras that bring a package: another target's would bring much that nobody needs."""
    wanted = re.sub(r"[-_.]+", "-", package).lower()
    sizes = Counter(extra for _, extra in _extras(distribution))
    return min((extra for name, extra in _extras(distribution) if name == wanted), key=sizes.__getitem__, default=None)


def _extras(distribution: Distribution) -> Iterator[tuple[str, str]]:
    """Yield each package that an extra brings, with the name of the extra."""
    for requirement in distribution.requires or ():
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", requirement)
        if name and extra:
            yield re.sub(r"[-_.]+", "-", name[0]).lower(), extra[1]


def _is_here(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True
