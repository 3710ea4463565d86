"""Secrets in texts and in trees of JSON: found by their form, by the name before them, or because they are known.

What is found becomes `REDACTED`. No rule is certain: a secret that looks like a plain word and has no telling name
beside it stays, which is what `--redact texts` is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from unicodedata import normalize

from memstory.contract.target import Tree
from memstory.results.containment import UNSEEN
from memstory.results.secrecy.secret_forms import ADDRESS, TELLING_NAMES, has_secret, is_card, spans

REDACTED: Final = "[redacted]"

_LEAST_KNOWN: Final = 8
"""Characters of a known secret that is searched for in other texts; a shorter one would hit plain words."""

_NAME: Final = re.compile(rf"(?:.*[^A-Za-z])?(?:{TELLING_NAMES})", re.IGNORECASE | re.DOTALL)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LEAST_CUT: Final = 5
"""Characters of a secret's beginning that are searched for before the sign that a text was cut."""

_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")


class Secrets:
    """Finds secrets; `known` are values that are secret anywhere, also where a text was cut within one.

    `found` is what was found by its form or its name so far.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        # The longest first: one may be a part of another.
        self.known = sorted({value for value in known if len(value) >= _LEAST_KNOWN}, key=lambda one: (-len(one), one))
        self.found: set[str] = set()

    def may_hold(self, text: str) -> bool:
        """Whether `text`, which may be a whole file, is worth looking at closely; False is certain."""
        return has_secret(_plain(text)) or any(value[:_LEAST_KNOWN] in text for value in self.known)

    def without(self, text: str) -> tuple[str, int]:
        """Return `text` without its secrets, and how many there were.

        >>> Secrets().without("GET https://ann:hunter2@example.org/?q=1")
        ('GET https://ann:[redacted]@example.org/?q=1', 1)
        """
        count = 0
        for value in self.known:
            for shown in (value, *_cut(value, text)):
                count += text.count(shown)
                text = text.replace(shown, REDACTED)
        folded, places = _folded(text)
        pieces, done = [], 0
        for start, end in spans(folded):
            first, last = places[start], places[end - 1] + 1
            if text.startswith(REDACTED[:-1], first):  # the rest of it may be cut off by a form's own end
                continue
            self.found.add(text[first:last])
            pieces += [text[done:first], REDACTED]
            done = last
        return "".join([*pieces, text[done:]]), count + len(pieces) // 2

    def tree_without(self, value: Tree, name: str = "") -> tuple[Tree, int]:
        """Return a tree of JSON without its secrets, and how many; a value under a telling name is one."""
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


def known_secrets(options: Mapping[str, Tree], environment: Mapping[str, str]) -> list[str]:
    """Return what must not be shown anywhere: the values under telling names, and passwords in addresses.

    Of the environment only what holds a digit: a password that is a plain word would blot out other texts.
    """
    given = {name: str(value) for name, value in options.items() if isinstance(value, (str, int))}
    given |= {name: value for name, value in environment.items() if any(map(str.isdigit, value))}
    found = [value for name, value in given.items() if names_a_secret(name)]
    return [*found, *(password for value in given.values() for password in ADDRESS.findall(value))]


def _cut(value: str, text: str) -> Iterator[str]:
    """Yield the beginnings of `value` at which `text` was cut, with the sign for that."""
    if "…" in text:
        cuts = (f"{value[:length]}…" for length in range(len(value) - 1, _LEAST_CUT - 1, -1))
        yield from (cut for cut in cuts if cut in text)


def _is_secret_number(value: int, name: str) -> bool:
    # A token may be counted, a password not.
    return (names_a_secret(name) and not name.lower().endswith("token")) or is_card(str(value))


def _folded(text: str) -> tuple[str, Sequence[int]]:
    """Return `text` without unseen signs and with wide letters as plain ones, and where each of its signs was."""
    if text.isascii():
        return text, range(len(text))
    return _plain(text), [place for place, sign in enumerate(text) if sign not in UNSEEN]


def _plain(text: str) -> str:
    return text if text.isascii() else _BEYOND_ASCII.sub(_plain_sign, text)


def _plain_sign(found: re.Match[str]) -> str:
    plain = "" if found[0] in UNSEEN else normalize("NFKC", found[0])
    # A sign that is several in its plain form stays: each place must have one sign.
    return plain if len(plain) == 1 or found[0] in UNSEEN else found[0]
