"""A memory that is filled already: what it is asked, what it is never asked, and what is said of it."""

import json
import sqlite3
from itertools import count

import pytest

from memstory.case import Case
from memstory.contract.errors import Mark, TargetError
from memstory.contract.target import Environment, Hit, Item, Request, Scope, Target, TargetFactory
from memstory.language.story import Retrieval, Story
from memstory.results.runs import documents_of, questions_of
from memstory.running.runner import RunOptions, run
from memstory.running.stage import open_stage

MARK = Mark("own/asked.yaml", 4, 1)
QUERIES = [{"id": f"q{number}", "text": f"row {number}", "relevant": [f"d{number}"]} for number in range(1, 6)]


class Emptying(Target):
    """A database of somebody's: whatever opens it for a case empties it first, unless it is preloaded."""

    def __init__(self, file, calls):
        self.file, self.calls = file, calls

    async def open(self, env, clock):
        self.db, self.env = sqlite3.connect(self.file), env
        self.calls.append(("open", env.owner, env.preloaded))
        if not env.preloaded:
            await self.reset()

    async def reset(self):
        self.db.execute("DELETE FROM rows")
        self.db.commit()

    async def close(self):
        self.calls.append(("close", self.env.owner, self.env.preloaded))
        if not self.env.preloaded:
            await self.reset()
        self.db.close()

    async def about(self):
        (held,) = self.db.execute("SELECT count(*) FROM rows WHERE user = ?", (self.env.owner,)).fetchone()
        return {"memories": str(held)} if self.factory.counts else {}

    async def perform(self, request):
        self.calls.append(request.op)
        return await super().perform(request)

    async def search(self, query, scope):
        asked = (scope.user, f"%{query.text}", query.top_k)
        rows = self.db.execute("SELECT id, text, doc FROM rows WHERE user = ? AND text LIKE ? LIMIT ?", asked)
        return [self.factory.hit(*row) for row in rows]

    async def add(self, items, scope):
        self.db.execute("INSERT INTO rows VALUES ('new', ?, 'x', 'x')", (scope.user,))
        self.db.commit()

    async def delete(self, ref, scope):
        await self.reset()


class Factory(TargetFactory):
    """Makes targets of one file that all cases share."""

    counts, shares_server = True, True

    def __init__(self, file, able=("search", "preloaded")):
        self.file, self.able, self.calls = file, frozenset(able), []

    def capabilities(self, options):
        return self.able

    def hit(self, id_, text, doc):
        return Hit(id=id_, text=text, key=f"key-{doc}", metadata={"doc": doc, "number": int(doc[1:])})

    def target(self):
        made = Emptying(self.file, self.calls)
        made.factory = self
        return made


@pytest.fixture
def filled(tmp_path):
    """Return the file of a memory with nine rows of ann and one of bob."""
    db = sqlite3.connect(tmp_path / "own.db")
    db.execute("CREATE TABLE rows (id, user, text, doc)")
    rows = [(f"d{number}", "ann", f"about row {number}", f"d{number}") for number in range(1, 10)]
    db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", [*rows, ("d1", "bob", "bob's row 1", "d1")])
    db.commit()
    db.close()
    return tmp_path / "own.db"


@pytest.fixture
def ask(tmp_path):
    number = count()

    async def go(factory, *, trial=0, **retrieval):
        (tmp_path / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in QUERIES))
        given = {"queries": "asked.jsonl", "preloaded": True, "user": "ann", "k": 3, **retrieval}
        story = Story(id="P1", title="t", mark=MARK, digest="d", retrieval=Retrieval(mark=MARK, **given),
                      needs=frozenset({"preloaded", "search"}))  # fmt: skip
        options = RunOptions(base=tmp_path)
        return await run(Case(story=story, target="own"), factory, tmp_path / f"w{next(number)}", options, trial=trial)

    return go


def rows_in(file):
    db = sqlite3.connect(file)
    found = db.execute("SELECT * FROM rows ORDER BY user, id").fetchall()
    db.close()
    return found


async def test_it_is_asked_for_the_storys_user_and_nothing_of_it_changes(filled, ask):
    before, bytes_before, factory = rows_in(filled), filled.read_bytes(), Factory(filled)
    for seed in range(2):
        recording = await ask(factory, trial=seed)
        assert recording.failure is None
    assert (len(before), rows_in(filled), filled.read_bytes()) == (10, before, bytes_before)
    assert factory.calls == 2 * [("open", "ann", True), "about", *["search"] * 5, ("close", "ann", True)]
    (record,) = recording.retrieval
    assert [one.retrieved for one in record.questions] == [(f"d{number}",) for number in range(1, 6)]
    assert (record.preloaded, record.documents, record.refused, record.seconds) == ("ann", 9, (), 0.0)
    assert documents_of(record) == "the preloaded memories of ann, 9 memories by the target's own count"


