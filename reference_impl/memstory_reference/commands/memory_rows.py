"""What is remembered as rows of a table, of JSON, of JSONL."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from memstory.contract.values import Tree
from memstory_reference.commands.terminal_text import cell, json_text, printable
from memstory_reference.systems.topics.engrams import EngramEntry, FoundEngram, TopicEntry

SHORT_ID_CHARACTERS = 8

Row = dict[str, Tree]


def row_of(owner: str, entry: TopicEntry | EngramEntry | FoundEngram) -> Row:
    """Return an entry as JSON: owner, kind, id, topic, text, created_at, metadata, and the score if it was found."""
    if isinstance(entry, TopicEntry):
        metadata: Tree = {}
        topic, created_at = entry.topic, entry.timestamp_utc
    else:
        metadata = {key: value for key, value in entry.metadata.items() if key not in ("type", "timestamp_utc")}
        topic, created_at = None, str(entry.metadata.get("timestamp_utc", ""))
    row: Row = {
        "owner": owner,
        "kind": "episodic" if topic is None else "topic",
        "id": entry.id,
        "topic": topic,
        "text": entry.content,
        "created_at": created_at or None,
        "metadata": metadata,
    }
    return {**row, "score": round(entry.score, 6)} if isinstance(entry, FoundEngram) else row


def row_name(row: Row) -> str:
    """Return what a row is called in a command: its topic, or the beginning of its id."""
    return str(row["topic"] or row["id"][:SHORT_ID_CHARACTERS])


def row_table(rows: Sequence[Row]) -> str:
    """Return rows as a table, one line each; the owner and the score only where rows differ in them."""
    has_owners = len({row["owner"] for row in rows}) > 1
    has_scores = any("score" in row for row in rows)
    lines = [
        {
            **({"owner": cell(row["owner"], 20)} if has_owners else {}),
            **({"score": f"{row['score']:.2f}"} if has_scores else {}),
            "name": cell(row_name(row), 40),
            "when": (row["created_at"] or "")[:10],
            "text": cell(row["text"]),
        }
        for row in rows
    ]
    return tabulate(lines, headers="keys", tablefmt="simple", disable_numparse=True)


def row_page(row: Row) -> str:
    """Return a row in full, its text last."""
    shown = {key: row[key] for key in ("owner", "kind", "id", "topic", "created_at") if row[key] is not None}
    lines = [f"{key}: {printable(str(value))}" for key, value in {**shown, **row["metadata"]}.items()]
    return "\n".join([*lines, "", printable(row["text"])])


def rows_as_jsonl(rows: Sequence[Row]) -> str:
    """Return rows as JSON, one line each."""
    return "".join(f"{json_text(row)}\n" for row in rows)
