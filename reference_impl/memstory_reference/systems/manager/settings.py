"""What an operator decides about the manager memory (M-06, M-17, M-18), read once from a file or a mapping."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from memstory.contract.values import Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import LIMIT_RULES, Limits, limits_of
from memstory_reference.setting_rules import (
    ENGINE,
    MODEL_RULES,
    PLACE,
    SECRET_RULES,
    SettingRule,
    ShippedSettings,
    count_rule,
    null_rule,
    number_rule,
    read_mapping,
)
from memstory_reference.text.secret_guard import SecretPolicy

SECTION = "memory"
UTC_NAME = "UTC"
LIMITS = tuple(name for name in LIMIT_RULES if name != "max_prompt_characters")
"""The limits of this system, which compresses nothing."""

LONGEST_INTERVAL_SECONDS = 10 * 366 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings(SecretPolicy, ShippedSettings):
    """Settings of the manager memory; `memory.yaml` beside the system explains each and holds the defaults."""

    path: str
    store: str
    context_window_size: int
    embedding_model: str
    cleanup_interval: float
    timezone: str
    min_score: float | None
    chat: str
    ollama_host: str
    max_memory_characters: int
    max_query_characters: int
    max_window_characters: int
    max_result_characters: int
    max_tool_calls: int

    @property
    def zone(self) -> tzinfo:
        """The zone in which days end."""
        # UTC is known even to a machine that has no list of time zones.
        return UTC if self.timezone == UTC_NAME else ZoneInfo(self.timezone)

    @property
    def limits(self) -> Limits:
        """How much each part may hold."""
        return limits_of(self)

    @classmethod
    def _values(cls, yaml_text: str, where: str) -> dict[str, Tree]:
        whole = read_mapping(yaml_text, where)
        section = whole.get(SECTION)
        foreign = [str(key) for key in whole if key != SECTION]
        if foreign or not isinstance(section, dict | None):
            found = f"'{foreign[0]:.80}'" if foreign else f"a {type(section).__name__}"
            raise InputError(f"{where}: settings stand under '{SECTION}:', found {found}")
        return section or {}


def _is_zone(value: Tree) -> bool:
    try:
        return isinstance(value, str) and (value == UTC_NAME or bool(ZoneInfo(value).key))
    except (KeyError, OSError, ValueError):  # no such zone, or a name that is none, such as a path
        return False


ManagerSettings.rules = {
    "path": PLACE,
    "store": ENGINE,
    "context_window_size": count_rule(1_000, low=0),
    **MODEL_RULES,
    "cleanup_interval": number_rule(1, LONGEST_INTERVAL_SECONDS, "a number of seconds"),
    "timezone": SettingRule("the name of a time zone, such as UTC or Europe/Vienna", _is_zone),
    "min_score": null_rule(number_rule(0, 1, "a number")),
    **SECRET_RULES,
    **{name: LIMIT_RULES[name] for name in LIMITS},
}
