"""Between the turns memory's values and others: items, hits and receipts of the harness, lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memstory.contract.errors import StoryError
from memstory.contract.target import Hit, Item, Query, ReceiptItem, Scope, Tree
from memstory_reference.errors import InputError
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.ranking.pool import evidence
from memstory_reference.systems.turns.ranking.scoring import RankedTurn
from memstory_reference.systems.turns.service import StoredTurn
from memstory_reference.systems.turns.turn import NewTurn, Turn, moment_of
from memstory_reference.text.secret_guard import left_out

SEARCH_OPTIONS = ("since", "until")


def new_turn(item: Item, scope: Scope) -> NewTurn:
    """Return what an item asks to remember; its metadata may say speaker, session and said_at."""
    known = {name: value for name, value in (("source", item.source), ("role", item.role)) if value is not None}
    metadata = {**item.metadata, **known}
    return NewTurn(text=item.text, kind=item.kind, key=item.key, session=scope.session, metadata=metadata)


def conditions_of(query: Query, scope: Scope) -> Conditions:
    """Return what a search asks for beside its words."""
    return Conditions(
        kinds=tuple(query.kinds),
        session=scope.session,
        since=moment_option(query.options, "since"),
        until=moment_option(query.options, "until"),
        where=query.where,
    )


def as_of(query: Query) -> datetime | None:
    """Return the moment as of which a search is made."""
    return None if query.as_of is None else moment_of(query.as_of)


def moment_option(options: Mapping[str, Tree], name: str) -> datetime | None:
    """Return a moment among the options of a search; StoryError if it is none."""
    try:
        return moment_of(options[name]) if options.get(name) is not None else None
    except InputError as error:
        raise StoryError(f"search: options: {name}: {error}") from error


def hit_of(turn: Turn) -> Hit:
    """Return a turn; one that was looked up or listed has no score."""
    return Hit(
        id=turn.id,
        text=turn.text,
        kind=turn.kind,
        key=turn.key,
        created_at=turn.noted_at.isoformat(),
        metadata=turn.fields,
    )


def found_hit(found: RankedTurn) -> Hit:
    """Return a turn that a search found, with every term of its score."""
    return replace(hit_of(found.turn), score=found.score, explain=found.explain())


def receipt_item(stored: StoredTurn) -> ReceiptItem:
    """Return what happened to one item."""
    turn = stored.turn
    if stored.refused is not None:
        return ReceiptItem(id=None, text=turn.text, outcome="dropped", reason=stored.refused, kind=turn.kind)
    outcome = "stored" if stored.is_new else "updated"
    return ReceiptItem(
        id=turn.id, text=turn.text, outcome=outcome, reason=left_out(turn.text), kind=turn.kind, key=turn.key
    )


def formula(args: Mapping[str, Tree]) -> Tree:
    """Compute the evidence of `evidence: [[cosine, share of words found], …]`."""
    if set(args) != {"evidence"}:
        raise StoryError("inspect: formula takes `evidence`: a list of [cosine, share of words found]")
    return [round(evidence(cosine, found), 6) for cosine, found in args["evidence"]]


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
