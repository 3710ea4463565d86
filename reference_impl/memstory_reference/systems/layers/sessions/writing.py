"""From a decided candidate to rows: compared with what is stored, reconciled, capped, and written as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memstory.contract.models import ChatModel
from memstory_reference.systems.layers.operations.reconciliation import (
    Action,
    ReconciliationDecision,
    collisions,
    duplicate_of,
    note_key,
    reconcile,
)
from memstory_reference.systems.layers.recall.retrieval import Embeddings, Vector
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
from memstory_reference.systems.layers.stores.layers_store import LayersStore
from memstory_reference.systems.layers.structured import NoDecisionError
from memstory_reference.text.token_sets import token_set

POOL = 50
"""Stored facts that a new one is compared with: those that share most of its triple's tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """What happened to it: `stored`, `bumped` or `superseded` (it is stored, and another made way)."""

    id: str
    outcome: str
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

    def add(self, identifier: str, content: Content, count: int = 1) -> MemoryRecord:
        """Plan a new row, whose text is yet to be embedded, and return it."""
        record = MemoryRecord(
            id=identifier,
            owner=self.owner,
            content=content,
            created_at=self.now,
            updated_at=self.now,
            session=self.session,
            count=count,
        )
        self.rows[identifier] = record
        self.fresh.add(identifier)
        if is_note(content):
            self.notes[note_key(content)] = identifier
        return record

    def planned_note(self, content: Fact) -> list[MemoryRecord]:
        """Return the note of the same words that this plan writes, if there is one."""
        identifier = self.notes.get(note_key(content))
        return [self.rows[identifier]] if identifier else []

    def as_planned(self, stored: Sequence[MemoryRecord], layer: Layer) -> list[MemoryRecord]:
        """Return the active rows as they will be: the stored ones, changed, and the new ones of this layer."""
        known = {record.id: self.rows.get(record.id, record) for record in stored}
        known |= {one.id: one for one in self.rows.values() if one.layer is layer}
        return [record for record in known.values() if record.is_active]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Plans and writes; the caller holds the owner's lock from the first `plan` to the write."""

    store: LayersStore
    embeddings: Embeddings
    model: ChatModel | None
    config: LayersConfig

    async def plan(
        self, plan: WritePlan, identifier: str, content: Fact | Rule, count: int = 1, *, or_coexist: bool = False
    ) -> WriteOutcome:
        """Add a record to a plan; `count` says how often it was said.

        Raises:
            NoDecisionError: it collides and the model failed; with `or_coexist` it is then stored beside the others.
        """
        layer = layer_of(content)
        stored = await self._comparable(plan.owner, content)
        if isinstance(content, Fact) and is_note(content):
            active = [plan.rows.get(one.id, one) for one in stored] + plan.planned_note(content)
        else:
            active = plan.as_planned(stored, layer)
        same = duplicate_of(content, active, self.config.duplicate)
        if same is not None:
            decision = ReconciliationDecision(action=Action.BUMP, target=same)
        else:
            decision = await self._decide(content, active, or_coexist=or_coexist)
        if decision.action is Action.BUMP and decision.target is not None:
            outcome = _bump(plan, decision.target, count, decision.by)
        else:
            outcome = _insert(plan, plan.add(identifier, content, count), decision)
        if layer is Layer.PROCEDURAL:
            await self.cap(plan)
        return outcome

    async def same_as(self, record: MemoryRecord) -> MemoryRecord | None:
        """Return another active record that says the same as this one, if this one is active."""
        if not record.is_active or not isinstance(record.content, Fact | Rule):
            return None
        stored = await self._comparable(record.owner, record.content)
        others = [one for one in stored if one.id != record.id]
        return duplicate_of(record.content, others, self.config.duplicate)

    async def with_vectors(self, plan: WritePlan) -> list[MemoryRecord]:
        """Return the plan's rows, new texts embedded in one call."""
        fresh = [plan.rows[identifier] for identifier in plan.rows if identifier in plan.fresh]
        vectors = await self.embeddings.of_documents([text_of(row.content) for row in fresh])
        embedded: dict[str, Vector] = {row.id: vector for row, vector in zip(fresh, vectors, strict=True)}
        return [replace(row, vector=embedded.get(row.id)) for row in plan.rows.values()]

    async def _comparable(self, owner: str, content: Fact | Rule) -> list[MemoryRecord]:
        if isinstance(content, Rule):
            return await self.store.alist(owner, Layer.PROCEDURAL)
        words = "" if is_note(content) else f"{content.subject} {content.predicate.replace('_', ' ')}"
        tokens = token_set(f"{words} {content.object}")
        found = await self.store.asearch_tokens(owner, Layer.SEMANTIC, tokens, POOL)
        return [one for one in await self.store.aget(owner, [one.id for one in found]) if one.is_active]

    async def _decide(
        self, content: Fact | Rule, active: Sequence[MemoryRecord], *, or_coexist: bool
    ) -> ReconciliationDecision:
        stored = collisions(content, active, self.config.duplicate, for_model=self.model is not None)
        if not stored:
            return ReconciliationDecision(action=Action.COEXIST)
        try:
            return await reconcile(self.model, content, stored)
        except NoDecisionError:
            if not or_coexist:
                raise
            return ReconciliationDecision(action=Action.COEXIST, target=stored[0], by="fallback")

    async def cap(self, plan: WritePlan) -> None:
        """Archive the rules that were confirmed longest ago until the cap holds (C-21)."""
        rules = plan.as_planned(await self.store.alist(plan.owner, Layer.PROCEDURAL), Layer.PROCEDURAL)
        # Of one moment, those planned later are newer.
        order = {identifier: place for place, identifier in enumerate(plan.rows)}
        rules.sort(key=lambda rule: (rule.updated_at, order.get(rule.id, -1), rule.id))
        for rule in rules[: max(0, len(rules) - self.config.rule_cap)]:
            plan.change(replace(rule, standing=Standing.ARCHIVED, updated_at=plan.now))


def _bump(plan: WritePlan, old: MemoryRecord, count: int, by: str) -> WriteOutcome:
    plan.change(replace(old, count=old.count + count, updated_at=max(plan.now, old.updated_at)))
    return WriteOutcome(id=old.id, outcome="bumped", by=by)


def _insert(plan: WritePlan, new: MemoryRecord, decision: ReconciliationDecision) -> WriteOutcome:
    old = decision.target if decision.action is Action.SUPERSEDE else None
    if old is None:
        return WriteOutcome(id=new.id, outcome="stored", by=decision.by)
    plan.change(replace(old, standing=Standing.SUPERSEDED, superseded_by=new.id, updated_at=plan.now))
    return WriteOutcome(id=new.id, outcome="superseded", by=decision.by, replaced=old.id)
