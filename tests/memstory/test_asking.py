"""Retrieval tasks: what is remembered, asked and recorded."""

from __future__ import annotations

import json

import pytest

from memstory.cases import Case
from memstory.codec import encode
from memstory.controls import Oracle
from memstory.errors import Mark
from memstory.remembering import DocumentIds
from memstory.retrieval import Document
from memstory.runner import run
from memstory.story import Retrieval, Story
from memstory.target import Receipt, ReceiptItem, TargetFactory

MARK = Mark("quality/facts.yaml", 4, 1)
DOCUMENTS = [
    {"id": "d1", "text": "Ana drinks green tea"},
    {"id": "d2", "text": "The deadline is in May"},
    {"id": "d3", "text": "Ana has a green bike"},
]
QUERIES = [
    {"id": "q1", "text": "what tea does Ana drink", "relevant": ["d1"], "category": "food"},
    {"id": "q2", "text": "when is the deadline", "relevant": ["d2"]},
]


class Factory(TargetFactory):
    def __init__(self, kind):
        self.kind, self.opened = kind, []

    def capabilities(self, options):
        return frozenset({"add", "search"})

    def target(self):
        return self.kind()


@pytest.fixture
def ask(tmp_path):
    """Return a function that runs the task above on a target class."""

    def written(name, rows):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    async def go(kind=Oracle, k=2, progress=None, **story):
        written("facts.jsonl", DOCUMENTS)
        written("queries.jsonl", QUERIES)
        retrieval = Retrieval(mark=MARK, k=k, corpus="facts.jsonl", queries="queries.jsonl")
        made = Story(id="Q1", title="t", mark=MARK, digest="d", retrieval=retrieval, **story)
        workspace = tmp_path / "workspace"
        workspace.mkdir()
        return await run(Case(story=made, target="toy"), Factory(kind), workspace, base=tmp_path, progress=progress)

    return go


async def test_documents_are_added_at_once_and_answers_are_recorded_by_their_ids(ask):
    adds = []

    class Watched(Oracle):
        async def add(self, items, scope):
            adds.append(len(items))
            return await super().add(items, scope)

    recording = await ask(Watched)
    assert recording.failure is None
    assert adds == [3]
    (record,) = recording.retrieval
    assert (record.k, record.documents, record.smallest) == (2, 3, 3)
    assert [question.retrieved[0] for question in record.questions] == ["d1", "d2"]
    assert record.questions[0].category == "food"
    assert recording.about["memory"].startswith("oracle")


async def test_a_recording_holds_no_text_of_a_document(ask):
    assert "green tea" not in json.dumps(encode(await ask()))


async def test_a_backend_that_returns_more_than_k_is_cut(ask):
    class Generous(Oracle):
        async def search(self, query, scope):
            return await self.list(scope)

    recording = await ask(Generous, k=1)
    assert [len(question.retrieved) for question in recording.retrieval[0].questions] == [1, 1]


async def test_progress_is_told_for_every_collection(ask):
    told = []
    await ask(progress=lambda *said: told.append(said))
    assert told[0][:2] == (1, 1)
    assert "3 documents, 2 questions" in told[0][2]


async def test_a_missing_corpus_is_the_storys_mistake(tmp_path):
    retrieval = Retrieval(mark=MARK, corpus="nowhere.jsonl", queries="nowhere.jsonl")
    story = Story(id="Q1", title="t", mark=MARK, digest="d", retrieval=retrieval)
    recording = await run(Case(story=story, target="toy"), Factory(Oracle), tmp_path, base=tmp_path)
    assert recording.failure.kind == "invalid"
    assert "quality/facts.yaml:4:1" in recording.failure.message


def _ids(*items):
    return DocumentIds([Document(id="a", text="one two"), Document(id="b", text="three")], Receipt(items=items))


def test_receipts_of_as_many_items_belong_to_the_documents_by_position():
    ids = _ids(ReceiptItem(id="7", text="rewritten"), ReceiptItem(id="8", text="too"))
    assert (ids.of("7", ""), ids.of("8", "")) == (["a"], ["b"])


def test_pieces_belong_to_the_document_that_holds_their_text():
    ids = _ids(ReceiptItem(id="7", text="one"), ReceiptItem(id="8", text="two"), ReceiptItem(id="9", text="three"))
    assert [ids.of(id_, "") for id_ in "789"] == [["a"], ["a"], ["b"]]


def test_documents_that_the_backend_took_for_one_are_both_answered_by_it():
    ids = _ids(ReceiptItem(id="7", text="same"), ReceiptItem(id="7", text="same"))
    assert ids.of("7", "") == ["a", "b"]


def test_without_an_id_the_text_decides_and_a_strange_hit_keeps_its_rank():
    ids = _ids()
    assert ids.of(None, "three") == ["b"]
    assert ids.of("x", "never said") == ["unknown:x"]
