"""What was heard in a session and is not yet memory: candidates, and the buffer that outlives the process (C-11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from memstory.contract.values import Tree
from memstory_reference.systems.layers.records.record import Fact, Layer, Rule, content_data, content_of, layer_of

MAX_TURNS = 400
"""Turns whose words are kept for the session's end, beside those that nobody has looked at; the counts go on beyond."""

MAX_HELD = 200
"""Candidates that wait for the session's end; of more, those that were heard longest ago go."""


class Decision(StrEnum):
    """What becomes of a candidate at its turn (C-10); `undecided` where the model was asked in vain."""

    COMMIT = "commit"
    HOLD = "hold"
    REPEAT = "repeat"
    DROP = "drop"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something that may become a fact or a rule. `turns` are the numbers of the turns in which it was heard.

    While it waits, `decision` is hold or repeat; undecided; or commit, where the model that should compare it with what
    is stored failed. `reason` says who decided so.
    """

    id: str
    content: Fact | Rule
    turns: Sequence[int]
    decision: Decision = Decision.HOLD
    reason: str = ""

    @property
    def layer(self) -> Layer:
        return layer_of(self.content)

    def add_turn(self, turn: int) -> Candidate:
        """Return it with one more turn; the same turn counts once."""
        return self if turn in self.turns else replace(self, turns=(*self.turns, turn))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenTurn:
    """One turn of the transcript; `extracted` if both lanes have looked at it."""

    number: int
    user: str
    assistant: str
    extracted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMemoryBuffer:
    """An active session as it is persisted: its transcript, or the end of it, and what waits for its end.

    `arc_id` is the id that the session's summary will have, so that ending twice writes once. `missed` are the turns at
    which a model was asked in vain, each with the lanes that have still to look at it.
    """

    owner: str
    session: str
    arc_id: str
    started_at: datetime
    last_at: datetime
    turn_count: int = 0
    turns: Sequence[SpokenTurn] = ()
    held: Sequence[Candidate] = field(default=())
    missed: Mapping[int, Sequence[str]] = field(default_factory=dict)

    def add_turn(self, user: str, assistant: str, at: datetime) -> SessionMemoryBuffer:
        """Return the buffer with one more turn."""
        turn = SpokenTurn(number=self.turn_count + 1, user=user, assistant=assistant)
        return replace(
            self, turn_count=turn.number, turns=_kept_turns((*self.turns, turn)), last_at=max(at, self.started_at)
        )

    def is_said_again(self, user: str) -> bool:
        """Say whether the last turn said the same and had no answer: then it is one turn, not two."""
        last = self.turns[-1] if self.turns else None
        return last is not None and last.number == self.turn_count and (last.user, last.assistant) == (user, "")

    def add_answer(self, assistant: str, at: datetime) -> SessionMemoryBuffer:
        """Return the buffer with the answer that the last turn did not have."""
        turns = (*self.turns[:-1], replace(self.turns[-1], assistant=assistant))
        return replace(self, turns=turns, last_at=max(at, self.started_at))

    def with_extracted(self, number: int) -> SessionMemoryBuffer:
        """Return the buffer with this turn marked as looked at."""
        turns = tuple(replace(turn, extracted=True) if turn.number == number else turn for turn in self.turns)
        missed = {turn: lanes for turn, lanes in self.missed.items() if turn != number}
        return replace(self, turns=turns, missed=missed)

    def with_missed(self, number: int, lanes: Sequence[str]) -> SessionMemoryBuffer:
        """Return the buffer with a turn that these lanes have still to look at."""
        return replace(self, missed={**self.missed, number: tuple(lanes)})

    def with_held(self, held: Sequence[Candidate]) -> SessionMemoryBuffer:
        """Return the buffer with other candidates."""
        return replace(self, held=tuple(held)[-MAX_HELD:])

    def over(self, stored: SessionMemoryBuffer | None) -> SessionMemoryBuffer:
        """Return the whole session where this one, read with its last turns alone, is written over a stored one."""
        turns = {turn.number: turn for turn in (*(stored.turns if stored else ()), *self.turns)}
        return replace(self, turns=_kept_turns([turns[number] for number in sorted(turns)]))


def _kept_turns(turns: Sequence[SpokenTurn]) -> tuple[SpokenTurn, ...]:
    last = turns[-1].number if turns else 0
    return tuple(turn for turn in turns if turn.number > last - MAX_TURNS or not turn.extracted)


def buffer_data(buffer: SessionMemoryBuffer) -> dict[str, Tree]:
    """Return the parts of a buffer that are neither columns nor turns, as JSON."""
    return {
        "arc_id": buffer.arc_id,
        "turn_count": buffer.turn_count,
        "held": [
            {
                "id": one.id,
                "layer": str(one.layer),
                "content": content_data(one.content),
                "turns": list(one.turns),
                "decision": str(one.decision),
                "reason": one.reason,
            }
            for one in buffer.held
        ],
        "missed": {str(number): list(lanes) for number, lanes in buffer.missed.items()},
    }


def turn_data(turn: SpokenTurn) -> dict[str, Tree]:
    """Return what was said in a turn, as JSON."""
    return {"user": turn.user, "assistant": turn.assistant}


def turn_of(number: int, data: Mapping[str, Tree], *, extracted: bool) -> SpokenTurn:
    """Return what `turn_data` has written."""
    return SpokenTurn(number=number, user=data["user"], assistant=data["assistant"], extracted=extracted)


def buffer_of(  # noqa: PLR0917  (the columns of a session, then its turns)
    owner: str,
    session: str,
    started_at: datetime,
    last_at: datetime,
    data: Mapping[str, Tree],
    turns: Sequence[SpokenTurn],
) -> SessionMemoryBuffer:
    """Return what `buffer_data` has written, with these turns."""
    return SessionMemoryBuffer(
        owner=owner,
        session=session,
        arc_id=data["arc_id"],
        started_at=started_at,
        last_at=last_at,
        turn_count=data["turn_count"],
        turns=tuple(turns),
        held=tuple(_candidate_of(one) for one in data["held"]),
        # A session of an older version has none.
        missed={int(number): tuple(lanes) for number, lanes in data.get("missed", {}).items()},
    )


def _candidate_of(data: Mapping[str, Tree]) -> Candidate:
    content = content_of(Layer(data["layer"]), data["content"])
    if not isinstance(content, Fact | Rule):
        raise TypeError(f"a candidate is a fact or a rule, not {type(content).__name__}")
    return Candidate(
        id=data["id"],
        content=content,
        turns=tuple(data["turns"]),
        decision=Decision(data["decision"]),
        reason=data["reason"],
    )
