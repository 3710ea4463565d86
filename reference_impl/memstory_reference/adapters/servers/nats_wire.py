"""An envelope as bytes, and addresses of servers without what is secret in them."""

from __future__ import annotations

import json
import re

from memstory.contract.values import Json
from memstory_reference.bus.deliveries import pack
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope

FORMAT = 1
_SCHEMES = ("nats://", "tls://", "ws://", "wss://")
_SECRET = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def to_bytes(envelope: Envelope) -> bytes:
    """Return all of `envelope` but its subject, which the server carries; InputError if it is not a JSON object.

    Nothing stands in headers: an owner may hold any letters.
    """
    head = json.dumps(
        {
            "format": FORMAT,
            "publisher": envelope.publisher,
            "owner": envelope.owner,
            "request_id": envelope.request_id,
        }
    )
    # Half a surrogate pair is JSON, if no text: it arrives as it was sent, as it does inside one process.
    return f'{head[:-1]}, "payload": {pack(envelope.payload)}}}'.encode("utf-8", "surrogatepass")


def from_bytes(subject: str, data: bytes) -> Envelope:
    """Return the envelope that arrived on `subject`; InputError if no bus of ours wrote it."""
    try:
        message: Json = json.loads(data.decode("utf-8", "surrogatepass"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"bus: {len(data)} bytes that are not JSON ({type(error).__name__})") from error
    if not isinstance(message, dict) or message.get("format") != FORMAT:
        raise InputError(f"bus: no envelope of format {FORMAT}")
    publisher, owner, request_id = (message.get(key) for key in ("publisher", "owner", "request_id"))
    payload = message.get("payload")
    if not isinstance(publisher, str) or not isinstance(owner, str) or not isinstance(payload, dict):
        raise InputError("bus: an envelope has 'publisher' and 'owner', both text, and 'payload', an object")
    if request_id is not None and not isinstance(request_id, str):
        raise InputError("bus: request_id is text or null")
    return Envelope(subject=subject, payload=payload, publisher=publisher, owner=owner, request_id=request_id)


def servers_of(address: str) -> list[str]:
    """Return the servers that an address names, split at commas; InputError if one is not an address of NATS.

    >>> servers_of("nats://127.0.0.1:4222, tls://ann:secret@bus.example:4222")
    ['nats://127.0.0.1:4222', 'tls://ann:secret@bus.example:4222']
    """
    servers = [one.strip() for one in address.split(",")]
    for server in servers:
        if not server.startswith(_SCHEMES) or not server.isprintable() or " " in server:
            shown = address_without_password(server)
            raise InputError(
                f"{shown!r:.80} is not an address of a bus; allowed: nats://HOST:PORT, with TLS "
                "tls://HOST:PORT, with credentials nats://USER:PASSWORD@HOST:PORT; several with commas between them"
            )
    return servers


def address_without_password(address: str) -> str:
    """Return an address as it may be shown.

    >>> address_without_password("nats://ann:secret@127.0.0.1:4222")
    'nats://…@127.0.0.1:4222'
    """
    return _SECRET.sub("…", address)
