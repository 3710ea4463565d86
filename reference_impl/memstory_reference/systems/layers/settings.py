"""What an operator decides about the layers memory, read once from a file or the command line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    DEFAULT_LIMITS,
    PromptCharacters,
    QueryCharacters,
    WindowCharacters,
    short_repr,
)
from memstory_reference.setting_rules import (
    SWITCH,
    CheckedSettings,
    Place,
    SettingRule,
    count_rule,
    number_rule,
    text_rule,
)


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


NO_EMBEDDER = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersSettings(CheckedSettings):
    """`store` is a folder, or the URL of a Postgres database that several processes may share; `mode` says how durable.

    The embedder `none` ranks by words alone; the chat `offline` extracts, decides and replies by documented rules.
    `support` is the share of an object's tokens that must recur; `duplicate` the Jaccard index of near-duplicates.
    `top_k` facts and `episodes` sessions go into a turn, and all active rules; `recall` governs reading alone (CF-8).
    Below `min_similarity` and, where there are vectors, below `min_recall` a record is in neither list of the fusion.
    A longer query than `max_query_characters` is refused. Of a long session the model that answers sees the last turns
    that fit into `max_window_characters`, the one that sums up its last `max_prompt_characters`.
    """

    place = "store"

    store: Place = ".layers"
    embedding_model: Annotated[
        str, text_rule("all-MiniLM-L6-v2, nomic-embed-text, ollama:NAME, openai:NAME or none")
    ] = "all-MiniLM-L6-v2"
    mode: Annotated[str, SettingRule(f"{', '.join(MemoryMode)} or guest", is_mode)] = MemoryMode.LOCAL
    idle_minutes: Annotated[float, number_rule(1, 10_080, "a number of minutes")] = 20
    episodic_days: Annotated[float, number_rule(1, 3_650, "a number of days")] = 30
    repetitions: Annotated[int, count_rule(100, low=2)] = 2
    substantive_turns: Annotated[int, count_rule(1_000)] = 3
    substantive_tokens: Annotated[int, count_rule(100_000)] = 30
    rule_cap: Annotated[int, count_rule(500)] = 20
    crisis_retention_days: Annotated[float, number_rule(1, 36_500, "a number of days")] = 90
    support: Annotated[float, number_rule(0, 1, "a number")] = 0.5
    duplicate: Annotated[float, number_rule(0, 1, "a number")] = 0.85
    top_k: Annotated[int, count_rule(1_000)] = 8
    episodes: Annotated[int, count_rule(100, low=0)] = 3
    min_similarity: Annotated[float, number_rule(-1, 1, "a number")] = 0.3
    min_recall: Annotated[float, number_rule(0, 1, "a number")] = 0.5
    recall: Annotated[bool, SWITCH] = True
    max_query_characters: QueryCharacters = DEFAULT_LIMITS.max_query_characters
    max_window_characters: WindowCharacters = DEFAULT_LIMITS.max_window_characters
    max_prompt_characters: PromptCharacters = DEFAULT_LIMITS.max_prompt_characters

    @property
    def memory_mode(self) -> MemoryMode:
        """How durable the memory is."""
        return parse_mode(self.mode)

    @property
    def embeds(self) -> bool:
        return self.memory_mode.is_durable and self.embedding_model != NO_EMBEDDER

    @property
    def idle(self) -> timedelta:
        """How long a session may be silent before it ends."""
        return timedelta(minutes=self.idle_minutes)

    @property
    def episodic_age(self) -> timedelta:
        """How old a session may be to be found by a question."""
        return timedelta(days=self.episodic_days)
