"""What must not be remembered: secrets that people let slip, on every way into every memory (SEC-12).

A guard is a plain function, so that a memory can be given another. The rules here go by form: they find payment cards,
keys of well-known services, private keys, and passwords that are announced as such, also where letters are replaced by
others that look like them or by digits. A secret in other words, or told in another language, passes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from memstory_reference.errors import InputError
from memstory_reference.text.folding import folded, letters_for_digits

Guard = Callable[[str], str | None]
"""A text to the reason why it must not be kept, or None. The reason is logged: it holds no word of the text."""

_CARD_DIGITS = range(13, 20)
_CARD_GROUPS = ((4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3))
"""How the digits of a card are printed, and so typed."""
_FIRST_DIGITS = "3456"
_SEPARATOR = re.compile(r"[ \-./\u2010-\u2015\u2212]")
_RUN = re.compile(r"(?<![\w.,])\d+(?:[ \-\u2010-\u2015\u2212]\d+)*(?![\w])", re.ASCII)
# With dots or slashes it is a fraction or a date, unless it is grouped as a card is.
_GROUPED = re.compile(r"(?<![\w.,/])\d+(?:[./]\d+)+(?![\w])", re.ASCII)

# Bounded or begun by a fixed text, so that no input makes them slow.
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk)[-_](?=[\w-]{0,80}\d)[\w-]{16,}"
    r"|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|npm_\w{30,}|xox[a-z]-[\w-]{10,}"
    r"|whsec_\w{16,}|gsk_\w{20,}|xai-\w{20,}|pcsk_\w{20,}|GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)|AIza[\w-]{30,}|eyJ[\w-]{8,1000}\.[\w-]{8,}"
    r")",
    re.ASCII,
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_NAMED = re.compile(
    r"\b(?:pass(?:word|phrase|code)|api[ _-]?key|(?:secret|access)[ _-](?:key|token)|pin(?:[ _-]code)?)\b"
    r"[\"']?\s{0,3}(?:is|[:=])\s{0,3}",
    re.IGNORECASE,
)
# With a digit in it: "the password is important" tells none.
_TOLD = re.compile(r"(?=\S{0,80}\d)\S{4,}")


def secret_in(text: str) -> str | None:
    """Return what kind of secret a text holds, None if it seems to hold none.

    >>> secret_in("My card is 4111 1111 1111 1111."), secret_in("Call 0664 1234567 at 10."), secret_in("sk-y scraper")
    ('it holds the number of a payment card', None, None)
    """
    plain = folded(text)
    if any(map(_is_card, _numbers(plain))):
        return "it holds the number of a payment card"
    if _KEY.search(plain):
        return "it holds the key of a service"
    if _PRIVATE_KEY.search(plain):
        return "it holds a private key"
    # The name of the secret may be written with digits; the secret itself is looked at as it is written.
    named = _NAMED.finditer(letters_for_digits(plain))
    return "it tells a password" if any(_TOLD.match(plain, name.end()) for name in named) else None


def refuse_secrets(guard: Guard | None, *texts: str) -> None:
    """Raise InputError if `guard` refuses one of `texts`; its message holds no word of them. None refuses nothing."""
    for text in texts:
        if guard and (reason := guard(text)):
            raise InputError(f"this is not stored: {reason}. Store it in a password manager (keep_secrets lets it in)")


def _numbers(text: str) -> Iterator[str]:
    """Yield what may be one number: each run of digits as a whole, and what is in it in the groups of a card."""
    for run in _RUN.findall(text):
        groups = _SEPARATOR.split(run)
        yield "".join(groups)
        yield from groups
        yield from _in_groups(groups)
    for run in _GROUPED.findall(text):
        yield from _in_groups(_SEPARATOR.split(run))


def _in_groups(groups: Sequence[str]) -> Iterator[str]:
    for shape in _CARD_GROUPS:
        for start in range(len(groups) - len(shape) + 1):
            part = groups[start : start + len(shape)]
            if tuple(map(len, part)) == shape:
                yield "".join(part)


def _is_card(number: str) -> bool:
    """Say whether the last digit is the check digit that Luhn's rule gives the others."""
    if len(number) not in _CARD_DIGITS or number[0] not in _FIRST_DIGITS:
        return False
    total = 0
    for place, digit in enumerate(map(int, reversed(number))):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled  # noqa: PLR2004  (the greatest digit)
    return total % 10 == 0
