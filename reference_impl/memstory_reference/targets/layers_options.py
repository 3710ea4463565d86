"""What a story's options decide about the layers."""

from __future__ import annotations

from dataclasses import dataclass, fields

from memstory.contract.target import Environment
from memstory_reference.errors import InputError
from memstory_reference.setting_rules import SQL_ENGINE, check_settings
from memstory_reference.systems.layers.settings import LayersConfig, MemoryMode, parse_mode
from memstory_reference.targets.environment_ports import PORT_OPTIONS

CONFIG = tuple(field.name for field in fields(LayersConfig))
OPTIONS = (*CONFIG, "mode", "anonymous", "store", *PORT_OPTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersOptions:
    """`anonymous` are users without a user id, the empty text being the case's own."""

    config: LayersConfig
    mode: MemoryMode
    anonymous: frozenset[str]


def layers_options(env: Environment) -> LayersOptions:
    """Return what the options decide; InputError names the one that is wrong."""
    mode, anonymous = env.options.get("mode", MemoryMode.LOCAL), env.options.get("anonymous", [])
    if not isinstance(mode, str):
        raise InputError(f"options: mode is {mode!r:.80}; allowed: {', '.join(MemoryMode)}, guest")
    if not isinstance(anonymous, list) or not all(isinstance(name, str) for name in anonymous):
        raise InputError("options: anonymous is a list of users, the empty text being the one of steps without `as`")
    if "store" in env.options:
        check_settings({"store": env.options["store"]}, {"store": SQL_ENGINE}, "options")
    return LayersOptions(
        config=LayersConfig().merge({name: env.options[name] for name in CONFIG if name in env.options}, "options"),
        mode=parse_mode(mode),
        anonymous=frozenset(anonymous),
    )
