"""Runs a retrieval task: remember every document, ask every question, record ids only; once for each level."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from memstory.contract.errors import StoryError
from memstory.contract.target import Environment, Hit, ModelUse, Query, Request, Scope, Target, TargetFactory, Tree
from memstory.controls import Oracle, OracleFactory
from memstory.datasets import load_distractors
from memstory.language.story import Retrieval
from memstory.results.recording import QuestionRecord, RetrievalRecord
from memstory.results.runs import counted
from memstory.running.environments import for_collection
from memstory.running.hosting.guarded import GuardedTarget
from memstory.running.remembering import DocumentIds, Limit, Rememberer, refuse_outdated
from memstory.running.stage import Stage, open_stage
from memstory.tasks.perturbation import Perturbed, level_name, levels_of, perturbed
from memstory.tasks.retrieval import Collection, Document, Question, RetrievalTask, as_turn, turns_of

AS_TURNS = "add.turns"
"""The capability of a target that takes speaker, session and said_at apart from the words."""

Progress = Callable[[int, int, str], None]
"""`progress(done, total, what)`, called after each collection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a story says of its retrieval task; `seed` is the trial's own.

    `base` is the folder of its file, below whose root its data lie, or `anywhere`; remembering may take
    `corpus_seconds`, if that is limited: by the story, or where a target `hurries` because nobody named it.
    """

    task: RetrievalTask
    retrieval: Retrieval
    perturb: Mapping[str, Tree]
    seed: int
    base: Path
    anywhere: bool = False
    corpus_seconds: float | None = None
    hurries: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gave:
    """What one collection gave at one level."""

    about: Mapping[str, str]
    questions: Sequence[QuestionRecord]
    documents: int
    add_seconds: float
    add_embedding_seconds: float | None
    add_model: ModelUse | None


async def run_retrieval(
    asked: Asked, env: Environment, factory: TargetFactory, progress: Progress | None, *, hosted: bool = False
) -> AsyncIterator[tuple[RetrievalRecord, Mapping[str, str]]]:
    """Yield for each level what the collections gave, each in its own memory, and what the target said about itself.

    Raises:
        StoryError: a perturbation that these data do not have, or have too little of.
        NotSupported: a perturbation that the target cannot take.
    """
    levels = levels_of(asked.perturb)
    as_turns = AS_TURNS in factory.capabilities(env.options)
    drawn = any(level.get("distractors") for level in levels)
    pool = load_distractors(asked.retrieval, asked.base, anywhere=asked.anywhere) if drawn else ()
    pool = tuple(map(as_turn, pool)) if as_turns else pool
    if any(level.get("stale_repeats") for level in levels):
        documents = [document for collection in asked.task.collections for document in collection.documents]
        refuse_outdated(documents, factory.capabilities(env.options))
    # The oracle needs the gold in this process.
    apart = hosted and not isinstance(factory, OracleFactory)
    collections, done = asked.task.collections, 0
    for level in levels:
        gave: list[_Gave] = []
        for collection in map(turns_of, collections) if as_turns else collections:
            harder = _perturbed(asked, collection, level, pool)
            stage = open_stage(for_collection(env, done), factory, hosted=apart)
            gave.append(await _one_collection(harder, asked, stage, factory))
            done += 1
            if progress is not None:
                progress(done, len(levels) * len(collections), _said(harder.collection, level))
        record = _record(asked, level, gave)
        if any(collection.is_dialogue for collection in collections):
            record = replace(record, as_turns=as_turns)
        yield record, gave[-1].about if gave else {}


async def _one_collection(task: Perturbed, asked: Asked, stage: Stage, factory: TargetFactory) -> _Gave:
    retrieval, able = asked.retrieval, factory.capabilities(stage.env.options)
    # What did not open is not closed: its own error is the one to be told.
    await stage.open()
    try:
        if isinstance(stage.target, GuardedTarget) and isinstance(stage.target.inner, Oracle):
            stage.target.inner.take_gold(task.collection)
        begun, embedded = perf_counter(), stage.target.embedding_seconds
        limit = None if asked.corpus_seconds is None else Limit(asked.corpus_seconds, is_for_unnamed=asked.hurries)
        ids = await Rememberer(stage, able, retrieval.kind, limit).remember(task)
        seconds, embedding, model = perf_counter() - begun, stage.embedding_since(embedded), stage.model_use
        asker = Asker(stage, Scope(user=stage.env.owner), retrieval, ids)
        return _Gave(
            about=await stage.target.perform(Request.of(Target.about)),
            questions=await _asked(asker, task.collection.questions, limit),
            documents=len(task.collection.documents),
            add_seconds=seconds,
            add_embedding_seconds=embedding,
            add_model=model,
        )
    finally:
        await stage.close()


async def _asked(asker: Asker, questions: Sequence[Question], limit: Limit | None) -> list[QuestionRecord]:
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


def _perturbed(asked: Asked, collection: Collection, level: Mapping[str, Tree], pool: Sequence[Document]) -> Perturbed:
    # Trials differ in what chance gives them; collections of one task do, too.
    seed = f"{asked.perturb.get('seed', 0)}/{asked.seed}/{collection.id}"
    try:
        return perturbed(collection, level, pool, seed)
    except ValueError as error:
        raise StoryError(f"perturb: {error}", asked.retrieval.mark) from error


def _said(collection: Collection, level: Mapping[str, Tree]) -> str:
    counts = f"{counted(len(collection.documents), 'document')}, {counted(len(collection.questions), 'question')}"
    return ", ".join(part for part in (f"{collection.id}: {counts}", level_name(level)) if part)


def _record(asked: Asked, level: Mapping[str, Tree], gave: Sequence[_Gave]) -> RetrievalRecord:
    sizes = [one.documents for one in gave]
    embedding = [one.add_embedding_seconds for one in gave if one.add_embedding_seconds is not None]
    return RetrievalRecord(
        name=asked.task.name,
        digest=asked.task.digest,
        k=asked.retrieval.k,
        documents=sum(sizes),
        smallest=min(sizes, default=0),
        questions=tuple(question for one in gave for question in one.questions),
        apart=tuple(asked.task.apart),
        unusable=tuple(asked.task.unusable),
        seconds=sum(one.add_seconds for one in gave),
        embedding_seconds=sum(embedding) if gave and len(embedding) == len(gave) else None,
        level=level,
        model=sum(model, ModelUse()) if (model := [one.add_model for one in gave if one.add_model]) else None,
    )


class Asker:
    """Asks one memory the questions of a task."""

    def __init__(self, stage: Stage, scope: Scope, retrieval: Retrieval, ids: DocumentIds) -> None:
        self._stage = stage
        self._scope = scope
        self._k = retrieval.k
        self._kinds = (retrieval.kind,) if retrieval.kind else ()
        self._ids = ids

    async def ask(self, question: Question) -> QuestionRecord:
        """Return the documents that came back, cut to k: a backend that returns more gains nothing by it."""
        query = Query(text=question.text, kinds=self._kinds, top_k=self._k)
        begun, embedded, before = perf_counter(), self._stage.target.embedding_seconds, self._stage.model_use
        hits = await self._stage.target.perform(Request.of(Target.search, query, self._scope))
        seconds, embedding = perf_counter() - begun, self._stage.embedding_since(embedded)
        use = self._stage.model_use
        used = use.since(before) if use else None
        best: dict[str, float | None] = {}
        first = hits[: self._k]
        for hit in first:
            # Several pieces of one document count once, at the rank of the best of them.
            for document in self._ids.of(hit.id, hit.text):
                best.setdefault(document, hit.score)
        return QuestionRecord(
            id=question.id,
            relevant=tuple(question.relevant),
            retrieved=tuple(best)[: self._k],
            scores=tuple(best.values())[: self._k],
            category=question.category,
            judged=question.judged,
            seconds=seconds,
            embedding_seconds=embedding,
            stale=tuple(question.stale),
            cluster=question.cluster,
            tokens=sum(map(_tokens, first)),
            surplus=max(len(hits) - self._k, 0) or None,
            model=used if used and used.calls > 0 else None,
        )


def _tokens(hit: Hit) -> int:
    """Return about how many tokens a hit has: one for four characters, as English has it for usual tokenizers."""
    return -(-len(hit.text) // 4)
