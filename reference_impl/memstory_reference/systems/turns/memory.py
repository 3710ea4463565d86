"""The turns memory by the interface of all six: what was said, and an agent for each owner and session."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memstory.contract.clock import Clock
from memstory.contract.errors import Refused, StoryError
from memstory.contract.models import ChatModel
from memstory.contract.target import (
    Hit,
    Item,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    ToolCall,
    ToolSchema,
    Tree,
)
from memstory.contract.target import Turn as ChatTurn
from memstory_reference.errors import InputError
from memstory_reference.system_memory import Conversations, CurrentSessions, SystemMemory, read_rows
from memstory_reference.systems.turns.agent import SPECS, TurnsAgent, TurnsTools, turn_with_repeats
from memstory_reference.systems.turns.ranking import evidence
from memstory_reference.systems.turns.service import StoredTurn, TurnsService
from memstory_reference.systems.turns.turn import TURN, Conditions, NewTurn, Turn, moment_of
from memstory_reference.text.secret_guard import left_out
from memstory_reference.text.words import count_tokens

SEARCH_OPTIONS = ("since", "until")
_TEXTS = ("text", "kind", "key", "speaker", "session", "said_at")
DEFAULT_SESSION = "default"


class TurnsMemory(SystemMemory):
    """A memory with three tools and an agent that talks."""

    operations = frozenset(
        {
            *("add", "add.verbatim", "add.exact", "add.key", "add.batch_atomic", "load"),
            *("add.metadata", "add.metadata.lists", "add.turns", "add.source", "add.role", "delete.erases"),
            *("get.id", "get.key", "list", "update", "delete", "delete.reports_missing", "delete.scope", "context"),
            *("search", "search.scores", "search.min_score", "search.where", "search.budget", "search.explain"),
            *("search.as_of", "delete.about", "delete.durable", "update.about", "identifiers.spellings"),
            *("search.lexical", "search.hybrid", "unicode_lexical", "scope.session", "scope.session_all"),
            *("chat", "chat.tools", "chat.window", "tool", "tool.schema"),
        }
    )
    counted = ("turns",)
    search_options = SEARCH_OPTIONS

    in_folder = "sqlite fts5 + mapped float32 matrix"

    def __init__(self, service: TurnsService, *, chat: ChatModel, clock: Clock, store_name: str = in_folder) -> None:
        self.service = service
        self._chat = chat
        self._store_name = store_name
        self._sessions = CurrentSessions(DEFAULT_SESSION)
        self._conversations = Conversations(
            lambda owner, session: TurnsAgent(memory=service, chat=chat, clock=clock, owner=owner, session=session)
        )

    @property
    def store_name(self) -> str:
        return self._store_name

    async def close(self) -> None:
        await self.service.close()

    async def owners(self) -> Sequence[str]:
        return await self.service.owners()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._sessions.note(scope)
        stored = await self.service.add(scope.user, [new_turn(item, scope) for item in items])
        return Receipt(items=[receipt_item(one) for one in stored])

    async def count(self, scope: Scope) -> int:
        """Return how many turns a user has."""
        return await self.service.count(scope.user)

    async def load(self, items: Iterator[Item], scope: Scope) -> AsyncIterator[Receipt]:
        self._sessions.note(scope)
        async for stored in self.service.load(scope.user, (new_turn(item, scope) for item in items)):
            yield Receipt(items=[receipt_item(one) for one in stored])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        turn = await self._find(ref, scope)
        return hit_of(turn) if turn else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._check_query(query)
        found = await self.service.search(
            scope.user,
            query.text,
            query.top_k,
            conditions=Conditions(
                kinds=tuple(query.kinds),
                session=scope.session,
                since=moment_option(query.options, "since"),
                until=moment_option(query.options, "until"),
                where=query.where,
            ),
            min_score=query.min_score,
            as_of=as_of(query),
        )
        hits = [replace(hit_of(one.turn), score=one.score, explain=one.explain()) for one in found]
        return hits if query.token_budget is None else _fit(hits, query.token_budget)

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        conditions = Conditions(kinds=tuple(kinds), session=scope.session)
        return [hit_of(turn) for turn in await self.service.list_turns(scope.user, conditions, limit)]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        old = await self._find(ref, scope)
        changed = old and await self.service.update(scope.user, old.id, new_turn(item, Scope(user=scope.user)))
        if not changed:
            raise Refused(f"update: nothing is remembered under {ref.key or ref.id!r}")
        reason = left_out(changed.text)
        done = ReceiptItem(id=changed.id, text=changed.text, outcome="updated", reason=reason, kind=changed.kind)
        return Receipt(items=[done])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            if ref.durable:
                every = await self.service.list_turns(scope.user, Conditions(session=scope.session))
                return bool(await self.service.delete(scope.user, [one.id for one in every], durable=True))
            if scope.session is not None:
                return bool(await self.service.forget_session(scope.user, scope.session))
            return bool(await self.service.forget_owner(scope.user))
        turn = await self._find(ref, scope)
        return turn is not None and bool(await self.service.delete(scope.user, [turn.id], durable=ref.durable))

    async def context(self, query: Query, scope: Scope) -> str:
        return await self.service.context(
            scope.user, query.text, tokens=query.token_budget, top_k=query.top_k, as_of=as_of(query)
        )

    async def repeats(self, memory_id: str, scope: Scope) -> Sequence[Hit]:
        return [hit_of(one) for one in await turn_with_repeats(self.service, scope.user, memory_id)]

    async def export_rows(self, scope: Scope) -> Sequence[Mapping[str, Tree]]:
        return [turn_row(one) for one in await self.service.list_turns(scope.user)]

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        stored = await self.service.add(scope.user, read_rows(rows, new_turn_of_row))
        return [f"row {place}: {one.refused}" for place, one in enumerate(stored, start=1) if one.refused is not None]

    async def say(self, text: str, scope: Scope) -> ChatTurn:
        return await self._conversations.of(scope.user, self._sessions.note(scope)).process(text)

    async def tools(self) -> Sequence[ToolSchema]:
        return SPECS

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        return await TurnsTools(self.service, scope.user, self._sessions.note(scope)).call(name, args)

    async def _job_export(self, scope: Scope) -> Tree:
        return {"jsonl": turns_as_jsonl(await self.service.list_turns(scope.user))}

    async def _job_import(self, scope: Scope, *, jsonl: Tree) -> Tree:
        if not isinstance(jsonl, str):
            raise InputError(f"import: jsonl must be text, not {type(jsonl).__name__}")
        stored = await self.service.add(scope.user, read_jsonl(jsonl))
        return {"imported": sum(one.refused is None for one in stored)}

    async def _job_snapshot(self, scope: Scope) -> Tree:
        return {"rows": turns_as_jsonl(await self.service.list_turns(scope.user))}

    async def _job_restore(self, scope: Scope, *, snapshot: Tree) -> Tree:
        return await self._job_import(scope, jsonl=snapshot)

    async def _look_index(self, scope: Scope) -> Tree:
        return {"files": "*.f32"}

    async def _look_window(self, scope: Scope) -> Tree:
        session = self._sessions.of(scope)
        if session is None:
            latest = await self.service.list_turns(scope.user, Conditions(kinds=(TURN,)), 1)
            session = (latest[0].session if latest else None) or DEFAULT_SESSION
        window = await self._conversations.of(scope.user, session).window()
        return [{"role": message.role, "content": message.content} for message in window]

    async def _look_status(self, scope: Scope) -> Tree:
        return {**await self.service.status(scope.user), "chat": self._chat.name}

    async def _look_formula(self, _: Scope, **args: Tree) -> Tree:
        """Compute the evidence of `evidence: [[cosine, share of words found], …]`."""
        if set(args) != {"evidence"}:
            raise StoryError("inspect: formula takes `evidence`: a list of [cosine, share of words found]")
        return [round(evidence(cosine, found), 6) for cosine, found in args["evidence"]]

    async def _find(self, ref: Ref, scope: Scope) -> Turn | None:
        if ref.id is not None:
            turn = await self.service.get(scope.user, ref.id)
        elif ref.key is not None:
            turn = await self.service.by_key(scope.user, ref.key)
        else:
            raise InputError("name one memory, by id or by key")
        is_meant = turn is not None and ref.kind in (None, turn.kind) and scope.session in (None, turn.session)
        return turn if is_meant else None


def new_turn(item: Item, scope: Scope) -> NewTurn:
    """Return what an item asks to remember; its metadata may say speaker, session and said_at."""
    known = {name: value for name, value in (("source", item.source), ("role", item.role)) if value is not None}
    metadata = {**item.metadata, **known}
    return NewTurn(text=item.text, kind=item.kind, key=item.key, session=scope.session, metadata=metadata)


def as_of(query: Query) -> datetime | None:
    """Return the moment as of which a search is made."""
    return None if query.as_of is None else moment_of(query.as_of)


def moment_option(options: Mapping[str, Tree], name: str) -> datetime | None:
    """Return a moment among the options of a search; StoryError if it is none."""
    try:
        return moment_of(options[name]) if options.get(name) is not None else None
    except InputError as error:
        raise StoryError(f"search: options: {name}: {error}") from error


def hit_of(turn: Turn) -> Hit:
    """Return a turn; one that was looked up or listed has no score."""
    return Hit(
        id=turn.id,
        text=turn.text,
        kind=turn.kind,
        key=turn.key,
        created_at=turn.noted_at.isoformat(),
        metadata=turn.fields,
    )


def receipt_item(stored: StoredTurn) -> ReceiptItem:
    """Return what happened to one item."""
    turn = stored.turn
    if stored.refused is not None:
        return ReceiptItem(id=None, text=turn.text, outcome="dropped", reason=stored.refused, kind=turn.kind)
    outcome = "stored" if stored.is_new else "updated"
    return ReceiptItem(
        id=turn.id, text=turn.text, outcome=outcome, reason=left_out(turn.text), kind=turn.kind, key=turn.key
    )


def turns_as_jsonl(turns: Iterable[Turn]) -> str:
    """Return a line for each turn, in their order."""
    return "".join(f"{json.dumps(turn_row(turn), ensure_ascii=False)}\n" for turn in turns)


def read_jsonl(lines: str) -> list[NewTurn]:
    """Return the turns of a file; InputError names the line that is wrong. Blank lines are allowed.

    Ids and the moments of noting are the memory's own: they are left out.
    """
    # Not splitlines(): it knows line ends that are legal inside a JSON text.
    rows = enumerate(lines.split("\n"), start=1)
    return [_read(number, line) for number, line in rows if line.strip()]


def turn_row(turn: Turn) -> dict[str, object]:
    """Return a turn as JSON, without what it lacks."""
    known: Sequence[tuple[str, object]] = [(name, getattr(turn, name)) for name in ("id", *_TEXTS)]
    metadata = {"metadata": dict(turn.metadata)} if turn.metadata else {}
    return (
        {name: value for name, value in known if value is not None} | metadata | {"noted_at": turn.noted_at.isoformat()}
    )


def _read(number: int, line: str) -> NewTurn:
    try:
        return new_turn_of_row(json.loads(line))
    except InputError as error:
        raise InputError(f"line {number}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"line {number}: not JSON: {error}") from error


def new_turn_of_row(row: Mapping[str, Tree]) -> NewTurn:
    """Return the turn of a row; InputError says what is wrong with it."""
    if not isinstance(row, dict):
        raise InputError(f"found {type(row).__name__}; allowed: an object with at least 'text'")
    unknown = sorted(set(row) - {*_TEXTS, "metadata", "id", "noted_at"})
    if unknown or "text" not in row:
        problem = f"unknown field {unknown[0]!r:.80}" if unknown else "the field 'text' is missing"
        raise InputError(f"{problem}. Known: {', '.join(_TEXTS)}, metadata, id, noted_at")
    wrong = [name for name in _TEXTS if not isinstance(row.get(name, ""), str)]
    if wrong or not isinstance(row.get("metadata", {}), dict):
        raise InputError(f"{(wrong or ['metadata'])[0]} has the wrong type")
    return NewTurn(metadata=row.get("metadata", {}), **{name: row[name] for name in _TEXTS if name in row})


def _fit(hits: Sequence[Hit], tokens: int) -> Sequence[Hit]:
    kept: list[Hit] = []
    for hit in hits:
        tokens -= count_tokens(hit.text)
        if tokens < 0:
            break
        kept.append(hit)
    return kept
