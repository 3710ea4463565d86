"""What an operator decides, read once from a file or a mapping; a settings object needs no further check."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from memstory_reference.input_checks import LimitSettings
from memstory_reference.setting_rules import (
    ENGINE,
    SWITCH,
    Place,
    SettingRule,
    count_rule,
    null_rule,
    number_rule,
    text_rule,
)

SERVER = SettingRule(
    "HOST:PORT", lambda value: isinstance(value, str) and re.fullmatch(r"[^\s:/]+:\d{1,5}", value) is not None
)
TOOLSET = SettingRule("single or dual", lambda value: value in ("single", "dual"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsSettings(LimitSettings):
    """Settings of the topics memory; `memory.yaml` beside the system explains each and holds the defaults."""

    place = "chroma_path"
    server = "chroma_server"

    chroma_path: Place
    chroma_server: Annotated[str | None, null_rule(SERVER)]
    store: Annotated[str, ENGINE]
    collection: Annotated[str, text_rule("a name on one line")]
    top_k: Annotated[int, count_rule(1_000)]
    min_score: Annotated[float | None, null_rule(number_rule(-1, 1, "a number"))]
    toolset: Annotated[Literal["single", "dual"], TOOLSET]
    strict_topics: Annotated[bool, SWITCH]
    retention_days: Annotated[float | None, null_rule(number_rule(0, 365_000, "a number of days"))]
    steps: Annotated[int, count_rule(100)]
    window_turns: Annotated[int, count_rule(1_000)]
    tool_timeout_seconds: Annotated[float, number_rule(0.001, 3_600, "a number of seconds")]
