"""What an operator decides about the layers memory, read once from a file or the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from memstory.models.ollama_address import DEFAULT
from memstory_reference.errors import InputError
from memstory_reference.input_checks import DEFAULT_LIMITS, LIMIT_RULES, short_repr
from memstory_reference.setting_rules import (
    MODEL_RULES,
    SECRET_RULES,
    SWITCH,
    CheckedSettings,
    ConfiguredSettings,
    SettingRule,
    count_rule,
    number_rule,
    text_rule,
)
from memstory_reference.text.secret_guard import SecretPolicy


class MemoryMode(StrEnum):
    """Incognito leaves no byte on disk; synced is treated as local, and says so."""

    INCOGNITO = "incognito"
    LOCAL = "local"
    SYNCED = "synced"

    @property
    def is_durable(self) -> bool:
        """Whether anything is written to disk."""
        return self is not MemoryMode.INCOGNITO

    @property
    def sync(self) -> str:
        """What the status says about synchronisation: never more than is true."""
        return "not implemented" if self is MemoryMode.SYNCED else "off"


_ALIASES = {"guest": MemoryMode.INCOGNITO}


def parse_mode(name: object) -> MemoryMode:
    """Return the mode of this name; `guest` is a friendlier word for incognito.

    >>> parse_mode("Guest")
    <MemoryMode.INCOGNITO: 'incognito'>
    """
    if not is_mode(name):
        raise InputError(f"there is no memory mode {short_repr(name)}; allowed: {', '.join(MemoryMode)}, guest")
    folded = str(name).strip().lower()
    return _ALIASES.get(folded) or MemoryMode(folded)


def is_mode(name: object) -> bool:
    """Say whether there is a mode of this name."""
    folded = name.strip().lower() if isinstance(name, str) else ""
    return folded in _ALIASES or folded in set(MemoryMode)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersConfig(SecretPolicy, CheckedSettings):
    """`support` is the share of an object's tokens that must recur; `duplicate` the Jaccard index of near-duplicates.

    `top_k` facts and `episodes` sessions go into a turn, and all active rules; `recall` governs reading alone (CF-8).
    Below `min_similarity` and, where there are vectors, below `min_recall` a record is in neither list of the fusion.
    A longer query than `max_query_characters` is refused. Of a long session the model that answers sees the last turns
    that fit into `max_window_characters`, the one that sums up its last `max_prompt_characters`.
    """

    idle_minutes: float = 20
    episodic_days: float = 30
    repetitions: int = 2
    substantive_turns: int = 3
    substantive_tokens: int = 30
    rule_cap: int = 20
    crisis_retention_days: float = 90
    support: float = 0.5
    duplicate: float = 0.85
    top_k: int = 8
    episodes: int = 3
    min_similarity: float = 0.3
    min_recall: float = 0.5
    recall: bool = True
    max_query_characters: int = DEFAULT_LIMITS.max_query_characters
    max_window_characters: int = DEFAULT_LIMITS.max_window_characters
    max_prompt_characters: int = DEFAULT_LIMITS.max_prompt_characters

    @property
    def idle(self) -> timedelta:
        """How long a session may be silent before it ends."""
        return timedelta(minutes=self.idle_minutes)

    @property
    def episodic_age(self) -> timedelta:
        """How old a session may be to be found by a question."""
        return timedelta(days=self.episodic_days)


LayersConfig.rules = {
    "idle_minutes": number_rule(1, 10_080, "a number of minutes"),
    "episodic_days": number_rule(1, 3_650, "a number of days"),
    "repetitions": count_rule(100, low=2),
    "substantive_turns": count_rule(1_000),
    "substantive_tokens": count_rule(100_000),
    "rule_cap": count_rule(500),
    "crisis_retention_days": number_rule(1, 36_500, "a number of days"),
    "support": number_rule(0, 1, "a number"),
    "duplicate": number_rule(0, 1, "a number"),
    "top_k": count_rule(1_000),
    "episodes": count_rule(100, low=0),
    "min_similarity": number_rule(-1, 1, "a number"),
    "min_recall": number_rule(0, 1, "a number"),
    "recall": SWITCH,
    **SECRET_RULES,
    **{name: LIMIT_RULES[name] for name in ("max_query_characters", "max_window_characters", "max_prompt_characters")},
}


NO_EMBEDDER = "none"
RULES = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersSettings(ConfiguredSettings):
    """`store` is a folder, or the URL of a Postgres database that several processes may share; `mode` says how durable.

    The embedder `none` ranks by words alone; the chat `offline` extracts, decides and replies by documented rules.
    """

    place = "store"

    store: str = ".layers"
    embedding_model: str = "all-MiniLM-L6-v2"
    chat: str = RULES
    ollama_host: str = DEFAULT
    mode: str = MemoryMode.LOCAL
    config: LayersConfig = field(default_factory=LayersConfig)

    @property
    def memory_mode(self) -> MemoryMode:
        """How durable the memory is."""
        return parse_mode(self.mode)


LayersSettings.rules = {
    "store": text_rule("the path of a folder, or postgresql://USER:PASSWORD@HOST/DATABASE"),
    **MODEL_RULES,
    "embedding_model": text_rule("all-MiniLM-L6-v2, nomic-embed-text, ollama:NAME, openai:NAME or none"),
    "mode": SettingRule(f"{', '.join(MemoryMode)} or guest", is_mode),
    **LayersConfig.rules,
}
