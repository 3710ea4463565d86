"""What an operator decides about the manager memory (M-06, M-17, M-18), read once from a file or a mapping."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from memstory.contract.values import Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import LimitSettings
from memstory_reference.setting_rules import (
    ENGINE,
    Place,
    SettingRule,
    count_rule,
    null_rule,
    number_rule,
    read_mapping,
)

SECTION = "memory"
UTC_NAME = "UTC"
LONGEST_INTERVAL_SECONDS = 10 * 366 * 86_400


def _is_zone(value: Tree) -> bool:
    try:
        return isinstance(value, str) and (value == UTC_NAME or bool(ZoneInfo(value).key))
    except (KeyError, OSError, ValueError):  # no such zone, or a name that is none, such as a path
        return False


ZONE = SettingRule("the name of a time zone, such as UTC or Europe/Vienna", _is_zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings(LimitSettings):
    """Settings of the manager memory; `memory.yaml` beside the system explains each and holds the defaults."""

    path: Place
    store: Annotated[str, ENGINE]
    context_window_size: Annotated[int, count_rule(1_000, low=0)]
    cleanup_interval: Annotated[float, number_rule(1, LONGEST_INTERVAL_SECONDS, "a number of seconds")]
    timezone: Annotated[str, ZONE]
    min_score: Annotated[float | None, null_rule(number_rule(0, 1, "a number"))]

    @property
    def zone(self) -> tzinfo:
        """The zone in which days end."""
        # UTC is known even to a machine that has no list of time zones.
        return UTC if self.timezone == UTC_NAME else ZoneInfo(self.timezone)

    @classmethod
    def _values(cls, yaml_text: str, where: str) -> dict[str, Tree]:
        whole = read_mapping(yaml_text, where)
        section = whole.get(SECTION)
        foreign = [str(key) for key in whole if key != SECTION]
        if foreign or not isinstance(section, dict | None):
            found = f"'{foreign[0]:.80}'" if foreign else f"a {type(section).__name__}"
            raise InputError(f"{where}: settings stand under '{SECTION}:', found {found}")
        return section or {}
