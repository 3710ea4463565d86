"""The turns memory by the interface of all six: what was said, and an agent for each owner and session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from memstory.contract.clock import Clock
from memstory.contract.errors import Refused
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
    Turn,
)
from memstory_reference.errors import InputError
from memstory_reference.system_memory import Conversations, CurrentSessions, SystemMemory, read_rows
from memstory_reference.systems.turns.agent import TurnsAgent
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.memory_tools import SPECS, TurnsTools, turn_with_repeats
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.turn import TURN
from memstory_reference.systems.turns.turn import Turn as StoredTurn
from memstory_reference.systems.turns.values import (
    SEARCH_OPTIONS,
    as_of,
    conditions_of,
    formula,
    found_hit,
    hit_of,
    new_turn,
    new_turn_of_row,
    read_jsonl,
    receipt_item,
    turn_row,
    turns_as_jsonl,
)
from memstory_reference.text.secret_guard import left_out
from memstory_reference.text.words import count_tokens

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
            conditions=conditions_of(query, scope),
            min_score=query.min_score,
            as_of=as_of(query),
        )
        hits = [found_hit(one) for one in found]
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

    async def say(self, text: str, scope: Scope) -> Turn:
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
        return formula(args)

    async def _find(self, ref: Ref, scope: Scope) -> StoredTurn | None:
        if ref.id is not None:
            turn = await self.service.get(scope.user, ref.id)
        elif ref.key is not None:
            turn = await self.service.by_key(scope.user, ref.key)
        else:
            raise InputError("name one memory, by id or by key")
        is_meant = turn is not None and ref.kind in (None, turn.kind) and scope.session in (None, turn.session)
        return turn if is_meant else None


def _fit(hits: Sequence[Hit], tokens: int) -> Sequence[Hit]:
    kept: list[Hit] = []
    for hit in hits:
        tokens -= count_tokens(hit.text)
        if tokens < 0:
            break
        kept.append(hit)
    return kept