async def test_the_same_target_empties_itself_in_any_other_case(filled):
    factory = Factory(filled)
    stage = open_stage(Environment(workspace=str(filled.parent / "case"), owner="ann"), factory, hosted=False)
    await stage.open()
    await stage.close()
    assert rows_in(filled) == []


@pytest.mark.parametrize("request_of", [
    Request.of(Target.add, [Item(text="x")], Scope(user="ann")),
    Request.of(Target.delete, None, Scope(user="ann")),
    Request.of(Target.run, "cleanup", {}, Scope(user="ann")),
    Request.of(Target.time_moved),
], ids=lambda one: one.op)  # fmt: skip
async def test_nothing_but_a_question_gets_through_to_it(filled, request_of):
    factory = Factory(filled, ["search", "preloaded", "add", "delete"])
    env = Environment(workspace=str(filled.parent / "case"), owner="ann", preloaded=True)
    stage = open_stage(env, factory, hosted=False)
    await stage.open()
    with pytest.raises(TargetError, match=f"'{request_of.op}' was about to be done to a preloaded memory"):
        await stage.target.perform(request_of)
    with pytest.raises(TargetError, match="'load' was about"):
        stage.target.load(iter([]), Scope(user="ann"))
    await stage.close()
    assert len(rows_in(filled)) == 10
    assert factory.calls == [("open", "ann", True), ("close", "ann", True)]


async def test_a_target_that_is_not_marked_is_unsupported_and_not_opened(filled, ask):
    factory = Factory(filled, ["add", "search"])
    recording = await ask(factory)
    assert recording.failure.kind == "unsupported"
    assert "preloaded" in recording.failure.message
    assert factory.calls == []
    assert len(rows_in(filled)) == 10


async def test_one_that_does_not_say_how_much_it_holds_is_told_so(filled, ask):
    factory = Factory(filled)
    factory.counts = False
    (record,) = (await ask(factory)).retrieval
    assert (record.documents, documents_of(record)) == (0, "the preloaded memories of ann, nobody says how many")


async def test_a_user_of_whom_nothing_is_there_makes_the_story_wrong(filled, ask):
    recording = await ask(Factory(filled), user="carl")
    assert recording.failure.kind == "invalid"
    assert "'carl'" in recording.failure.message


@pytest.mark.parametrize(("ids", "expected"), [("id", "d1"), ("doc", "d1"), ("key", "key-d1"), ("number", "1")])
async def test_the_id_is_where_the_story_says(filled, ask, ids, expected):
    (record,) = (await ask(Factory(filled), ids=ids)).retrieval
    assert record.questions[0].retrieved == (expected,)


@pytest.mark.parametrize(("ids", "hit"), [
    ("id", Hit(id=None, text="x", metadata={"page": 7})),
    ("key", Hit(id="1", text="x", metadata={"page": 7})),
    ("doc", Hit(id="1", text="x", metadata={"page": 7, "doc": True})),
])  # fmt: skip
async def test_a_hit_without_an_id_is_an_error_that_says_what_it_has(filled, ask, ids, hit):
    factory = Factory(filled)
    factory.hit = lambda *_: hit
    recording = await ask(factory, ids=ids)
    assert recording.failure.kind == "error"
    assert f"no '{ids}'" in recording.failure.message
    assert "page" in recording.failure.message


async def test_a_sample_asks_so_many_questions_and_says_of_how_many(filled, ask):
    async def run_sample(**given):
        factory = Factory(filled)
        (record,) = (await ask(factory, **given)).retrieval
        assert factory.calls.count("search") == len(record.questions)
        return record, [one.id for one in record.questions]

    record, first = await run_sample(sample=3)
    assert (len(first), record.drawn_from, questions_of(record)) == (3, 5, "3 of 5 questions")
    assert record.notes == ("a sample: 3 of 5 questions, drawn with the seed 0",)
    assert (await run_sample(sample=3))[1] == first
    assert set((await run_sample(sample=2))[1]) < set(first) < set((await run_sample(sample=4))[1])
    others = [await run_sample(sample=3, seed=seed) for seed in range(1, 5)]
    assert any(ids != first for _, ids in others)
    assert len({one.digest for one, _ in [*others, (record, first)]}) == 5
    whole, all_of_them = await run_sample(sample=6)
    assert (len(all_of_them), whole.drawn_from, whole.digest) == (5, None, (await run_sample())[0].digest)
    assert whole.notes == ("all 5 questions: a sample of 6 was asked for, and there are no more",)
