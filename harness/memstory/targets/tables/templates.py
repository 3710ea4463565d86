"""Arguments with placeholders -> arguments: `{text}`, `{top_k}`, `{kind|note}` in strings at any depth.

A string that is one placeholder and nothing else keeps the type of the value. A string that names something which has
no value in this call (a key that nobody chose, a search that left top_k open) is left out of the object or list it is
in, and so is an object or list of which nothing is left.
`{{` and `}}` stand for braces. An object whose only key is `each` becomes a list with one element for each item, and
the key `*` spreads an object into the one that it is in.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from memstory.contract.errors import SetupError
from memstory.contract.target import Tree

Values: TypeAlias = Mapping[str, Tree]
"""What placeholders stand for; None and an empty object count as no value."""

EACH: Final = "each"
SPREAD: Final = "*"
ITEMS: Final = "items"
"""The value that `each` goes through: a list of values, one for each item."""

_PIECE: Final = re.compile(
    r"(?P<brace>\{\{|\}\})|\{(?P<name>[A-Za-z_]\w*)(?:\|(?P<default>[^{}]*))?\}|(?P<wrong>[{}])|(?P<literal>[^{}]+)"
)
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """`{name}` or `{name|default}`."""

    name: str
    default: str | None = None

    def value(self, values: Values) -> Tree:
        """Return what it stands for; None if that is nothing."""
        found = values.get(self.name)
        return self.default if found is None or found == {} else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A string with placeholders, in pieces."""

    pieces: Sequence[str | Placeholder]


@dataclass(frozen=True, slots=True, kw_only=True)
class Each:
    """A list with one element for each item."""

    element: Template


Template: TypeAlias = "Tree | Text | Each | Mapping[str, Template] | Sequence[Template]"
"""A tree of JSON in which a string with placeholders is a `Text`."""


class _Nothing:
    """Says that a part has no value and is to be left out."""


_NOTHING: Final = _Nothing()


def parse_template(tree: Tree) -> Template:
    """Return `tree` with its placeholders found.

    Raises:
        ValueError: a lone brace; the message quotes the string.
    """
    if isinstance(tree, str):
        return _text(tree)
    if isinstance(tree, Mapping):
        if set(tree) == {EACH}:
            return Each(element=parse_template(tree[EACH]))
        return {name: parse_template(inner) for name, inner in tree.items()}
    if isinstance(tree, list):
        return [parse_template(inner) for inner in tree]
    return tree


def placeholders(template: Template) -> Iterator[str]:
    """Yield the names that `template` uses."""
    texts = (part for part in _parts(template) if isinstance(part, Text))
    yield from (piece.name for text in texts for piece in text.pieces if isinstance(piece, Placeholder))


def takes_items(template: Template) -> bool:
    """Return whether `template` has an `each`, so that one call takes many items."""
    return any(isinstance(part, Each) for part in _parts(template))


def _parts(template: Template) -> Iterator[Template]:
    """Yield a template and all that is in it."""
    yield template
    inner = template.values() if isinstance(template, Mapping) else template if isinstance(template, list) else ()
    for part in (template.element,) if isinstance(template, Each) else inner:
        yield from _parts(part)


def render(template: Template, values: Values, escape: Callable[[str], str] = str) -> Tree:
    """Return `template` with its placeholders filled in; None if all of it is left out.

    `escape` changes each value that is put into a longer string, as a path of a URL needs it.
    """
    filled = _render(template, values, escape)
    return None if isinstance(filled, _Nothing) else filled


def _render(template: Template, values: Values, escape: Callable[[str], str]) -> Tree | _Nothing:
    match template:
        case Text():
            return _fill(template, values, escape)
        case Each():
            elements = [_render(template.element, {**values, **item}, escape) for item in values.get(ITEMS) or ()]
            # A column stays as long as the others: what has no value is null in it.
            return [None if isinstance(element, _Nothing) else element for element in elements]
        case Mapping():
            return _object(template, values, escape)
        case list():
            found = [_render(inner, values, escape) for inner in template]
            kept = [inner for inner in found if not isinstance(inner, _Nothing)]
            return kept if kept or not template else _NOTHING
        case _:
            return template


def _object(template: Mapping[str, Template], values: Values, escape: Callable[[str], str]) -> Tree | _Nothing:
    made: dict[str, Tree] = {}
    for name, inner in template.items():
        filled = _render(inner, values, escape)
        if isinstance(filled, _Nothing):
            continue
        if name == SPREAD and isinstance(filled, Mapping):
            made.update(filled)
        else:
            made[name] = filled
    return made if made or not template else _NOTHING


def _fill(text: Text, values: Values, escape: Callable[[str], str]) -> Tree | _Nothing:
    found = [piece if isinstance(piece, str) else piece.value(values) for piece in text.pieces]
    if any(value is None for value in found):
        return _NOTHING
    if len(found) == 1 and isinstance(text.pieces[0], Placeholder):
        return found[0]
    return "".join(
        value if isinstance(piece, str) else escape(_as_text(value))
        for piece, value in zip(text.pieces, found, strict=True)
    )


def _as_text(value: Tree) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(string: str) -> str | Text:
    pieces: list[str | Placeholder] = []
    for piece in _PIECE.finditer(string):
        if piece["wrong"]:
            raise ValueError(
                f"a lone '{piece['wrong']}' in {string[:_SHOWN]!r}; write it twice to mean the brace itself"
            )
        if piece["name"]:
            pieces.append(Placeholder(name=piece["name"], default=piece["default"]))
        else:
            plain = piece["brace"][0] if piece["brace"] else piece["literal"]
            if pieces and isinstance(pieces[-1], str):
                plain = f"{pieces.pop()}{plain}"
            pieces.append(plain)
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(piece for piece in pieces if isinstance(piece, str))
    return Text(pieces=tuple(pieces))


_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")


class Variables:
    """Fills in variables, and takes their values out of messages; `where` begins its messages."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._values: dict[str, str] = {}

    def fill(self, key: str, written: str, *, is_secret: bool = False) -> str:
        """Return `written` with its variables filled in.

        Raises:
            SetupError: a variable that is not set or is empty, or whose value cannot be in a header.
        """
        return _VARIABLE.sub(lambda found: self._value(key, found[1], is_secret=is_secret), written)

    def headers(self, written: Mapping[str, str]) -> dict[str, str]:
        """Return headers with their variables filled in; the values of these are secret."""
        return {name: self.fill(f"headers.{name}", value, is_secret=True) for name, value in written.items()}

    def redact(self, text: str, shortest: int = 1) -> str:
        """Return `text` with every secret value of at least `shortest` characters replaced by its variable's name."""
        for value, name in sorted(self._values.items(), key=lambda pair: -len(pair[0])):
            if len(value) >= shortest:
                text = text.replace(value, f"${{{name}}}")
        return text

    def _value(self, key: str, name: str, *, is_secret: bool) -> str:
        value = os.environ.get(name, "")
        if not value:
            raise SetupError(f"{self._where} '{key}' takes the environment variable {name}, which is not set")
        if is_secret:
            if not (value.isascii() and value.isprintable()):
                raise SetupError(
                    f"{self._where} '{key}' takes the environment variable {name}, which has characters that a header "
                    "cannot have, such as a line break at its end"
                )
            self._values[value] = name
        return value
