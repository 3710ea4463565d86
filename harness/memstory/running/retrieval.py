"""Runs a retrieval task: remember every document, ask every question, record ids only; once for each level."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Final, TypeAlias
from weakref import finalize

from memstory.contract.codec import decode, encode
from memstory.contract.errors import NotSupported, Refused, StoryError, TargetError
from memstory.contract.target import (
    Capability,
    Environment,
    Hit,
    Item,
    ModelUse,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Request,
    Scope,
    Target,
    TargetFactory,
    Tree,
)
from memstory.contract.values import HELD
from memstory.controls import Oracle, OracleFactory
from memstory.datasets import load_distractors
from memstory.language.story import Retrieval
from memstory.models.question_answers import QuestionAnswers
from memstory.results.folder.spool import Histories, history_key
from memstory.results.recording import Footprint, QuestionRecord, RetrievalRecord
from memstory.results.runs import quantity
from memstory.running.hosting.guarded import GuardedTarget
from memstory.running.stage import FIRST_SESSION, Stage, for_collection, open_stage
from memstory.tasks.perturbation import (
    PerturbedCollection,
    level_name,
    levels_of,
    perturb_collection,
    with_labels,
)
from memstory.tasks.retrieval import Collection, Document, Many, Question, RetrievalTask, as_turn, collection_of_turns

AS_TURNS = "add.turns"
"""The capability of a target that takes speaker, session and said_at apart from the words."""

BATCH: Final = 10_000
"""How many documents are added in one call."""

_FIRST_BATCH, _LARGER = 20, 5
"""Where time is limited, the first batch is small, and each further one several times as large."""

_SHOWS: Final = 0.1
"""After this share of the time, the last batch shows how long the rest will take; before, most of it is the start."""

_BETWEEN_VERSIONS = timedelta(hours=1)
_WITH_METADATA = ("add.metadata", "add.turns", "search.where")
_WAYS = ("update", "supersede")

_Parts: TypeAlias = Sequence[tuple[Sequence[Document], Receipt]]
"""Documents that were written together, and what the memory said of them."""

Progress = Callable[[int, int, str], None]
"""`progress(done, total, what)`, called after each collection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """What a story says of its retrieval task; `seed` is the trial's own.

    `base` is the folder of its file, below whose root its data lie, or `anywhere`. What each collection gave is kept in
    `histories`, and taken from there, under `key` and what names the collection. `answers` answers each question from
    the first k texts.
    """

    task: RetrievalTask
    retrieval: Retrieval
    perturb: Mapping[str, Tree]
    seed: int
    base: Path
    anywhere: bool = False
    limit: Limit | None = None
    histories: Histories | None = None
    key: Sequence[Tree] = ()
    answers: QuestionAnswers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """What one collection gave at one level."""

    about: Mapping[str, str]
    refused: Sequence[str]
    questions: Sequence[QuestionRecord]
    documents: int
    add_seconds: float
    add_embedding_seconds: float | None
    add_model: ModelUse | None
    footprint: Footprint | None = None


async def run_retrieval(
    plan: TaskPlan, env: Environment, factory: TargetFactory, progress: Progress | None, *, hosted: bool = False
) -> AsyncIterator[tuple[RetrievalRecord, Mapping[str, str]]]:
    """Yield for each level what the collections gave, each in its own memory, and what the target said about itself.

    Raises:
        StoryError: a perturbation that these data do not have, or have too little of.
        NotSupported: a perturbation that the target cannot take.
    """
    levels = levels_of(plan.perturb)
    as_turns = AS_TURNS in factory.capabilities(env.options)
    drawn = any(level.get("distractors") for level in levels)
    pool = load_distractors(plan.retrieval, plan.base, anywhere=plan.anywhere) if drawn else ()
    pool = tuple(map(as_turn, pool)) if as_turns else pool
    if any(level.get("stale_repeats") for level in levels):
        documents = [document for collection in plan.task.collections for document in collection.documents]
        refuse_outdated(documents, factory.capabilities(env.options))
    # The oracle needs the gold in this process.
    apart = hosted and not isinstance(factory, OracleFactory)
    collections, done = plan.task.collections, 0
    audited: dict[str, Sequence[str]] = {}
    for level in levels:
        results: list[_Result] = []
        for collection in map(collection_of_turns, collections) if as_turns else collections:
            harder = _perturb(plan, collection, level, pool)
            audited.update((one.id, one.audited) for one in harder.collection.questions if one.audited is not None)
            key = history_key(*plan.key, plan.task.digest, plan.seed, dict(level), collection.id)
            before = plan.histories.take(key) if plan.histories else None
            if before is None:
                own = for_collection(env, done)
                if plan.retrieval.preloaded:
                    own = replace(own, owner=str(plan.retrieval.user), preloaded=True)
                stage = open_stage(own, factory, hosted=apart)
                run_one = _one_preloaded if plan.retrieval.preloaded else _one_collection
                results.append(await run_one(harder, plan, stage, factory))
                if plan.histories:
                    plan.histories.keep(key, encode(results[-1]))
            else:
                results.append(decode(_Result, before))
            done += 1
            if progress is not None and before is None:
                progress(done, len(levels) * len(collections), _progress_text(harder.collection, level))
        record = _record(plan, level, results)
        if any(collection.is_dialogue for collection in collections):
            record = replace(record, as_turns=as_turns)
        for one in _by_labels(record, plan.retrieval.labels, audited):
            yield one, results[-1].about if results else {}


