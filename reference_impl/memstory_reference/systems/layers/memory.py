"""The layers memory by the interface of all six."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

from memstory.contract.errors import NotSupported
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
from memstory_reference.errors import InputError, NotFoundError
from memstory_reference.system_memory import SystemMemory, read_rows
from memstory_reference.systems.layers.forgetting import ForgetWish, with_replaced
from memstory_reference.systems.layers.identity import resolve_owner_id
from memstory_reference.systems.layers.log_entries import CrisisLogRecord, SessionFeedbackRecord
from memstory_reference.systems.layers.recall.prompting import memory_block
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, Standing
from memstory_reference.systems.layers.service import LayersService, OwnerSession, trouble_notes
from memstory_reference.systems.layers.sessions.session_end import EndReason, end_data, parse_reason
from memstory_reference.systems.layers.values import (
    buffer_view,
    content_of_item,
    content_of_row,
    formula,
    hit_of,
    layers_of,
    receipt_item,
    record_view,
    status_line,
)
from memstory_reference.text.secret_guard import left_out
from memstory_reference.tooling.memory_tools import TOOLS, call_memory_tool


def is_nobody(user: str) -> bool:
    """Whether a scope names no user: then its session has a memory of its own."""
    return not user


class LayersMemory(SystemMemory):
    """An open layers memory; `is_anonymous` says of a scope's user whether it is one without a user id."""

    operations = frozenset(
        {
            *("add", "add.verbatim", "add.batch_atomic", "add.infer", "get.id", "list", "update"),
            *("delete", "delete.reports_missing", "delete.scope", "context"),
            *("delete.about", "delete.durable", "update.about", "identifiers.spellings"),
            *("search", "search.scores", "search.lexical", "search.hybrid", "search.explain"),
            *("tool", "tool.schema", "chat", "chat.window", "session", "async_ingest", "incognito", "unicode_lexical"),
            *("dedup", "supersede", "hold_buffer", "audit_separate"),
        }
    )

    def __init__(
        self, service: LayersService, *, store_name: str, is_anonymous: Callable[[str], bool] = is_nobody
    ) -> None:
        self._service = service
        self._store_name = store_name
        self._is_anonymous = is_anonymous

    @property
    def store_name(self) -> str:
        return self._store_name

    async def shut_down(self) -> None:
        await self._service.shut_down()

    async def close(self) -> None:
        await self._service.close()

    @property
    def is_forgetful(self) -> bool:
        return not self._service.mode.is_durable

    def status_line(self, status: Mapping[str, Tree]) -> str:
        return status_line(status)

    async def count_lost(self) -> int:
        return await self._service.records.count_lost()

    async def settle(self) -> None:
        await self._service.settle()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        who = await self.who(scope)
        if any(item.key is not None for item in items):
            raise NotSupported("add.key")
        contents = [content_of_item(item) for item in items]
        done = await self._service.records.remember(who.owner, who.session, contents)
        return Receipt(items=[receipt_item(self._redact(item), one) for item, one in zip(items, done, strict=True)])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self._service.records.get((await self.who(scope)).owner, _id(ref))
        return hit_of(found) if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._check_query(query)
        layers = layers_of(query.kinds)
        limit = self._service.config.top_k if query.top_k is None else query.top_k
        found = await self._service.records.search((await self.who(scope)).owner, query.text, layers, limit)
        return [hit_of(one.record, one) for one in found]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        layers = layers_of(kinds)
        found = await self._service.records.list_records((await self.who(scope)).owner, layers, limit=limit)
        return [hit_of(one) for one in found]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        who, content = await self.who(scope), content_of_item(item)
        edited = await self._service.records.edit(who.owner, _id(ref), content)
        text, kind = self._redact(item).text, str(edited.layer)
        return Receipt(
            items=[ReceiptItem(id=edited.id, text=text, outcome="updated", reason=left_out(text), kind=kind)]
        )

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        who = await self.who(scope)
        if ref == Ref():
            return any((await self._service.forget_owner(who.owner)).values())
        ids = [_id(ref)] if ref != Ref(durable=True) else [one.id for one in await self._every(who.owner)]
        return bool((await self._service.forget_records(who.owner, ids, durable=ref.durable)).records)

    async def _every(self, owner: str) -> Sequence[MemoryRecord]:
        return await self._service.records.list_records(owner, tuple(Layer), tuple(Standing))

    async def ids_about(self, things: Sequence[str], scope: Scope) -> Sequence[str]:
        found = await self._service.records.about((await self.who(scope)).owner, things)
        return [one.id for one in found]

    async def context(self, query: Query, scope: Scope) -> str:
        memory = await self._service.load_memory_for_turn(query.text, await self.who(scope))
        return memory_block(memory)

    async def repeats(self, memory_id: str, scope: Scope) -> Sequence[Hit]:
        every = await self._every((await self.who(scope)).owner)
        found = with_replaced([one for one in every if one.id == memory_id], every)
        # What was replaced goes first: it would count again once its successor is gone.
        return [hit_of(one) for one in reversed(found)]

    def view(self, hit: Hit) -> dict[str, Tree]:
        return {**super().view(hit), **record_view(hit)}

    async def edit(self, hit: Hit, changes: Mapping[str, Tree], scope: Scope) -> Hit:
        owner = await self._owner(scope)
        record = await self._service.records.get(owner, str(hit.id))
        if record is None:
            raise NotFoundError(f"this owner has no memory {hit.id!r:.80}")
        return hit_of(await self._service.records.edit(owner, record.id, replace(record.content, **changes)))

    async def list_archived(self, scope: Scope) -> Sequence[Hit]:
        shelved = (Standing.ARCHIVED, Standing.SUPERSEDED)
        found = await self._service.records.list_records((await self.who(scope)).owner, tuple(Layer), shelved)
        return [hit_of(one) for one in found]

    async def export_rows(self, scope: Scope) -> Sequence[Mapping[str, Tree]]:
        exported = await self._service.records.export((await self.who(scope)).owner)
        return list(exported["records"])

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        active = [row for row in rows if row.get("standing", Standing.ACTIVE) == Standing.ACTIVE]
        contents = read_rows(active, content_of_row)
        done = await self._service.records.remember((await self.who(scope)).owner, None, contents)
        left_out = [f"{row.get('id')}: it is {row['standing']}" for row in rows if row not in active]
        dropped = [(row, one) for row, one in zip(active, done, strict=True) if one.outcome == "dropped"]
        return [*left_out, *(f"{row.get('id')}: {one.reason}" for row, one in dropped)]

    async def tools(self) -> Sequence[ToolSchema]:
        return TOOLS

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        async def forget_whole(memory_id: str) -> bool:
            return bool((await self.forget(memory_id, scope)).gone)

        return await call_memory_tool(self, name, args, scope, forget_whole)

    async def say(self, text: str, scope: Scope) -> Turn:
        answer = await self._service.turn(text, await self.who(scope))
        return Turn(answer=answer.answer, context=answer.context, notes=trouble_notes(answer.diagnostics))

    async def end_session(self, scope: Scope, reason: str) -> None:
        who, why = await self.who(scope), parse_reason(reason)
        if why is EndReason.SHUTDOWN:
            await self._service.end_all(why)
        elif why is EndReason.VOICE:
            await self._service.finalise_voice([], who)
        else:
            await self._service.end_session(who, why)

    async def inspect(self, what: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        # A session that the steps before were in: only they name it by themselves.
        session = args.get("session", scope.session)
        rest = {name: value for name, value in args.items() if name != "session"}
        return await super().inspect(what, rest, replace(scope, session=session))

    async def _look_formula(self, _: Scope, **args: Tree) -> Tree:
        return formula(args, self._service.config)

    def _redact(self, item: Item) -> Item:
        """Return what was given as a receipt says it: without its secrets."""
        return replace(item, text=self._service.config.redact(item.text)[0])

    async def who(self, scope: Scope) -> OwnerSession:
        """Return owner and session of a scope as they are stored."""
        user = None if self._is_anonymous(scope.user) else scope.user
        return await self._service.who(user, scope.session)

    async def _audit_owner(self, scope: Scope) -> str | None:
        """Return whose records are meant; a scope that names nobody is an operator's, who reads everybody's."""
        return await self._owner(scope) if scope != Scope(user="") else None

    async def _owner(self, scope: Scope) -> str:
        return (await self.who(scope)).owner

    async def _job_archive(self, scope: Scope, *, id: str) -> Tree:  # noqa: A002  (the story's word)
        return await self._service.records.archive(await self._owner(scope), id)

    async def _job_restore(self, scope: Scope, *, id: str) -> Tree:  # noqa: A002  (the story's word)
        return await self._service.records.restore(await self._owner(scope), id)

    async def _job_end(self, scope: Scope, *, reason: str = EndReason.EXPLICIT) -> Tree:
        """End a session; return whether it ended, with a summary, what it held, and how many turns wait."""
        return end_data(await self._service.end_session(await self.who(scope), parse_reason(reason)))

    async def _job_forget(self, scope: Scope, *, what: str) -> Tree:
        """Forget what words or an id name; return what the person hears."""
        return await self._service.answer_wish((await self.who(scope)).owner, ForgetWish(what=what))

    async def _job_feedback(self, scope: Scope, *, label: str, source: str = "text", comment: str = "") -> Tree:
        return {"id": await self._service.give_feedback(await self.who(scope), label, source, comment)}

    async def _job_purge(self, _: Scope) -> Tree:
        return {"purged": await self._service.purge_crisis_log()}

    async def _job_recall(self, scope: Scope, *, on: bool) -> Tree:
        await self._service.set_recall(await self._owner(scope), on=on)
        return {"recall": on}

    async def _job_reindex(self, scope: Scope) -> Tree:
        return {"embedded": await self._service.records.embed_missing(await self._owner(scope))}

    async def _job_voice(self, scope: Scope, *, turns: Sequence[Mapping[str, str]]) -> Tree:
        if not isinstance(turns, list) or not all(isinstance(one, dict) and "user" in one for one in turns):
            raise InputError("turns must be a list of objects with user and assistant")
        spoken = [(turn["user"], str(turn.get("assistant", ""))) for turn in turns]
        report = end_data(await self._service.finalise_voice(spoken, await self.who(scope)))
        return {name: report[name] for name in ("ended", "waiting")}

    async def _look_status(self, scope: Scope) -> Tree:
        return await self._service.status(await self._owner(scope))

    async def _look_identity(self, scope: Scope, **claims: Tree) -> Tree:
        if claims:
            return {"owner": resolve_owner_id(claims, b"a key of the story")}
        who = await self.who(scope)
        return {"owner": who.owner, "session": who.session, "user_id": scope.user}

    async def _look_buffer(self, scope: Scope) -> Tree:
        return buffer_view(await self._service.buffer(await self.who(scope)))

    async def _look_diagnostics(self, scope: Scope) -> Tree:
        return self._service.diagnostics(await self.who(scope))

    async def _look_working_memory(self, scope: Scope, *, query: str) -> Tree:
        return (await self._service.load_memory_for_turn(query, await self.who(scope))).state()

    async def _look_audit(self, scope: Scope) -> Tree:
        return [_plain(record) for record in await self._service.crisis_log(await self._audit_owner(scope))]

    async def _look_feedback(self, scope: Scope) -> Tree:
        return [_plain(record) for record in await self._service.feedback(await self._audit_owner(scope))]

    async def _look_export(self, scope: Scope) -> Tree:
        return await self._service.records.export(await self._owner(scope))

    async def _look_shelved(self, scope: Scope) -> Tree:
        shelved = await self.list_archived(scope)
        return [{"id": hit.id, "text": hit.text, "kind": hit.kind, **hit.metadata} for hit in shelved]


def _id(ref: Ref) -> str:
    if ref.key is not None and ref.id is None:
        raise NotSupported("get.key")
    if not ref.id:
        raise InputError("a record of the layers is named by its id")
    return ref.id


def _plain(record: CrisisLogRecord | SessionFeedbackRecord) -> dict[str, Tree]:
    # Members of an enumeration become texts.
    plain = {name: str(value) if isinstance(value, str) else value for name, value in asdict(record).items()}
    return {**plain, "at": record.at.isoformat()}
