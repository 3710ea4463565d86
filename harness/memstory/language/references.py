"""`save` takes a value out of a result, `${name}` puts it into a later step; `$${name}` is the text `${name}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from memstory.contract.errors import MissingValue, StoryError
from memstory.contract.target import Tree

_NAME: Final = r"\$\{([A-Za-z_][A-Za-z0-9_-]*)\}"
REFERENCE: Final = re.compile(rf"(?<!\$){_NAME}")
_EITHER: Final = re.compile(rf"\$?{_NAME}")


def fill_references(text: str, value_of: Callable[[str], object]) -> str:
    """Return `text` with each `${name}` replaced by `value_of(name)`, and each `$${name}` by `${name}`.

    >>> fill_references("${a} costs $${a}", {"a": 5}.get)
    '5 costs ${a}'
    """
    return _EITHER.sub(lambda found: found[0][1:] if found[0].startswith("$$") else str(value_of(found[1])), text)


def unmark(text: str) -> str:
    """Return `text` with `${name}` for each `$${name}`, for a place where names are not replaced.

    >>> unmark("$${a} and ${b}")
    '${a} and ${b}'
    """
    return fill_references(text, lambda name: f"${{{name}}}")


def substitute(value: Tree, names: Mapping[str, Tree]) -> Tree:
    """Return `value` with every `${name}` replaced; a text that is one reference becomes the value itself.

    `$${name}` becomes the text `${name}`. Raises StoryError for an unknown name, MissingValue for one without a value.

    >>> substitute({"id": "${near}", "text": "pass ${i}"}, {"near": 7, "i": 2})
    {'id': 7, 'text': 'pass 2'}
    """
    if isinstance(value, str):
        whole = REFERENCE.fullmatch(value)
        if whole:
            return _value_of(whole[1], names)
        return fill_references(value, lambda name: _value_of(name, names))
    if isinstance(value, Mapping):
        return {key: substitute(inner, names) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [substitute(inner, names) for inner in value]
    return value


def _value_of(name: str, names: Mapping[str, Tree]) -> Tree:
    if name not in names:
        raise StoryError(f"'${{{name}}}' is used, but no earlier step saved '{name}'")
    if names[name] is None:
        raise MissingValue(f"'${{{name}}}' is used, but the result that '{name}' should come from had no such value")
    return names[name]


def pick(result: Tree, path: str) -> Tree:
    """Return what is at the dotted `path` in a recorded result, or None if nothing is.

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
