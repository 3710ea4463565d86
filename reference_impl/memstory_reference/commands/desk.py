"""What the terminal does with an open memory, whichever of the six it is: list, search, name, forget, take along."""

from __future__ import annotations

import argparse
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from memstory.contract.errors import NotSupported, UnavailableError
from memstory.contract.target import Hit, Query, Ref, Scope
from memstory.contract.texts import did_you_mean
from memstory.contract.values import Json, Tree
from memstory_reference.commands.memory_rows import SHORT_ID_CHARACTERS, Row, row_of
from memstory_reference.commands.terminal import cell
from memstory_reference.composition.declaration import MemorySystem, Models
from memstory_reference.composition.systems import system_named
from memstory_reference.errors import InputError, NotFoundError
from memstory_reference.input_checks import checked_owner
from memstory_reference.setting_rules import CheckedSettings
from memstory_reference.system_memory import ForgetResult, SystemMemory

LOG = logging.getLogger(__name__)
S = TypeVar("S")
T = TypeVar("T")
_NAMED_OWNERS = 10
_SETTING_OF = {"embedder": "embedding_model", "chat": "chat", "toolset": "toolset", "memory_mode": "mode"}
"""Options that are one setting each, where the system has it."""


def chosen_settings(parsed: argparse.Namespace) -> tuple[MemorySystem, CheckedSettings]:
    """Return the memory and the settings that were typed: the settings' file first, then each option."""
    system = system_named(parsed.system)
    setting_of = {**_SETTING_OF, "store": system.place}
    typed = {option: getattr(parsed, option, None) for option in setting_of}
    changes: dict[str, Json] = {setting_of[option]: value for option, value in typed.items() if value is not None}
    for option, value in typed.items():
        if value is not None and setting_of[option] not in system.kind.rules():
            raise InputError(f"--{option.replace('_', '-')} is nothing that the {system.name} memory has; leave it out")
    if system.kind.server is not None and typed["store"] is not None:
        # A folder that was typed is meant, whatever server the file names.
        changes[system.kind.server] = None
    return system, system.settings(getattr(parsed, "settings", None), changes, "command line")


def chosen_settings_of(parsed: argparse.Namespace, kind: type[S]) -> S:
    """Return the settings that were typed for a command of one memory alone."""
    _, settings = chosen_settings(parsed)
    if not isinstance(settings, kind):
        raise TypeError(f"{parsed.system}: its settings are no {kind.__name__}")
    return settings


@asynccontextmanager
async def open_desk(parsed: argparse.Namespace, *, needs_model: bool, may_be_new: bool = False) -> AsyncIterator[Desk]:
    """Open the memory that was typed; where there is none, InputError, and nothing is made."""
    system, settings = chosen_settings(parsed)
    if not may_be_new and not system.is_stored(settings):
        raise InputError(
            f"{system.place_of(settings)}: no memory is stored here. Name its folder or database with --store, or make "
            f"one with 'chat --system {system.name}'"
        )
    memory = await (system.open(settings, Models()) if needs_model else system.open_to_read(settings))
    try:
        yield Desk(memory=memory, owner=parsed.owner, session=parsed.thread_id)
    finally:
        await memory.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One owner's part of an open memory, or all owners' where nobody was named; `session` narrows it."""

    memory: SystemMemory
    owner: str | None
    session: str | None = None

    async def scopes(self) -> Sequence[Scope]:
        """Return whose memories are meant: those of who was typed, else of everybody."""
        try:
            owners = await self.memory.owners()
        except NotSupported as error:
            return [self._named_scope(error)]
        if self.owner is None:
            return [Scope(user=one, session=self.session) for one in owners]
        if self.owner not in owners:
            raise InputError(
                f"{self.owner!r:.80} has no memories here; {_who(owners)}.{did_you_mean(self.owner, owners)}"
            )
        return [Scope(user=self.owner, session=self.session)]

    async def scope(self) -> Scope:
        """Return whose memory is meant where it must be one: who was typed, or the only one there is."""
        scopes = await self.scopes()
        if len(scopes) != 1:
            raise InputError(f"{_who([one.user for one in scopes])}. Choose one with --owner")
        return scopes[0]

    async def writing_scope(self) -> Scope:
        """Return whose memory is added to: who was typed, known here or not."""
        if self.owner is None:
            return await self.scope()
        return Scope(user=checked_owner(self.owner), session=self.session)

    async def list_rows(self, kind: str | None, *, archived: bool = False) -> list[Row]:
        """Return what is remembered, of one kind or of all; with `archived` what is kept and no longer found, too."""

        async def rows(scope: Scope) -> list[Row]:
            found = await self.memory.list(scope, [kind] if kind else [])
            kept = await self.memory.list_archived(scope) if archived else ()
            shelved = [one for one in kept if kind in (None, one.kind)]
            return [*_rows(scope, found), *_rows(scope, shelved, archived=True)]

        return [row for of_one in (await self._of_each(rows)).values() for row in of_one]

    async def search(self, text: str, top_k: int | None, min_score: float | None) -> Sequence[Row]:
        """Return what a text finds, best first."""
        scope = await self.scope()
        return _rows(scope, await self.memory.search(Query(text=text, top_k=top_k, min_score=min_score), scope))

    async def find_rows(self, names: Sequence[str]) -> Sequence[Row]:
        """Return the memories of these keys, ids or beginnings of ids, each once; InputError if one is unknown."""
        scope = await self.scope()
        found = [await row_named(self.memory, name, scope) for name in names]
        return list({row["id"]: row for row in found}.values())

    async def with_repeats(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the memories and those that repeat what they say, each once: what goes when they are forgotten."""
        scope = await self.scope()
        found: dict[str, Row] = {}
        for row in rows:
            repeats = await self.memory.repeats(row["id"], scope)
            found |= {one["id"]: one for one in (row, *_rows(scope, repeats))}
        return list(found.values())

    async def forget(self, rows: Sequence[Row]) -> Sequence[str]:
        """Delete memories; return the ids of those that were there."""
        scope = await self.scope()
        return [row["id"] for row in rows if await self.memory.delete(Ref(id=row["id"]), scope)]

    async def forget_everything(self) -> None:
        """Delete all of the owner's."""
        await self.memory.delete(Ref(), await self.scope())

    async def export(self) -> Sequence[Mapping[str, Tree]]:
        """Return all memories as JSON; where several owners' are meant, each says whose it is."""
        exported = await self._of_each(self.memory.export_rows)
        if len(exported) == 1:
            return next(iter(exported.values()))
        return [{"owner": owner, **row} for owner, rows in exported.items() for row in rows]

    async def status(self) -> Mapping[str, Tree]:
        """Return how much is remembered, by owner."""

        async def status(scope: Scope) -> Tree:
            return await self.memory.inspect("status", {}, scope)

        return await self._of_each(status)

    async def log(self, name: str) -> Sequence[Mapping[str, Tree]]:
        """Return what a log of the memory holds, of who was typed or of everybody."""
        scopes = [Scope(user="")]
        with suppress(NotSupported):
            await self.memory.owners()
            scopes = [*await self.scopes()]
        if self.owner is not None or self.session is not None:
            scopes = [*await self.scopes()]
        rows = [(scope, row) for scope in scopes for row in await self.memory.inspect(name, {}, scope)]
        return [{"owner": scope.user, **row} for scope, row in rows]

    async def run(self, job: str, args: Mapping[str, Tree]) -> Mapping[str, Tree]:
        """Run a job of the memory; return what it reports, by owner."""

        async def run(scope: Scope) -> Tree:
            return await self.memory.run(job, args, scope)

        return await self._of_each(run)

    async def _of_each(self, ask: Callable[[Scope], Awaitable[T]]) -> dict[str, T]:
        """Return what is asked of each owner; of several, one whose file is damaged is left out, and logged."""
        scopes = await self.scopes()
        found = {}
        for scope in scopes:
            try:
                found[scope.user] = await ask(scope)
            except UnavailableError as problem:
                if len(scopes) == 1:
                    raise
                LOG.error("%s is left out: %s", cell(scope.user), problem)  # noqa: TRY400  (the reason says all)
        return found

    def _named_scope(self, problem: NotSupported) -> Scope:
        if self.owner is None and self.session is None:
            raise InputError("say whose with --owner, or with --thread-id for a conversation without one") from problem
        return Scope(user=self.owner or "", session=self.session)


