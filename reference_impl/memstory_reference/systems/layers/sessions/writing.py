"""From what was said to what is written, after the reply (C-09).

Both lanes extract, the guards and the policy decide; what is certain is compared with what is stored, reconciled,
capped, and written as one batch. The rest waits for the end of the session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from memstory.contract.errors import UnavailableError
from memstory.contract.models import ChatModel
from memstory.contract.values import Json
from memstory_reference.systems.layers.identity import OwnerSession
from memstory_reference.systems.layers.log_entries import CrisisLevel
from memstory_reference.systems.layers.logs import Logs
from memstory_reference.systems.layers.operations.extraction import Lane, extract
from memstory_reference.systems.layers.operations.reconciliation import (
    Action,
    Compared,
    ReconciliationDecision,
    collisions,
    compare_all,
    duplicate_of,
    is_same,
    is_single_valued,
    note_key,
    reconcile,
    share_a_slot,
)
from memstory_reference.systems.layers.policy.guards import (
    CRISIS,
    MALFORMED,
    hold_reason,
    is_quoted,
    normal_content,
    refusal_reason,
)
from memstory_reference.systems.layers.policy.signals import CrisisNotice
from memstory_reference.systems.layers.policy.write import decide
from memstory_reference.systems.layers.ports import LayersPorts
from memstory_reference.systems.layers.recall.retrieval import Embeddings
from memstory_reference.systems.layers.records.candidates import (
    Candidate,
    Decision,
    SessionMemoryBuffer,
    SpokenTurn,
)
from memstory_reference.systems.layers.records.record import (
    Content,
    Fact,
    Layer,
    MemoryRecord,
    Rule,
    Standing,
    is_note,
    layer_of,
)
from memstory_reference.systems.layers.sessions.background import TurnDiagnostics, merge_dicts
from memstory_reference.systems.layers.stores.rows_store import LayersRows
from memstory_reference.systems.layers.structured import NoDecisionError
from memstory_reference.text.words import token_set

LOG = logging.getLogger(__name__)

POOL = 50
"""Stored facts that a new one is compared with: those that share most of its triple's tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """What happened to a content: `stored`, `bumped`, `superseded` (another made way) or `dropped`, and the reason."""

    outcome: str
    id: str | None = None
    reason: str | None = None


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


@dataclass(frozen=True, slots=True)
class Writer:
    """Plans and writes; the caller holds the owner's lock from the first `plan` to the write."""

    ports: LayersPorts
    embeddings: Embeddings

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
        compared = compare_all(content, active, self.ports.config.duplicate)
        same = duplicate_of(compared)
        if same is not None:
            decision = ReconciliationDecision(action=Action.BUMP, target=same)
        else:
            decision = await self._decide(content, compared, or_coexist=or_coexist)
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
        return duplicate_of(compare_all(record.content, others, self.ports.config.duplicate))

    async def with_vectors(self, plan: WritePlan) -> list[MemoryRecord]:
        """Return the plan's rows, new texts embedded in one call."""
        fresh = await self.embeddings.embedded([row for row in plan.rows.values() if row.id in plan.fresh])
        return [*({**plan.rows, **{row.id: row for row in fresh}}).values()]

    async def write(self, plan: WritePlan, buffer: SessionMemoryBuffer | None = None) -> None:
        """Write the plan's rows and the session they come from, all or none."""
        if plan.rows or buffer:
            await self.ports.store.aput_batch(await self.with_vectors(plan), buffer)

    async def _comparable(self, owner: str, content: Fact | Rule) -> list[MemoryRecord]:
        if isinstance(content, Rule):
            return await self.ports.store.alist(owner, Layer.PROCEDURAL)
        words = "" if is_note(content) else f"{content.subject} {content.predicate.replace('_', ' ')}"
        tokens = token_set(f"{words} {content.object}")

        def read(rows: LayersRows) -> list[MemoryRecord]:
            found = rows.by_tokens(owner, Layer.SEMANTIC, tokens, POOL)
            return [one for one in rows.get(owner, [one.id for one in found]) if one.is_active]

        return await self.ports.store.arun(read)

    async def _decide(self, content: Fact | Rule, compared: Compared, *, or_coexist: bool) -> ReconciliationDecision:
        stored = collisions(content, compared, for_model=self.ports.model is not None)
        if not stored:
            return ReconciliationDecision(action=Action.COEXIST)
        try:
            return await reconcile(self.ports.model, content, stored)
        except NoDecisionError:
            if not or_coexist:
                raise
            return ReconciliationDecision(action=Action.COEXIST, target=stored[0], by="fallback")

    async def cap(self, plan: WritePlan) -> None:
        """Archive the rules that were confirmed longest ago until the cap holds (C-21)."""
        rules = plan.as_planned(await self.ports.store.alist(plan.owner, Layer.PROCEDURAL), Layer.PROCEDURAL)
        # Of one moment, those planned later are newer.
        order = {identifier: place for place, identifier in enumerate(plan.rows)}
        rules.sort(key=lambda rule: (rule.updated_at, order.get(rule.id, -1), rule.id))
        for rule in rules[: max(0, len(rules) - self.ports.config.rule_cap)]:
            plan.change(replace(rule, standing=Standing.ARCHIVED, updated_at=plan.now))


