"""Runs a retrieval task: remember every document, ask every question, record ids only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

from memstory.environments import for_collection
from memstory.recording import QuestionRecord, RetrievalRecord
from memstory.retrieval import Collection, Document, Question, RetrievalTask
from memstory.stage import FIRST_SESSION, open_stage
from memstory.story import Retrieval
from memstory.target import Environment, Hit, Item, Query, Receipt, Scope, Target, TargetFactory

Progress = Callable[[int, int, str], None]
"""`progress(done, total, what)`, called after each collection."""


class DocumentIds:
    """Which documents a hit stands for: by the id on its receipt, else by its text."""

    def __init__(self, documents: Sequence[Document], receipt: Receipt) -> None:
        self._by_id: dict[str, list[str]] = {}
        self._by_text: dict[str, list[str]] = {}
        self._documents = documents
        for document in documents:
            self._by_text.setdefault(document.text, []).append(document.id)
        # One receipt item a document: they belong together by position. Otherwise the backend made pieces of them.
        by_position = len(receipt.items) == len(documents)
        for number, item in enumerate(receipt.items):
            ids = [documents[number].id] if by_position else self._by_content(item.text)
            if item.id is not None:
                known = self._by_id.setdefault(item.id, [])
                known += [one for one in ids if one not in known]

    def of(self, hit: Hit) -> list[str]:
        """Return the documents of `hit`; one that nothing can be said about keeps its rank as `unknown:ID`."""
        if hit.id is not None and hit.id in self._by_id:
            return self._by_id[hit.id]
        return self._by_content(hit.text) or [f"unknown:{hit.id}"]

    def _by_content(self, text: str) -> list[str]:
        if text in self._by_text:
            return self._by_text[text]
        piece = text.strip()
        return [document.id for document in self._documents if piece and piece in document.text][:1]


async def run_retrieval(
    task: RetrievalTask, retrieval: Retrieval, env: Environment, factory: TargetFactory, progress: Progress | None
) -> tuple[RetrievalRecord, Mapping[str, str]]:
    """Return what every collection of `task` gave, each in a memory of its own, and what the target said of itself."""
    questions: list[QuestionRecord] = []
    about: Mapping[str, str] = {}
    add_seconds = 0.0
    for number, collection in enumerate(task.collections):
        stage = open_stage(for_collection(env, number), factory, hosted=False)
        try:
            await stage.open()
            about = await stage.target.about()
            seconds, records = await _one_collection(collection, retrieval, stage.target, stage.env.owner)
        finally:
            await stage.close()
        add_seconds += seconds
        questions += records
        if progress is not None:
            what = f"{collection.id}: {len(collection.documents)} documents, {len(collection.questions)} questions"
            progress(number + 1, len(task.collections), what)
    return _record(task, retrieval.k, questions, add_seconds), about


def _record(task: RetrievalTask, k: int, questions: Sequence[QuestionRecord], add_seconds: float) -> RetrievalRecord:
    sizes = [len(collection.documents) for collection in task.collections]
    return RetrievalRecord(
        name=task.name,
        digest=task.digest,
        k=k,
        documents=sum(sizes),
        smallest=min(sizes, default=0),
        questions=tuple(questions),
        apart=tuple(task.apart),
        unusable=tuple(task.unusable),
        add_seconds=add_seconds,
    )


async def _one_collection(
    collection: Collection, retrieval: Retrieval, target: Target, owner: str
) -> tuple[float, list[QuestionRecord]]:
    items = [
        Item(text=one.text, key=one.key, kind=one.kind or retrieval.kind, metadata=one.metadata)
        for one in collection.documents
    ]
    begun = perf_counter()
    receipt = await target.add(items, Scope(user=owner, session=FIRST_SESSION))
    await target.settle()
    add_seconds = perf_counter() - begun
    asker = Asker(target, Scope(user=owner), retrieval, DocumentIds(collection.documents, receipt))
    return add_seconds, [await asker.ask(question) for question in collection.questions]


class Asker:
    """Asks one memory the questions of a task."""

    def __init__(self, target: Target, scope: Scope, retrieval: Retrieval, ids: DocumentIds) -> None:
        self._target = target
        self._scope = scope
        self._k = retrieval.k
        self._kinds = (retrieval.kind,) if retrieval.kind else ()
        self._ids = ids

    async def ask(self, question: Question) -> QuestionRecord:
        """Return the documents that came back, cut to k: a backend that returns more gains nothing by it."""
        begun = perf_counter()
        hits = await self._target.search(Query(text=question.text, kinds=self._kinds, top_k=self._k), self._scope)
        seconds = perf_counter() - begun
        best: dict[str, float | None] = {}
        for hit in hits[: self._k]:
            # Several pieces of one document count once, at the rank of the best of them.
            for document in self._ids.of(hit):
                best.setdefault(document, hit.score)
        ranked = list(best.items())[: self._k]
        return QuestionRecord(
            id=question.id,
            relevant=tuple(question.relevant),
            retrieved=tuple(document for document, _ in ranked),
            scores=tuple(score for _, score in ranked),
            category=question.category,
            judged=question.judged,
            seconds=seconds,
        )
