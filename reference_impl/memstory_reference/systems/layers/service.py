"""The layers memory: turns, sessions, and what an owner may see, change and take along."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from memstory.contract.clock import Clock
from memstory.contract.errors import UnavailableError
from memstory.contract.models import ChatModel, ChatModelUnavailableError
from memstory.contract.values import Json
from memstory.models.conversation import NO_ANSWER, ask_for_reply
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner, checked_text, short_repr
from memstory_reference.ports import Embedder, NewId
from memstory_reference.storage.recurring import Recurring
from memstory_reference.storage.tombstones import NoTombstones, Tombstones
from memstory_reference.systems.layers.forgetting import (
    FORGOTTEN,
    ForgettingReport,
    ForgetWish,
    answer_to_wish,
    forget_wish,
)
from memstory_reference.systems.layers.identity import checked_id, hash_session_id, resolve_owner_id
from memstory_reference.systems.layers.log_entries import (
    ClassifierPath,
    CrisisLevel,
    CrisisLogRecord,
    SessionFeedbackRecord,
    checked_feedback,
)
from memstory_reference.systems.layers.policy.guards import check_said
from memstory_reference.systems.layers.policy.signals import CrisisNotice, crisis_notice
from memstory_reference.systems.layers.recall.prompting import (
    WINDOW_TURNS,
    memory_block,
    reply_by_rules,
    turn_prompt,
)
from memstory_reference.systems.layers.recall.retrieval import Embeddings, Retrieval, TurnMemory
from memstory_reference.systems.layers.records.candidates import SessionMemoryBuffer, SpokenTurn
from memstory_reference.systems.layers.records_desk import RecordsDesk
from memstory_reference.systems.layers.sessions.background import Background, IdleWatch, TurnDiagnostics
from memstory_reference.systems.layers.sessions.session_end import EndReason, EndReport, SessionEnds
from memstory_reference.systems.layers.sessions.writing import Lanes, Writer
from memstory_reference.systems.layers.settings import LayersConfig, MemoryMode
from memstory_reference.systems.layers.stores.layers_store import LayersStore
from memstory_reference.systems.layers.stores.log_store import Log
from memstory_reference.systems.layers.stores.rows_store import LayersRows
from memstory_reference.text.english.statements import wants_list


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersStores:
    """Where things are kept, each apart; open, and closed by the memory. `release` is called when they are closed.

    `shared` if other processes may use them at the same time.
    """

    memory: LayersStore
    crisis: Log[CrisisLogRecord]
    feedback: Log[SessionFeedbackRecord]
    release: Callable[[], None] = lambda: None
    shared: bool = False
    tombstones: Tombstones = field(default_factory=NoTombstones)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersPorts:
    """What the memory needs of the world outside.

    Without `embedder` retrieval is by words alone; without `model` all is decided by documented rules.
    """

    stores: LayersStores
    embedder: Embedder | None
    model: ChatModel | None
    clock: Clock
    new_id: NewId


LOG = logging.getLogger(__name__)
PURGE_EVERY = timedelta(days=1)
NO_SESSION = "-"
"""The session of an owner who acts outside of any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSession:
    """For whom and in which session something happens, both as they are stored."""

    owner: str
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAnswer:
    """The reply with what was remembered for it; `diagnostics` holds what went wrong on the way to the reply."""

    answer: str
    memory: TurnMemory
    diagnostics: Mapping[str, Json] = field(default_factory=dict)

    @property
    def context(self) -> str:
        """Return the block of the prompt that the memory made."""
        return memory_block(self.memory)


def trouble_notes(trouble: Mapping[str, Json]) -> list[str]:
    """Return what went wrong on the way to a reply, a line a part."""
    return [f"{part}: {one.get('error', one) if isinstance(one, Mapping) else one}" for part, one in trouble.items()]