def _bump(plan: WritePlan, old: MemoryRecord, count: int, by: str) -> WriteOutcome:
    plan.change(replace(old, count=old.count + count, updated_at=max(plan.now, old.updated_at)))
    return WriteOutcome(id=old.id, outcome="bumped", reason=f"by {by}")


def _insert(plan: WritePlan, new: MemoryRecord, decision: ReconciliationDecision) -> WriteOutcome:
    old = decision.target if decision.action is Action.SUPERSEDE else None
    if old is None:
        return WriteOutcome(id=new.id, outcome="stored", reason=f"by {decision.by}")
    plan.change(replace(old, standing=Standing.SUPERSEDED, superseded_by=new.id, updated_at=plan.now))
    return WriteOutcome(id=new.id, outcome="superseded", reason=f"by {decision.by}, replaces {old.id}")


AROUND = 4
"""Turns up to this one that the guards read together: an unsafe wish may be split over them."""

INVENTED = "guard: the quote is not what the user said"

Place = tuple[str, str, int]
"""A turn: its owner, its session and its number."""


class RulesLook(StrEnum):
    """When rules look at a turn in the place of the model: never, if it gives nothing usable, or if it is down, too."""

    NEVER = "never"
    UNUSABLE = "unusable"
    DOWN = "down"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneReport:
    """What a lane found; `failed` if it could not look, `is_down` if that is because the model is not there.

    `risk` is what a model hears of a danger to somebody.
    """

    lane: Lane
    decided: Sequence[Candidate] = ()
    failed: bool = False
    is_down: bool = False
    report: dict[str, Json]
    risk: CrisisNotice | None = None


