"""What a setting may be, and how a file of settings is read: shared by the settings of all systems."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Self

import yaml

from memstory.contract.texts import did_you_mean
from memstory.contract.values import Tree
from memstory.models.ollama_address import ollama_url
from memstory_reference.errors import InputError
from memstory_reference.text.secret_guard import SecretAction

DEFAULTS = "memory.yaml"
MAX_TEXT_CHARACTERS = 500


_USER = re.compile(r"(?<=://)[^@/]*@")
"""Who opens a database, with the password."""


@dataclass(frozen=True, slots=True)
class SettingRule:
    """What a setting allows, in words and as a test."""

    allowed: str
    fits: Callable[[Tree], bool]


class CheckedSettings:
    """Settings as a frozen dataclass, whose every field has a rule."""

    __slots__ = ()
    rules: ClassVar[Mapping[str, SettingRule]]
    place: ClassVar[str] = "path"
    """The setting that says where the memory is stored."""

    @classmethod
    def default(cls) -> Self:
        """Return the settings as they are without a file; OLLAMA_HOST, where it is set, says where Ollama answers."""
        shipped, address = cls._package_defaults(), ollama_url()
        return shipped if address is None else replace(shipped, ollama_host=address)  # type: ignore[type-var]

    @classmethod
    def read(cls, file: Path) -> Self:
        """Return the settings in `file`, with the defaults for what it leaves out."""
        return cls.default().merge(cls._values(_text_of(file), str(file)), str(file))

    @property
    def folder(self) -> Path:
        """Where a store on this machine lies, the home folder expanded."""
        return Path(getattr(self, self.place)).expanduser()

    @property
    def is_postgres(self) -> bool:
        """Whether the store is a database that others may use at the same time."""
        return "://" in getattr(self, self.place)

    def merge(self, values: Mapping[str, Tree], where: str) -> Self:
        """Return these settings with `values` in place; InputError names `where`, the key and what is allowed."""
        check_settings(values, self.rules, where)
        return replace(self, **values)  # type: ignore[type-var]  # each subclass is a dataclass

    @classmethod
    def _package_defaults(cls) -> Self:
        return cls()

    @classmethod
    def _values(cls, yaml_text: str, where: str) -> dict[str, Tree]:
        return read_mapping(yaml_text, where)


class ShippedSettings(CheckedSettings):
    """Settings whose defaults are in `memory.yaml` beside their module, which explains each."""

    __slots__ = ()

    @classmethod
    @cache
    def _package_defaults(cls) -> Self:
        values = cls._values((files(cls.__module__.rpartition(".")[0]) / DEFAULTS).read_text("utf-8"), DEFAULTS)
        check_settings(values, cls.rules, DEFAULTS)
        return cls(**values)


class ConfiguredSettings(CheckedSettings):
    """Settings of an operator, with all that the configuration of the memory has, whose rules are among their own."""

    __slots__ = ()
    config: Any

    def merge(self, values: Mapping[str, Tree], where: str) -> Self:
        check_settings(values, self.rules, where)
        inner = {name: value for name, value in values.items() if name in self.config.rules}
        own = {name: value for name, value in values.items() if name not in inner}
        return replace(self, **own, config=self.config.merge(inner, where))  # type: ignore[type-var]


def number_rule(low: float, high: float, what: str) -> SettingRule:
    """Return the rule of a number within bounds."""

    def fits(value: Tree) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high

    return SettingRule(f"{what} from {low:g} to {high:g}", fits)


def count_rule(high: int, low: int = 1) -> SettingRule:
    """Return the rule of a whole number within bounds."""
    return SettingRule(
        f"a whole number from {low} to {high}", lambda value: type(value) is int and low <= value <= high
    )


SQLITE, CHROMA, POSTGRES = ENGINES = ("sqlite", "chroma", "postgres")
"""Where a memory that was specified on Chroma has its rows: in our own file, in Chroma itself, or in a database."""

ENGINE = SettingRule("sqlite, chroma or postgres", lambda value: value in ENGINES)
SQL_ENGINE = SettingRule("sqlite or postgres", lambda value: value in (SQLITE, POSTGRES))
SWITCH = SettingRule("true or false", lambda value: isinstance(value, bool))


def null_rule(rule: SettingRule) -> SettingRule:
    """Return `rule`, or nothing."""
    return SettingRule(f"{rule.allowed}, or null", lambda value: value is None or rule.fits(value))


def text_rule(what: str, *starts: str) -> SettingRule:
    """Return the rule of a text on one line that begins with one of `starts`."""

    def fits(value: Tree) -> bool:
        return (
            isinstance(value, str)
            and 0 < len(value.strip()) <= MAX_TEXT_CHARACTERS
            and value.isprintable()
            and value.startswith(starts or "")
        )

    return SettingRule(what, fits)


PLACE = text_rule("the path of a folder, or postgresql://USER:PASSWORD@HOST/DATABASE")

MODEL_RULES: Mapping[str, SettingRule] = {
    "embedding_model": text_rule("all-MiniLM-L6-v2, nomic-embed-text, ollama:NAME or openai:NAME"),
    "chat": text_rule("offline, ollama:NAME, openai:NAME, record:NAME@FILE or replay:FILE"),
    "ollama_host": text_rule("an address such as http://127.0.0.1:11434", "http://", "https://"),
}
"""What every memory has: its two models, and where Ollama answers."""


SECRET_RULES: Mapping[str, SettingRule] = {
    "secrets": SettingRule("redact, refuse or keep", lambda value: value in tuple(SecretAction)),
    "keep_pins": SWITCH,
}
"""What an operator of any memory decides about secrets."""


def check_settings(values: Mapping[str, Tree], rules: Mapping[str, SettingRule], where: str) -> None:
    """Raise InputError for a value that no rule allows; it names `where`, the key and what is allowed."""
    for key, value in values.items():
        if key not in rules:
            raise InputError(
                f"{where}: unknown setting {key!r:.80}.{did_you_mean(str(key), rules)} Known: {', '.join(rules)}"
            )
        if not rules[key].fits(value):
            shown = _USER.sub("", value) if isinstance(value, str) else value
            raise InputError(f"{where}: {key} is {shown!r:.80}; allowed: {rules[key].allowed}")


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read as settings: {error}") from error


def read_mapping(yaml_text: str, where: str) -> dict[str, Tree]:
    """Return the settings in a YAML text."""
    try:
        values = yaml.safe_load(yaml_text)
    except yaml.YAMLError as error:
        raise InputError(f"{where}: is not YAML: {' '.join(str(error).split())}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InputError(f"{where}: settings are 'key: value' lines, not a {type(values).__name__}")
    return values
