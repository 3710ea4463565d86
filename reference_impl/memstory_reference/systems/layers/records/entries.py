"""What a turn remembers, as the prompt shows it: one line an entry, made when the prompt is built (C-04, C-05)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict

from memstory_reference.systems.layers.records.record import Arc, Fact, MemoryRecord, Rule
from memstory_reference.text.lines import one_line

WORKING_MEMORY = "working_memory"
"""The state's key for the entries of a turn."""


class SemanticWorkingMemoryEntry(TypedDict):
    """A fact, with its whole triple."""

    type: Literal["semantic"]
    evidence_quote: str
    category: str
    subject: str
    predicate: str
    object: str


class EpisodicWorkingMemoryEntry(TypedDict):
    """An earlier session."""

    type: Literal["episodic"]
    summary: str
    ended_at: str


class ProceduralWorkingMemoryEntry(TypedDict):
    """A rule of this user."""

    type: Literal["procedural"]
    rule: str
    evidence_quote: str


WorkingMemoryEntry: TypeAlias = SemanticWorkingMemoryEntry | EpisodicWorkingMemoryEntry | ProceduralWorkingMemoryEntry


def entry_of(record: MemoryRecord) -> WorkingMemoryEntry:
    """Return what a turn gets of a record."""
    content = record.content
    match content:
        case Fact():
            return SemanticWorkingMemoryEntry(
                type="semantic",
                evidence_quote=content.evidence_quote,
                category=content.category,
                subject=content.subject,
                predicate=content.predicate,
                object=content.object,
            )
        case Arc():
            return EpisodicWorkingMemoryEntry(
                type="episodic", summary=content.summary, ended_at=record.created_at.date().isoformat()
            )
        case Rule():
            return ProceduralWorkingMemoryEntry(
                type="procedural", rule=content.rule, evidence_quote=content.evidence_quote
            )


def format_working_memory_entries(entries: Sequence[WorkingMemoryEntry]) -> str:
    r"""Return one line an entry, in order; the empty text for none.

    >>> print(format_working_memory_entries([{"type": "semantic", "evidence_quote": 'the "boss" is late',
    ...     "category": "relationship", "subject": "User", "predicate": "WORRIES_ABOUT", "object": "work"}]))
    [relationship] User WORRIES_ABOUT work — "the \"boss\" is late"
    """
    return "\n".join(map(_line, entries))


def _line(entry: WorkingMemoryEntry) -> str:
    match entry["type"]:
        case "semantic":
            category = one_line(entry["category"]).replace("[", "(").replace("]", ")")
            triple = " ".join(_bare(part) for part in (entry["subject"], entry["predicate"], entry["object"]))
            return f"[{category}] {triple} — {_quote(entry['evidence_quote'])}"
        case "episodic":
            return f"[session {entry['ended_at']}] {_bare(entry['summary'])}"
        case "procedural":
            return f"[rule] {_bare(entry['rule'])} — {_quote(entry['evidence_quote'])}"


def _bare(text: str) -> str:
    # The dash and the quotes are the line's own marks: a text that holds them must not seem to end early (SEC-2).
    return one_line(text).replace(" — ", " - ").replace('"', "'")


def _quote(text: str) -> str:
    return '"' + one_line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