@dataclass(frozen=True, slots=True)
class Lanes:
    """Extracts from the turns of all sessions."""

    ports: LayersPorts
    writer: Writer
    diagnostics: TurnDiagnostics
    logs: Logs
    waiting: dict[Place, None] = field(default_factory=dict)
    """The turns at which a model was asked in vain."""

    async def extract(self, owner: str, session: str, number: int, *, rules: RulesLook = RulesLook.NEVER) -> bool:
        """Look at one turn; one that is ended, unknown or looked at already is left alone. False if the model is down.

        A lane that could not ask its model leaves the turn to be looked at again: when the model answers, when the
        memory is opened, and when the session ends.
        """
        is_there = await self._try((owner, session, number), rules)
        if is_there and self.waiting:
            await self.look_again(tuple(self.waiting))
        return is_there

    async def look_again(self, places: Sequence[Place]) -> None:
        """Look at turns for which the model was not there; the rest go on waiting where it is still not."""
        self.waiting.update(dict.fromkeys(places))
        for place in places:
            if not await self._try(place, RulesLook.NEVER):
                return

    async def _try(self, place: Place, rules: RulesLook) -> bool:
        self.waiting.pop(place, None)
        try:
            is_there = await self._extract(*place, rules)
        except UnavailableError as error:
            LOG.warning("a turn was not extracted: %s", type(error).__name__)
            self.diagnostics.report(*place, {"store": {"error": str(error)}})
            return True
        if not is_there:
            self.waiting[place] = None
        return is_there

    async def _extract(self, owner: str, session: str, number: int, rules: RulesLook) -> bool:
        buffer = await self._load(owner, session, number)
        turn = next((one for one in buffer.turns if one.number == number), None) if buffer else None
        if buffer is None or turn is None or turn.extracted:
            return True
        around = [one.user for one in buffer.turns if number - AROUND < one.number <= number]
        lanes = [lane for lane in Lane if lane in buffer.missed.get(number, tuple(Lane))]
        reports = await asyncio.gather(*(self._lane(lane, turn, around, rules) for lane in lanes))
        for report in reports:
            self.diagnostics.report(owner, session, number, {str(report.lane): report.report})
        decided = [one for report in reports for one in report.decided]
        for risk in (report.risk for report in reports if report.risk is not None):
            await self.logs.notice_more(turn.user, OwnerSession(owner=owner, session=session), risk)
            if risk.level is CrisisLevel.ACUTE:
                # What the guards do not hear the model may: then nothing of the turn is remembered.
                decided = [replace(one, decision=Decision.DROP, reason=CRISIS) for one in decided]
        written = await self._apply(buffer, number, decided, [str(one.lane) for one in reports if one.failed])
        self.diagnostics.report(owner, session, number, {"writes": written} if written else {})
        return not any(report.is_down for report in reports)

    async def _load(self, owner: str, session: str, number: int) -> SessionMemoryBuffer | None:
        """Return a session with this turn and those around it: most often they are its last."""
        buffer = await self.ports.store.aload(owner, session, last=2 * AROUND)
        if buffer is None or buffer.turn_count - number < AROUND:
            return buffer
        return await self.ports.store.aload(owner, session)

    async def _lane(self, lane: Lane, turn: SpokenTurn, around: Sequence[str], rules: RulesLook) -> LaneReport:
        model, counts = self.ports.model, dict[str, Json]()
        try:
            found = await extract(model, lane, turn, around[:-1])
        except Exception as error:
            # One lane that breaks must not take the other with it.
            is_down = isinstance(error, NoDecisionError) and error.is_down
            if isinstance(error, NoDecisionError):
                counts = {"error": str(error)}
            else:
                LOG.exception("the %s lane failed", lane)
                counts = {"error": type(error).__name__}
            if rules is RulesLook.NEVER or (is_down and rules is not RulesLook.DOWN):
                return LaneReport(lane=lane, failed=True, is_down=is_down, report=counts)
            model, counts = None, {**counts, "by": "rules"}
            found = await extract(None, lane, turn, around[:-1])
        decided = [await self._decide(model, content, turn, around) for content in found.contents]
        counts |= {"candidates": len(decided)}
        for one in decided:
            counts = merge_dicts(counts, {str(one.decision): 1, "reasons": [one.reason]})
        return LaneReport(lane=lane, decided=decided, report=counts, risk=found.risk)

    async def _decide(
        self, model: ChatModel | None, content: Fact | Rule, turn: SpokenTurn, around: Sequence[str]
    ) -> Candidate:
        found = Candidate(id=self.ports.new_id(), content=content, turns=(turn.number,), decision=Decision.DROP)
        fit = normal_content(content)
        if fit is None:
            return replace(found, reason=MALFORMED)
        why_not = refusal_reason(fit, around) or (None if is_quoted(fit.evidence_quote, [turn.user]) else INVENTED)
        if why_not:
            return replace(found, content=fit, reason=why_not)
        verdict = await decide(model, fit, turn.user)
        return replace(found, content=fit, decision=verdict.decision, reason=verdict.why)

    async def _apply(
        self, seen: SessionMemoryBuffer, number: int, decided: Sequence[Candidate], missed: Sequence[str]
    ) -> dict[str, Json]:
        """Write what is committed, hold the rest, and mark the turn: all of it or nothing."""
        owner, session = seen.owner, seen.session
        plan = WritePlan(owner=owner, session=session, now=self.ports.clock.now())
        report: dict[str, Json] = {}
        async with self.ports.store.lock(f"memory/{owner}"), self.ports.store.lock(f"session/{owner}/{session}"):
            buffer = await self._load(owner, session, number)
            if buffer is None or buffer.arc_id != seen.arc_id:
                return await self._write_late(plan, seen, decided)
            if any(turn.number == number and turn.extracted for turn in buffer.turns):
                # Another process ended the session, or tried to, while this one was still asking its model.
                return {"extracted_elsewhere": True}
            held = list(buffer.held)
            for one in decided:
                if one.decision is Decision.DROP:
                    continue
                outcome = await self._take(plan, held, one)
                report = merge_dicts(report, {outcome: 1})
            buffer = buffer.with_held(held)
            # The latest turn may have been spoken meanwhile: only what was read here is marked.
            buffer = buffer.with_missed(number, missed) if missed else buffer.with_extracted(number)
            await self.writer.write(plan, buffer)
        return report

    async def _write_late(
        self, plan: WritePlan, seen: SessionMemoryBuffer, decided: Sequence[Candidate]
    ) -> dict[str, Json]:
        """Write what is committed after all though the session has ended; what waited for its end is judged by then."""
        report: dict[str, Json] = {"ended": True}
        for one in decided:
            if one.decision is Decision.COMMIT and not await self._is_outdated(seen, one.content):
                report = merge_dicts(report, {await self._take(plan, [], one): 1})
        await self.writer.write(plan)
        return report

    async def _is_outdated(self, seen: SessionMemoryBuffer, content: Fact | Rule) -> bool:
        """Say whether the end has extracted it too, or a newer value of a single-valued property is stored."""
        is_single = isinstance(content, Fact) and is_single_valued(content.predicate)
        stored = await self.ports.store.alist(seen.owner, layer_of(content), tuple(Standing))
        return any(
            is_same(content, row.content, self.ports.config.duplicate)
            or (is_single and share_a_slot(content, row.content) and row.updated_at >= seen.last_at)
            for row in stored
        )

    async def _take(self, plan: WritePlan, held: list[Candidate], one: Candidate) -> str:
        """Commit a candidate to the plan or to the held ones; return the word for it."""
        known = next((old for old in held if is_same(one.content, old.content, self.ports.config.duplicate)), one)
        candidate = known.add_turn(one.turns[0])
        if candidate.decision is Decision.UNDECIDED:
            candidate = replace(candidate, decision=one.decision, reason=one.reason)
        if self._is_due(candidate, one):
            try:
                outcome = await self.writer.plan(plan, candidate.id, candidate.content, len(candidate.turns))
            except NoDecisionError as error:
                # The model that should reconcile failed: held, and stored at the end (CF-14).
                candidate = replace(candidate, decision=Decision.COMMIT, reason=str(error))
            else:
                held[:] = [old for old in held if old.id != candidate.id]
                return outcome.outcome
        held[:] = [*(old for old in held if old.id != candidate.id), candidate]
        return "held"

    def _is_due(self, candidate: Candidate, one: Candidate) -> bool:
        if one.decision is Decision.COMMIT:
            return True
        is_free = Decision.REPEAT in (candidate.decision, one.decision) and hold_reason(candidate.content) is None
        return is_free and len(candidate.turns) >= self.ports.config.repetitions
