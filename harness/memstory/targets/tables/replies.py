"""What a server answered -> rows with id, text, score …, by paths, by columns or by a pattern.

Paths are `memory.id`, `documents[0]`, `entities[*].name`; JSON in a string is read too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, Literal, TypeAlias

from memstory.contract.target import Tree

_STEP: Final = re.compile(
    r"\.?\"(?P<quoted>[^\"]*)\"|\[(?P<index>-?\d+)\]|\[(?P<every>\*)\]|\.?(?P<name>[^.\[\]\s\"][^.\[\]\"]*)"
)


class MissingPathError(Exception):
    """The reply has nothing at that place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Names, indexes, and None for `[*]`; without steps it is the reply itself."""

    written: str
    steps: Sequence[str | int | None]


def parse_path(written: str) -> Path:
    """Return the path that is written; `""` and `"."` are the reply itself.

    Raises:
        ValueError: it cannot be read as a path.
    """
    steps: list[str | int | None] = []
    place = 0
    rest = "" if written == "." else written
    while place < len(rest):
        step = _STEP.match(rest, place)
        if step is None or (place == 0 and rest.startswith(".")):
            raise ValueError(f"{written!r} is not a path, such as 'memory.id', 'documents[0]' or 'entities[*].name'")
        if step["index"] is not None:
            steps.append(int(step["index"]))
        elif step["every"]:
            steps.append(None)
        else:
            steps.append(step["quoted"] if step["quoted"] is not None else step["name"])
        place = step.end()
    return Path(written=written, steps=tuple(steps))


def find(path: Path, tree: Tree) -> Tree:
    """Return what `tree` has at `path`; for a path with `[*]` a list.

    Raises:
        MissingPathError: a name or an index that is not there, or something on the way that has no parts.
    """
    return _find(path.steps, tree)


def _find(steps: Sequence[str | int | None], tree: Tree) -> Tree:
    if not steps:
        return tree
    step, rest = steps[0], steps[1:]
    tree = _parse_nested(tree)
    if step is None:
        if not isinstance(tree, list):
            raise MissingPathError(f"[*] wants a list, there is {_kind(tree)}")
        found = [_find(rest, element) for element in tree]
        return [inner for one in found for inner in one] if None in rest else found
    if isinstance(step, int):
        if not isinstance(tree, list):
            raise MissingPathError(f"[{step}] wants a list, there is {_kind(tree)}")
        if not -len(tree) <= step < len(tree):
            raise MissingPathError(f"[{step}] is beyond the end of a list of {len(tree)}")
        return _find(rest, tree[step])
    if not isinstance(tree, dict):
        raise MissingPathError(f"'{step}' wants an object, there is {_kind(tree)}")
    if step not in tree:
        has = ", ".join(map(str, tree)) or "nothing"
        raise MissingPathError(f"there is no '{step}'; there is {has:.200}")
    return _find(rest, tree[step])


def _parse_nested(tree: Tree) -> Tree:
    with suppress(ValueError):
        return json.loads(tree) if isinstance(tree, str) else tree
    return tree


def _kind(tree: Tree) -> str:
    words = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return words.get(type(tree), "a number")


Shape: TypeAlias = Literal["rows", "columns", "pattern"]
ScoreKind: TypeAlias = Literal["similarity", "distance"]
Transform: TypeAlias = Literal["x", "-x", "1-x", "1/(1+x)"]

NEEDED: Final = ("id", "text", "score")
"""Fields that must be in every row where the table names them; any other may be missing."""

_SHOWN: Final = 300


class MalformedError(Exception):
    """A reply that is not what the table says; the message tells what is missing and shows the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReply:
    """What a server answered: its text, the same as JSON where the protocol has that, and the problem if it failed."""

    text: str
    data: Tree = None
    problem: str | None = None

    def __str__(self) -> str:
        return "\n".join(part for part in (self.problem, self.text) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """How to read rows out of a reply.

    `rows`: `at` is the list (or the one row), each field a path into a row. `columns`: each field is a path to a list.
    `pattern`: each match in the text is a row, each named group a field. `within` first cuts a part out of the text.
    """

    shape: Shape = "rows"
    at: Path | None = None
    fields: Mapping[str, Path] = field(default_factory=dict)
    pattern: re.Pattern[str] | None = None
    within: re.Pattern[str] | None = None
    transform: Transform = "x"
    hidden: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRow:
    """One row: what `fields` found in it, and all of it, for conditions."""

    fields: Mapping[str, Tree]
    whole: Tree


def read_rows(how: Rows, reply: ServerReply) -> Sequence[ReplyRow]:
    """Return the rows of `reply`, in its order.

    Raises:
        MalformedError: the reply has not the shape that `how` describes.
    """
    reply = _section(how, reply)
    try:
        match how.shape:
            case "pattern":
                rows = list(_matches(how, reply.text))
            case "columns":
                rows = list(_columns(how, data_of(reply)))
            case _:
                rows = list(_rows(how, data_of(reply)))
    except MissingPathError as error:
        raise MalformedError(f"{error}; the reply is: {excerpt(reply)}") from error
    return [_normalize(how, row, reply) for row in rows]


def data_of(reply: ServerReply) -> Tree:
    """Return the reply as JSON; what is only text is read as JSON."""
    if reply.data is not None:
        return reply.data
    try:
        return json.loads(reply.text)
    except ValueError as error:
        raise MalformedError(f"the reply is not JSON: {excerpt(reply)}") from error


def excerpt(reply: ServerReply) -> str:
    """Return the beginning of a reply, for messages."""
    return _shorten(str(reply)) or _json(reply.data)


def number_of(value: Tree, transform: Transform) -> float:
    """Return a score as higher for better.

    Raises:
        ValueError: it is not a finite number.
    """
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or not isfinite(number):
        raise ValueError(f"the score {value!r:.80} is not a finite number")
    match transform:
        case "x":
            return number
        case "-x":
            return -number
        case "1-x":
            return 1 - number
        case "1/(1+x)":
            if number <= -1:
                raise ValueError(f"the distance {number} is below 0, so 1/(1+x) says nothing of it")
            return 1 / (1 + number)


def _section(how: Rows, reply: ServerReply) -> ServerReply:
    if how.within is None:
        return reply
    found = how.within.search(reply.text)
    if found is None:
        raise MalformedError(f"'within' ({how.within.pattern!r}) is nowhere in the reply: {excerpt(reply)}")
    return ServerReply(text=found[1] if found.re.groups else found[0])


def _matches(how: Rows, text: str) -> Iterator[ReplyRow]:
    for found in (how.pattern or re.compile("(?!)")).finditer(text):
        yield ReplyRow(
            fields={name: value for name, value in found.groupdict().items() if value is not None},
            whole=found.groupdict(),
        )


def _columns(how: Rows, data: Tree) -> Iterator[ReplyRow]:
    columns = {}
    for name, path in how.fields.items():
        column = _optional(name, path, data)
        if column is not None and not isinstance(column, list):
            raise MalformedError(f"'{path.written}' is not a list: {column!r:.{_SHOWN}}")
        if column is not None:
            columns[name] = column
    lengths = {how.fields[name].written: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise MalformedError(f"the columns differ in length: {lengths}")
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        yield ReplyRow(fields=_present(row), whole=row)


def _rows(how: Rows, data: Tree) -> Iterator[ReplyRow]:
    found = find(how.at, data) if how.at else data
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError as error:
            raise MalformedError(f"there is a text where rows are expected: {found!r:.{_SHOWN}}") from error
    if found is None:
        return
    for number, row in enumerate(found if isinstance(found, list) else [found], 1):
        try:
            values = {name: _optional(name, path, row) for name, path in how.fields.items()}
        except MissingPathError as error:
            raise MalformedError(f"row {number}: {error}; the row is: {_json(row)}") from error
        yield ReplyRow(fields=_present(values), whole=row)


def _present(values: Mapping[str, Tree]) -> Mapping[str, Tree]:
    """Return what a row has; null is nothing, except where something must be."""
    return {name: value for name, value in values.items() if value is not None or name in NEEDED}


def _optional(name: str, path: Path, tree: Tree) -> Tree:
    if name in NEEDED:
        return find(path, tree)
    try:
        return find(path, tree)
    except MissingPathError:
        return None


_NEVER_NULL: Final = frozenset({"id", "text"})


def _normalize(how: Rows, row: ReplyRow, reply: ServerReply) -> ReplyRow:
    """Return the row with its score turned and its ids and texts as texts."""
    # Null stands for what a memory need not have; without its text, or an id that was asked for, it is none.
    fields = {name: one for name, one in row.fields.items() if one is not None or name in _NEVER_NULL}
    try:
        if "score" in fields:
            fields["score"] = number_of(fields["score"], how.transform)
        for name in ("id", "key", "kind", "created_at"):
            if name in fields:
                fields[name] = _identifier(name, fields[name])
    except ValueError as error:
        raise MalformedError(f"{error}; the row is: {_json(row.whole)}") from error
    if "text" in fields and not isinstance(fields["text"], str):
        raise MalformedError(f"the text is not a string: {_json(fields['text'])}; the reply is: {excerpt(reply)}")
    if isinstance(fields.get("metadata"), dict):
        fields["metadata"] = {name: value for name, value in fields["metadata"].items() if name not in how.hidden}
    elif "metadata" in fields:
        del fields["metadata"]
    return ReplyRow(fields=fields, whole=row.whole)


def _identifier(name: str, value: Tree) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"the {name} is neither a text nor a number: {_json(value)}")


def _json(value: Tree) -> str:
    return _shorten(json.dumps(value, ensure_ascii=False))


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