class LayersService:
    """One memory for many owners. `open` before anything else."""

    def __init__(self, *, ports: LayersPorts, config: LayersConfig, mode: MemoryMode) -> None:
        self.config = config
        self.mode = mode
        self._ports = ports
        self._store = ports.stores.memory
        self._embeddings = Embeddings(ports.embedder)
        self._diagnostics = TurnDiagnostics()
        self._background = Background()
        self._purging = Recurring("purging the crisis log", self._purge, ports.clock)
        writer = Writer(store=self._store, embeddings=self._embeddings, model=ports.model, config=config)
        self._lanes = Lanes(
            store=self._store,
            writer=writer,
            model=ports.model,
            clock=ports.clock,
            new_id=ports.new_id,
            config=config,
            diagnostics=self._diagnostics,
            on_risk=self._notice_more,
        )
        self._ends = SessionEnds(
            store=self._store, lanes=self._lanes, writer=writer, model=ports.model, clock=ports.clock, config=config
        )
        self._retrieval = Retrieval(store=self._store, embeddings=self._embeddings, config=config)
        self._watch = IdleWatch(clock=ports.clock, idle=config.idle, end=self._end_idle, active=self._store.aactive)
        self.records = RecordsDesk(
            store=self._store,
            writer=writer,
            retrieval=self._retrieval,
            embeddings=self._embeddings,
            clock=ports.clock,
            new_id=ports.new_id,
            tombstones=ports.stores.tombstones,
            secrets=config,
            model=ports.model,
        )

    async def open(self) -> None:
        """Take up the sessions that a former process left active; those silent for too long end now.

        From now on, where the store is shared, also those of processes that are gone.
        """
        await self._watch.look()
        await self._watch.settle()
        missed = [(one.owner, one.session, number) for one in await self._store.aactive() for number in one.missed]
        if missed:
            self._background.schedule(NO_SESSION, partial(self._lanes.look_again, missed))
        if self._ports.stores.shared:
            await self._watch.keep_looking()
        await self._purge()
        await self._purging.start(PURGE_EVERY)

    async def close(self) -> None:
        """Finish what is under way and release the stores; active sessions stay active for the next process."""
        try:
            await self._purging.stop()
            await self._watch.stop()
            await self._background.settle()
        finally:
            for part in (self._store, self._ports.stores.crisis, self._ports.stores.feedback):
                await part.aclose()
            self._ports.stores.tombstones.close()
            self._ports.stores.release()

    async def shut_down(self) -> int:
        """End every session before the process does; return how many. In a shared store they go on elsewhere."""
        return 0 if self._ports.stores.shared else await self.end_all(EndReason.SHUTDOWN)

    async def settle(self) -> None:
        """Return when nothing happens in the background; raise what unexpectedly failed there."""
        await self._background.settle()
        await self._watch.settle()
        self._background.raise_failure()

    async def who(self, user_id: str | None, session_id: str | None) -> OwnerSession:
        """Return owner and session as they are stored; OwnerMissingError if both are missing."""
        key = await self._store.asession_key()
        owner = resolve_owner_id({"user_id": user_id, "session_id": session_id}, key)
        session = checked_id(session_id, "session_id")
        return OwnerSession(owner=owner, session=NO_SESSION if session is None else hash_session_id(session, key))

    async def turn(self, said: str, who: OwnerSession) -> TurnAnswer:
        """Answer `said`; a model that fails raises, and the turn is kept without an answer.

        A store that is down costs the memory of this turn, not its answer; `diagnostics` says so.
        """
        check_said(said)
        trouble: dict[str, Json] = {}
        await self._notice(said, who, trouble)
        wish = forget_wish(said)
        if wish is not None:
            # Not kept: the wish itself would tell what is to be forgotten.
            return TurnAnswer(answer=await self.answer_wish(who.owner, wish), memory=TurnMemory(), diagnostics=trouble)
        lists = wants_list(said)
        if self._ports.model is None or lists:
            # Rules take a moment, and who asks at once after a correction means the new value.
            await self._background.settle(_key(who))
        buffer, memory = await self._recall(said, who, trouble, lists=lists)
        if buffer is not None and buffer.missed:
            trouble["model"] = {
                "error": f"earlier turns that it did not read, and that wait for it: {len(buffer.missed)}"
            }
        try:
            answer = await self._reply(memory, buffer.turns if buffer else (), said, lists=lists)
        except ChatModelUnavailableError as error:
            await self._keep(who, said, "", trouble)
            kept = "What you said is not kept" if "store" in trouble else "What you said is kept"
            raise type(error)(f"{kept}. {error}") from error
        await self._keep(who, said, answer, trouble)
        return TurnAnswer(answer=answer, memory=memory, diagnostics=trouble)

    async def load_memory_for_turn(self, query: str, who: OwnerSession) -> TurnMemory:
        """Return what a turn would be given; it is the first one if the session has none yet."""
        if not isinstance(query, str):
            raise InputError(f"query must be text, not {type(query).__name__}")
        buffer, reads = await self._begin(who, 0)
        return await self._load(query, who.owner, buffer, lists=wants_list(query)) if reads else TurnMemory()

    async def _begin(self, who: OwnerSession, last: int) -> tuple[SessionMemoryBuffer | None, bool]:
        """Return the session with its last turns, and whether its owner's memory is read."""
        return await self._store.arun(
            lambda rows: (
                rows.sessions.load(who.owner, who.session, last),
                self.config.recall and rows.recall(who.owner),
            )
        )

    async def _load(self, query: str, owner: str, buffer: SessionMemoryBuffer | None, *, lists: bool) -> TurnMemory:
        if lists:
            return await self._retrieval.load_everything(owner)
        is_first_turn = buffer is None or not buffer.turn_count
        return await self._retrieval.load_memory_for_turn(
            owner, query, now=self._ports.clock.now(), is_first_turn=is_first_turn
        )

    async def answer_wish(self, owner: str, wish: ForgetWish) -> str:
        """Forget what a person asks to; return what they hear of it."""
        if wish.everything and not wish.sure:
            number = sum((await self.records.counts(owner))["counts"].values())
            return f'Memories: {number}. Say "forget everything for good" to delete all of them.'
        if wish.everything:
            await self.forget_owner(owner)
            return "Forgotten: everything that I remembered of you."
        done = await self.forget(owner, wish.what)
        nearest = [] if not done.is_empty else await self.records.search(owner, wish.what, limit=3)
        return answer_to_wish(wish, done, [one.record for one in nearest])

    async def forget(self, owner: str, what: str) -> ForgettingReport:
        """Forget what words or an id name: the records, and what summaries and open sessions hold of them."""
        most = self.config.max_query_characters
        checked_text(what, "what to forget", most, "max_query_characters")
        checked_owner(owner)
        await self._background.settle()
        return await self.records.forget(owner, what)

    async def forget_records(self, owner: str, ids: Sequence[str], *, durable: bool = False) -> ForgettingReport:
        """Forget records and what summaries and open sessions hold of them; `durable` for good."""
        await self._background.settle()
        return await self.records.forget_records(owner, ids, durable=durable)

    async def end_session(self, who: OwnerSession, reason: EndReason) -> EndReport | None:
        """End a session by the one path that all triggers share; None if it had ended before."""
        await self._background.settle(_key(who))
        report = await self._ends.end(who.owner, who.session, reason)
        if report is None:
            return None
        if report.waiting:
            self._watch.touch(who.owner, who.session, self._ports.clock.now())
        else:
            self._watch.drop(who.owner, who.session)
        self._diagnostics.report(who.owner, who.session, 0, report.data())
        return report

    async def end_all(self, reason: EndReason) -> int:
        """End all active sessions; return how many ended."""
        active = await self._store.aactive()
        ended = [await self.end_session(OwnerSession(owner=one.owner, session=one.session), reason) for one in active]
        return sum(report is not None and not report.waiting for report in ended)

    async def finalise_voice(self, transcript: Sequence[tuple[str, str]], who: OwnerSession) -> EndReport | None:
        """Take a finished voice session, turn by turn, and end it as any other."""
        trouble: dict[str, Json] = {}
        for said, answer in transcript:
            check_said(said)
            await self._notice(said, who, trouble)
            await self._save_turn(who, said, answer)
        return await self.end_session(who, EndReason.VOICE)

    async def set_recall(self, owner: str, *, on: object) -> None:
        """Switch an owner's reading on or off, for this process and all later ones; all else goes on (CF-8)."""
        if not isinstance(on, bool):
            raise InputError(f"recall is switched by true or false, not by {short_repr(on)}")
        await self._store.aset_recall(checked_owner(owner), on=on)

    async def give_feedback(
        self, who: OwnerSession, label: object, source: object = "text", comment: object = ""
    ) -> str:
        """Keep what somebody thought of a session; return the record's id."""
        kind, origin, words = checked_feedback(label, source, comment)
        (words,) = self.config.admit(words)
        record = SessionFeedbackRecord(
            id=self._ports.new_id(),
            owner=who.owner,
            session=who.session,
            at=self._ports.clock.now(),
            label=kind,
            source=origin,
            comment=words,
        )
        await self._ports.stores.feedback.aappend(record)
        return record.id

    async def feedback(self, owner: str | None) -> list[SessionFeedbackRecord]:
        """Return an owner's feedback, or everybody's, for who reviews it."""
        return await self._ports.stores.feedback.alist(owner)

    async def crisis_log(self, owner: str | None) -> list[CrisisLogRecord]:
        """Return an owner's crisis records, or everybody's, for who audits them."""
        return await self._ports.stores.crisis.alist(owner)

    async def purge_crisis_log(self) -> int:
        """Delete crisis records older than their retention, as happens daily; return how many there were."""
        return await self._ports.stores.crisis.apurge(
            self._ports.clock.now() - timedelta(days=self.config.crisis_retention_days)
        )

    async def _purge(self) -> None:
        try:
            await self.purge_crisis_log()
        except UnavailableError as error:
            LOG.warning("the crisis log was not purged: %s", type(error).__name__)

    async def forget_owner(self, owner: str) -> Mapping[str, int]:
        """Delete all that is kept for an owner but the crisis log, whose retention is the operator's duty."""
        await self._background.settle()
        async with self._store.lock(f"memory/{owner}"):
            for buffer in await self._store.aactive(owner):
                self._watch.drop(owner, buffer.session)
            counts = {
                "sessions": await self._store.aforget_sessions(owner),
                "records": await self._store.adelete_owner(owner),
                "feedback": await self._ports.stores.feedback.adelete_owner(owner),
            }
        self._diagnostics.forget(owner)
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

    async def store_name(self) -> str:
        """Return what tells this store from every other, without telling its key."""
        return hash_session_id("store", await self._store.asession_key())

    async def buffer(self, who: OwnerSession) -> SessionMemoryBuffer | None:
        """Return an active session as it is persisted."""
        return await self._store.aload(who.owner, who.session)

    def diagnostics(self, who: OwnerSession) -> list[Mapping[str, Json]]:
        """Return what happened behind a session's turns; number 0 is its end."""
        return self._diagnostics.of(who.owner, who.session)

    async def _notice(self, said: str, who: OwnerSession, trouble: dict[str, Json]) -> None:
        if noticed := crisis_notice(said):
            await self._log_crisis(who, noticed, ClassifierPath.KEYWORDS, trouble)

    async def _notice_more(self, owner: str, session: str, said: str, risk: CrisisNotice) -> None:
        """Log a risk that a model hears, unless the words alone were logged as one as grave."""
        known = crisis_notice(said)
        if known is None or (known.level is CrisisLevel.CONCERN and risk.level is CrisisLevel.ACUTE):
            await self._log_crisis(OwnerSession(owner=owner, session=session), risk, ClassifierPath.MODEL, {})

    async def _log_crisis(
        self, who: OwnerSession, noticed: CrisisNotice, path: ClassifierPath, trouble: dict[str, Json]
    ) -> None:
        record = CrisisLogRecord(
            id=self._ports.new_id(),
            owner=who.owner,
            session=who.session,
            at=self._ports.clock.now(),
            level=noticed.level,
            classifier_path=path,
            signals=noticed.signals,
        )
        try:
            await self._ports.stores.crisis.aappend(record)
        except UnavailableError as error:
            LOG.error("a crisis record could not be written: %s", error)  # noqa: TRY400  (the reason says all)
            trouble["crisis_log"] = {"error": str(error)}

    async def _recall(
        self, said: str, who: OwnerSession, trouble: dict[str, Json], *, lists: bool
    ) -> tuple[SessionMemoryBuffer | None, TurnMemory]:
        """Return the session as it was before this turn, and what the turn is given to remember."""
        buffer, memory, failures = None, TurnMemory(), self._embeddings.failures
        try:
            buffer, reads = await self._begin(who, WINDOW_TURNS)
            if reads:
                memory = await self._load(said, who.owner, buffer, lists=lists)
        except UnavailableError as error:
            trouble["store"] = {"error": str(error)}
        if self._embeddings.failures > failures:
            trouble["embedder"] = {"error": "unavailable: found by words alone"}
        return buffer, memory

    async def _reply(self, memory: TurnMemory, past: Sequence[SpokenTurn], said: str, *, lists: bool) -> str:
        if self._ports.model is None:
            return reply_by_rules(memory, said, lists=lists)
        prompt = turn_prompt(memory, past, said, self.config.max_window_characters)
        reply = await ask_for_reply(self._ports.model, prompt)
        return reply.content.strip() or NO_ANSWER

    async def _keep(self, who: OwnerSession, said: str, answer: str, trouble: dict[str, Json]) -> None:
        try:
            number = await self._save_turn(who, said, answer, is_talk=True)
        except UnavailableError as error:
            LOG.warning("a turn was not kept: %s", type(error).__name__)
            trouble["store"] = {"error": str(error)}
            return
        if trouble:
            self._diagnostics.report(who.owner, who.session, number, trouble)
        self._background.schedule(_key(who), partial(self._lanes.extract, who.owner, who.session, number))

    async def _save_turn(self, who: OwnerSession, said: str, answer: str, *, is_talk: bool = False) -> int:
        now = self._ports.clock.now()
        # What must not be kept is not kept until the session ends either.
        known = self._ports.stores.tombstones.reason
        said, answer = (FORGOTTEN if known(who.owner, one) else one for one in self.config.redact(said, answer))

        def add(rows: LayersRows) -> tuple[SessionMemoryBuffer, bool]:
            buffer = rows.sessions.load(who.owner, who.session, 1) or SessionMemoryBuffer(
                owner=who.owner, session=who.session, arc_id=self._ports.new_id(), started_at=now, last_at=now
            )
            is_again = is_talk and buffer.is_said_again(said)
            if is_again and (whole := rows.sessions.load(who.owner, who.session, None)):
                buffer = whole.add_answer(answer, now)
            else:
                buffer = buffer.add_turn(said, answer, now)
            rows.sessions.save(buffer, rewrite=is_again)
            return buffer, is_again

        async with self._store.lock(f"session/{who.owner}/{who.session}"):
            buffer, is_again = await self._store.arun(add)
        if buffer.turn_count == 1 and not is_again:
            # An ended session may be spoken in again: its reports are not reports of this one.
            self._diagnostics.forget(who.owner, who.session)
        self._watch.touch(who.owner, who.session, buffer.last_at)
        return buffer.turn_count

    async def _end_idle(self, owner: str, session: str) -> None:
        await self.end_session(OwnerSession(owner=owner, session=session), EndReason.IDLE)


def _key(who: OwnerSession) -> str:
    return f"{who.owner}/{who.session}"
