"""An owner's records by hand: look, search, write, edit, archive, forget, export (CF-14)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from memstory.contract.values import Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_count, checked_owner, checked_text, is_storable
from memstory_reference.systems.layers.forgetting import (
    SHORT_ID,
    ForgettingReport,
    cut_arc,
    cut_buffer,
    holds_value,
    matching_records,
    telling_words,
    values_of,
    with_namesakes,
    with_replaced,
)
from memstory_reference.systems.layers.identity import iso_now
from memstory_reference.systems.layers.layers_store import ACTIVE
from memstory_reference.systems.layers.policy import (
    MALFORMED,
    MAX_NOTE,
    MAX_PART,
    checked_content,
    normal_content,
    refusal_reason,
    session_only_reason,
    text_refusal_reason,
    veto,
    without_secrets,
)
from memstory_reference.systems.layers.ports import LayersPorts
from memstory_reference.systems.layers.recall import Embeddings, RankedRecord, Retrieval
from memstory_reference.systems.layers.reconciliation import WriteOutcome, WritePlan, Writer, records_to_release
from memstory_reference.systems.layers.records import (
    LABELS,
    Arc,
    Content,
    Layer,
    MemoryRecord,
    Rule,
    Standing,
    content_data,
    is_note,
    text_of,
)
from memstory_reference.text.lines import one_line
from memstory_reference.text.words import is_about

EMBED_BATCH = 200
MOST_LISTED = 1_000_000


@dataclass(frozen=True, slots=True)
class RecordsDesk:
    """What people do with their memory beside talking."""

    ports: LayersPorts
    writer: Writer
    retrieval: Retrieval
    embeddings: Embeddings
    settle: Callable[[], Awaitable[None]]
    """Waits for what is still to be written of earlier turns."""

    async def remember(self, owner: str, session: str | None, contents: Sequence[Content]) -> list[WriteOutcome]:
        """Write contents, all or none; what the guards refuse is dropped, with the reason, and the others count."""
        if isinstance(contents, str) or not isinstance(contents, Sequence):
            raise InputError(f"contents must be a list, not {type(contents).__name__}")
        plan = WritePlan(owner=checked_owner(owner), session=session, now=self.ports.clock.now())
        async with self.ports.store.lock(f"memory/{owner}"):
            done = [await self._plan(plan, content) for content in contents]
            await self.writer.write(plan)
        return done

    async def get(self, owner: str, identifier: str) -> MemoryRecord | None:
        """Return one record, whatever its standing."""
        return next(iter(await self.ports.store.aget(checked_owner(owner), [record_id(identifier)])), None)

    async def list_records(
        self,
        owner: str,
        layers: Sequence[Layer] = tuple(Layer),
        standings: Sequence[Standing] = ACTIVE,
        limit: int | None = None,
    ) -> list[MemoryRecord]:
        """Return records, newest first within each layer."""
        if limit is not None:
            checked_count(limit, "limit", 0, MOST_LISTED)
        checked_owner(owner)
        found = [one for layer in layers for one in await self.ports.store.alist(owner, layer, standings, limit)]
        return found[:limit]

    async def search(
        self, owner: str, query: str, layers: Sequence[Layer] = tuple(Layer), limit: int | None = None
    ) -> list[RankedRecord]:
        """Return active records that the question finds, or the first `limit` of them, best first."""
        return await self.retrieval.search(checked_owner(owner), query, layers, now=self.ports.clock.now(), limit=limit)

    async def edit(self, owner: str, identifier: str, content: Content) -> MemoryRecord:
        """Replace what a record says; the guards look at it as at anything new.

        Raises:
            InputError: there is no such record, it is of another layer, or the guards refuse the new content.
        """
        fit, why_not = await self._guard(owner, content)
        if why_not:
            raise InputError(f"this cannot be stored: {why_not}")
        async with self.ports.store.lock(f"memory/{owner}"):
            old = await self.get(owner, identifier)
            if old is None:
                raise InputError(f"this owner has no record {identifier!r:.80}")
            edited = replace(old, content=fit, updated_at=self.ports.clock.now(), vector=None)
            if edited.layer is not old.layer:
                raise InputError(f"{identifier!r:.40} is of the layer {old.layer}, the new content of {edited.layer}")
            same = await self.writer.same_as(edited)
            if same is not None:
                # What it says now is stored already: one record is left of the two, the one that was edited.
                edited = replace(edited, count=edited.count + same.count)
            (edited,) = await self.embeddings.embedded([edited])
            await self.ports.store.aput(edited)
            if same is not None:
                await self._delete_under_lock(owner, [same.id], kept=edited.id)
        return edited

    async def archive(self, owner: str, identifier: str) -> bool:
        """Take a record out of every prompt and search, without deleting it; False if it is not active."""
        return await self._restand(owner, identifier, Standing.ACTIVE, Standing.ARCHIVED)

    async def restore(self, owner: str, identifier: str) -> bool:
        """Bring an archived record back; False if it is not archived. A rule over the cap moves another out."""
        return await self._restand(owner, identifier, Standing.ARCHIVED, Standing.ACTIVE)

    async def forget(self, owner: str, what: str) -> ForgettingReport:
        """Forget what words, an id, or the first 8 or more characters of an id name: records, and what still tells it.

        What is removed no search, prompt, summary or transcript tells again.
        """
        checked_text(what, "what to forget", self.ports.config.max_query_characters, "max_query_characters")
        checked_owner(owner)
        await self.settle()
        every = await self.ports.store.alist(owner, None, tuple(Standing))
        by_id = [one for one in every if one.id == what or (len(what) >= SHORT_ID and one.id.startswith(what))]
        if by_id:
            return await self.forget_records(owner, [one.id for one in by_id])
        records = with_namesakes(with_replaced(matching_records(what, every), every), every)
        return await self._forget(owner, records, [telling_words(what)] if len(telling_words(what)) > 1 else [])

    async def forget_records(self, owner: str, ids: Sequence[str], *, durable: bool = False) -> ForgettingReport:
        """Forget records by their ids, and what still holds them; `durable` for good.

        What they had replaced is used again.
        """
        await self.settle()
        records = await self.ports.store.aget(checked_owner(owner), [record_id(one) for one in ids])
        if durable:
            self.ports.tombstones.bury(owner, [text for one in records for text in texts_of(one.content)])
        return await self._forget(owner, records, [])

    async def _forget(
        self, owner: str, records: Sequence[MemoryRecord], named: Sequence[frozenset[str]]
    ) -> ForgettingReport:
        values = [*values_of(one for one in records if not isinstance(one.content, Arc)), *named]
        ids = [one.id for one in records]
        async with self.ports.store.lock(f"memory/{owner}"):
            # First what could bring it back: after a crash in between, the request can be repeated.
            turns = 0
            for active in await self.ports.store.aactive(owner) if values else ():
                async with self.ports.store.lock(f"session/{owner}/{active.session}"):
                    turns += await self._cut_session(owner, active.session, values)
            summaries = await self._cut_arcs(owner, values, ids)
            await self._delete_under_lock(owner, ids)
        return ForgettingReport(records=records, summaries=summaries, turns=turns)

    async def _cut_session(self, owner: str, session: str, values: Sequence[frozenset[str]]) -> int:
        buffer = await self.ports.store.aload(owner, session)
        if buffer is None:
            return 0
        cut = cut_buffer(buffer, values)
        if cut != buffer:
            await self.ports.store.asave(cut, rewrite=True)
        return sum(one != other for one, other in zip(cut.turns, buffer.turns, strict=True))

    async def _cut_arcs(self, owner: str, values: Sequence[frozenset[str]], spared: Sequence[str]) -> int:
        arcs = await self.ports.store.alist(owner, Layer.EPISODIC, tuple(Standing))
        told = [one for one in arcs if one.id not in spared and holds_value(text_of(one.content), values)]
        left = [(one, cut_arc(one.content, values)) for one in told if isinstance(one.content, Arc)]
        changed = [replace(one, content=arc) for one, arc in left if arc is not None]
        if changed:
            await self.ports.store.aput_batch(await self.embeddings.embedded(changed))
        await self.ports.store.adelete(owner, [one.id for one, arc in left if arc is None])
        return len(left)

    async def about(self, owner: str, things: Sequence[str]) -> list[MemoryRecord]:
        """Return the records, whatever their standing, that are about any of these things."""
        every = await self.ports.store.alist(checked_owner(owner), None, tuple(Standing))
        return [one for one in every if is_about(" ".join(texts_of(one.content)), things)]

    async def export(self, owner: str) -> dict[str, Tree]:
        """Return all that is remembered of an owner as JSON; audit and feedback are not memory (SEC-11)."""
        records = await self.ports.store.alist(owner, None, tuple(Standing))
        found = [await self.ports.store.aload(owner, one.session) for one in await self.ports.store.aactive(owner)]
        active = [buffer for buffer in found if buffer is not None]
        return {
            "format": "memstory.layers/1",
            "owner": owner,
            "exported_at": iso_now(self.ports.clock.now()),
            "records": [record_data(record) for record in records],
            "active_sessions": [
                {
                    "session": buffer.session,
                    "turns": [{"user": turn.user, "assistant": turn.assistant} for turn in buffer.turns],
                    "held": [content_data(one.content) for one in buffer.held],
                }
                for buffer in active
            ],
        }

    async def embed_missing(self, owner: str) -> int:
        """Embed what was written while the embedder was down; return how many rows have a vector now."""
        done = 0
        while rows := await self.ports.store.awithout_vector(owner, EMBED_BATCH):
            found = [row for row in await self.embeddings.embedded(rows) if row.vector is not None]
            if not found:
                break
            await self.ports.store.aput_batch(found)
            done += len(found)
        return done

    async def counts(self, owner: str) -> dict[str, Tree]:
        """Return how many records each layer has, by what stores call it and by what people do."""
        found = await self.ports.store.acounts(owner)
        active = {str(layer): found.get((layer, Standing.ACTIVE), 0) for layer in Layer}
        return {
            "counts": active,
            "labels": {str(layer): label for layer, label in LABELS.items()},
            "archived": sum(n for (_, standing), n in found.items() if standing is Standing.ARCHIVED),
            "superseded": sum(n for (_, standing), n in found.items() if standing is Standing.SUPERSEDED),
            "damaged": len(await self.ports.store.adamaged_ids(owner)),
            "unreadable": await self.ports.store.alost(),
        }

    async def _plan(self, plan: WritePlan, content: Content) -> WriteOutcome:
        fit, why_not = await self._guard(plan.owner, content)
        if why_not:
            return WriteOutcome(outcome="dropped", reason=why_not)
        if isinstance(fit, Arc):
            return WriteOutcome(outcome="stored", id=plan.add(self.ports.new_id(), fit).id)
        return await self.writer.plan(plan, self.ports.new_id(), fit, or_coexist=True)

    async def _guard(self, owner: str, content: object) -> tuple[Content, str | None]:
        """Return the content as it may be stored for this owner, and why it may not be."""
        fit, why_not = self._fit(content)
        gone = (self.ports.tombstones.reason(owner, text) for text in texts_of(fit))
        why_not = why_not or next((reason for reason in gone if reason), None)
        if not why_not and isinstance(fit, Rule):
            why_not = await veto(self.ports.model, fit)
        return fit, why_not

    def _fit(self, content: object) -> tuple[Content, str | None]:
        """Return the content as it may be stored, and why it may not be; InputError for anything else."""
        given = checked_content(content)
        try:
            given = without_secrets(given, self.ports.config)
        except InputError as refusal:
            return given, str(refusal)
        if isinstance(given, Arc):
            fit_arc = replace(given, summary=one_line(given.summary), topics=tuple(map(one_line, given.topics)))
            texts = (fit_arc.summary, *fit_arc.topics)
            if not fit_arc.summary or len(fit_arc.summary) > MAX_NOTE or not all(map(is_storable, texts)):
                return given, MALFORMED
            return fit_arc, next((why_not for text in texts if (why_not := text_refusal_reason(text))), None)
        fit = normal_content(given, longest=MAX_NOTE if is_note(given) else MAX_PART)
        if fit is None:
            return given, MALFORMED
        return fit, refusal_reason(fit, ()) or session_only_reason(fit)

    async def _delete_under_lock(self, owner: str, ids: Sequence[str], kept: str | None = None) -> None:
        """Delete records, the owner's lock being held; what they had replaced is now replaced by `kept`, or nothing."""
        gone = {
            record.id: replace(record, superseded_by=record.superseded_by or kept)
            for record in await self.ports.store.aget(owner, ids)
        }
        plan = WritePlan(owner=owner, session=None, now=self.ports.clock.now())
        for layer in {record.layer for record in gone.values()}:
            replaced = await self.ports.store.alist(owner, layer, [Standing.SUPERSEDED])
            for record in records_to_release(replaced, gone, plan.now):
                plan.change(record)
            if layer is Layer.PROCEDURAL and plan.rows:
                await self.writer.cap(plan)
        # A process that dies between the two leaves both: the delete is asked again.
        if plan.rows:
            await self.ports.store.aput_batch(list(plan.rows.values()))
        await self.ports.store.adelete(owner, ids)

    async def _restand(self, owner: str, identifier: str, old: Standing, new: Standing) -> bool:
        async with self.ports.store.lock(f"memory/{owner}"):
            record = await self.get(owner, identifier)
            if record is None or record.standing is not old:
                return False
            now = self.ports.clock.now()
            plan = WritePlan(owner=owner, session=None, now=now)
            plan.change(replace(record, standing=new, updated_at=now))
            if record.layer is Layer.PROCEDURAL:
                await self.writer.cap(plan)
            await self.ports.store.aput_batch(list(plan.rows.values()))
        return True


def texts_of(content: Content) -> tuple[str, ...]:
    """Return what a content tells, and the words of which it was made."""
    return (text_of(content),) if isinstance(content, Arc) else (text_of(content), content.evidence_quote)


def record_id(identifier: object) -> str:
    """Return the id of a record; an id that cannot exist finds nothing, a value that is not a string is refused."""
    if not isinstance(identifier, str):
        raise InputError(f"the id of a record is a text, not {type(identifier).__name__}")
    return identifier


def record_data(record: MemoryRecord) -> dict[str, Tree]:
    """Return a record as JSON, without its vector."""
    return {
        "id": record.id,
        "type": str(record.layer),
        "content": content_data(record.content),
        "created_at": iso_now(record.created_at),
        "updated_at": iso_now(record.updated_at),
        "session": record.session,
        "count": record.count,
        "standing": str(record.standing),
        "superseded_by": record.superseded_by,
    }