def _by_labels(
    record: RetrievalRecord, labels: str | None, audited: Mapping[str, Sequence[str]]
) -> Iterator[RetrievalRecord]:
    """Yield a record, and where labels were examined, what came back held against those labels too."""
    if labels is None:
        yield record
        return
    published, examined = with_labels([record.level], labels)
    other = sum(one.id in audited for one in record.counted)
    note = f"the audit names other evidence for {other} of the {len(record.counted)} judged questions"
    record = replace(record, level=published, notes=(*record.notes, note))
    yield record
    questions = [
        replace(one, relevant=tuple(audited[one.id]), judged=True) if one.id in audited else one
        for one in record.questions
    ]
    yield replace(record, level=examined, questions=tuple(questions))


async def _one_collection(task: PerturbedCollection, plan: TaskPlan, stage: Stage, factory: TargetFactory) -> _Result:
    retrieval, able = plan.retrieval, factory.capabilities(stage.env.options)
    # What did not open is not closed: its own error is the one to be told.
    await stage.open()
    try:
        if isinstance(stage.target, GuardedTarget) and isinstance(stage.target.inner, Oracle):
            stage.target.inner.take_gold(task.collection)
        used, begun = stage.usage(), perf_counter()
        rememberer = Rememberer(stage, able, retrieval.kind, plan.limit)
        ids = await rememberer.remember(task)
        seconds, usage = perf_counter() - begun, stage.usage()
        footprint = await stage.footprint()
        asker = Asker(stage, retrieval, lambda hit: ids.of(hit.id, hit.text), plan.answers)
        return _Result(
            about=await stage.target.perform(Request.of(Target.about)),
            questions=await _ask_all(asker, task.collection.questions, plan.limit),
            documents=len(task.collection.documents),
            refused=tuple(f"{task.collection.id}: {one}" for one in rememberer.refused),
            add_seconds=seconds,
            add_embedding_seconds=usage.since(used).embedding_seconds,
            add_model=usage.model,
            footprint=footprint,
        )
    finally:
        await stage.close()


async def _one_preloaded(task: PerturbedCollection, plan: TaskPlan, stage: Stage, _: TargetFactory) -> _Result:
    """Ask a memory that was filled before, and do nothing else."""
    await stage.open()
    try:
        about = await stage.target.perform(Request.of(Target.about))
        held = about.get(HELD, "")
        if held == "0":
            raise StoryError(f"nothing is remembered of the user {plan.retrieval.user!r}", plan.retrieval.mark)
        asker = Asker(stage, plan.retrieval, partial(_given_id, plan.retrieval.ids), plan.answers)
        questions = await _ask_all(asker, task.collection.questions, plan.limit)
    finally:
        await stage.close()
    return _Result(
        about=about,
        refused=(),
        questions=questions,
        documents=int(held) if held.isdecimal() else 0,
        add_seconds=0.0,
        add_embedding_seconds=None,
        add_model=None,
    )


