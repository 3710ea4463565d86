"""From a decided candidate to rows: compared with what is stored, reconciled, capped, and written as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memstory.contract.models import ChatModel
from memstory_reference.systems.layers.operations.dedup import note_key
from memstory_reference.systems.layers.operations.reconciliation import (
    Action,
    ReconciliationDecision,
    collisions,
    duplicate_of,
    reconcile,
)
from memstory_reference.systems.layers.recall.embeddings import Embeddings, Vector
from memstory_reference.systems.layers.records.record import (
    Content,
    Fact,
    Layer,
    MemoryRecord,
    Rule,
    Standing,
    is_note,
    layer_of,
    text_of,
)
from memstory_reference.systems.layers.settings import LayersConfig
from memstory_reference.systems.layers.stores.store import MemoryStore
from memstory_reference.systems.layers.structured import NoDecisionError
from memstory_reference.text.token_sets import token_set

POOL = 50
"""Stored facts that a new one is compared with: those that share most of its triple's tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A fact or rule that is to be written; `count` says how often it was said."""

    id: str
    content: Fact | Rule
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """What happened to it: `stored`, `bumped` or `superseded` (it is stored, and another made way)."""

    id: str
    outcome: str
    record: MemoryRecord
    by: str = "local"
    replaced: str | None = None


@dataclass(slots=True, kw_only=True)
class WritePlan:
    """Rows that one transaction will write; later records see what earlier ones have changed."""

    owner: str
    session: str | None
    now: datetime
    rows: dict[str, MemoryRecord] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    notes: dict[tuple[str, ...], str] = field(default_factory=dict)

    def change(self, record: MemoryRecord) -> None:
        """Plan a row that is stored already, or was planned before."""
        self.rows[record.id] = record

    def add(self, record: MemoryRecord) -> None:
        """Plan a new row, whose text is yet to be embedded."""
        self.rows[record.id] = record
        self.fresh.add(record.id)
        if is_note(record.content):
            self.notes[note_key(record.content)] = record.id

    def planned_note(self, content: Fact) -> list[MemoryRecord]:
        """Return the note of the same words that this plan writes, if there is one."""
        identifier = self.notes.get(note_key(content))
        return [self.rows[identifier]] if identifier else []

    def as_planned(self, stored: Sequence[MemoryRecord], layer: Layer) -> list[MemoryRecord]:
        """Return the active rows as they will be: the stored ones, changed, and the new ones of this layer."""
        known = {record.id: self.rows.get(record.id, record) for record in stored}
        known |= {one.id: one for one in self.rows.values() if one.layer is layer}
        return [record for record in known.values() if record.is_active]


