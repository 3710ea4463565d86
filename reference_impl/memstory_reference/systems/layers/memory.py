"""The layers memory by the interface of all six: turns, sessions, and what an owner may see, change and take along."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial

from memstory.contract.errors import NotSupported, UnavailableError
from memstory.contract.models import ChatModelUnavailableError
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
from memstory.contract.values import Json
from memstory.models.conversation import NO_ANSWER, ask_for_reply
from memstory_reference.errors import InputError, NotFoundError
from memstory_reference.input_checks import checked_owner, short_repr
from memstory_reference.storage.recurring import Recurring
from memstory_reference.system_memory import SystemMemory, read_rows
from memstory_reference.systems.layers.background import Background, IdleWatch
from memstory_reference.systems.layers.forgetting import (
    FORGOTTEN,
    ForgetWish,
    answer_to_wish,
    forget_wish,
    with_replaced,
)
from memstory_reference.systems.layers.identity import OwnerSession, checked_id, hash_session_id, resolve_owner_id
from memstory_reference.systems.layers.layers_store import LayersRows
from memstory_reference.systems.layers.logs import CrisisLogRecord, Logs, SessionFeedbackRecord
from memstory_reference.systems.layers.policy import check_said
from memstory_reference.systems.layers.ports import LayersPorts
from memstory_reference.systems.layers.recall import (
    WINDOW_TURNS,
    Embeddings,
    Retrieval,
    TurnMemory,
    memory_block,
    reply_by_rules,
    turn_prompt,
)
from memstory_reference.systems.layers.reconciliation import Writer
from memstory_reference.systems.layers.records import Layer, MemoryRecord, SessionMemoryBuffer, SpokenTurn, Standing
from memstory_reference.systems.layers.records_desk import RecordsDesk
from memstory_reference.systems.layers.sessions import EndReason, EndReport, Sessions, end_data, parse_reason
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
from memstory_reference.text.english.statements import wants_list
from memstory_reference.text.secret_guard import left_out
from memstory_reference.tooling import TOOLS, call_memory_tool

LOG = logging.getLogger(__name__)
PURGE_EVERY = timedelta(days=1)
NO_SESSION = "-"
"""The session of an owner who acts outside of any."""


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
        self,
        ports: LayersPorts,
        *,
        store_name: str,
        is_anonymous: Callable[[str], bool] = is_nobody,
    ) -> None:
        self._store_name = store_name
        self._is_anonymous = is_anonymous
        self.config = ports.config
        self.mode = ports.config.memory_mode
        self.ports = ports
        self._store = ports.store
        self._embeddings = Embeddings(ports.embedder)
        self._background = Background()
        self._logs = Logs(
            crisis=ports.crisis,
            feedback=ports.feedback,
            clock=ports.clock,
            new_id=ports.new_id,
            config=ports.config,
        )
        self._purging = Recurring("purging the crisis log", self._logs.try_to_purge, ports.clock)
        writer = Writer(ports, self._embeddings)
        self._sessions = Sessions(ports, writer, self._logs)
        self._retrieval = Retrieval(store=self._store, embeddings=self._embeddings, config=self.config)
        self._watch = IdleWatch(
            clock=ports.clock, idle=self.config.idle, end=self._end_idle, active=self._store.aactive
        )
        self.records = RecordsDesk(ports, writer, self._retrieval, self._embeddings, self._background.settle)

    @property
    def store_name(self) -> str:
        return self._store_name

    async def open(self) -> None:
        """Take up the sessions that a former process left active; those silent for too long end now.

        From now on, where the store is shared, also those of processes that are gone.
        """
        await self._watch.look()
        await self._settle_ends()
        missed = [(one.owner, one.session, number) for one in await self._store.aactive() for number in one.missed]
        if missed:
            self._background.schedule(NO_SESSION, partial(self._sessions.look_again, missed))
        if self.ports.shared:
            await self._watch.keep_looking()
        await self._logs.try_to_purge()
        await self._purging.start(PURGE_EVERY)

    async def shut_down(self) -> None:
        """End every session before the process does; in a shared store they go on elsewhere."""
        if not self.ports.shared:
            await self.end_all(EndReason.SHUTDOWN)

    async def close(self) -> None:
        """Finish what is under way and release the stores; active sessions stay active for the next process."""
        try:
            await self._purging.stop()
            await self._settle_ends()
            await self._watch.stop()
            await self._background.settle()
        finally:
            for part in (self._store, self.ports.crisis, self.ports.feedback):
                await part.aclose()
            self.ports.tombstones.close()
            self.ports.release()

    async def settle(self) -> None:
        """Return when nothing happens in the background; raise what unexpectedly failed there."""
        await self._settle_ends()
        self._background.raise_failure()

    async def _settle_ends(self) -> None:
        await self._watch.settle()
        await self._background.settle()

    @property
    def is_forgetful(self) -> bool:
        return not self.mode.is_durable

    def status_line(self, status: Mapping[str, Tree]) -> str:
        return status_line(status)

    async def count_lost(self) -> int:
        return await self._store.alost()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        who = await self._who(scope)
        if any(item.key is not None for item in items):
            raise NotSupported("add.key")
        contents = [content_of_item(item) for item in items]
        done = await self.records.remember(who.owner, who.session, contents)
        return Receipt(items=[receipt_item(self._redact(item), one) for item, one in zip(items, done, strict=True)])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self.records.get((await self._who(scope)).owner, _id(ref))
        return hit_of(found) if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._check_query(query)
        layers = layers_of(query.kinds)
        limit = self.config.top_k if query.top_k is None else query.top_k
        found = await self.records.search((await self._who(scope)).owner, query.text, layers, limit)
        return [hit_of(one.record, one) for one in found]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        layers = layers_of(kinds)
        found = await self.records.list_records((await self._who(scope)).owner, layers, limit=limit)
        return [hit_of(one) for one in found]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        who, content = await self._who(scope), content_of_item(item)
        edited = await self.records.edit(who.owner, _id(ref), content)
        text, kind = self._redact(item).text, str(edited.layer)
        return Receipt(
            items=[ReceiptItem(id=edited.id, text=text, outcome="updated", reason=left_out(text), kind=kind)]
        )

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        who = await self._who(scope)
        if ref == Ref():
            return any((await self.forget_owner(who.owner)).values())
        ids = [_id(ref)] if ref != Ref(durable=True) else [one.id for one in await self._every(who.owner)]
        return bool((await self.records.forget_records(who.owner, ids, durable=ref.durable)).records)

    async def _every(self, owner: str) -> Sequence[MemoryRecord]:
        return await self.records.list_records(owner, tuple(Layer), tuple(Standing))

    async def ids_about(self, things: Sequence[str], scope: Scope) -> Sequence[str]:
        found = await self.records.about((await self._who(scope)).owner, things)
        return [one.id for one in found]

    async def context(self, query: Query, scope: Scope) -> str:
        memory = await self.load_memory_for_turn(query.text, await self._who(scope))
        return memory_block(memory)

    async def repeats(self, memory_id: str, scope: Scope) -> Sequence[Hit]:
        every = await self._every((await self._who(scope)).owner)
        found = with_replaced([one for one in every if one.id == memory_id], every)
        # What was replaced goes first: it would count again once its successor is gone.
        return [hit_of(one) for one in reversed(found)]

    def view(self, hit: Hit) -> dict[str, Tree]:
        return {**super().view(hit), **record_view(hit)}

    async def edit(self, hit: Hit, changes: Mapping[str, Tree], scope: Scope) -> Hit:
        owner = await self._owner(scope)
        record = await self.records.get(owner, str(hit.id))
        if record is None:
            raise NotFoundError(f"this owner has no memory {hit.id!r:.80}")
        return hit_of(await self.records.edit(owner, record.id, replace(record.content, **changes)))

    async def list_archived(self, scope: Scope) -> Sequence[Hit]:
        shelved = (Standing.ARCHIVED, Standing.SUPERSEDED)
        found = await self.records.list_records((await self._who(scope)).owner, tuple(Layer), shelved)
        return [hit_of(one) for one in found]

    async def export_rows(self, scope: Scope) -> Sequence[Mapping[str, Tree]]:
        exported = await self.records.export((await self._who(scope)).owner)
        return list(exported["records"])

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        standings = read_rows(rows, lambda row: row.get("standing", Standing.ACTIVE))
        active = [row for row, standing in zip(rows, standings, strict=True) if standing == Standing.ACTIVE]
        contents = read_rows(active, content_of_row)
        done = await self.records.remember((await self._who(scope)).owner, None, contents)
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
        return await self.turn(text, await self._who(scope))

    async def end_session(self, scope: Scope, reason: str) -> None:
        who, why = await self._who(scope), parse_reason(reason)
        if why is EndReason.SHUTDOWN:
            await self.end_all(why)
        elif why is EndReason.VOICE:
            await self.finalise_voice([], who)
        else:
            await self.end(who, why)

    async def inspect(self, what: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        # A session that the steps before were in: only they name it by themselves.
        session = args.get("session", scope.session)
        rest = {name: value for name, value in args.items() if name != "session"}
        return await super().inspect(what, rest, replace(scope, session=session))

    async def _look_formula(self, _: Scope, **args: Tree) -> Tree:
        return formula(args, self.config)

    def _redact(self, item: Item) -> Item:
        """Return what was given as a receipt says it: without its secrets."""
        return replace(item, text=self.config.redact(item.text)[0])

    async def _who(self, scope: Scope) -> OwnerSession:
        """Return owner and session of a scope as they are stored."""
        user = None if self._is_anonymous(scope.user) else scope.user
        return await self.who(user, scope.session)

    async def _audit_owner(self, scope: Scope) -> str | None:
        """Return whose records are meant; a scope that names nobody is an operator's, who reads everybody's."""
        return await self._owner(scope) if scope != Scope(user="") else None

    async def _owner(self, scope: Scope) -> str:
        return (await self._who(scope)).owner

    async def _job_archive(self, scope: Scope, *, id: str) -> Tree:  # noqa: A002  (the story's word)
        return await self.records.archive(await self._owner(scope), id)

    async def _job_restore(self, scope: Scope, *, id: str) -> Tree:  # noqa: A002  (the story's word)
        return await self.records.restore(await self._owner(scope), id)

    async def _job_end(self, scope: Scope, *, reason: str = EndReason.EXPLICIT) -> Tree:
        """End a session; return whether it ended, with a summary, what it held, and how many turns wait."""
        return end_data(await self.end(await self._who(scope), parse_reason(reason)))

    async def _job_forget(self, scope: Scope, *, what: str) -> Tree:
        """Forget what words or an id name; return what the person hears."""
        return await self.answer_wish((await self._who(scope)).owner, ForgetWish(what=what))

    async def _job_feedback(self, scope: Scope, *, label: str, source: str = "text", comment: str = "") -> Tree:
        return {"id": await self._logs.give_feedback(await self._who(scope), label, source, comment)}

    async def _job_purge(self, _: Scope) -> Tree:
        return {"purged": await self._logs.purge()}

    async def _job_recall(self, scope: Scope, *, on: bool) -> Tree:
        await self.set_recall(await self._owner(scope), on=on)
        return {"recall": on}

    async def _job_reindex(self, scope: Scope) -> Tree:
        return {"embedded": await self.records.embed_missing(await self._owner(scope))}

    async def _job_voice(self, scope: Scope, *, turns: Sequence[Mapping[str, str]]) -> Tree:
        if not isinstance(turns, list) or not all(isinstance(one, dict) and "user" in one for one in turns):
            raise InputError("turns must be a list of objects with user and assistant")
        spoken = [(turn["user"], str(turn.get("assistant", ""))) for turn in turns]
        report = end_data(await self.finalise_voice(spoken, await self._who(scope)))
        return {name: report[name] for name in ("ended", "waiting")}

    async def _look_status(self, scope: Scope) -> Tree:
        return await self.status(await self._owner(scope))

    async def _look_identity(self, scope: Scope, **claims: Tree) -> Tree:
        if claims:
            return {"owner": resolve_owner_id(claims, b"a key of the story")}
        who = await self._who(scope)
        return {"owner": who.owner, "session": who.session, "user_id": scope.user}

    async def _look_buffer(self, scope: Scope) -> Tree:
        return buffer_view(await self.buffer(await self._who(scope)))

    async def _look_working_memory(self, scope: Scope, *, query: str) -> Tree:
        return (await self.load_memory_for_turn(query, await self._who(scope))).state()

    async def _look_diagnostics(self, scope: Scope) -> Tree:
        return self.diagnostics(await self._who(scope))

    async def _look_audit(self, scope: Scope) -> Tree:
        return [_plain(record) for record in await self.ports.crisis.alist(await self._audit_owner(scope))]

    async def _look_feedback(self, scope: Scope) -> Tree:
        return [_plain(record) for record in await self.ports.feedback.alist(await self._audit_owner(scope))]

    async def _look_export(self, scope: Scope) -> Tree:
        return await self.records.export(await self._owner(scope))

    async def _look_shelved(self, scope: Scope) -> Tree:
        shelved = await self.list_archived(scope)
        return [{"id": hit.id, "text": hit.text, "kind": hit.kind, **hit.metadata} for hit in shelved]

    async def store_id(self) -> str:
        """Return what tells this store from every other, without telling its key."""
        return hash_session_id("store", await self._store.asession_key())

    async def who(self, user_id: str | None, session_id: str | None) -> OwnerSession:
        """Return owner and session as they are stored; OwnerMissingError if both are missing."""
        key = await self._store.asession_key()
        owner = resolve_owner_id({"user_id": user_id, "session_id": session_id}, key)
        session = checked_id(session_id, "session_id")
        return OwnerSession(owner=owner, session=NO_SESSION if session is None else hash_session_id(session, key))

    async def turn(self, said: str, who: OwnerSession) -> Turn:
        """Answer `said`; a model that fails raises, and the turn is kept without an answer.

        A store that is down costs the memory of this turn, not its answer; the notes say so.
        """
        check_said(said)
        trouble: dict[str, str] = {}
        await self._logs.notice(said, who, trouble)
        wish = forget_wish(said)
        if wish is not None:
            # Not kept: the wish itself would tell what is to be forgotten.
            return Turn(answer=await self.answer_wish(who.owner, wish), notes=_notes(trouble))
        lists = wants_list(said)
        if self.ports.model is None or lists:
            # Rules take a moment, and who asks at once after a correction means the new value.
            await self._background.settle(_key(who))
        buffer, memory = await self._recall(said, who, trouble, lists=lists)
        if buffer is not None and buffer.missed:
            trouble["model"] = f"earlier turns that it did not read, and that wait for it: {len(buffer.missed)}"
        try:
            answer = await self._reply(memory, buffer.turns if buffer else (), said, lists=lists)
        except ChatModelUnavailableError as error:
            await self._background.finish(_key(who), self._keep(who, said, "", trouble))
            kept = "What you said is not kept" if "store" in trouble else "What you said is kept"
            raise type(error)(f"{kept}. {error}") from error
        await self._background.finish(_key(who), self._keep(who, said, answer, trouble))
        return Turn(answer=answer, context=memory_block(memory), notes=_notes(trouble))

    async def load_memory_for_turn(self, query: str, who: OwnerSession) -> TurnMemory:
        """Return what a turn would be given; it is the first one if the session has none yet."""
        if not isinstance(query, str):
            raise InputError(f"query must be text, not {type(query).__name__}")
        now = self.ports.clock.now()
        _, memory = await self._retrieval.load_turn(who, query, now=now, turns=0, lists=wants_list(query))
        return memory or TurnMemory()

    async def answer_wish(self, owner: str, wish: ForgetWish) -> str:
        """Forget what a person asks to; return what they hear of it."""
        if wish.everything and not wish.sure:
            number = sum((await self.records.counts(owner))["counts"].values())
            return f'Memories: {number}. Say "forget everything for good" to delete all of them.'
        if wish.everything:
            await self.forget_owner(owner)
            return "Forgotten: everything that I remembered of you."
        done = await self.records.forget(owner, wish.what)
        nearest = [] if not done.is_empty else await self.records.search(owner, wish.what, limit=3)
        return answer_to_wish(wish, done, [one.record for one in nearest])

    async def end(self, who: OwnerSession, reason: EndReason) -> EndReport | None:
        """End a session by the one path that all triggers share; None if it had ended before."""
        await self._background.settle(_key(who))
        return await self._end(who, reason)

    async def _end(self, who: OwnerSession, reason: EndReason) -> EndReport | None:
        report = await self._sessions.end(who.owner, who.session, reason)
        if report is None:
            return None
        if report.waiting:
            self._watch.touch(who.owner, who.session, self.ports.clock.now())
        else:
            self._watch.drop(who.owner, who.session)
        self._sessions.diagnostics.report(who.owner, who.session, 0, report.data())
        return report

    async def end_all(self, reason: EndReason) -> int:
        """End all active sessions; return how many ended."""
        # A turn whose caller has gone may be the first of its session.
        await self._background.settle()
        active = await self._store.aactive()
        ended = [await self.end(OwnerSession(owner=one.owner, session=one.session), reason) for one in active]
        return sum(report is not None and not report.waiting for report in ended)

    async def finalise_voice(self, transcript: Sequence[tuple[str, str]], who: OwnerSession) -> EndReport | None:
        """Take a finished voice session, turn by turn, and end it as any other."""
        trouble: dict[str, str] = {}
        for said, answer in transcript:
            check_said(said)
            await self._logs.notice(said, who, trouble)
            await self._save_turn(who, said, answer)
        return await self.end(who, EndReason.VOICE)

    async def set_recall(self, owner: str, *, on: object) -> None:
        """Switch an owner's reading on or off, for this process and all later ones; all else goes on (CF-8)."""
        if not isinstance(on, bool):
            raise InputError(f"recall is switched by true or false, not by {short_repr(on)}")
        await self._store.aset_recall(checked_owner(owner), on=on)

    async def forget_owner(self, owner: str) -> Mapping[str, int]:
        """Delete all that is kept for an owner but the crisis log, whose retention is the operator's duty."""
        await self._background.settle()
        async with self._store.lock(f"memory/{owner}"):
            for buffer in await self._store.aactive(owner):
                self._watch.drop(owner, buffer.session)
            counts = {
                "sessions": await self._store.aforget_sessions(owner),
                "records": await self._store.adelete_owner(owner),
                "feedback": await self.ports.feedback.adelete_owner(owner),
            }
        self._sessions.diagnostics.forget(owner)
        return counts

    async def status(self, owner: str) -> dict[str, Json]:
        """Return counts by layer with the labels that people read, and the state of the memory; no content."""
        active = await self._store.aactive(owner)
        return {
            **await self.records.counts(owner),
            "held": sum(len(buffer.held) for buffer in active),
            "waiting": sum(len(buffer.missed) for buffer in active),
            "active_sessions": len(active),
            "mode": str(self.mode),
            "sync": self.mode.sync,
            "recall": self.config.recall and await self._store.arecall(owner),
            "embedder": self._embeddings.model,
        }

    async def buffer(self, who: OwnerSession) -> SessionMemoryBuffer | None:
        """Return an active session as it is persisted."""
        return await self._store.aload(who.owner, who.session)

    def diagnostics(self, who: OwnerSession) -> Sequence[Mapping[str, Json]]:
        """Return what happened behind a session's turns; number 0 is its end."""
        return self._sessions.diagnostics.of(who.owner, who.session)

    async def _recall(
        self, said: str, who: OwnerSession, trouble: dict[str, str], *, lists: bool
    ) -> tuple[SessionMemoryBuffer | None, TurnMemory]:
        """Return the session as it was before this turn, and what the turn is given to remember."""
        buffer, memory, failures, now = None, None, self._embeddings.failures, self.ports.clock.now()
        try:
            buffer, memory = await self._retrieval.load_turn(who, said, now=now, turns=WINDOW_TURNS, lists=lists)
        except UnavailableError as error:
            trouble["store"] = str(error)
        if memory is not None and self._embeddings.failures > failures:
            trouble["embedder"] = "unavailable: found by words alone"
        return buffer, memory or TurnMemory()

    async def _reply(self, memory: TurnMemory, past: Sequence[SpokenTurn], said: str, *, lists: bool) -> str:
        if self.ports.model is None:
            return reply_by_rules(memory, said, lists=lists)
        prompt = turn_prompt(memory, past, said, self.config.max_window_characters)
        reply = await ask_for_reply(self.ports.model, prompt)
        return reply.content.strip() or NO_ANSWER

    async def _keep(self, who: OwnerSession, said: str, answer: str, trouble: dict[str, str]) -> None:
        try:
            number = await self._save_turn(who, said, answer, is_talk=True)
        except UnavailableError as error:
            LOG.warning("a turn was not kept: %s", type(error).__name__)
            trouble["store"] = str(error)
            return
        if trouble:
            self._sessions.diagnostics.report(
                who.owner, who.session, number, {part: {"error": what} for part, what in trouble.items()}
            )
        self._background.schedule(_key(who), partial(self._sessions.extract, who.owner, who.session, number))

    async def _save_turn(self, who: OwnerSession, said: str, answer: str, *, is_talk: bool = False) -> int:
        now = self.ports.clock.now()
        # What must not be kept is not kept until the session ends either.
        known = self.ports.tombstones.reason
        said, answer = (FORGOTTEN if known(who.owner, one) else one for one in self.config.redact(said, answer))

        def add(rows: LayersRows) -> tuple[SessionMemoryBuffer, bool]:
            buffer = rows.load_session(who.owner, who.session, 1) or SessionMemoryBuffer(
                owner=who.owner, session=who.session, arc_id=self.ports.new_id(), started_at=now, last_at=now
            )
            is_again = is_talk and buffer.is_said_again(said)
            if is_again and (whole := rows.load_session(who.owner, who.session, None)):
                buffer = whole.add_answer(answer, now)
            else:
                buffer = buffer.add_turn(said, answer, now)
            rows.save_session(buffer, rewrite=is_again)
            return buffer, is_again

        async with self._store.lock(f"session/{who.owner}/{who.session}"):
            buffer, is_again = await self._store.arun(add)
        if buffer.turn_count == 1 and not is_again:
            # An ended session may be spoken in again: its reports are not reports of this one.
            self._sessions.diagnostics.forget(who.owner, who.session)
        self._watch.touch(who.owner, who.session, buffer.last_at)
        return buffer.turn_count

    def _end_idle(self, owner: str, session: str) -> None:
        """Begin to end a silent session, once what was said in it has been looked at."""
        who = OwnerSession(owner=owner, session=session)

        async def end() -> None:
            try:
                await self._end(who, EndReason.IDLE)
            except UnavailableError as error:
                # It stays active in the store, and is ended when that is opened again or looked through.
                LOG.warning("a silent session could not be ended: %s", type(error).__name__)

        self._background.schedule(_key(who), end)


def _notes(trouble: Mapping[str, str]) -> Sequence[str]:
    """Return what went wrong on the way to a reply, a line a part."""
    return [f"{part}: {what}" for part, what in trouble.items()]


def _key(who: OwnerSession) -> str:
    return f"{who.owner}/{who.session}"


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
