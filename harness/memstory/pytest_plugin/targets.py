"""From the options to the factories of the chosen targets."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from memstory.contract.errors import SetupError
from memstory.contract.target import TargetFactory, Tree
from memstory.contract.texts import did_you_mean
from memstory.language.registry import unknown_name_message
from memstory.models.loading import check_model_name, load_model
from memstory.models.shim import OPTIONS, gives_chat_to
from memstory.pytest_plugin.options import PROJECTS, chosen_options, is_typed
from memstory.pytest_plugin.process_guard import no_quiet_exit
from memstory.running.supervision import SUPERVISOR
from memstory.targets.discovery import check_names, load_targets, project_tables

DEFAULT_TARGET: Final = "reference"
"""What `memstory run` takes where nobody chose a target."""

OWN_TARGET: Final = "fts5"
"""Needs no extra: what `memstory run` takes instead where the reference is not installed whole."""

_OPTION: Final = "option."
_TABLE: Final = "[tool.memstory]"
_KEY: Final = "targets"


def chosen_names(config: pytest.Config) -> Sequence[str]:
    """Return the names of the targets: those typed, set in the ini file or in pyproject.toml, else the project's own.

    Raises:
        SetupError: the project has no target, and nobody named one.
    """
    named = config.getoption("memstory_target") or config.getini("memstory_target") or _named_in_pyproject(config)
    if named:
        return named
    if _is_memstory_run():
        return [DEFAULT_TARGET]
    if own := offers(config):
        return list(own)
    raise SetupError(
        "there are stories, but no memory to test is named. In pyproject.toml, write\n\n"
        '[tool.memstory]\ntargets = ["my_module:MyFactory"]\n\n'
        "or type --memstory-target NAME. 'memstory list targets' shows which names there are."
        + "".join(f"\n{said}" for said in options_of_the_project(config))
    )


def options_of_the_project(config: pytest.Config) -> Sequence[str]:
    """Return a sentence for each option that was typed by a short name of ours, and that the project takes itself."""
    return [
        f"{name} is an option of this project: to memstory, say --memstory-{name.removeprefix('--')}"
        for name in config.stash.get(PROJECTS, [])
    ]


def _is_memstory_run() -> bool:
    return SUPERVISOR in os.environ


def _named_in_pyproject(config: pytest.Config) -> Sequence[str]:
    """Return the names under `[tool.memstory] targets`, from the folder of the command or else of the project."""
    for folder in (config.invocation_params.dir, config.rootpath):
        path = Path(folder, "pyproject.toml")
        try:
            settings = tomllib.loads(path.read_text("utf-8")).get("tool", {}).get("memstory", {})
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise SetupError(f"{path} cannot be read: {error}") from error
        if not isinstance(settings, dict):
            raise SetupError(f"{path}: {_TABLE} is no table; write {_TABLE}, and {_KEY} = [...] below")
        if unknown := sorted(settings.keys() - {_KEY}):
            raise SetupError(f"{path}: {_TABLE}: {unknown_name_message(unknown[0], 'key', [_KEY])}")
        names = settings.get(_KEY, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise SetupError(
                f'{path}: {_TABLE} {_KEY} is {names!r}; allowed: a list of names, such as ["my_module:MyFactory"]'
            )
        if names:
            return names
    return []


def check_chosen(config: pytest.Config) -> None:
    """Raise UsageError for a target or an option that does not exist.

    What was typed is loaded, though no vendor is; of what the ini file says only the names are looked up, because every
    start of pytest pays for it.
    """
    try:
        if is_typed(config):
            check_options(load_chosen(config), chosen_options(config))
        else:
            check_names(chosen_names(config), offers(config))
        if config.getoption("memstory_judge"):
            load_model(config.getoption("memstory_judge"))
        if config.getoption("memstory_answer"):
            load_model(config.getoption("memstory_answer"))
    except SetupError as error:
        raise pytest.UsageError(str(error)) from error
    if config.getoption("memstory_answer") and not config.getoption("memstory_judge"):
        raise pytest.UsageError("--answer goes with --judge: an answer counts for nothing that nobody judges")


def load_chosen(config: pytest.Config) -> Mapping[str, TargetFactory]:
    """Return the factories by name, in the order in which they were asked for.

    Raises:
        SetupError: a name that nothing answers to, or a target that cannot be imported.
    """
    with no_quiet_exit():
        return load_targets(chosen_names(config), offers(config))


def load_chosen_or_own(config: pytest.Config) -> tuple[Mapping[str, TargetFactory], str]:
    """Return the factories and no word; where nobody chose and the reference cannot run, our own target and why."""
    try:
        return load_chosen(config), ""
    except SetupError as error:
        is_chosen = is_typed(config) or config.getini("memstory_target")
        if is_chosen or not _is_memstory_run() or chosen_names(config) != [DEFAULT_TARGET]:
            raise
        said = f"The stories ran on {OWN_TARGET}, for the reference memories need more: {error}"
        return load_targets([OWN_TARGET]), said


def options_of(targets: Mapping[str, TargetFactory], options: Mapping[str, Tree]) -> Mapping[str, Mapping[str, Tree]]:
    """Return for every target the options that it has; an option that no target has is a SetupError."""
    declared = {name: _declared_capabilities(name, factory) for name, factory in targets.items()}
    known = sorted({option for names in declared.values() for option in names})
    for option in options:
        if option not in known:
            near = did_you_mean(option, known)
            has = f"Known: {', '.join(known)}." if known else "They have no options."
            raise SetupError(f"no option '{option}' in the targets {', '.join(targets)}.{near} {has}")
    return {name: {option: value for option, value in options.items() if option in declared[name]} for name in targets}


def check_options(targets: Mapping[str, TargetFactory], options: Mapping[str, Tree]) -> None:
    """Raise SetupError for an option that no target has or takes, or a chat model that nothing offers."""
    for name, own in options_of(targets, options).items():
        targets[name].abilities(own)
    if "chat" in options and any(gives_chat_to(name, factory.capabilities({})) for name, factory in targets.items()):
        check_model_name(str(options["chat"]))


def offers(config: pytest.Config) -> Mapping[str, Any]:
    """Return the project's own targets: its tables, and what conftests offer; the nearest to the tests wins."""
    found: dict[str, Any] = {**project_tables(config.rootpath), **project_tables(config.invocation_params.dir)}
    for offered in reversed(config.hook.pytest_memstory_targets(config=config)):
        found.update(offered or {})
    return found


def _declared_capabilities(name: str, factory: TargetFactory) -> frozenset[str]:
    words = factory.abilities({})
    of_the_shim = OPTIONS if gives_chat_to(name, words) else ()
    return frozenset(word.removeprefix(_OPTION) for word in words if word.startswith(_OPTION)) | {*of_the_shim}
