"""What a setting may be, and how a file of settings is read: shared by the settings of all systems."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, ClassVar, Self, get_type_hints

import yaml

from memstory.contract.texts import did_you_mean
from memstory.contract.values import Tree
from memstory.models.ollama_address import DEFAULT, ollama_url
from memstory_reference.errors import InputError
from memstory_reference.text.secret_guard import SecretAction, SecretPolicy

DEFAULTS = "memory.yaml"
MAX_TEXT_CHARACTERS = 500


_USER = re.compile(r"(?<=://).*@")
"""Who opens a database, with the password."""


@dataclass(frozen=True, slots=True)
class SettingRule:
    """What a setting allows, in words and as a test."""

    allowed: str
    fits: Callable[[Tree], bool]


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
SECRETS = SettingRule("redact, refuse or keep", lambda value: value in tuple(SecretAction))
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


EMBEDDING_MODEL = text_rule("all-MiniLM-L6-v2, nomic-embed-text, ollama:NAME or openai:NAME")
Place = Annotated[str, text_rule("the path of a folder, or postgresql://USER:PASSWORD@HOST/DATABASE")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSettings(SecretPolicy):
    """What an operator decides about a memory: each field whose type is annotated with a rule is a setting.

    These are the settings of every memory: its two models, where Ollama answers, and what becomes of secrets.
    """

    place: ClassVar[str] = "path"
    """The setting that says where the memory is stored."""
    server: ClassVar[str | None] = None
    """The setting that may name a server which has it instead."""

    store: str = SQLITE
    embedding_model: Annotated[str, EMBEDDING_MODEL] = "all-MiniLM-L6-v2"
    chat: Annotated[str, text_rule("offline, ollama:NAME, openai:NAME, record:NAME@FILE or replay:FILE")] = "offline"
    ollama_host: Annotated[str, text_rule("an address such as http://127.0.0.1:11434", "http://", "https://")] = DEFAULT
    secrets: Annotated[str, SECRETS] = SecretAction.REDACT
    keep_pins: Annotated[bool, SWITCH] = True

    @classmethod
    def default(cls) -> Self:
        """Return the settings as they are without a file; OLLAMA_HOST, where it is set, says where Ollama answers."""
        shipped, address = cls._package_defaults(), ollama_url()
        return shipped if address is None else replace(shipped, ollama_host=address)

    @classmethod
    def read(cls, file: Path) -> Self:
        """Return the settings in `file`, with the defaults for what it leaves out."""
        return cls.default().merge(cls._values(_text_of(file), str(file)), str(file))

    @classmethod
    @cache
    def rules(cls) -> Mapping[str, SettingRule]:
        """Return the rules by the names of the settings; what it inherits comes last."""
        hints = get_type_hints(cls, include_extras=True)
        names = dict.fromkeys(name for one in cls.__mro__ for name in vars(one).get("__annotations__", ()))
        return {name: hints[name].__metadata__[0] for name in names if hasattr(hints[name], "__metadata__")}

    @property
    def folder(self) -> Path:
        """Where a store on this machine lies, the home folder expanded."""
        return Path(getattr(self, self.place)).expanduser()

    @property
    def is_postgres(self) -> bool:
        """Whether the store is a database that others may use at the same time."""
        return "://" in getattr(self, self.place)

    @property
    def is_elsewhere(self) -> bool:
        """Whether a server has the store, and no folder of this machine."""
        return self.is_postgres or (self.server is not None and getattr(self, self.server) is not None)

    @property
    def engine(self) -> str:
        """What keeps the rows of a store on this machine."""
        return SQLITE if self.place == "store" else self.store

    @property
    def embeds(self) -> bool:
        """Whether the memory has vectors."""
        return True

    def merge(self, values: Mapping[str, Tree], where: str) -> Self:
        """Return these settings with `values` in place; InputError names `where`, the key and what is allowed."""
        check_settings(values, self.rules(), where)
        return replace(self, **values)

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
        check_settings(values, cls.rules(), DEFAULTS)
        return cls(**values)


def check_settings(values: Mapping[str, Tree], rules: Mapping[str, SettingRule], where: str) -> None:
    """Raise InputError for a value that no rule allows; it names `where`, the key and what is allowed."""
    for key, value in values.items():
        if key not in rules:
            raise InputError(
                f"{where}: unknown setting {key!r:.80}.{did_you_mean(str(key), rules)} Known: {', '.join(rules)}"
            )
        if not rules[key].fits(value):
            raise InputError(f"{where}: {key} is {_shown(value)}; allowed: {rules[key].allowed}")


def _shown(value: Tree) -> str:
    try:
        return f"{_USER.sub('', repr(value)):.80}"
    except ValueError:
        return "a number of thousands of digits"


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read as settings: {error}") from error


def read_mapping(yaml_text: str, where: str) -> dict[str, Tree]:
    """Return the settings in a YAML text."""
    try:
        values = yaml.safe_load(yaml_text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that there is not, a number of too many digits
        raise InputError(f"{where}: is not YAML: {' '.join(str(error).split())}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InputError(f"{where}: settings are 'key: value' lines, not a {type(values).__name__}")
    return values
