"""What must not be remembered by itself: secrets that people let slip in a conversation (SEC-12).

A guard is a plain function, so that a memory can be given another. The rules here go by form: they find payment cards,
keys of well-known services, private keys, and passwords that are told as such. A secret in other words passes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Guard = Callable[[str], str | None]
"""A text to the reason why it must not be kept, or None. The reason is logged: it holds no word of the text."""

_CARD_DIGITS = range(13, 20)
_CARD_GROUPS = ((4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3))
"""How the digits of a card are printed, and so typed."""
_FIRST_DIGITS = "3456"
_RUN = re.compile(r"(?<![\w.,])\d+(?:[ -]\d+)*(?![\w])", re.ASCII)

# Bounded or begun by a fixed text, so that no input makes them slow.
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk)[-_](?=[\w-]{0,80}\d)[\w-]{16,}"
    r"|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|npm_\w{30,}|xox[a-z]-[\w-]{10,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)|AIza[\w-]{30,}|eyJ[\w-]{8,1000}\.[\w-]{8,}"
    r")",
    re.ASCII,
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----")
# With a digit in it: "the password is important" tells none.
_TOLD = re.compile(
    r"\b(?:pass(?:word|phrase|code)|api[ _-]?key|(?:secret|access)[ _-](?:key|token)|pin(?:[ _-]code)?)\b"
    r"[\"']?\s{0,3}(?:is|[:=])\s{0,3}(?=\S{0,80}\d)\S{4,}",
    re.IGNORECASE,
)


def secret_in(text: str) -> str | None:
    """Return what kind of secret a text holds, None if it seems to hold none.

    >>> secret_in("My card is 4111 1111 1111 1111."), secret_in("Call 0664 1234567 at 10."), secret_in("sk-y scraper")
    ('it holds the number of a payment card', None, None)
    """
    if any(map(_is_card, _numbers(text))):
        return "it holds the number of a payment card"
    if _KEY.search(text):
        return "it holds the key of a service"
    if _PRIVATE_KEY.search(text):
        return "it holds a private key"
    return "it tells a password" if _TOLD.search(text) else None


def _numbers(text: str) -> Iterator[str]:
    """Yield what may be one number: each run of digits as a whole, and what stands in it in the groups of a card."""
    for run in _RUN.finditer(text):
        groups = re.split("[ -]", run[0])
        yield "".join(groups)
        yield from groups
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
