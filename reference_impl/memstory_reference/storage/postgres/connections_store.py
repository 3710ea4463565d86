"""A connection to Postgres: how it is made, and what it says.

A server that is gone is reported at once, by the refusal: to try again would make each turn wait for its time limit.
"""

from __future__ import annotations

import select
from typing import Any

from psycopg import BaseConnection, Error, ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from memstory.contract.errors import SetupError
from memstory_reference.storage.postgres.place import PostgresPlace

CONNECT_SECONDS = 5
UNANSWERED_MILLISECONDS = 20_000
"""How long the network may keep silent on what was sent."""

ANSWER_SECONDS = 10.0
"""How long one call may take before the server counts as one that does not answer; they take milliseconds."""


def has_input(connection: BaseConnection[Any]) -> bool:
    """Say whether the server has sent something that nobody has read."""
    watch = select.poll()
    watch.register(connection.fileno(), select.POLLIN)
    return bool(watch.poll(0))


def reason_of(error: Error) -> str:
    """Return the first line of what libpq or the server says; neither repeats the password."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def conninfo(place: PostgresPlace) -> str:
    """Return what libpq needs to connect; it may hold a password."""
    try:
        given: dict[str, str | int | None] = conninfo_to_dict(place.url)
    except ProgrammingError:
        # Its message may repeat the whole URL, with the password.
        raise SetupError("the store's URL has a part that libpq does not know; see its 'connection strings'") from None
    # jit pays for queries of seconds; ours take milliseconds, and would take longer with it.
    ours = f"-c search_path={place.schema},public -c timezone=UTC -c jit=off"
    defaults: dict[str, str | int | None] = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "memstory",
        "tcp_user_timeout": UNANSWERED_MILLISECONDS,
    }
    options = {"options": f"{given.get('options') or ''} {ours}"}
    return make_conninfo("", **{**defaults, **given, **options})
