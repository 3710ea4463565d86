"""What becomes of a turn after its reply: both lanes extract, the policy decides, what is certain is written (C-09)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from memstory.contract.clock import Clock
from memstory.contract.errors import UnavailableError
from memstory.contract.models import ChatModel
from memstory.contract.values import Json
from memstory_reference.ports import NewId
from memstory_reference.systems.layers.log_entries import CrisisLevel
from memstory_reference.systems.layers.operations.extraction import Lane, extract
from memstory_reference.systems.layers.operations.reconciliation import is_same, is_single_valued, share_a_slot
from memstory_reference.systems.layers.policy.crisis_signals import CrisisNotice
from memstory_reference.systems.layers.policy.guards import (
    CRISIS,
    MALFORMED,
    hold_reason,
    is_quoted,
    normal_content,
    refusal_reason,
)
from memstory_reference.systems.layers.policy.write import decide
from memstory_reference.systems.layers.records.candidates import (
    Candidate,
    Decision,
    SessionMemoryBuffer,
    SpokenTurn,
)
from memstory_reference.systems.layers.records.record import Fact, Rule, Standing, layer_of
from memstory_reference.systems.layers.sessions.background import TurnDiagnostics, merge_dicts
from memstory_reference.systems.layers.sessions.writing import WritePlan, Writer
from memstory_reference.systems.layers.settings import LayersConfig
from memstory_reference.systems.layers.stores.layers_store import LayersStore
from memstory_reference.systems.layers.structured import NoDecisionError

LOG = logging.getLogger(__name__)

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
class CandidateDecision:
    """A candidate with what the policy and the guards make of it."""

    content: Fact | Rule
    decision: Decision
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneReport:
    """What a lane found; `failed` if it could not look, `is_down` if that is because the model is not there.

    `risk` is what a model hears of a danger to somebody.
    """

    lane: Lane
    decided: Sequence[CandidateDecision] = ()
    failed: bool = False
    is_down: bool = False
    report: dict[str, Json]
    risk: CrisisNotice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Extracts from the turns of all sessions."""

    store: LayersStore
    writer: Writer
    model: ChatModel | None
    clock: Clock
    new_id: NewId
    config: LayersConfig
    diagnostics: TurnDiagnostics
    on_risk: Callable[[str, str, str, CrisisNotice], Awaitable[None]]
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
            await self.on_risk(owner, session, turn.user, risk)
            if risk.level is CrisisLevel.ACUTE:
                # What the guards do not hear the model may: then nothing of the turn is remembered.
                decided = [replace(one, decision=Decision.DROP, reason=CRISIS) for one in decided]
        written = await self._apply(buffer, number, decided, [str(one.lane) for one in reports if one.failed])
        self.diagnostics.report(owner, session, number, {"writes": written} if written else {})
        return not any(report.is_down for report in reports)

    async def _load(self, owner: str, session: str, number: int) -> SessionMemoryBuffer | None:
        """Return a session with this turn and those around it: most often they are its last."""
        buffer = await self.store.aload(owner, session, last=2 * AROUND)
        if buffer is None or buffer.turn_count - number < AROUND:
            return buffer
        return await self.store.aload(owner, session)

    async def _lane(self, lane: Lane, turn: SpokenTurn, around: Sequence[str], rules: RulesLook) -> LaneReport:
        model, counts = self.model, dict[str, Json]()
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
    ) -> CandidateDecision:
        fit = normal_content(content)
        if fit is None:
            return CandidateDecision(content=content, decision=Decision.DROP, reason=MALFORMED)
        why_not = refusal_reason(fit, around) or (None if is_quoted(fit.evidence_quote, [turn.user]) else INVENTED)
        if why_not:
            return CandidateDecision(content=fit, decision=Decision.DROP, reason=why_not)
        verdict = await decide(model, fit, turn.user)
        wait = hold_reason(fit) if verdict.decision is Decision.COMMIT else None
        if wait:
            return CandidateDecision(content=fit, decision=Decision.HOLD, reason=wait)
        return CandidateDecision(content=fit, decision=verdict.decision, reason=f"{verdict.by}: {verdict.decision}")

    async def _apply(
        self, seen: SessionMemoryBuffer, number: int, decided: Sequence[CandidateDecision], missed: Sequence[str]
    ) -> dict[str, Json]:
        """Write what is committed, hold the rest; memory first, then the buffer, each whole."""
        owner, session = seen.owner, seen.session
        plan = WritePlan(owner=owner, session=session, now=self.clock.now())
        report: dict[str, Json] = {}
        async with self.store.lock(f"memory/{owner}"), self.store.lock(f"session/{owner}/{session}"):
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
                outcome = await self._take(plan, held, one, number)
                report = merge_dicts(report, {outcome: 1})
            if plan.rows:
                await self.store.aput_batch(await self.writer.with_vectors(plan))
            buffer = buffer.with_held(held)
            # The latest turn may have been spoken meanwhile: only what was read here is marked.
            await self.store.asave(buffer.with_missed(number, missed) if missed else buffer.with_extracted(number))
        return report

    async def _write_late(
        self, plan: WritePlan, seen: SessionMemoryBuffer, decided: Sequence[CandidateDecision]
    ) -> dict[str, Json]:
        """Write what is committed after all though the session has ended; what waited for its end is judged by then."""
        report: dict[str, Json] = {"ended": True}
        for one in decided:
            if one.decision is Decision.COMMIT and not await self._is_outdated(seen, one.content):
                report = merge_dicts(report, {await self._take(plan, [], one, 0): 1})
        if plan.rows:
            await self.store.aput_batch(await self.writer.with_vectors(plan))
        return report

    async def _is_outdated(self, seen: SessionMemoryBuffer, content: Fact | Rule) -> bool:
        """Say whether the end has extracted it too, or a newer value of a single-valued property is stored."""
        is_single = isinstance(content, Fact) and is_single_valued(content.predicate)
        stored = await self.store.alist(seen.owner, layer_of(content), tuple(Standing))
        return any(
            is_same(content, row.content, self.config.duplicate)
            or (is_single and share_a_slot(content, row.content) and row.updated_at >= seen.last_at)
            for row in stored
        )

    async def _take(self, plan: WritePlan, held: list[Candidate], one: CandidateDecision, number: int) -> str:
        """Commit a candidate to the plan or to the held ones; return the word for it."""
        known = next((old for old in held if is_same(one.content, old.content, self.config.duplicate)), None)
        candidate = known or Candidate(
            id=self.new_id(), content=one.content, turns=(number,), decision=one.decision, reason=one.reason
        )
        candidate = candidate.add_turn(number)
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

    def _is_due(self, candidate: Candidate, one: CandidateDecision) -> bool:
        if one.decision is Decision.COMMIT:
            return True
        awaited = Decision.REPEAT in (candidate.decision, one.decision)
        return awaited and len(candidate.turns) >= self.config.repetitions and hold_reason(candidate.content) is None
