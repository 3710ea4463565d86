"""Secrets in texts and in trees of JSON: found by their form, by the name before them, or because they are known.

What is found becomes `REDACTED`. No rule is certain: a secret that looks like a plain word and has no telling name
beside it stays, which is what `--redact texts` is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from memstory.target import Json

REDACTED: Final = "[redacted]"

_LEAST_KNOWN: Final = 8
"""Characters of a known secret that is searched for in other texts; a shorter one would hit plain words."""

_TELLING_NAMES: Final = (
    r"(?:api|access|private|secret|encryption|signing|auth)[_ .-]?key(?:[_ .-]?id)?|(?:client[_ .-]?)?secret|token|"
    r"pass(?:word|wd|phrase|code)|pwd|credentials?|(?:proxy-)?authorization|cookie"
)
_NAME: Final = re.compile(rf"(?:.*[^A-Za-z])?(?:{_TELLING_NAMES})", re.IGNORECASE | re.DOTALL)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VALUE: Final = r"""\\?(?:"([^"\\\r\n]+)|'([^'\\\r\n]+)|([^\s"'\\,;&<>)\]}]+))"""

_LEAST_CUT: Final = 5
"""Characters of a secret's beginning that are searched for before the sign that a text was cut."""

_ADDRESS: Final = re.compile(
    r"(?<![A-Za-z0-9+.-])[a-z][a-z0-9+.-]{0,20}://[^\s/:@?#\"']{0,200}:([^\s/@\"']{1,500})@", re.IGNORECASE
)

# Each has the secret in its groups; what stands around it stays. All are bounded or begin with a fixed text, so that
# no input makes them slow.
_FORMS: Final = (
    re.compile(
        r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z))", re.DOTALL
    ),
    re.compile(
        r"(?<![A-Za-z0-9])("
        r"(?:sk|pk|rk)[-_](?=[A-Za-z0-9_-]{0,80}\d)[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic, Stripe
        r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
        r"|xox[a-z]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}"
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])|AIza[A-Za-z0-9_-]{30,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
        r"|eyJ[A-Za-z0-9_-]{8,1000}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"  # JSON web tokens
        r")"
    ),
    re.compile(r"\b(?:proxy-)?authorization\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?([^\"'\\\r\n]+)", re.IGNORECASE),
    re.compile(r"\b(?:set-)?cookie\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?([^\s=;\"']+=[^\"'\\\r\n]+)", re.IGNORECASE),
    re.compile(r"\b(?:bearer|basic)[ \t]+(?=[^\s\"']{0,500}\d)([A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE),
    _ADDRESS,
    re.compile(r"[?&](?:key|sig|signature|auth)=([^&\s#\"']+)", re.IGNORECASE),
    re.compile(rf"(?:{_TELLING_NAMES})\\?[\"']?[ \t]*[:=][ \t]*{_VALUE}", re.IGNORECASE),
    re.compile(rf"\b(?:pass(?:word|phrase|code)|(?:api|secret) key) is[ \t]+{_VALUE}", re.IGNORECASE),
)
_CARD: Final = re.compile(r"(?<![\w.-])[3-6]\d(?:[ -]?\d){11,17}(?![\w-])")

# What any of the forms needs, lowercased: to look for these first is far cheaper than the forms are. The patterns pass
# over the names in our own JSON, such as `key` and `token_budget`, and begin with plain texts, which are quick to find.
_HINTS: Final = (
    "secret", "password", "passwd", "passphrase", "passcode", "pwd", "credential", "authorization", "cookie", "bearer",
    "basic", "://", "sig=", "signature=", "auth=", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "ghp_", "gho_", "ghu_",
    "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "hf_", "npm_", "pypi-", "akia", "asia", "aiza", "sg.", "eyj",
)  # fmt: skip
_HINT_PATTERNS: Final = (re.compile(r'key(?<!"key)'), re.compile(r"token(?![_s])"))