class Writer:
    """Plans and writes; the caller holds the owner's lock from the first `plan` to the write."""

    def __init__(
        self, *, store: MemoryStore, embeddings: Embeddings, model: ChatModel | None, config: LayersConfig
    ) -> None:
        self._store = store
        self._embeddings = embeddings
        self._model = model
        self._config = config

    async def plan(self, plan: WritePlan, new: NewRecord, *, or_coexist: bool = False) -> WriteOutcome:
        """Add a record to a plan.

        Raises:
            NoDecisionError: it collides and the model failed; with `or_coexist` it is then stored beside the others.
        """
        layer = layer_of(new.content)
        stored = await self._comparable(plan.owner, new.content)
        if isinstance(new.content, Fact) and is_note(new.content):
            active = [plan.rows.get(one.id, one) for one in stored] + plan.planned_note(new.content)
        else:
            active = plan.as_planned(stored, layer)
        same = duplicate_of(new.content, active, self._config.duplicate)
        if same is not None:
            outcome = self._bump(plan, new, same, "local")
        else:
            decision = await self._decide(new.content, active, or_coexist=or_coexist)
            if decision.action is Action.BUMP and decision.target is not None:
                outcome = self._bump(plan, new, decision.target, decision.by)
            else:
                outcome = self._insert(plan, new, decision)
        if layer is Layer.PROCEDURAL:
            await self.cap(plan)
        return outcome

    async def same_as(self, record: MemoryRecord) -> MemoryRecord | None:
        """Return another active record that says the same as this one, if this one is active."""
        if not record.is_active or not isinstance(record.content, Fact | Rule):
            return None
        stored = await self._comparable(record.owner, record.content)
        others = [one for one in stored if one.id != record.id]
        return duplicate_of(record.content, others, self._config.duplicate)

    async def with_vectors(self, plan: WritePlan) -> list[MemoryRecord]:
        """Return the plan's rows, new texts embedded in one call."""
        fresh = [plan.rows[identifier] for identifier in plan.rows if identifier in plan.fresh]
        vectors = await self._embeddings.of_documents([text_of(row.content) for row in fresh])
        embedded: dict[str, Vector] = {row.id: vector for row, vector in zip(fresh, vectors, strict=True)}
        return [replace(row, vector=embedded.get(row.id)) for row in plan.rows.values()]

    async def _comparable(self, owner: str, content: Fact | Rule) -> list[MemoryRecord]:
        if isinstance(content, Rule):
            return await self._store.alist(owner, Layer.PROCEDURAL)
        words = "" if is_note(content) else f"{content.subject} {content.predicate.replace('_', ' ')}"
        tokens = token_set(f"{words} {content.object}")
        found = await self._store.asearch_tokens(owner, Layer.SEMANTIC, tokens, POOL)
        return [one for one in await self._store.aget(owner, [one.id for one in found]) if one.is_active]

    async def _decide(
        self, content: Fact | Rule, active: Sequence[MemoryRecord], *, or_coexist: bool
    ) -> ReconciliationDecision:
        stored = collisions(content, active, self._config.duplicate, for_model=self._model is not None)
        if not stored:
            return ReconciliationDecision(action=Action.COEXIST)
        try:
            return await reconcile(self._model, content, stored)
        except NoDecisionError:
            if not or_coexist:
                raise
            return ReconciliationDecision(action=Action.COEXIST, target=stored[0], by="fallback")

    def _bump(self, plan: WritePlan, new: NewRecord, old: MemoryRecord, by: str) -> WriteOutcome:
        bumped = replace(old, count=old.count + new.count, updated_at=max(plan.now, old.updated_at))
        plan.change(bumped)
        return WriteOutcome(id=old.id, outcome="bumped", record=bumped, by=by)

    def _insert(self, plan: WritePlan, new: NewRecord, decision: ReconciliationDecision) -> WriteOutcome:
        record = self._row(plan, new.id, new.content, new.count)
        plan.add(record)
        if decision.action is not Action.SUPERSEDE or decision.target is None:
            return WriteOutcome(id=record.id, outcome="stored", record=record, by=decision.by)
        plan.change(
            replace(decision.target, standing=Standing.SUPERSEDED, superseded_by=record.id, updated_at=plan.now)
        )
        return WriteOutcome(
            id=record.id, outcome="superseded", record=record, by=decision.by, replaced=decision.target.id
        )

    async def cap(self, plan: WritePlan) -> None:
        """Archive the rules that were confirmed longest ago until the cap holds (C-21)."""
        rules = plan.as_planned(await self._store.alist(plan.owner, Layer.PROCEDURAL), Layer.PROCEDURAL)
        # Of one moment, those planned later are newer.
        order = {identifier: place for place, identifier in enumerate(plan.rows)}
        rules.sort(key=lambda rule: (rule.updated_at, order.get(rule.id, -1), rule.id))
        for rule in rules[: max(0, len(rules) - self._config.rule_cap)]:
            plan.change(replace(rule, standing=Standing.ARCHIVED, updated_at=plan.now))

    def _row(self, plan: WritePlan, identifier: str, content: Content, count: int) -> MemoryRecord:
        return MemoryRecord(
            id=identifier,
            owner=plan.owner,
            content=content,
            created_at=plan.now,
            updated_at=plan.now,
            session=plan.session,
            count=count,
        )
