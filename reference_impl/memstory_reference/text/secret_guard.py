"""What must not be remembered: secrets that people let slip, on every way into every memory (SEC-12).

A guard is a plain function, so that a memory can be given another. The usual one goes by the form of a secret, also
where its letters are replaced by others that look like them or by digits. A secret in other words, or told in another
language, passes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from memstory.contract import secrets
from memstory_reference.errors import InputError
from memstory_reference.text.folding import fold, letters_for_digits

Guard = Callable[[str], str | None]
"""A text to the reason why it must not be kept, or None. The reason is logged: it holds no word of the text."""

_REASONS: Final[Mapping[secrets.Kind, str]] = {
    "card": "it holds the number of a payment card",
    "key": "it holds the key of a service",
    "private key": "it holds a private key",
    "password": "it tells a password",
}


def secret_in(text: str) -> str | None:
    """Return what kind of secret a text holds, None if it seems to hold none.

    >>> secret_in("My card is 4111 1111 1111 1111."), secret_in("Call 0664 1234567 at 10."), secret_in("sk-y scraper")
    ('it holds the number of a payment card', None, None)
    """
    plain = fold(text)
    # The name of the secret may be written with digits; the secret itself is looked at as it is written.
    kind = secrets.secret_in(plain, letters_for_digits(plain))
    return None if kind is None else _REASONS[kind]


def refuse_secrets(guard: Guard | None, *texts: str) -> None:
    """Raise InputError if `guard` refuses one of `texts`; its message holds no word of them. None refuses nothing."""
    for text in texts:
        if guard and (reason := guard(text)):
            raise InputError(f"this is not stored: {reason}. Store it in a password manager (keep_secrets lets it in)")
