"""Between the harness's values and the turns memory's: items, hits, receipts, conditions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from memstory.contract.errors import StoryError
from memstory.contract.target import Hit, Item, Query, ReceiptItem, Scope, Tree
from memstory_reference.errors import InputError
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.ranking.pool import evidence
from memstory_reference.systems.turns.service import FoundTurn, StoredTurn
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


def found_hit(found: FoundTurn) -> Hit:
    """Return a turn that a search found, with every term of its score."""
    turn = found.turn
    return Hit(
        id=turn.id,
        text=turn.text,
        score=found.ranked.score,
        kind=turn.kind,
        key=turn.key,
        created_at=turn.noted_at.isoformat(),
        metadata=turn.fields,
        explain=found.explain(),
    )


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
