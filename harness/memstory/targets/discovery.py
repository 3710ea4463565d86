"""A target's name -> its factory: entry points, tables, `module:Class`, a project's own hook, the controls.

Only what was chosen is imported, so that a backend that is not installed harms nobody who does not use it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from typing import Any

from memstory.contract.errors import SetupError, install_command
from memstory.contract.target import TargetFactory
from memstory.contract.texts import did_you_mean
from memstory.controls import CONTROLS, FAULTS
from memstory.targets.table_targets import bundled_tables, is_table_spec, load_table

GROUP = "memstory.targets"
CONTROL = "control:"
ALL_CONTROLS = f"{CONTROL}all"
# The narrow faults are chosen by `control:all`, or one by one; nobody wants to read all of them in a message.
_BROAD_CONTROLS = [f"{CONTROL}{name}" for name in CONTROLS if name not in FAULTS]

Offers = Mapping[str, Any]
"""What a project offers by its hook or its tables: name -> factory, its class, `module:Class` or `FILE.toml#NAME`."""


def known_names(offers: Offers | None = None) -> Sequence[str]:
    """Return every name that can be chosen, the controls last and of these no narrow fault; imports nothing."""
    installed = {entry.name for entry in entry_points(group=GROUP)}
    return [*sorted({*(offers or {}), *installed, *bundled_tables()}), *_BROAD_CONTROLS]


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
    imported = _loaded(spec, lambda: import_module(module))
    if not hasattr(imported, attribute):
        raise SetupError(f"the module '{module}' has no '{attribute}' (target '{spec}')")
    return _factory(spec, getattr(imported, attribute))


def not_installed(extras: Sequence[str]) -> str:
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
        found, distribution = _loaded(name, entry.load, entry.dist), entry.dist
    if isinstance(found, (tuple, list)):
        for member in found:
            yield from _load(member, offers, (*within, name))
    else:
        yield name, _factory(name, found, distribution)


def _loaded(name: str, load: Callable[[], Any], distribution: Distribution | None = None) -> Any:
    try:
        return load()
    except ImportError as error:
        near = _meant(name) if ":" in name and error.name == re.split("[.:]", name)[0] else ""
        raise SetupError(f"{missing_vendor(name, error, distribution)}{near}") from error
    except (Exception, SystemExit) as error:  # whatever a person's own module does
        frames = traceback.extract_tb(error.__traceback__)
        where = "" if isinstance(error, SyntaxError) else f", at {frames[-1].filename}:{frames[-1].lineno}"
        reason = " ".join(str(error).split()) or "no reason given"
        raise SetupError(f"the target '{name}' cannot be loaded: {type(error).__name__}: {reason}{where}") from error


def _factory(name: str, found: Any, distribution: Distribution | None = None) -> TargetFactory:
    if isinstance(found, str):
        return load_spec(found)
    made = _loaded(name, found, distribution) if callable(found) else found
    if not isinstance(made, TargetFactory):
        raise SetupError(f"the target '{name}' is a {type(made).__name__}, not a memstory.TargetFactory")
    return made


def _meant(name: str, known: Sequence[str] = ()) -> str:
    every = [*(known or known_names()), ALL_CONTROLS, *(f"{CONTROL}{fault}" for fault in FAULTS)]
    return did_you_mean(name, every)


def _unknown(name: str, known: Sequence[str]) -> SetupError:
    choice = ", ".join(known) or "none is installed"
    return SetupError(f"unknown target '{name}'.{_meant(name, known)} Known: {choice}; or give module:Class.")


def _owners() -> Iterator[Distribution]:
    """Yield the distributions that offer targets: their extras may bring what is missing."""
    yield from {entry.dist.name: entry.dist for entry in entry_points(group=GROUP) if entry.dist is not None}.values()


def _extra_for(distribution: Distribution, package: str) -> str | None:
    wanted = re.sub(r"[-_.]+", "-", package).lower()
    return next((extra for name, extra in _extras(distribution) if name == wanted), None)


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
