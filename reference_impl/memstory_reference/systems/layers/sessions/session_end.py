"""The one way in which a session ends, whatever ended it, and what it leaves (C-12 to C-15, C-27, SEC-9).

Ending twice is as ending once.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum

from memstory.contract.values import Json
from memstory_reference.errors import InputError
from memstory_reference.input_checks import short_repr
from memstory_reference.systems.layers.operations.episodic import is_substantive, summarise
from memstory_reference.systems.layers.operations.extraction import Lane
from memstory_reference.systems.layers.policy.guards import refusal_reason, session_only_reason
from memstory_reference.systems.layers.policy.write import decide
from memstory_reference.systems.layers.ports import LayersPorts
from memstory_reference.systems.layers.records.candidates import (
    Candidate,
    Decision,
    SessionMemoryBuffer,
    SpokenTurn,
)
from memstory_reference.systems.layers.records.record import Arc, Fact
from memstory_reference.systems.layers.sessions.writing import Lanes, RulesLook, WritePlan, Writer
from memstory_reference.systems.layers.settings import LayersSettings
from memstory_reference.text.words import STOP_WORDS, token_set


class Path(StrEnum):
    """What speaks for a candidate that is held."""

    POLICY = "policy"
    REPETITION = "repetition"
    TRANSCRIPT = "transcript"
    SUMMARY = "summary"


def token_coverage(wanted: str, text: str) -> float:
    """Return the share of the telling tokens of `wanted` that `text` holds.

    >>> token_coverage("the night shift", "I work the night shift again")
    1.0
    """
    tokens = token_set(wanted)
    telling = tokens - STOP_WORDS or tokens
    return len(telling & token_set(text)) / len(telling) if telling else 0.0


def _why_not(candidate: Candidate, said: Sequence[str]) -> str | None:
    """Return why a held candidate must go; the guards look again, now with all that was said."""
    dropped = candidate.reason if candidate.decision is Decision.DROP else None
    return dropped or refusal_reason(candidate.content, said) or session_only_reason(candidate.content)


def _path(candidate: Candidate, turns: Sequence[SpokenTurn], arc: Arc | None, config: LayersSettings) -> Path | None:
    if candidate.decision is Decision.COMMIT:
        return Path.POLICY
    if len(candidate.turns) >= config.repetitions:
        return Path.REPETITION
    # A rule, and whatever must be repeated, has no other way.
    if not isinstance(candidate.content, Fact) or candidate.decision is Decision.REPEAT:
        return None
    wanted = candidate.content.object
    # The turn it comes from does not support it, and what the assistant said never is.
    others = [turn.user for turn in turns if turn.number not in candidate.turns]
    if any(token_coverage(wanted, text) >= config.support for text in others):
        return Path.TRANSCRIPT
    # A summary by rules repeats the user's words, so only a model's judgement of what mattered counts.
    if arc is not None and arc.by == "model" and token_coverage(wanted, arc.summary) >= config.support:
        return Path.SUMMARY
    return None


PATIENCE = timedelta(days=7)
"""How long a silent session waits for a model that is down, before rules look at its turns."""


class EndReason(StrEnum):
    """What may end a session."""

    EXPLICIT = "explicit"
    IDLE = "idle"
    SHUTDOWN = "shutdown"
    WEB = "web"
    VOICE = "voice"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReport:
    """What the end of a session wrote; `dropped` are reasons, without anybody's words.

    With turns `waiting` for a model that is down, the session has not ended: it is tried again.
    """

    reason: EndReason
    arc: str | None = None
    promoted: Sequence[str] = field(default=())
    dropped: Sequence[str] = field(default=())
    waiting: int = 0

    def data(self) -> dict[str, Json]:
        """Return what diagnostics tell of it."""
        return {
            "reason": str(self.reason),
            "arc": self.arc is not None,
            "promoted": list(self.promoted),
            "dropped": list(self.dropped),
            "waiting": self.waiting,
        }


@dataclass(frozen=True, slots=True)
class SessionEnds:
    """Ends sessions: late extraction, the arc, promotion, and one transaction for all that results."""

    ports: LayersPorts
    lanes: Lanes
    writer: Writer

    async def end(self, owner: str, session: str, reason: EndReason) -> EndReport | None:
        """End a session; None if it is not active, or has been spoken in since it was taken for idle.

        What a model gives nothing usable for, rules look at. While it is down, nothing ends.
        """
        tried = set[tuple[str, int]]()
        buffer = await self.ports.store.aload(owner, session)
        while buffer is not None and not self._goes_on(buffer, reason):
            # A crash, or a model that was down, may have left turns that nobody looked at.
            is_over = self.ports.clock.now() - buffer.last_at >= PATIENCE
            rules = RulesLook.DOWN if is_over else RulesLook.UNUSABLE
            is_there = True
            for number in unextracted_turns(buffer, tried):
                # Each answer of a model that is down may take its whole time limit.
                is_there = is_there and await self.lanes.extract(owner, session, number, rules=rules)
                tried.add((buffer.arc_id, number))
            async with self.ports.store.lock(f"memory/{owner}"), self.ports.store.lock(f"session/{owner}/{session}"):
                buffer = await self.ports.store.aload(owner, session)
                if buffer is None or self._goes_on(buffer, reason):
                    return None
                # A turn may have been spoken meanwhile: it is looked at before the session ends, too.
                if not unextracted_turns(buffer, tried):
                    waiting = unextracted_turns(buffer, set())
                    return await (self._put_off(buffer, waiting, reason) if waiting else self._finish(buffer, reason))
        return None

    async def _put_off(self, buffer: SessionMemoryBuffer, waiting: Sequence[int], reason: EndReason) -> EndReport:
        for number in waiting:
            buffer = buffer.with_missed(number, buffer.missed.get(number, tuple(map(str, Lane))))
        await self.ports.store.asave(buffer)
        return EndReport(reason=reason, waiting=len(waiting))

    def is_idle(self, buffer: SessionMemoryBuffer) -> bool:
        """Say whether a session has been silent for the whole time that ends it."""
        return self.ports.clock.now() - buffer.last_at >= self.ports.config.idle

    def _goes_on(self, buffer: SessionMemoryBuffer, reason: EndReason) -> bool:
        # Another process may have heard a word of it meanwhile.
        return reason is EndReason.IDLE and not self.is_idle(buffer)

    async def _arc(self, buffer: SessionMemoryBuffer) -> Arc | None:
        if not is_substantive(buffer, self.ports.config):
            return None
        return await summarise(self.ports.model, buffer, self.ports.config.max_prompt_characters)

    async def _decide(self, candidate: Candidate) -> Candidate:
        """Return a candidate with the decision that is due: the model's, or the rules' where it fails again."""
        if candidate.decision is not Decision.UNDECIDED:
            return candidate
        quote = candidate.content.evidence_quote
        verdict = await decide(self.ports.model, candidate.content, quote)
        if verdict.decision is Decision.UNDECIDED:
            verdict = await decide(None, candidate.content, quote)
        return replace(candidate, decision=verdict.decision, reason=verdict.why)

    async def _finish(self, buffer: SessionMemoryBuffer, reason: EndReason) -> EndReport | None:
        buffer = buffer.with_held([await self._decide(one) for one in buffer.held])
        arc = await self._arc(buffer)
        plan = WritePlan(owner=buffer.owner, session=buffer.session, now=self.ports.clock.now())
        promoted, dropped = [], []
        said = [turn.user for turn in buffer.turns]
        for one in buffer.held:
            why_not = _why_not(one, said)
            path = None if why_not else _path(one, buffer.turns, arc, self.ports.config)
            if path is None:
                dropped.append(why_not or "nothing supports it")
                continue
            await self.writer.plan(plan, one.id, one.content, len(one.turns), or_coexist=True)
            promoted.append(str(path))
        if arc is not None:
            plan.add(buffer.arc_id, arc)
        if not await self.ports.store.aend(buffer.owner, buffer.session, await self.writer.with_vectors(plan)):
            return None
        return EndReport(reason=reason, arc=buffer.arc_id if arc else None, promoted=promoted, dropped=dropped)


def end_data(report: EndReport | None) -> dict[str, Json]:
    """Return what a person hears of an end: whether a session ended, with a summary, what is kept of it, what waits."""
    if report is None:
        return {"ended": False, "waiting": 0}
    if report.waiting:
        return {"ended": False, "waiting": report.waiting}
    return {"ended": True, "summary": report.arc is not None, "kept": len(report.promoted), "waiting": 0}


def parse_reason(text: object) -> EndReason:
    """Return the reason of this name; InputError says which there are."""
    if not isinstance(text, str) or text not in set(EndReason):
        raise InputError(f"a session ends by one of {', '.join(EndReason)}, not by {short_repr(text)}")
    return EndReason(text)


def unextracted_turns(buffer: SessionMemoryBuffer, tried: AbstractSet[tuple[str, int]]) -> list[int]:
    """Return the numbers of the turns that nobody has extracted, but those that were tried."""
    # Another may have ended this session meanwhile: the one that follows counts its turns from 1 again.
    return [one.number for one in buffer.turns if not one.extracted and (buffer.arc_id, one.number) not in tried]