async def forget_meant(memory: SystemMemory, what: str, scope: Scope) -> ForgetResult:
    """Forget what a name or an id means, else all that is about these words, with what repeats it."""
    done = [await memory.forget(one, scope) for one in await _ids_meant(memory, what, scope)]
    gone = {hit.id: hit for one in done for hit in one.gone}
    # What one of them left may have gone with the next.
    mentions = {hit.id: hit for one in done for hit in one.mentions if hit.id not in gone}
    return ForgetResult(gone=[*gone.values()], mentions=[*mentions.values()])


async def _ids_meant(memory: SystemMemory, what: str, scope: Scope) -> Sequence[str]:
    try:
        return [(await row_named(memory, what, scope))["id"]]
    except NotFoundError as unnamed:
        if "delete.about" not in memory.operations:
            reason = f"{unnamed} This memory forgets by a name or an id, not by words"
            raise NotSupported("delete.about", reason) from unnamed
        about = await memory.ids_about([what], scope)
        if not about:
            raise
        return about


async def row_named(memory: SystemMemory, name: str, scope: Scope) -> Row:
    """Return the memory of this key, id or beginning of an id; InputError if there is none, or more than one."""
    living = _rows(scope, await memory.list(scope))
    every = [*living, *_rows(scope, await memory.list_archived(scope), archived=True)]
    # What replaced another has its key.
    exact = [row for row in living if name == row["topic"]] or [row for row in every if name == row["id"]]
    if not exact and "get.key" in memory.operations:
        found = await memory.get(Ref(key=name), scope)
        exact = _rows(scope, [found]) if found else []
    if not exact and len(name) >= SHORT_ID_CHARACTERS:
        exact = [row for row in every if row["id"].startswith(name)]
    if len(exact) > 1:
        raise InputError(f"{name!r:.80} begins several ids: {', '.join(row['id'] for row in exact[:3])}, …")
    if exact:
        return exact[0]
    keys = [row["topic"] for row in every if row["topic"]]
    # The beginning of a key is short for it, though other keys may share more letters.
    begun = [key for key in keys if key.startswith(name.strip().lower())]
    near = f" Did you mean '{begun[0]}'?" if begun else did_you_mean(name.strip().lower(), keys)
    how = near or f" A list shows the ids; their first {SHORT_ID_CHARACTERS} characters do."
    raise NotFoundError(f"nothing is remembered under {name!r:.80}.{how}")


def _rows(scope: Scope, hits: Sequence[Hit], *, archived: bool = False) -> list[Row]:
    return [row_of(scope.user or None, one, archived=archived) for one in hits]


def _who(owners: Sequence[str]) -> str:
    if not owners:
        return "the store holds nobody's memories yet"
    more = ", …" if len(owners) > _NAMED_OWNERS else ""
    return f"the store holds the memories of {', '.join(owners[:_NAMED_OWNERS])}{more}"
