"""Saved names: `save` takes a value out of a result, `${name}` puts it into a later step."""

from __future__ import annotations

from collections.abc import Mapping

from memstory.errors import MissingValue, StoryError
from memstory.language.references import REFERENCE, written
from memstory.target import Json


def substitute(value: Json, names: Mapping[str, Json]) -> Json:
    """Return `value` with every `${name}` replaced; a string that is one reference becomes the saved value itself.

    `$${name}` becomes the text `${name}`.

    >>> substitute({"id": "${near}", "text": "pass ${i}"}, {"near": 7, "i": 2})
    {'id': 7, 'text': 'pass 2'}
    """
    if isinstance(value, str):
        whole = REFERENCE.fullmatch(value)
        if whole:
            return _saved(whole[1], names)
        return written(value, lambda name: _saved(name, names))
    if isinstance(value, Mapping):
        return {key: substitute(inner, names) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [substitute(inner, names) for inner in value]
    return value


def _saved(name: str, names: Mapping[str, Json]) -> Json:
    if name not in names:
        raise StoryError(f"'${{{name}}}' is used, but no earlier step saved '{name}'")
    if names[name] is None:
        raise MissingValue(f"'${{{name}}}' is used, but the result that '{name}' should come from had no such value")
    return names[name]


def pick(result: Json, path: str) -> Json:
    """Return what the dotted `path` names in a step's result as recorded, or None where there is no such thing.

    >>> pick({"items": [{"id": "a"}]}, "items.0.id"), pick([], "0.id")
    ('a', None)
    """
    for part in path.split(".") if path else ():
        if isinstance(result, Mapping):
            result = result.get(part)
        elif isinstance(result, (list, tuple)) and part.isdigit() and int(part) < len(result):
            result = result[int(part)]
        else:
            return None
    return result