def _given_id(name: str, hit: Hit) -> Sequence[str]:
    """Return the id by which labels name a hit; TargetError where it has none."""
    own = {"id": hit.id, "key": hit.key}
    found = own[name] if name in own else hit.metadata.get(name)
    if isinstance(found, bool) or not isinstance(found, str | int):
        has = ", ".join([*(one for one, value in own.items() if value is not None), *hit.metadata]) or "none of them"
        raise TargetError(
            f"a hit has no {name!r}, by which labels would name it; it has {has}: 'ids' of the retrieval says which of "
            "id, key and the fields of its metadata is meant"
        )
    return [str(found)]


async def _ask_all(asker: Asker, questions: Sequence[Question], limit: Limit | None) -> list[QuestionRecord]:
    begun, records = perf_counter(), []
    first = 0.0
    for question in questions:
        records.append(await asker.ask(question))
        seconds = perf_counter() - begun
        # The first may pay for an index that adding put off: the others say how long the rest takes.
        first = first or seconds
        rest = (seconds - first) / max(1, len(records) - 1) * (len(questions) - len(records))
        if limit is not None and not limit.is_for_unnamed:
            limit.check(seconds, seconds + rest, f"ask {len(questions)} questions")
    return records


def _perturb(
    plan: TaskPlan, collection: Collection, level: Mapping[str, Tree], pool: Sequence[Document]
) -> PerturbedCollection:
    # Trials differ in what chance gives them; collections of one task do, too.
    seed = f"{plan.perturb.get('seed', 0)}/{plan.seed}/{collection.id}"
    try:
        return perturb_collection(collection, level, pool, seed)
    except ValueError as error:
        raise StoryError(f"perturb: {error}", plan.retrieval.mark) from error


def _progress_text(collection: Collection, level: Mapping[str, Tree]) -> str:
    documents = [quantity(len(collection.documents), "document")] if len(collection.documents) else []
    counts = ", ".join([*documents, quantity(len(collection.questions), "question")])
    return ", ".join(part for part in (f"{collection.id}: {counts}", level_name(level)) if part)


