"""What is remembered as rows of a table, of JSON, of JSONL."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tabulate import tabulate

from memstory.contract.target import Hit
from memstory.contract.values import Tree
from memstory_reference.commands.terminal import cell, json_text, printable

SHORT_ID_CHARACTERS = 8
_RANDOM = re.compile("[0-9a-f]{32}")
"""A key that nobody chose: of observations the id is the key, too."""

Row = dict[str, Tree]


def row_of(owner: str | None, hit: Hit, *, archived: bool = False) -> Row:
    """Return a memory as JSON: owner, kind, id, topic (its key), text, created_at, metadata, perhaps score."""
    row: Row = {
        "owner": owner,
        "kind": hit.kind,
        "id": hit.id,
        "topic": hit.key,
        "text": hit.text,
        "created_at": hit.created_at,
        "metadata": dict(hit.metadata),
    }
    scored = row if hit.score is None else {**row, "score": round(hit.score, 6)}
    return {**scored, "archived": True} if archived else scored


def is_named(row: Row) -> bool:
    """Say whether somebody chose the key of a row."""
    return bool(row["topic"]) and not _RANDOM.fullmatch(row["topic"])


def row_name(row: Row) -> str:
    """Return what a row is called in a command: its topic, or the beginning of its id."""
    return str(row["topic"] if is_named(row) else row["id"][:SHORT_ID_CHARACTERS])


def row_table(rows: Sequence[Row]) -> str:
    """Return rows as a table, one line each; the owner and the score only where rows differ in them."""
    has_owners = len({row["owner"] for row in rows}) > 1
    has_scores = any("score" in row for row in rows)

    def text(row: Row) -> str:
        by = row["metadata"].get("speaker")
        said = f"{by}: {row['text']}" if by else row["text"]
        return cell(f"(archived) {said}" if row.get("archived") else said)

    lines = [
        {
            **({"owner": cell(row["owner"], 20)} if has_owners else {}),
            **({"score": f"{row['score']:.2f}"} if has_scores else {}),
            "name": cell(row_name(row), 40),
            "when": (row["created_at"] or "")[:10],
            "text": text(row),
        }
        for row in rows
    ]
    return tabulate(lines, headers="keys", tablefmt="simple", disable_numparse=True)


def row_page(row: Row) -> str:
    """Return a row in full, its text last."""
    shown = {key: row[key] for key in ("owner", "kind", "id", "topic", "created_at")} | row["metadata"]
    lines = [f"{key}: {printable(str(value))}" for key, value in shown.items() if value is not None]
    return "\n".join([*lines, "", printable(row["text"])])


def rows_as_jsonl(rows: Sequence[Tree]) -> str:
    """Return rows as JSON, one line each."""
    return "".join(f"{json_text(row)}\n" for row in rows)
