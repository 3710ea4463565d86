"""Where a memory is in Postgres: a database, and the schema in it that one memory has for itself."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from memstory_reference.errors import InputError

DEFAULT_SCHEMA = "memstory"
BESIDE = ("audit", "feedback", "vectors")
"""What has its own schemas next to the memory's."""

_SCHEMES = ("postgresql", "postgres")
# Postgres cuts names at 63 bytes, and the longest of the schemas beside it adds nine.
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,53}")
_FORM = "postgresql://USER:PASSWORD@HOST/DATABASE, with ?schema=NAME for another schema than 'memstory'"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresPlace:
    """The URL for libpq, which may hold a password and is therefore never shown, and the schema.

    `name` is what reports call it.
    """

    url: str = field(repr=False)
    schema: str = DEFAULT_SCHEMA
    name: str = "postgres"

    def sibling(self, name: str) -> PostgresPlace:
        """Return the place of what is kept apart from the memory: one of `BESIDE`."""
        return replace(self, schema=f"{self.schema}_{name}")

    def lock_of(self, *names: str) -> int:
        """Return the number of the advisory lock of who is alone with an owner, or something else, of this memory."""
        return int.from_bytes(
            blake2b(json.dumps((self.schema, *names)).encode(), digest_size=16).digest()[:8], signed=True
        )


def parse_place(setting: str) -> PostgresPlace:
    """Return the place that a setting names; its parameter `schema` is ours, all others are libpq's.

    >>> parse_place("postgresql://ann@db.example/work?schema=team&sslmode=require").schema
    'team'

    Raises:
        InputError: it is no such URL; the message does not repeat it, for it may hold a password.
    """
    try:
        parts = urlsplit(setting)
    except ValueError as error:
        raise InputError(f"the store's URL cannot be read; allowed: {_FORM}") from error
    if parts.scheme not in _SCHEMES or not setting.startswith(f"{parts.scheme}://"):
        raise InputError(f"the store's URL begins with {setting[:9]!r}; allowed: {_FORM}")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    schema = next((value for name, value in reversed(pairs) if name == "schema"), DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema):
        raise InputError(f"schema {schema!r:.80}: allowed are 1 to 54 of a-z, 0-9 and _, not beginning with a digit")
    # libpq reads a plus as it stands.
    query = urlencode([pair for pair in pairs if pair[0] != "schema"], quote_via=quote)
    return PostgresPlace(url=parts._replace(query=query).geturl(), schema=schema)
