"""JSON in the reply of a language model, whatever stands around it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from memstory.contract.values import Json

MAX_REPLY_CHARACTERS = 200_000


def json_objects(reply: str) -> Iterator[dict[str, Json]]:
    """Yield the JSON objects in a text, be they bare, fenced or amid prose.

    >>> list(json_objects('Here: {"action": "bump"} - done')), list(json_objects('[1, 2 {"a": NaN}'))
    ([{'action': 'bump'}], [])
    """
    decoder = json.JSONDecoder(parse_constant=_no_number)
    reply = reply[:MAX_REPLY_CHARACTERS]
    start = reply.find("{")
    while start != -1:
        try:
            value, end = decoder.raw_decode(reply, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield value
        start = reply.find("{", end)


def _no_number(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")
