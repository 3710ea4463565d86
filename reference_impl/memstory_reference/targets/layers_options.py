"""What a story's options decide about the layers."""

from __future__ import annotations

from dataclasses import dataclass, fields

from memstory.contract.target import Environment
from memstory_reference.errors import InputError
from memstory_reference.systems.layers.settings import LayersConfig, MemoryMode, parse_mode
from memstory_reference.targets.environment_ports import PORT_OPTIONS

CONFIG = tuple(field.name for field in fields(LayersConfig))
OPTIONS = (*CONFIG, "mode", "anonymous", "store", *PORT_OPTIONS)
SQLITE, POSTGRES = STORES = ("sqlite", "postgres")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersOptions:
    """`anonymous` are users without a user id, the empty text being the case's own.

    `store` is where a durable memory is kept; incognito has none.
    """

    config: LayersConfig
    mode: MemoryMode
    anonymous: frozenset[str]
    store: str

    @property
    def is_in_postgres(self) -> bool:
        """Whether the memory is in Postgres."""
        return self.mode.is_durable and self.store == POSTGRES


def layers_options(env: Environment) -> LayersOptions:
    """Return what the options decide; InputError names the one that is wrong."""
    mode, anonymous = env.options.get("mode", MemoryMode.LOCAL), env.options.get("anonymous", [])
    if not isinstance(mode, str):
        raise InputError(f"options: mode is {mode!r:.80}; allowed: {', '.join(MemoryMode)}, guest")
    if not isinstance(anonymous, list) or not all(isinstance(name, str) for name in anonymous):
        raise InputError("options: anonymous is a list of users, the empty text being the one of steps without `as`")
    store = env.options.get("store", SQLITE)
    if store not in STORES:
        raise InputError(f"options: store is {store!r:.80}; allowed: {', '.join(STORES)}")
    return LayersOptions(
        config=LayersConfig().merge({name: env.options[name] for name in CONFIG if name in env.options}, "options"),
        mode=parse_mode(mode),
        anonymous=frozenset(anonymous),
        store=store,
    )
