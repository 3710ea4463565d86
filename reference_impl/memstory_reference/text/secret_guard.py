"""What must not be remembered: secrets that people let slip, on every way into every memory (SEC-12).

A secret goes by its form, by its name or by how it looks, also where its letters are replaced by others that look like
them or by digits. What only stands where a secret would stand (`xoxb-your-token`, `os.environ["KEY"]`) is none.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from memstory.contract.secrets import Kind, findings
from memstory.contract.values import Tree
from memstory_reference.errors import UNSTORED, InputError
from memstory_reference.text.words import fold_with_places, letters_for_digits

LOG = logging.getLogger(__name__)


Guard = Callable[[str], str | None]
"""A text to the reason why it must not be kept, or None."""


class SecretAction(StrEnum):
    """What becomes of a text that holds a secret: it is kept without it, refused, or kept as it is."""

    REDACT = "redact"
    REFUSE = "refuse"
    KEEP = "keep"


_NAMES: Final[Mapping[Kind, str]] = {
    "card": "the number of a payment card",
    "key": "the key of a service",
    "private key": "a private key",
    "recovery phrase": "a recovery phrase or code",
    "password": "a password",
    "pin": "a PIN",
}
"""Kinds that are looked for; the number of an account may be remembered."""

_LEFT_OUT: Final = "left out: "
_NOTICE: Final = re.compile(rf"\[{_LEFT_OUT}([^\[\]]{{1,60}})\]")
_STAND_IN: Final = re.compile(
    r"^[<\[{$%]|^\W+$|\.\.\.$|…$|^(.)\1+$|x{4,}|\*{3,}"  # <key>, ${KEY}, sk-..., xxxx, ****
    r"|(?:^|[^a-z0-9])(?:your|my|example|dummy|fake|placeholder|change[ _-]?(?:me|it|this)|insert|replace|redacted|todo"
    r"|here)(?:$|[^a-z0-9])"
    # Code: what is called, looked up or declared, and no value.
    r"|^[a-z_][\w.]*[(\[]|^[a-z_]+(?:\.[a-z_]+)+\W*$|^[)\]}]"
    r"|^(?:str|string|int|bytes|bool|none|null|nil|true|false|undefined|optional|any|secretstr)\b",
    re.IGNORECASE,
)
_PREFIX: Final = re.compile(r"^(?:[a-z]{2,6}[-_]){1,3}", re.IGNORECASE)
_LEAST_REPEATED: Final = 4
"""Characters of a secret that is looked for elsewhere in the same call; a shorter one would hit plain words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPolicy:
    """What becomes of secrets: `redact` keeps all but them, `refuse` takes no text that holds one, `keep` keeps all.

    `keep_pins` lets PINs pass, and is the default: such a number opens a door of its owner, who wants to be told it.
    """

    secrets: str = SecretAction.REDACT
    keep_pins: bool = True

    def admit(self, *texts: str, readings: Sequence[str] = ()) -> list[str]:
        """Return texts of one call as they may be kept: a notice stands in place of each secret, in all of them.

        `readings` are the same words once more, as a person would say them, for what is told only between two texts.

        Raises:
            InputError: one holds a secret, and such texts are refused; the message holds no word of it.
        """
        if self.secrets == SecretAction.REFUSE and (kinds := self._kinds([*texts, *readings])):
            what = _in_words(kinds)
            raise InputError(
                f"{UNSTORED}it holds {what}. Store it in a password manager (the setting secrets: redact "
                "keeps the rest, keep lets it in)"
            )
        return self.redact(*texts, readings=readings)

    def redact(self, *texts: str, readings: Sequence[str] = ()) -> list[str]:
        """Return texts of one talk, which goes on: as `admit` does, and without secrets where `admit` refuses them."""
        found = self._find([*texts, *readings])
        values = {text[start:end]: kind for text, one in found.items() for kind, start, end in one}
        if not values:
            return list(texts)
        LOG.warning("a text is kept without %s", _in_words(self._kinds(found)))
        return [_remove_secrets(text, found[text], values) for text in texts]

    def admit_with(self, text: str, metadata: Mapping[str, Tree]) -> tuple[str, dict[str, Tree]]:
        """Return a text with its metadata as they may be kept; a name in the metadata may tell that its value is one.

        >>> SecretPolicy().admit_with("A login.", {"password": "hunter22", "user": "ina"})
        ('A login.', {'password': '[left out: a password]', 'user': 'ina'})
        """
        told = {name: value if isinstance(value, str) else json.dumps(value) for name, value in metadata.items()}
        text, *values = self.admit(text, *told.values(), readings=[f"{name}: {one}" for name, one in told.items()])
        changed = {name: new for (name, old), new in zip(told.items(), values, strict=True) if new != old}
        return text, {**metadata, **changed}

    def admit_key(self, key: str, text: str) -> str:
        """Return the key of a text without the letters of a secret that the text holds: it may be made of them.

        >>> SecretPolicy().admit_key("user.api_key_sk_live_4f9a8b7c6d5e4f3a", "my API key, sk-live-4f9a8b7c6d5e4f3a")
        'user.api_key_secret'
        """
        for _, start, end in self._find([text])[text]:
            letters = [re.escape(one) for one in re.findall(r"[^\W_]+", text[start:end])]
            if sum(map(len, letters)) >= _LEAST_REPEATED:
                key = re.sub(r"[\W_]*".join(letters), "secret", key, flags=re.IGNORECASE)
        return key

    def refusal(self, text: str) -> str | None:
        """Return why a text is not taken at all, None if it may be."""
        try:
            if self.secrets == SecretAction.REFUSE:
                self.admit(text)
        except InputError as refusal:
            return str(refusal)
        return None

    def _find(self, texts: Iterable[str]) -> dict[str, list[tuple[Kind, int, int]]]:
        is_kept = self.secrets == SecretAction.KEEP
        return {text: [] if is_kept else secrets_in(text, keep_pins=self.keep_pins) for text in texts}

    def _kinds(self, texts: Iterable[str]) -> list[Kind]:
        return list(dict.fromkeys(kind for one in self._find(texts).values() for kind, _, _ in one))


