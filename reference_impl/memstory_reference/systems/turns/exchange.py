"""Turns as JSON Lines, out of a memory and into one: texts and what is known of them, without vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from memstory.contract.values import Tree
from memstory_reference.errors import InputError
from memstory_reference.systems.turns.turn import NewTurn, Turn

_TEXTS = ("text", "kind", "key", "speaker", "session", "said_at")


def turns_as_jsonl(turns: Iterable[Turn]) -> str:
    """Return a line for each turn, in their order."""
    return "".join(f"{json.dumps(turn_row(turn), ensure_ascii=False)}\n" for turn in turns)


def read_jsonl(lines: str) -> list[NewTurn]:
    """Return the turns of a file; InputError names the line that is wrong. Blank lines are allowed.

    Ids and the moments of noting are the memory's own: they are left out.
    """
    # Not splitlines(): it knows line ends that are legal inside a JSON text.
    rows = enumerate(lines.split("\n"), start=1)
    return [_read(number, line) for number, line in rows if line.strip()]


def turn_row(turn: Turn) -> dict[str, object]:
    """Return a turn as JSON, without what it lacks."""
    known: Sequence[tuple[str, object]] = [(name, getattr(turn, name)) for name in ("id", *_TEXTS)]
    metadata = {"metadata": dict(turn.metadata)} if turn.metadata else {}
    return (
        {name: value for name, value in known if value is not None} | metadata | {"noted_at": turn.noted_at.isoformat()}
    )


def _read(number: int, line: str) -> NewTurn:
    try:
        return new_turn_of_row(json.loads(line))
    except InputError as error:
        raise InputError(f"line {number}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"line {number}: not JSON: {error}") from error


def new_turn_of_row(row: Mapping[str, Tree]) -> NewTurn:
    """Return the turn of a row; InputError says what is wrong with it."""
    if not isinstance(row, dict):
        raise InputError(f"found {type(row).__name__}; allowed: an object with at least 'text'")
    unknown = sorted(set(row) - {*_TEXTS, "metadata", "id", "noted_at"})
    if unknown or "text" not in row:
        problem = f"unknown field {unknown[0]!r:.80}" if unknown else "the field 'text' is missing"
        raise InputError(f"{problem}. Known: {', '.join(_TEXTS)}, metadata, id, noted_at")
    wrong = [name for name in _TEXTS if not isinstance(row.get(name, ""), str)]
    if wrong or not isinstance(row.get("metadata", {}), dict):
        raise InputError(f"{(wrong or ['metadata'])[0]} has the wrong type")
    return NewTurn(metadata=row.get("metadata", {}), **{name: row[name] for name in _TEXTS if name in row})
