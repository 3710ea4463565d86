"""Secrets in texts and in trees of JSON: found by their form, by the name before them, or because they are known.

What is found becomes `REDACTED`. No rule is certain: a secret that looks like a plain word and has no telling name
beside it stays, which is what `--redact texts` is for.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from unicodedata import normalize
from urllib.parse import quote, quote_plus

from memstory.contract.secrets import TELLING_NAMES, has_secret, is_card, spans
from memstory.contract.target import Tree
from memstory.results.containment import UNSEEN

REDACTED: Final = "[redacted]"

_LEAST_KNOWN: Final = 8
"""Characters of a known secret that is searched for in other texts; a shorter one would hit plain words."""

_NAME: Final = re.compile(rf"(?:.*[^A-Za-z])?(?:{TELLING_NAMES})", re.IGNORECASE | re.DOTALL)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_VARIABLE: Final = re.compile(
    r"(?:.*(?:PASSWORD|PASSWD|PASSPHRASE|SECRET).*"
    r"|.*(?:TOKEN|(?:API|ACCESS|PRIVATE|MASTER)KEY|SSHPASS)"
    r"|(?:.*_)?(?:AUTH(?:_CONFIG)?|CREDS?|CREDENTIALS?(?:_JSON)?|JWT|PAT|PASS|PW|PWD|COOKIE|WEBHOOK(?:_URL)?|DSN"
    r"|KEY_BASE|CONN(?:ECTION)?_STR(?:ING)?)|TF_TOKEN_\w+)"
    r"(?:_(?:\d+|OLD|NEW|PREVIOUS|NEXT|DEV|DEVELOPMENT|TEST|STAGING|PROD|PRODUCTION|VALUE|RAW|B(?:ASE)?64))*",
    re.IGNORECASE | re.DOTALL,
)
"""Names of the environment that tell; in texts most of these words are ordinary."""

_KEY: Final = re.compile(r"(?:.*_)?KEY(?:_\d+)?", re.IGNORECASE | re.DOTALL)
"""Names of keys of any kind: their values are secrets if they look chosen by chance."""

_LEAST_RANDOM: Final = 16

_ABOUT: Final = re.compile(
    r"PWD|(?:.*_)?(?:FILES?|PATH|DIR|NAMES?|ARN|BACKEND|PROVIDER|MANAGER|STORE|HOST|PORT|REGION|VERSION|TYPE|LENGTH|MIN|MAX"
    r"|DAYS|TTL|EXPIR\w*|ENABLED|REQUIRED|POLICY|ALGORITHM|PREFIX|HEADER|FIELD|HINT|COMMAND|MODE|ENGINE|ENDPOINT"
    r"|TIMEOUT|LABEL|(?<!WEBHOOK_)UR[LI]|(?:PUBLIC|CACHE|SORT|PRIMARY|FOREIGN|PARTITION)_KEY)",
    re.IGNORECASE | re.DOTALL,
)
"""Names of what is said about a secret, or of no secret."""

_LEAST_LETTERS: Final = 12
"""Characters of a value of letters that is searched for: few words of a text are as long, and `postgres` is not."""

_LETTERS: Final = re.compile(r"[^\W\d]+(?:[-_. ][^\W\d]+)*")
_USER: Final = re.compile(r"://([^\s/:@?#]{16,500})@")
"""A user in an address that is as long as a key: some take it there, without a password."""

_LEAST_CUT: Final = 5
"""Characters of a secret's beginning that are searched for before the sign that a text was cut."""

_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")


