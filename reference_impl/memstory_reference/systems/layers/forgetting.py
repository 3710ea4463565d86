"""Forgets what a person names: the records, and what summaries and open sessions still hold of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from memstory_reference.systems.layers.operations.forget_requests import (
    FORGOTTEN,
    ForgetWish,
    drop_values,
    holds_value,
    matching_records,
    telling_words,
    values_of,
)
from memstory_reference.systems.layers.recall.embeddings import Embeddings
from memstory_reference.systems.layers.records.candidates import Candidate, SpokenTurn
from memstory_reference.systems.layers.records.record import IS_NAMED, Arc, Fact, Layer, MemoryRecord, Standing, text_of
from memstory_reference.systems.layers.records_desk import RecordsDesk, texts_of
from memstory_reference.systems.layers.stores.store import LayersStore

SHORT_ID = 8
_OPENING = "The user said:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingReport:
    """What was forgotten: records for good, and how many summaries and turns were cut."""

    records: Sequence[MemoryRecord] = ()
    summaries: int = 0
    turns: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        return not (self.records or self.summaries or self.turns)


class Forgetting:
    """Removes; what it has removed no search, prompt, summary or transcript tells again."""

    def __init__(self, *, store: LayersStore, desk: RecordsDesk, embeddings: Embeddings) -> None:
        self._store = store
        self._desk = desk
        self._embeddings = embeddings

    async def forget(self, owner: str, what: str) -> ForgettingReport:
        """Forget what words, an id, or the first 8 or more characters of an id name."""
        every = await self._store.alist(owner, None, tuple(Standing))
        by_id = [one for one in every if one.id == what or (len(what) >= SHORT_ID and one.id.startswith(what))]
        if by_id:
            return await self.forget_records(owner, [one.id for one in by_id])
        records = _with_namesakes(with_replaced(matching_records(what, every), every), every)
        return await self._forget(owner, records, [telling_words(what)] if len(telling_words(what)) > 1 else [])

    async def forget_records(self, owner: str, ids: Sequence[str], *, durable: bool = False) -> ForgettingReport:
        """Forget records by their ids, and what still holds them; `durable` for good."""
        records = await self._store.aget(owner, ids)
        if durable:
            self._desk.tombstones.bury(owner, [text for one in records for text in texts_of(one.content)])
        return await self._forget(owner, records, [])

    async def _forget(
        self, owner: str, records: Sequence[MemoryRecord], named: Sequence[frozenset[str]]
    ) -> ForgettingReport:
        values = [*values_of(one for one in records if not isinstance(one.content, Arc)), *named]
        ids = [one.id for one in records]
        async with self._store.lock(f"memory/{owner}"):
            # First what could bring it back: after a crash in between, the request can be repeated.
            turns = 0
            for active in await self._store.aactive(owner):
                async with self._store.lock(f"session/{owner}/{active.session}"):
                    turns += await self._cut_session(owner, active.session, values)
            summaries = await self._cut_arcs(owner, values, ids)
            await self._desk.delete_under_lock(owner, ids)
        return ForgettingReport(records=records, summaries=summaries, turns=turns)

    async def _cut_session(self, owner: str, session: str, values: Sequence[frozenset[str]]) -> int:
        buffer = await self._store.aload(owner, session)
        if buffer is None or not values:
            return 0
        cut = replace(
            buffer,
            turns=tuple(_cut_turn(turn, values) for turn in buffer.turns),
            held=tuple(one for one in buffer.held if not holds_value(_told_by(one), values)),
        )
        if cut != buffer:
            await self._store.asave(cut, rewrite=True)
        return sum(one != other for one, other in zip(cut.turns, buffer.turns, strict=True))

    async def _cut_arcs(self, owner: str, values: Sequence[frozenset[str]], spared: Sequence[str]) -> int:
        arcs = [one for one in await self._store.alist(owner, Layer.EPISODIC, tuple(Standing)) if one.id not in spared]
        changed, gone = list[MemoryRecord](), list[str]()
        for one in arcs:
            if not isinstance(one.content, Arc) or not holds_value(text_of(one.content), values):
                continue
            summary = drop_values(one.content.summary.removeprefix(_OPENING), values).strip()
            if not summary:
                gone.append(one.id)
                continue
            opening = f"{_OPENING} " if one.content.summary.startswith(_OPENING) else ""
            topics = tuple(topic for topic in one.content.topics if not holds_value(topic, values))
            changed.append(replace(one, content=replace(one.content, summary=opening + summary, topics=topics)))
        if changed:
            vectors = await self._embeddings.of_documents([text_of(one.content) for one in changed])
            await self._store.aput_batch([replace(one, vector=v) for one, v in zip(changed, vectors, strict=True)])
        await self._store.adelete(owner, gone)
        return len(changed) + len(gone)


def with_replaced(records: Sequence[MemoryRecord], every: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the records and all that they have replaced, which would be the answer again."""
    found = {one.id: one for one in records}
    while more := {one.id: one for one in every if one.superseded_by in found and one.id not in found}:
        found |= more
    return list(found.values())


def _with_namesakes(records: Sequence[MemoryRecord], every: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the records, and where a name is forgotten all facts and rules that tell it."""
    names = values_of(one for one in records if isinstance(one.content, Fact) and one.content.predicate == IS_NAMED)
    told = (one for one in every if not isinstance(one.content, Arc) and holds_value(text_of(one.content), names))
    return list({one.id: one for one in (*records, *told)}.values())


_ONE: Final = ("memory", "summary of a session", "turn of an open session")
_MANY: Final = ("memories", "summaries of sessions", "turns of open sessions")


def answer_to_wish(wish: ForgetWish, done: ForgettingReport, nearest: Sequence[MemoryRecord]) -> str:
    """Return what the person hears: what was forgotten, or what may have been meant."""
    if not done.is_empty:
        counts = (len(done.records), done.summaries, done.turns)
        words = zip(counts, _ONE, _MANY, strict=True)
        parts = [f"{count} {one if count == 1 else many}" for count, one, many in words if count]
        quoted = "; ".join(f'"{_label(one)}"' for one in done.records[:5])
        return f"Forgotten: {quoted or wish.what}. Removed or shortened: {', '.join(parts)}."
    if not nearest:
        return f'I found nothing to forget under "{wish.what}".'
    lines = [f'- "{_label(one)}" (id {one.id[:SHORT_ID]})' for one in nearest]
    return "\n".join(
        [f'I found nothing to forget under "{wish.what}". Did you mean one of these? Say "forget" and its id.', *lines]
    )


def _label(record: MemoryRecord) -> str:
    content = record.content
    return content.summary if isinstance(content, Arc) else content.evidence_quote or text_of(content)


def _cut_turn(turn: SpokenTurn, values: Sequence[frozenset[str]]) -> SpokenTurn:
    # Where the model was down there is no answer, and none that is forgotten.
    user, assistant = ((drop_values(one, values) or FORGOTTEN) if one else "" for one in (turn.user, turn.assistant))
    return replace(turn, user=user, assistant=assistant)


def _told_by(candidate: Candidate) -> str:
    return text_of(candidate.content)