class Secrets:
    """Finds secrets; `known` are values that are secret wherever they stand, also where a text was cut within one.

    `found` is what was found by its form or its name so far.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        # The longest first: one may be a part of another.
        self.known = sorted({value for value in known if len(value) >= _LEAST_KNOWN}, key=lambda one: (-len(one), one))
        self.found: set[str] = set()

    def may_hold(self, text: str) -> bool:
        """Whether `text`, which may be a whole file, is worth looking at closely; False is certain."""
        lowered = text.lower()
        return (
            any(hint in lowered for hint in _HINTS)
            or any(pattern.search(lowered) for pattern in _HINT_PATTERNS)
            or any(value[:_LEAST_KNOWN] in text for value in self.known)
            or _CARD.search(text) is not None
        )

    def without(self, text: str) -> tuple[str, int]:
        """Return `text` without its secrets, and how many there were.

        >>> Secrets().without("GET https://ann:hunter2@example.org/?q=1")
        ('GET https://ann:[redacted]@example.org/?q=1', 1)
        """
        if not self.may_hold(text):
            return text, 0
        count = 0
        for value in self.known:
            for shown in (value, *_cut(value, text)):
                count += text.count(shown)
                text = text.replace(shown, REDACTED)

        def hide(found: re.Match[str]) -> str:
            nonlocal count
            group = next(number for number, value in enumerate(found.groups(), 1) if value is not None)
            if found[group].startswith(REDACTED[:-1]):  # the rest of it may be cut off by a form's own end
                return found[0]
            count += 1
            self.found.add(found[group])
            begin, end = (place - found.start() for place in found.span(group))
            return f"{found[0][:begin]}{REDACTED}{found[0][end:]}"

        for form in _FORMS:
            text = form.sub(hide, text)

        def hide_card(found: re.Match[str]) -> str:
            nonlocal count
            if not _is_card(found[0]):
                return found[0]
            count += 1
            self.found.add(found[0])
            return REDACTED

        return _CARD.sub(hide_card, text), count

    def tree_without(self, value: Json, name: str = "") -> tuple[Json, int]:
        """Return a tree of JSON without its secrets, and how many; what stands under a telling name is one."""
        if isinstance(value, str):
            if not value or value == REDACTED or not names_a_secret(name):
                return self.without(value)
            self.found.add(value)
            return REDACTED, 1
        if isinstance(value, Mapping):
            inherited = name if names_a_secret(name) else ""
            pairs = [(self.without(key), self.tree_without(inner, inherited or key)) for key, inner in value.items()]
            count = sum(of_key + of_value for (_, of_key), (_, of_value) in pairs)
            return {key: inner for (key, _), (inner, _) in pairs}, count
        if isinstance(value, (list, tuple)):
            made = [self.tree_without(inner, name) for inner in value]
            return [inner for inner, _ in made], sum(count for _, count in made)
        if isinstance(value, int) and not isinstance(value, bool) and _is_secret_number(value, name):
            return REDACTED, 1
        return value, 0


def names_a_secret(name: str) -> bool:
    """Whether what bears this name is to be kept secret.

    >>> [names_a_secret(name) for name in ("OPENAI_API_KEY", "apiKey", "key", "max_tokens", "db.password")]
    [True, True, False, False, True]
    """
    return _NAME.fullmatch(_CAMEL.sub("_", name)) is not None


def known_secrets(options: Mapping[str, Json], environment: Mapping[str, str]) -> list[str]:
    """Return what must not be shown wherever it stands: the values under telling names, and passwords in addresses.

    Of the environment only what holds a digit: a password that is a plain word would blot out other texts.
    """
    given = {name: str(value) for name, value in options.items() if isinstance(value, (str, int))}
    given |= {name: value for name, value in environment.items() if any(map(str.isdigit, value))}
    found = [value for name, value in given.items() if names_a_secret(name)]
    return [*found, *(password for value in given.values() for password in _ADDRESS.findall(value))]


def _cut(value: str, text: str) -> Iterator[str]:
    """Yield the beginnings of `value` at which `text` was cut, with the sign for that."""
    if "…" in text:
        cuts = (f"{value[:length]}…" for length in range(len(value) - 1, _LEAST_CUT - 1, -1))
        yield from (cut for cut in cuts if cut in text)


def _is_secret_number(value: int, name: str) -> bool:
    # A token may be counted, a password not.
    return (names_a_secret(name) and not name.lower().endswith("token")) or _is_card(str(value))


def _is_card(text: str) -> bool:
    """Whether the digits are those of a payment card: 13 to 19, with the check digit of Luhn."""
    digits = [int(digit) for digit in text if digit.isdigit()]
    if not _LEAST_DIGITS <= len(digits) <= _MOST_DIGITS or not _FIRST_DIGITS[0] <= digits[0] <= _FIRST_DIGITS[1]:
        return False
    doubled = [digit * 2 - 9 * (digit > _HALF) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_LEAST_DIGITS: Final = 13
_MOST_DIGITS: Final = 19
_FIRST_DIGITS: Final = (3, 6)
_HALF: Final = 4