class Secrets:
    """Finds secrets; `known` are values that are secret anywhere, also where a text was cut within one.

    `found` is what was found by its form or its name so far.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        # The longest first: one may be a part of another.
        self.known = _longest_first(value for value in known if len(value) >= _LEAST_KNOWN)
        self._written = _longest_first(written for value in self.known for written in _ways_to_write(value))
        self.found: set[str] = set()

    def may_hold(self, text: str) -> bool:
        """Whether `text`, which may be a whole file, is worth looking at closely; False is certain."""
        if any(value in text for value in self._written) or has_secret(_plain(text)):
            return True
        return "…" in text and any(value[:_LEAST_CUT] in text for value in self._written)

    def without(self, text: str) -> tuple[str, int]:
        """Return `text` without its secrets, and how many there were.

        >>> Secrets().without("GET https://ann:hunter2@example.org/?q=1")
        ('GET https://ann:[redacted]@example.org/?q=1', 1)
        """
        count = 0
        for value in self._written:
            for shown in (value, *_cut(value, text)):
                if shown in text:
                    count += text.count(shown)
                    text = text.replace(shown, REDACTED)
        folded, places = _fold(text)
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
    """Return what must not be shown anywhere: the values under telling names, and what is secret within others.

    Of the environment not what may be an ordinary word, which would blot out other texts, nor the path of a file.
    """
    given = {name: str(value) for name, value in options.items() if isinstance(value, (str, int))}
    within = (one for value in environment.values() for one in _within(value) if _stands_out(one))
    return [
        *(value for name, value in given.items() if names_a_secret(name)),
        *(one for value in given.values() for one in _within(value)),
        *(value for name, value in environment.items() if _is_secret_variable(name, value)),
        *within,
    ]


def _within(value: str) -> Sequence[str]:
    """Return what is secret in a value by its form, such as the password in an address."""
    return [*(value[start:end] for start, end in spans(value)), *_USER.findall(value)]


def _is_secret_variable(name: str, value: str) -> bool:
    """Whether a variable of the environment has a secret.

    >>> names = ("PGPASSWORD", "NPM_AUTH", "DB_PASSWORD_FILE", "SSH_ASKPASS", "APP_KEY")
    >>> [_is_secret_variable(name, "tulip99more") for name in names]
    [True, True, False, False, False]
    """
    plain = re.sub(r"\W", "_", _CAMEL.sub("_", name))
    if _ABOUT.fullmatch(plain) or not _stands_out(value):
        return False
    if names_a_secret(name) or _VARIABLE.fullmatch(plain):
        return True
    return _KEY.fullmatch(plain) is not None and len(value) >= _LEAST_RANDOM and any(map(str.isdigit, value))


def _stands_out(value: str) -> bool:
    """Whether a value differs from ordinary words, which texts have by chance, and from paths of this machine.

    >>> [_stands_out(value) for value in ("postgres", "my-project", "postgres16", "tulip!and", "tulips-and-roses")]
    [False, False, True, True, True]
    """
    if len(value) < _LEAST_KNOWN or (os.path.isabs(value) and os.path.exists(value)):  # noqa: PTH110, PTH117  (a value may be no path at all)
        return False
    return len(value) >= _LEAST_LETTERS or _LETTERS.fullmatch(value) is None


def _longest_first(values: Iterable[str]) -> Sequence[str]:
    return sorted(set(values), key=lambda one: (-len(one), one))


def _ways_to_write(value: str) -> Iterator[str]:
    """Yield `value` as it is, and as it stands in URLs, JSON, Python, base64 and hex."""
    content = value.encode("utf-8", "surrogatepass")
    yield value
    for quoted in (quote(content, safe=""), quote(content), quote_plus(content)):
        yield from (quoted, re.sub(r"%..", lambda found: found[0].lower(), quoted))
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield from (once, json.dumps(once)[1:-1], json.dumps(once, ensure_ascii=False)[1:-1])
    yield repr(value)[1:-1]
    yield from (content.hex(), content.hex().upper())
    for before in range(3):
        # Within a longer text its signs depend on how many bytes are before it: those that it shares are left out.
        whole = base64.b64encode(bytes(before) + content).decode()
        shared = (before * 8 + 5) // 6, len(whole.rstrip("=")) - bool((before + len(content)) % 3)
        for shown in (whole, whole[shared[0] : shared[1]]) if before == 0 else (whole[shared[0] : shared[1]],):
            yield from (shown, shown.replace("+", "-").replace("/", "_"))


def _cut(value: str, text: str) -> Iterator[str]:
    """Yield the beginnings of `value` at which `text` was cut, with the sign for that."""
    if "…" in text and value[:_LEAST_CUT] in text:
        cuts = (f"{value[:length]}…" for length in range(len(value) - 1, _LEAST_CUT - 1, -1))
        yield from (cut for cut in cuts if cut in text)


def _is_secret_number(value: int, name: str) -> bool:
    # A token may be counted, a password not.
    return (names_a_secret(name) and not name.lower().endswith("token")) or is_card(str(value))


def _fold(text: str) -> tuple[str, Sequence[int]]:
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
