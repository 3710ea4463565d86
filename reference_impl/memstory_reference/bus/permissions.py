"""What each part may say and hear on a NATS server, and the server's configuration that says so; pure.

The owner of a message is in its envelope, so anyone who may publish a request may act for every owner. Hence each part
has a user that may publish and subscribe to what it needs; all others are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memstory_reference.bus.subjects import (
    QUERY_RECEIVED,
    RESPONSE_GENERATION,
    STREAM,
    TOOL_REQUEST,
    TOOL_RESULT,
    TOOL_SCHEMA,
    TOOL_SCHEMA_WANTED,
    WRITER,
    inbox_of,
)

_STREAM = [
    *(f"$JS.API.STREAM.{act}.{STREAM}" for act in ("CREATE", "INFO")),
    *(f"$JS.API.CONSUMER.{act}.{STREAM}.{WRITER}" for act in ("INFO", "DELETE")),
    f"$JS.API.CONSUMER.CREATE.{STREAM}.{WRITER}.>",
    f"$JS.ACK.{STREAM}.{WRITER}.>",
]
"""What the part needs that takes from the stream; who puts into it needs no more than the subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """The subjects that a user of the server may publish on and subscribe to."""

    publish: Sequence[str]
    subscribe: Sequence[str]


def _serves(part: str, publish: Sequence[str] = (), subscribe: Sequence[str] = ()) -> Permissions:
    """Return what a part needs that answers calls, and first asks whether another process does."""
    return Permissions(
        publish=[f"{part}.result.>", f"{part}.request.alive", *publish],
        subscribe=[f"{part}.request.>", f"{part}.result.alive", *subscribe],
    )


def _calls(*parts: str) -> Permissions:
    return Permissions(
        publish=[f"{part}.request.>" for part in parts], subscribe=[f"{part}.result.>" for part in parts]
    )


PARTS: Mapping[str, Permissions] = {
    WRITER: _serves(WRITER, publish=_STREAM),
    "tools": Permissions(
        publish=[TOOL_SCHEMA, f"{TOOL_RESULT}.>", "memory.request.>"],
        subscribe=[TOOL_SCHEMA_WANTED, f"{TOOL_REQUEST}.>", "memory.result.>"],
    ),
    "agent": _serves(
        "agent",
        publish=[TOOL_SCHEMA_WANTED, f"{TOOL_REQUEST}.>", RESPONSE_GENERATION],
        subscribe=[TOOL_SCHEMA, f"{TOOL_RESULT}.>", QUERY_RECEIVED],
    ),
    "layers": _serves("layers"),
    "chat": _calls("agent", "memory", "layers"),
}


def server_configuration(new_password: Callable[[str], str], host: str = "127.0.0.1", port: int = 4222) -> str:
    """Return the configuration of a NATS server with a user for each part; `new_password` gives a part's password."""
    passwords = {part: new_password(part) for part in PARTS}
    urls = [f"#   {part}: nats://{part}:{password}@{host}:{port}" for part, password in passwords.items()]
    users = [_user(part, passwords[part], allowed) for part, allowed in PARTS.items()]
    return "\n".join(
        [
            "# Keep this file to yourself: it holds the passwords. Start the server by: nats-server -c FILE",
            "# Each part is given its own address, best as MEMSTORY_NATS, for what is typed can be seen by others:",
            *urls,
            f'listen: "{host}:{port}"',
            "# Where turns wait until the memory has written them; written to the disk before they are acknowledged.",
            'jetstream: {store_dir: "nats-data", sync_interval: always}',
            "authorization: {",
            "  users: [",
            *users,
            "  ]",
            "}",
            "",
        ]
    )


def _user(part: str, password: str, allowed: Permissions) -> str:
    # What a client says to itself, and what the server says to it alone.
    inbox = f"{inbox_of(part)}.>"
    publish, subscribe = (json.dumps([*subjects, inbox]) for subjects in (allowed.publish, allowed.subscribe))
    return (
        f"    {{user: {json.dumps(part)}, password: {json.dumps(password)}, "
        f"permissions: {{publish: {{allow: {publish}}}, subscribe: {{allow: {subscribe}}}}}}}"
    )
