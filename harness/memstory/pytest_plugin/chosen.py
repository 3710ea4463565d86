"""From the options to the factories of the chosen targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from memstory.contract.errors import SetupError
from memstory.contract.target import TargetFactory, Tree
from memstory.contract.texts import did_you_mean
from memstory.models.loading import check_model_name, load_model
from memstory.models.shim import OPTIONS, gives_chat_to
from memstory.pytest_plugin.ending.guard import no_quiet_exit
from memstory.pytest_plugin.options import DEFAULT_TARGET, OWN_TARGET, chosen_names, chosen_options, is_typed
from memstory.targets.discovery import check_names, load_targets, project_tables

_OPTION = "option."


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
    except SetupError as error:
        raise pytest.UsageError(str(error)) from error


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
        if chosen_names(config) != [DEFAULT_TARGET] or is_typed(config) or config.getini("memstory_target"):
            raise
        said = f"The stories ran on {OWN_TARGET}, for the reference memories need more: {error}"
        return load_targets([OWN_TARGET]), said


def options_of(targets: Mapping[str, TargetFactory], options: Mapping[str, Tree]) -> Mapping[str, Mapping[str, Tree]]:
    """Return for every target the options that it has; an option that no target has is a SetupError."""
    declared = {name: _declared(name, factory) for name, factory in targets.items()}
    known = sorted({option for names in declared.values() for option in names})
    for option in options:
        if option not in known:
            near = did_you_mean(option, known)
            has = f"Known: {', '.join(known)}." if known else "They have no options."
            raise SetupError(f"no option '{option}' in the targets {', '.join(targets)}.{near} {has}")
    return {name: {option: value for option, value in options.items() if option in declared[name]} for name in targets}


def check_options(targets: Mapping[str, TargetFactory], options: Mapping[str, Tree]) -> None:
    """Raise SetupError for an option that no target has, or a chat model that nothing offers to those that get one."""
    options_of(targets, options)
    if "chat" in options and any(gives_chat_to(name, factory.capabilities({})) for name, factory in targets.items()):
        check_model_name(str(options["chat"]))


def offers(config: pytest.Config) -> Mapping[str, Any]:
    """Return the project's own targets: its tables, and what conftests offer; the nearest to the tests wins."""
    found: dict[str, Any] = {**project_tables(config.rootpath), **project_tables(config.invocation_params.dir)}
    for offered in reversed(config.hook.pytest_memstory_targets(config=config)):
        found.update(offered or {})
    return found


def _declared(name: str, factory: TargetFactory) -> frozenset[str]:
    words = factory.capabilities({})
    of_the_shim = OPTIONS if gives_chat_to(name, words) else ()
    return frozenset(word.removeprefix(_OPTION) for word in words if word.startswith(_OPTION)) | {*of_the_shim}
