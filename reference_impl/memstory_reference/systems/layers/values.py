"""Items of a story -> contents of the layers, and records -> hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from memstory.contract.errors import StoryError
from memstory.contract.target import Hit, Item, ReceiptItem, Tree
from memstory_reference.errors import InputError
from memstory_reference.systems.layers.recall import RankedRecord, fuse, rrf_score
from memstory_reference.systems.layers.reconciliation import WriteOutcome, compare_texts
from memstory_reference.systems.layers.records import (
    LABELS,
    NOTE,
    TYPES,
    Arc,
    Content,
    Fact,
    Layer,
    MemoryRecord,
    Rule,
    SessionMemoryBuffer,
    content_data,
    content_of,
    entry_of,
    format_working_memory_entries,
    is_note,
    text_of,
)
from memstory_reference.systems.layers.settings import LayersSettings
from memstory_reference.text.secret_guard import left_out
from memstory_reference.text.words import token_recall, token_set

KINDS = tuple(str(layer) for layer in Layer)
_TRIPLE = ("category", "subject", "predicate", "object")


def layers_of(kinds: Sequence[str]) -> tuple[Layer, ...]:
    """Return the layers of these kinds, all of them for none."""
    unknown = set(kinds) - set(KINDS)
    if unknown:
        raise InputError(f"kind {min(unknown)!r} is unknown; allowed: {', '.join(KINDS)}")
    return tuple(Layer(kind) for kind in kinds) or tuple(Layer)


def content_of_item(item: Item) -> Content:
    """Return what an item is: a triple with its quote, a plain note, a session's summary or a rule."""
    (layer,) = layers_of([item.kind]) if item.kind else (Layer.SEMANTIC,)
    given: dict[str, Tree] = dict(item.metadata)
    content: Content
    if layer is Layer.EPISODIC:
        content = Arc(summary=item.text, topics=tuple(given.pop("topics", ())))
    elif layer is Layer.PROCEDURAL:
        quote = given.pop("evidence_quote", item.text)
        content = Rule(rule=item.text, explicit=bool(given.pop("explicit", True)), evidence_quote=quote)
    else:
        content = _fact(item.text, given)
    if given:
        raise InputError(f"metadata {next(iter(given))!r} is unknown for the kind {layer}")
    return content


def content_of_row(row: Mapping[str, Tree]) -> Content:
    """Return what an exported record says; its id and its count are new."""
    return content_of(Layer(row["type"]), row["content"])


def hit_of(record: MemoryRecord, ranked: RankedRecord | None = None) -> Hit:
    """Return a record as the harness sees it; its text is its line in a prompt, a note's is the note."""
    content = record.content
    return Hit(
        id=record.id,
        text=text_of(content) if is_note(content) else _line(record),
        score=ranked.score if ranked else None,
        kind=str(record.layer),
        created_at=record.created_at.isoformat(),
        metadata={
            **content_data(content),
            "count": record.count,
            "standing": str(record.standing),
            "superseded_by": record.superseded_by,
            "session": record.session,
        },
        explain=ranked.explain() if ranked else None,
    )


def receipt_item(item: Item, done: WriteOutcome) -> ReceiptItem:
    """Return what happened to an item."""
    kind = item.kind or str(Layer.SEMANTIC)
    reason = "; ".join(filter(None, (done.reason, left_out(item.text))))
    return ReceiptItem(id=done.id, text=item.text, outcome=done.outcome, reason=reason or None, kind=kind)


def buffer_view(buffer: SessionMemoryBuffer | None) -> dict[str, Tree]:
    """Return an active session for a story to look at."""
    if buffer is None:
        return {"active": False, "turns": 0, "held": []}
    return {
        "active": True,
        "turns": buffer.turn_count,
        "held": [
            {
                "layer": str(one.layer),
                "decision": str(one.decision),
                "heard": len(one.turns),
                **content_data(one.content),
            }
            for one in buffer.held
        ],
    }


def _fact(text: str, given: dict[str, Tree]) -> Fact:
    named = {name: given.pop(name) for name in _TRIPLE if name in given}
    if not named:
        return Fact(category="note", subject="User", predicate=NOTE, object=text, evidence_quote=text)
    missing = [name for name in _TRIPLE if name not in named]
    if missing or not all(isinstance(value, str) for value in named.values()):
        raise InputError(f"a fact has category, subject, predicate and object, all texts; missing: {missing}")
    return Fact(evidence_quote=text, **named)


def _line(record: MemoryRecord) -> str:
    return format_working_memory_entries([entry_of(record)])


def status_line(status: Mapping[str, Tree]) -> str:
    """Return what people read of a status: counts by their labels, what waits, mode and embedder."""
    counts, labels = status["counts"], status["labels"]
    remembered = ", ".join(f"{label} {counts[layer]}" for layer, label in labels.items())
    sync = f", sync {status['sync']}" if status["mode"] == "synced" else ""
    moved = "".join(f", {name} {status[name]}" for name in ("archived", "superseded") if status[name])
    damage = "".join(f"; {name} {status[name]}" for name in ("damaged", "unreadable") if status[name])
    waiting = f", waiting for the model {status['waiting']}" if status.get("waiting") else ""
    how = f"held {status['held']}{waiting}; mode {status['mode']}{sync}; embedder {status['embedder']}"
    return f"{remembered}{moved}; {how}{damage}"


def record_view(hit: Hit) -> dict[str, Tree]:
    """Return what a page shows of a record: its label, its words, its fields and those that a person may change."""
    layer = Layer(str(hit.kind))
    names = [one.name for one in fields(TYPES[layer]) if one.name in hit.metadata]
    content: dict[str, Tree] = {name: hit.metadata[name] for name in names}
    editable = {Layer.SEMANTIC: names, Layer.EPISODIC: ["summary"], Layer.PROCEDURAL: ["rule", "evidence_quote"]}[layer]
    shown = {"count": hit.metadata["count"], "superseded_by": hit.metadata["superseded_by"]}
    return {"label": LABELS[layer], "words": _words(layer, content), "content": content, "editable": editable, **shown}


def _words(layer: Layer, content: Mapping[str, Tree]) -> str:
    if layer is not Layer.SEMANTIC:
        return str(content["summary" if layer is Layer.EPISODIC else "rule"])
    if content["predicate"] == NOTE:
        return str(content["object"])
    return f"{content['subject']} {content['predicate'].replace('_', ' ').lower()} {content['object']}"


KNOWN = "rrf (rows of ranks), fuse (lists), recall ([query, document] pairs), tokens (texts), jaccard (pairs), lines"


def formula(args: Mapping[str, Tree], config: LayersSettings) -> Tree:
    """Return what one part makes of the rows that a story gives."""
    match dict(args):
        case {"rrf": rows}:
            return [rrf_score(row) for row in rows]
        case {"fuse": lists}:
            return fuse(lists)
        case {"recall": pairs}:
            return [token_recall(token_set(query), token_set(document)) for query, document in pairs]
        case {"tokens": texts}:
            return [sorted(token_set(text)) for text in texts]
        case {"jaccard": pairs}:
            found = [compare_texts(left, right, config.duplicate) for left, right in pairs]
            return {"index": [one.index for one in found], "likeness": [str(one.likeness) for one in found]}
        case {"lines": entries}:
            return format_working_memory_entries(entries)
        case _:
            raise StoryError(f"inspect: formula takes one of {KNOWN}")