def secrets_in(text: str, *, keep_pins: bool = True) -> list[tuple[Kind, int, int]]:
    """Return the kind of each secret in a text, and where it stands.

    >>> secrets_in("My card is 4111 1111 1111 1111."), secrets_in("Call 0664 1234567 at 10.")
    ([('card', 11, 30)], [])
    """
    plain, places = fold_with_places(text)
    # The name of the secret may be written with digits; the secret itself is looked at as it is written.
    found = findings(plain, letters_for_digits(plain))
    return [
        (one.kind, places[one.start], places[one.end - 1] + 1)
        for one in found
        if one.kind in _NAMES and not (one.kind == "pin" and keep_pins) and not is_stand_in(plain[one.start : one.end])
    ]


def secret_in(text: str) -> str | None:
    """Return what secret a text holds, in words that repeat nothing of it; None for none, and for a PIN."""
    kinds = dict.fromkeys(kind for kind, _, _ in secrets_in(text))
    return f"it holds {_in_words(list(kinds))}" if kinds else None


def is_stand_in(value: str) -> bool:
    """Say whether a value only stands where a secret would: it names none, or is looked up when it is needed.

    >>> [is_stand_in(value) for value in ("xoxb-your-token", "changeme", "os.environ", "sk-4f9a8b7c6d5e")]
    [True, True, True, False]
    """
    rest = _PREFIX.sub("", value)
    is_plain = rest != value and rest.replace("-", "").replace("_", "").isalpha() and rest == rest.lower()
    return is_plain or _STAND_IN.search(value) is not None


def left_out(text: str) -> str | None:
    """Return in words what was left out of a text that is kept; None for nothing.

    >>> left_out("My card is [left out: the number of a payment card].")
    'left out: the number of a payment card'
    """
    kinds = dict.fromkeys(_NOTICE.findall(text))
    return f"{_LEFT_OUT}{' and '.join(kinds)}" if kinds else None


def is_notice(text: str) -> bool:
    """Say whether nothing is left of a text but that something was left out."""
    return _NOTICE.search(text) is not None and not re.search(r"\w", _NOTICE.sub("", text))


def _remove_secrets(text: str, found: Sequence[tuple[Kind, int, int]], values: Mapping[str, Kind]) -> str:
    """Return a text without its own secrets, and without those of the other texts where they stand as whole words."""
    cuts = [0, *(place for _, start, end in found for place in (start, end)), len(text)]
    pieces = [text[start:end] for start, end in pairwise(cuts)]
    pieces[1::2] = [_notice(kind) for kind, _, _ in found]
    for value, kind in values.items():
        if len(value) >= _LEAST_REPEATED:
            pattern = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
            pieces[::2] = [pattern.sub(_notice(kind), piece) for piece in pieces[::2]]
    return "".join(pieces)


def _in_words(kinds: Sequence[Kind]) -> str:
    return " and ".join(_NAMES[kind] for kind in kinds)


def _notice(kind: Kind) -> str:
    return f"[{_LEFT_OUT}{_NAMES[kind]}]"
