"""The turns memory at the `memory` command."""

from __future__ import annotations

import argparse
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from memstory.contract.errors import UnavailableError
from memstory.contract.texts import did_you_mean
from memstory.contract.values import Tree
from memstory_reference.commands.memory.desks import Confirm, Desk, DeskAnswer
from memstory_reference.commands.memory.opened_turns import chosen_turns, open_turns_of
from memstory_reference.commands.memory_rows import SHORT_ID_CHARACTERS, Row
from memstory_reference.commands.options import refuse_foreign
from memstory_reference.commands.terminal_text import cell
from memstory_reference.errors import InputError
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.exchange import read_jsonl, turns_as_jsonl
from memstory_reference.systems.turns.memory_tools import turn_with_repeats
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.turn import KINDS, Turn

LOG = logging.getLogger(__name__)
T = TypeVar("T")
OF_LAYERS = ("user_id", "thread_id", "archived")


@asynccontextmanager
async def turns_desk(parsed: argparse.Namespace) -> AsyncIterator[Desk]:
    """Open the memory that was typed."""
    refuse_foreign(parsed, OF_LAYERS, "belongs to --system layers; the turns memory has --owner")
    async with open_turns_of(chosen_turns(parsed), must_exist=True) as system:
        owners = await system.memory.owners()
        if parsed.owner is not None and parsed.owner not in owners:
            raise InputError(f"{parsed.owner!r:.80} has no turns here.{did_you_mean(parsed.owner, owners)}")
        yield TurnsDesk(memory=system.memory, owners=owners if parsed.owner is None else [parsed.owner])


async def import_turns(parsed: argparse.Namespace) -> int:
    """Add the turns of a file to those of the owner that was typed; return how many are stored, log which are not."""
    refuse_foreign(parsed, OF_LAYERS, "belongs to --system layers; the turns memory has --owner")
    if parsed.owner is None:
        raise InputError("memory import: say with --owner whose turns they are")
    try:
        new = read_jsonl(parsed.file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(
            f"{parsed.file} cannot be read: {problem}. Name a file that 'memory export' wrote"
        ) from problem
    except InputError as problem:
        raise InputError(f"{parsed.file}: {problem}") from problem
    async with open_turns_of(chosen_turns(parsed), must_exist=False) as system:
        stored = await system.memory.add(parsed.owner, new)
    for place, one in enumerate(stored, start=1):
        if one.refused is not None:
            LOG.warning("%s: turn %d of the file is left out: %s", parsed.file, place, one.refused)
    return sum(one.refused is None for one in stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsDesk:
    """An open memory; `owners` are who was typed, or all."""

    memory: TurnsService
    owners: Sequence[str]

    async def listed(self, kind: str | None, *, archived: bool) -> Sequence[Row]:
        if kind not in (None, *KINDS):
            raise InputError(f"--kind {kind} is not of the turns memory; it has {', '.join(KINDS)}")
        conditions = Conditions(kinds=() if kind is None else (kind,))
        found = await self._of_each(lambda owner: self.memory.listed(owner, conditions))
        return [turn_row(owner, turn) for owner, turns in found.items() for turn in turns]

    async def search(self, text: str, top_k: int | None, min_score: float | None) -> Sequence[Row]:
        found = await self.memory.search(self._owner, text, top_k, min_score=min_score)
        return [{**turn_row(self._owner, one.turn), "score": one.ranked.score} for one in found]

    async def named(self, names: Sequence[str]) -> Sequence[Row]:
        turns = await self.memory.listed(self._owner)
        found = {turn.id: turn for turn in (turn_named(turns, name) for name in names)}
        return [turn_row(self._owner, turn) for turn in found.values()]

    async def with_echoes(self, rows: Sequence[Row]) -> Sequence[Row]:
        found = [one for row in rows for one in await turn_with_repeats(self.memory, self._owner, row["id"])]
        return list({one.id: turn_row(self._owner, one) for one in found}.values())

    async def forget(self, ids: Sequence[str]) -> Sequence[str]:
        return await self.memory.delete(self._owner, ids)

    async def forget_everything(self, confirm: Confirm) -> DeskAnswer | None:
        number = len(await self.memory.listed(self._owner))
        if not confirm((), f"Forget all {number} turns of {cell(self._owner)} for good? [y/N] "):
            return None
        gone = await self.memory.forget_owner(self._owner)
        return DeskAnswer(data=gone, text=f"{gone} turns")

    async def export(self) -> DeskAnswer:
        turns = await self.memory.listed(self._owner)
        return DeskAnswer(data=len(turns), text=turns_as_jsonl(turns))

    async def status(self) -> DeskAnswer:
        counts = await self._of_each(self.memory.status)
        lines = [f"{cell(owner)}: turns {status['turns']}{_damage(status)}" for owner, status in counts.items()]
        return DeskAnswer(data=counts, text="\n".join(lines) or "Nothing is remembered.")

    async def purge(self, days: float | None) -> int:
        raise InputError("turns stay until they are forgotten; memory purge is for the topics memory")

    async def rate(self, memory_id: str, value: float) -> bool:
        raise InputError("turns are not rated; memory rate is for the topics memory")

    async def move(self, memory_id: str, *, into_use: bool) -> bool:
        raise InputError("the turns memory keeps no archive; layers do, with --system layers")

    async def _of_each(self, ask: Callable[[str], Awaitable[T]]) -> dict[str, T]:
        """Return what is asked of each owner; of several, one whose file is damaged is left out, and logged."""
        found = {}
        for owner in self.owners:
            try:
                found[owner] = await ask(owner)
            except UnavailableError as problem:
                if len(self.owners) == 1:
                    raise
                LOG.error("%s is left out: %s", cell(owner), problem)  # noqa: TRY400  (the reason says all)
        return found

    @property
    def _owner(self) -> str:
        if len(self.owners) != 1:
            raise InputError(f"the store holds the turns of {len(self.owners)} owners; choose one with --owner")
        return self.owners[0]


def _damage(status: Mapping[str, Tree]) -> str:
    return f", unreadable {status['unreadable']}" if status["unreadable"] else ""


def turn_row(owner: str, turn: Turn) -> Row:
    """Return a turn as the commands show it."""
    return {
        "owner": owner,
        "kind": turn.kind,
        "id": turn.id,
        "topic": turn.key,
        "text": f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text,
        "created_at": turn.said_at or turn.noted_at.isoformat(),
        "metadata": turn.fields,
    }


def turn_named(turns: Sequence[Turn], name: str) -> Turn:
    """Return the turn of an id, of the beginning of one, or of a key; InputError if there is not just one."""
    found = [turn for turn in turns if name in (turn.id, turn.key)]
    if not found and len(name) >= SHORT_ID_CHARACTERS:
        found = [turn for turn in turns if turn.id.startswith(name)]
    if len(found) != 1:
        problem = f"begins {len(found)} ids" if found else "is not a turn of this owner"
        raise InputError(f"{name!r:.80} {problem}; 'memory list' shows all ids, whose first {SHORT_ID_CHARACTERS} do")
    return found[0]
