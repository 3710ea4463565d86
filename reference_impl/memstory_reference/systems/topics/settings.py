"""What an operator decides, read once from a file or a mapping; a settings object needs no further check."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from memstory_reference.input_checks import LIMIT_RULES, Limits, limits_of
from memstory_reference.setting_rules import (
    ENGINE,
    MODEL_RULES,
    PLACE,
    SECRET_RULES,
    SWITCH,
    SettingRule,
    ShippedSettings,
    count_rule,
    null_rule,
    number_rule,
    text_rule,
)
from memstory_reference.text.secret_guard import SecretPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsSettings(SecretPolicy, ShippedSettings):
    """Settings of the topics memory; `memory.yaml` beside the system explains each and holds the defaults."""

    place = "chroma_path"

    chroma_path: str
    chroma_server: str | None
    store: str
    collection: str
    embedding_model: str
    top_k: int
    min_score: float | None
    toolset: Literal["single", "dual"]
    strict_topics: bool
    retention_days: float | None
    chat: str
    ollama_host: str
    steps: int
    window_turns: int
    tool_timeout_seconds: float
    max_memory_characters: int
    max_query_characters: int
    max_window_characters: int
    max_result_characters: int
    max_tool_calls: int

    @property
    def limits(self) -> Limits:
        """How much each part may hold."""
        return limits_of(self)


TopicsSettings.rules = {
    "chroma_path": PLACE,
    "chroma_server": null_rule(
        SettingRule(
            "HOST:PORT", lambda value: isinstance(value, str) and re.fullmatch(r"[^\s:/]+:\d{1,5}", value) is not None
        )
    ),
    "store": ENGINE,
    "collection": text_rule("a name on one line"),
    **MODEL_RULES,
    "top_k": count_rule(1_000),
    "min_score": null_rule(number_rule(-1, 1, "a number")),
    "toolset": SettingRule("single or dual", lambda value: value in ("single", "dual")),
    "strict_topics": SWITCH,
    "retention_days": null_rule(number_rule(0, 365_000, "a number of days")),
    **SECRET_RULES,
    "steps": count_rule(100),
    "window_turns": count_rule(1_000),
    "tool_timeout_seconds": number_rule(0.001, 3_600, "a number of seconds"),
    **{name: rule for name, rule in LIMIT_RULES.items() if name != "max_prompt_characters"},
}