def _record(plan: TaskPlan, level: Mapping[str, Tree], results: Sequence[_Result]) -> RetrievalRecord:
    sizes = [one.documents for one in results]
    embedding = [one.add_embedding_seconds for one in results if one.add_embedding_seconds is not None]
    return RetrievalRecord(
        name=plan.task.name,
        digest=plan.task.digest,
        k=plan.retrieval.k,
        documents=sum(sizes),
        smallest=min(sizes, default=0),
        questions=tuple(question for one in results for question in one.questions),
        apart=tuple(plan.task.apart),
        unusable=tuple(plan.task.unusable),
        seconds=sum(one.add_seconds for one in results),
        embedding_seconds=sum(embedding) if results and len(embedding) == len(results) else None,
        level=level,
        cuts=tuple(plan.retrieval.cuts),
        refused=tuple(one for result in results for one in result.refused),
        notes=tuple(plan.task.notes),
        preloaded=plan.retrieval.user if plan.retrieval.preloaded else None,
        drawn_from=plan.task.drawn_from,
        footprint=max(results, key=lambda one: one.documents).footprint if results else None,
        model=sum(model, ModelUse()) if (model := [one.add_model for one in results if one.add_model]) else None,
    )


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks one memory the questions of a task."""

    stage: Stage
    retrieval: Retrieval
    documents_of: Callable[[Hit], Sequence[str]]
    answers: QuestionAnswers | None

    async def ask(self, question: Question) -> QuestionRecord:
        """Return the documents that came back, cut to k: a backend that returns more gains nothing by it."""
        depth, kinds = self.retrieval.depth, (self.retrieval.kind,) if self.retrieval.kind else ()
        asking = Request.of(
            Target.search, Query(text=question.text, kinds=kinds, top_k=depth), Scope(user=self.stage.env.owner)
        )
        used, begun = self.stage.usage(), perf_counter()
        hits = await self.stage.target.perform(asking)
        seconds, usage = perf_counter() - begun, self.stage.usage().since(used)
        best: dict[str, float | None] = {}
        first = hits[:depth]
        for hit in first:
            # Several pieces of one document count once, at the rank of the best of them.
            for document in self.documents_of(hit):
                best.setdefault(document, hit.score)
        texts = [hit.text for hit in first[: self.retrieval.k]]
        answer = await self.answers.answer(question, texts) if self.answers else None
        return QuestionRecord(
            answer=answer,
            id=question.id,
            relevant=tuple(question.relevant),
            retrieved=tuple(best)[:depth],
            scores=tuple(best.values())[:depth],
            category=question.category,
            judged=question.judged,
            seconds=seconds,
            embedding_seconds=usage.embedding_seconds,
            stale=tuple(question.stale),
            cluster=question.cluster,
            tokens=sum(map(_tokens, first)),
            surplus=max(len(hits) - depth, 0) or None,
            answerable=_answerable(hits),
            model=usage.model if usage.model and usage.model.calls > 0 else None,
        )


def _answerable(hits: Sequence[Hit]) -> float | None:
    """Return how sure a memory is of an answer, by the number `answerable` that its hits are explained with."""
    told = [(hit.explain or {}).get("answerable") for hit in hits]
    return max((float(one) for one in told if isinstance(one, int | float) and not isinstance(one, bool)), default=None)


def _tokens(hit: Hit) -> int:
    """Return about how many tokens a hit has: one for four characters, as English has it for usual tokenizers."""
    return -(-len(hit.text) // 4)


class _Named:
    """Document ids by a key, in the order in which they came: on disk, since a corpus may be larger than memory."""

    def __init__(self) -> None:
        # Without a name SQLite keeps a file of its own, of which two megabytes are in memory, and removes it.
        self._base = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._base.execute("CREATE TABLE named (key BLOB, id BLOB, UNIQUE (key, id))")
        self._base.execute("PRAGMA journal_mode = OFF")
        self._base.execute("BEGIN")
        finalize(self, self._base.close)

    def add(self, pairs: Iterable[tuple[object, str]]) -> None:
        rows = ((_stored(key), _stored(id_)) for key, id_ in pairs)
        self._base.executemany("INSERT OR IGNORE INTO named VALUES (?, ?)", rows)

    def of(self, key: object) -> list[str]:
        found = self._base.execute("SELECT id FROM named WHERE key = ? ORDER BY rowid", (_stored(key),))
        return [id_.decode("utf-8", "surrogatepass") for (id_,) in found]


def _stored(key: object) -> bytes:
    """Return a key as SQLite takes it: not every text of JSON is one of its texts."""
    return str(key).encode("utf-8", "surrogatepass")


class DocumentIds:
    """Which documents a hit stands for: an outdated version by its text, else by the id on its receipt, or by text."""

    def __init__(self, documents: Many[Document], outdated: Mapping[str, Sequence[str]] | None = None) -> None:
        self._by_id = _Named()
        # By the hash of their texts, which are long.
        self._by_text = _Named()
        self._documents = documents
        self._by_text.add((hash(document.text), document.id) for document in documents)
        # An outdated text may come back under the id of the current one: then it is not the document.
        self._add_outdated = {
            text: f"{id_}~{place}"
            for id_, texts in (outdated or {}).items()
            for place, text in enumerate(texts, start=1)
            if not self._by_text.of(hash(text))
        }

    def learn(self, added: Sequence[Document], receipt: Receipt) -> None:
        """Take note of the ids that the backend gave to what was added."""
        # One receipt item a document: they belong together by position. Otherwise the backend made pieces of them.
        if len(receipt.items) == len(added):
            pairs = zip(receipt.items, added, strict=True)
            self._by_id.add((item.id, document.id) for item, document in pairs if item.id is not None)
        else:
            named = (item for item in receipt.items if item.id is not None)
            self._by_id.add((item.id, id_) for item in named for id_ in self._by_content(item.text, added))

    def of(self, id_: str | None, text: str) -> list[str]:
        """Return the documents of a hit; one that nothing can be said about keeps its rank as `unknown:ID`."""
        if text in self._add_outdated:
            return [self._add_outdated[text]]
        known = self._by_id.of(id_) if id_ is not None else []
        if len(known) > 1:
            # A memory may take two documents for one; one that gives all the same id has not found them all.
            return [one for one in self._by_text.of(hash(text)) if one in known] or known
        return known or self._by_content(text, self._documents) or [f"unknown:{id_}"]

    def _by_content(self, text: str, documents: Many[Document]) -> list[str]:
        piece = text.strip()
        found = (document.id for document in documents if piece and piece in document.text)
        return self._by_text.of(hash(text)) or list(islice(found, 1))


def refuse_outdated(documents: Sequence[Document], able: frozenset[Capability]) -> None:
    """Raise NotSupported where nothing that a target can do makes a newer text of a document replace an older one."""
    keyed = "add.key" in able and all(document.key is not None for document in documents)
    if not keyed and able.isdisjoint(_WAYS):
        ways = "'update', 'supersede', or 'add.key' for documents that have keys"
        reason = f"'stale_repeats' needs a memory in which a newer text replaces an older one ({ways})"
        raise NotSupported("perturb.stale_repeats", reason)


@dataclass(frozen=True, slots=True)
class Limit:
    """How long remembering or asking may take, and whether that is only because nobody named the target."""

    seconds: float
    is_for_unnamed: bool = False

    def check(self, seconds: float, expected: float, work: str) -> None:
        """Raise NotSupported if `seconds` have shown that all the `work`, in words, would take too long."""
        if seconds >= self.seconds * _SHOWS and expected > self.seconds:
            hint = ", and nobody named this target: name it by --target" if self.is_for_unnamed else ""
            reason = f"not within {self.seconds:g} s: to {work} would take about {expected:.0f} s here{hint}"
            raise NotSupported("corpus.size", reason)


class Rememberer:
    """Adds documents to a memory; `able` is what its target can do, `kind` what documents without one are added as.

    With a `limit`, a memory that would take longer is left alone as soon as that shows.
    """

    def __init__(self, stage: Stage, able: frozenset[Capability], kind: str | None, limit: Limit | None = None) -> None:
        self._stage = stage
        self._limit = limit
        self._able = able
        # A memory may refuse fields that it does not know; one that searches by them knows any.
        self._takes_metadata = not able.isdisjoint(_WITH_METADATA)
        self._kind = kind
        self._scope = Scope(user=stage.env.owner, session=FIRST_SESSION)
        self.refused: list[str] = []

    async def remember(self, task: PerturbedCollection) -> DocumentIds:
        """Return how hits are distinguished, when everything is remembered and the target has settled."""
        documents, ages = task.collection.documents, task.outdated
        known = await self._add_outdated([one for one in documents if one.id in ages] if ages else [], ages)
        ids, begun, done = DocumentIds(documents, ages), perf_counter(), 0
        before = begun
        async for count, parts in self._written(iter(documents), known, loads="load" in self._able and not ages):
            for added, receipt in parts:
                ids.learn(added, receipt)
                self._note_dropped(added, receipt)
            done, now = done + count, perf_counter()
            if self._limit is not None:
                rest = (now - before) / count * (len(documents) - done)
                self._limit.check(now - begun, now - begun + rest, f"remember {len(documents)} documents")
            before = perf_counter()
        if self.refused and len(self.refused) == len(documents):
            raise Refused(f"every document was refused, the first: {self.refused[0]}")
        await self._stage.settle()
        return ids

    async def _written(
        self, documents: Iterator[Document], known: Mapping[str, str | None], *, loads: bool
    ) -> AsyncIterator[tuple[int, _Parts]]:
        """Write documents by the target's bulk path, or batch after batch; yield how many, and what was not refused."""
        if loads and self._limit is None:
            async for written in self._load(documents):
                yield written
        size = BATCH if self._limit is None else _FIRST_BATCH
        while batch := list(islice(documents, size)):
            if loads:
                async for written in self._load(iter(batch)):
                    yield written
            else:
                yield len(batch), await self._add_in_halves(batch, known)
            size = min(size * _LARGER, BATCH)

    async def _load(self, documents: Iterator[Document]) -> AsyncIterator[tuple[int, _Parts]]:
        """Load documents; where the target refuses, add what it had taken, and load the rest."""
        taken, is_over = deque[Document](), False

        def items() -> Iterator[Item]:
            nonlocal is_over
            for document in documents:
                taken.append(document)
                yield self._item(document, document.text)
            is_over = True

        while not is_over:
            try:
                async for receipt in self._stage.target.load(items(), self._scope):
                    if len(receipt.items) > len(taken):
                        raise TargetError(f"'load' gave {len(receipt.items)} lines for the {len(taken)} items it took")
                    loaded = [taken.popleft() for _ in receipt.items]
                    if loaded:
                        yield len(loaded), [(loaded, receipt)]
                if taken or not is_over:
                    raise TargetError(f"'load' ended before the last item, with {len(taken)} that have no receipt")
            except Refused:
                if not taken:
                    raise
                refused = list(taken)
                taken.clear()
                yield len(refused), await self._add_in_halves(refused, {})

    async def _add_in_halves(self, documents: Sequence[Document], known: Mapping[str, str | None]) -> _Parts:
        """Add documents; where some are refused, halve what was refused until only those are left out."""
        try:
            return [(documents, await self._write(documents, [one.text for one in documents], known))]
        except Refused as error:
            if len(documents) == 1:
                self.refused.append(f"{documents[0].id}: {error}")
                return []
        middle = len(documents) // 2
        return [
            *await self._add_in_halves(documents[:middle], known),
            *await self._add_in_halves(documents[middle:], known),
        ]

    def _note_dropped(self, documents: Sequence[Document], receipt: Receipt) -> None:
        """Count what a receipt says was not kept, as if it had been refused."""
        if len(receipt.items) == len(documents):
            self.refused += [
                f"{document.id}: {item.reason or item.outcome}"
                for document, item in zip(documents, receipt.items, strict=True)
                if not item.is_kept
            ]

    async def _add_outdated(
        self, changed: Sequence[Document], ages: Mapping[str, Sequence[str]]
    ) -> Mapping[str, str | None]:
        """Add the earlier texts, oldest first; return the id that the backend gave to each document."""
        known: dict[str, str | None] = {}
        for age in range(max(map(len, ages.values()), default=0)):
            receipt = await self._write(changed, [ages[document.id][age] for document in changed], known)
            if len(receipt.items) == len(changed):
                known.update((one.id, item.id) for one, item in zip(changed, receipt.items, strict=True))
            if "update" in self._able and not known:
                raise NotSupported("update", "'stale_repeats' needs a receipt with one id for each text that is added")
            await self._let_time_pass()
        return known

    async def _write(
        self, documents: Sequence[Document], texts: Sequence[str], known: Mapping[str, str | None]
    ) -> Receipt:
        """Add what is new in one call, then update one by one what a target can only replace by its id."""
        items = [self._item(document, text) for document, text in zip(documents, texts, strict=True)]
        updated = [place for place, document in enumerate(documents) if known and self._is_updated(document, known)]
        if not updated:
            return await self._stage.target.perform(Request.of(Target.add, items, self._scope))
        added = [place for place in range(len(items)) if place not in set(updated)]
        adding = Request.of(Target.add, [items[place] for place in added], self._scope)
        receipt = await self._stage.target.perform(adding) if added else Receipt()
        if len(receipt.items) != len(added):
            return receipt
        found: dict[int, ReceiptItem] = dict(zip(added, receipt.items, strict=True))
        for place in updated:
            found[place] = await self._update(known[documents[place].id], items[place])
        return Receipt(items=tuple(found[place] for place in range(len(items))))

    async def _update(self, id_: str | None, item: Item) -> ReceiptItem:
        if id_ is None:
            raise TargetError("'update' needs the id of what was added, but its receipt has none")
        try:
            updating = Request.of(Target.update, Ref(id=id_, kind=item.kind), item, self._scope)
            receipt = await self._stage.target.perform(updating)
        except Refused as error:
            # It has lost what it acknowledged: the questions will show that.
            return ReceiptItem(id=id_, text=item.text, outcome="skipped", reason=str(error))
        return receipt.items[0] if receipt.items else ReceiptItem(id=id_, text=item.text, outcome="updated")

    def _is_updated(self, document: Document, known: Mapping[str, str | None]) -> bool:
        """Say whether it replaces an earlier text by its id; a key does that by itself, where the target has keys."""
        has_usable_key = document.key is not None and "add.key" in self._able
        return document.id in known and not has_usable_key and "update" in self._able

    async def _let_time_pass(self) -> None:
        await self._stage.settle()
        if "clock" in self._able:
            await self._stage.move_to(self._stage.clock.now() + _BETWEEN_VERSIONS)

    def _item(self, document: Document, text: str) -> Item:
        metadata = document.metadata if self._takes_metadata else {}
        return Item(text=text, key=document.key, kind=document.kind or self._kind, metadata=metadata)
