"""Saved names: `save` takes a value out of a result, `${name}` puts it into a later step."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memstory.errors import StoryError, TargetError
from memstory.target import Json

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_-]*)\}")
_RESULT_FIELDS = frozenset({"answer", "data", "hits", "receipt", "result", "text", "tools"})


def substitute(value: Json, names: Mapping[str, Json]) -> Json:
    """Return `value` with every `${name}` replaced; a string that is one reference becomes the saved value itself.

    >>> substitute({"id": "${near}", "text": "pass ${i}"}, {"near": 7, "i": 2})
    {'id': 7, 'text': 'pass 2'}
    """
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole:
            return _saved(whole[1], names)
        return _REFERENCE.sub(lambda found: str(_saved(found[1], names)), value)
    if isinstance(value, Mapping):
        return {key: substitute(inner, names) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [substitute(inner, names) for inner in value]
    return value


def _saved(name: str, names: Mapping[str, Json]) -> Json:
    if name not in names:
        raise StoryError(f"'${{{name}}}' is used, but no earlier step saved '{name}'")
    if names[name] is None:
        raise TargetError(f"'${{{name}}}' is used, but the result that '{name}' should come from had no such value")
    return names[name]


def pick(result: Json, path: str) -> Json:
    """Return what the dotted `path` names in a step's result, or None where there is no such thing.

    The name of the result itself may lead (`hits.0.id`); without a number, a list or receipt stands for its first
    element, so that `id` is the id of what was added or found first.

    >>> pick({"items": [{"id": "a"}, {"id": "b"}]}, "id"), pick([{"id": "a"}, {"id": "b"}], "hits.1.id")
    ('a', 'b')
    """
    parts = path.split(".") if path else []
    if parts and parts[0] in _RESULT_FIELDS and not (isinstance(result, Mapping) and parts[0] in result):
        parts = parts[1:]
    for part in parts:
        result = _enter(result, part)
    return result


def _enter(value: Json, part: str) -> Json:
    if isinstance(value, Mapping):
        if part in value:
            return value[part]
        return _enter(value["items"], part) if "items" in value else None
    if isinstance(value, (list, tuple)):
        if part.isdigit():
            return value[int(part)] if int(part) < len(value) else None
        return _enter(value[0], part) if value else None
    return None
