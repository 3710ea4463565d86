"""Retrieval tasks: what is remembered, asked and recorded."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, islice
from typing import ClassVar

import pytest

from memstory.case import Case
from memstory.contract.codec import encode
from memstory.contract.errors import Mark, NotSupported, Refused
from memstory.contract.target import Item, Receipt, ReceiptItem, TargetFactory
from memstory.controls import Oracle
from memstory.datasets.jsonl import HELD
from memstory.language.story import Retrieval, Story
from memstory.running import retrieval
from memstory.running.retrieval import DocumentIds, Limit
from memstory.running.runner import RunOptions, run
from memstory.tasks.retrieval import Document

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
    def __init__(self, kind, able=()):
        self.kind, self.able = kind, able

    def capabilities(self, options):
        return frozenset({"add", "search", *self.able})

    def target(self):
        return self.kind()


@pytest.fixture
def ask(tmp_path):
    """Return a function that runs the task above on a target class."""

    number = count()

    def written(name, rows):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    async def go(kind=Oracle, *, k=2, progress=None, able=(), documents=DOCUMENTS, queries=QUERIES, seed=0,
                 is_named=True, distractors=None, within=None, **story):  # fmt: skip
        written("facts.jsonl", documents)
        written("queries.jsonl", queries)
        files = {"corpus": "facts.jsonl", "queries": "queries.jsonl", "distractors": distractors}
        retrieval = Retrieval(mark=MARK, k=k, within=within, **files)
        made = Story(id="Q1", title="t", mark=MARK, digest="d", retrieval=retrieval, **story)
        workspace = tmp_path / f"workspace-{next(number)}"
        factory = Factory(kind, able)
        options = RunOptions(base=tmp_path, progress=progress, is_named=is_named)
        return await run(Case(story=made, target="toy"), factory, workspace, options, trial=seed)

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


class Plain(Oracle):
    """Finds by words alone, as a backend does that nobody tells the answers."""

    def take_gold(self, collection):
        self.told = collection


def retrieved(recording):
    return [[question.retrieved for question in record.questions] for record in recording.retrieval]


async def test_every_level_is_a_record_of_its_own_in_a_memory_of_its_own(ask):
    recording = await ask(Plain, k=40, perturb={"distractors": [0, 30], "seed": 7})
    assert recording.failure is None
    assert [record.level for record in recording.retrieval] == [{"distractors": 0}, {"distractors": 30}]
    assert [record.documents for record in recording.retrieval] == [3, 33]
    assert {id_ for found in retrieved(recording)[0] for id_ in found} <= {"d1", "d2", "d3"}


async def test_every_trial_draws_distractors_of_its_own(ask):
    perturb = {"distractors": 30, "seed": 7}
    first, again, other = [retrieved(await ask(Plain, k=40, perturb=perturb, seed=seed)) for seed in (0, 0, 1)]
    assert first == again
    assert first != other


async def test_too_many_distractors_are_the_storys_mistake(ask):
    failure = (await ask(perturb={"distractors": 99_999})).failure
    assert failure.kind == "invalid"
    assert failure.message.startswith("quality/facts.yaml:4:1: perturb: 99999 distractors are asked for")


async def test_outdated_versions_need_a_target_in_which_something_replaces_them(ask):
    recording = await ask(perturb={"stale_repeats": 1})
    assert recording.failure.kind == "unsupported"
    assert "'stale_repeats' needs a memory in which a newer text replaces" in recording.failure.message
    assert recording.retrieval == ()


async def test_documents_are_told_as_they_were_and_then_updated(ask):
    said = []

    class Watched(Plain):
        async def add(self, items, scope):
            said.append(("add", [item.text for item in items]))
            return await super().add(items, scope)

        async def update(self, ref, item, scope):
            said.append(("update", item.text))
            return await super().update(ref, item, scope)

    documents = [{"id": "d1", "text": "The bus leaves at 9", "outdated": ["The bus leaves at 8"]}]
    queries = [{"id": "q1", "text": "when does the bus leave", "relevant": ["d1"]}]
    recording = await ask(Watched, able={"update"}, documents=documents, queries=queries, perturb={"stale_repeats": 2})
    assert said[1:] == [
        ("add", ["The bus leaves at 11"]),
        ("update", "The bus leaves at 8"),
        ("update", "The bus leaves at 9"),
    ]
    assert retrieved(recording) == [[("d1",)], [("d1",)]]


async def test_an_outdated_text_is_not_the_document_even_under_its_id(ask):
    class Stubborn(Plain):
        async def update(self, ref, item, scope):
            return Receipt()

    recording = await ask(Stubborn, able={"update"}, perturb={"stale_repeats": 1})
    assert recording.failure is None
    assert [found[0] for found in retrieved(recording)[1]] == ["d1~1", "d2~1"]


async def test_a_document_with_a_key_is_replaced_under_its_key(ask):
    documents = [{**row, "key": row["id"]} for row in DOCUMENTS]
    recording = await ask(Plain, able={"add.key"}, documents=documents, perturb={"stale_repeats": 2})
    assert recording.failure is None
    assert [found[0] for found in retrieved(recording)[1]] == ["d1", "d2"]


async def test_a_memory_that_has_lost_what_it_should_update_misses_it_and_breaks_nothing(ask):
    class Forgetful(Plain):
        async def update(self, ref, item, scope):
            await self.delete(ref, scope)
            raise Refused("no such memory")

    recording = await ask(Forgetful, able={"update"}, perturb={"stale_repeats": 1})
    assert recording.failure is None
    assert retrieved(recording)[1] == [(), ()]


async def test_an_hour_passes_between_versions_where_the_target_has_the_clock(ask):
    times = []

    class Timed(Plain):
        async def update(self, ref, item, scope):
            times.append(self._clock.now().hour)
            return await super().update(ref, item, scope)

    await ask(
        Timed, able={"update", "clock"}, documents=DOCUMENTS[:1], queries=QUERIES[:1], perturb={"stale_repeats": 2}
    )
    assert times == [13, 14]


async def test_variants_are_asked_and_recorded_as_questions_of_their_own(ask):
    queries = [{**QUERIES[0], "variants": ["which tea for Ana", "Ana drinks tea"]}]
    recording = await ask(Plain, queries=queries, perturb={"paraphrase": True})
    asked = [[question.id for question in record.questions] for record in recording.retrieval]
    assert asked == [["q1"], ["q1~1", "q1~2"]]


async def test_the_oracle_is_told_the_answers_which_it_could_not_find(ask):
    strange = [{"id": "q", "text": "zebra", "relevant": ["d2"]}]
    assert retrieved(await ask(Oracle, queries=strange)) == [[("d2",)]]
    assert retrieved(await ask(Plain, queries=strange)) == [[()]]


async def test_a_target_that_cannot_open_tells_why_though_it_cannot_close_either(ask):
    class Shut(Oracle):
        async def open(self, env, clock):
            raise RuntimeError("the door is locked")

        async def close(self):
            raise RuntimeError("nothing to close")

    assert "the door is locked" in (await ask(Shut)).failure.message


async def test_a_missing_corpus_is_the_storys_mistake(tmp_path):
    retrieval = Retrieval(mark=MARK, corpus="nowhere.jsonl", queries="nowhere.jsonl")
    story = Story(id="Q1", title="t", mark=MARK, digest="d", retrieval=retrieval)
    recording = await run(Case(story=story, target="toy"), Factory(Oracle), tmp_path, RunOptions(base=tmp_path))
    assert recording.failure.kind == "invalid"
    assert "quality/facts.yaml:4:1" in recording.failure.message


def _ids(*items):
    documents = [Document(id="a", text="one two"), Document(id="b", text="three")]
    ids = DocumentIds(documents)
    ids.learn(documents, Receipt(items=items))
    return ids


def test_receipts_of_as_many_items_belong_to_the_documents_by_position():
    ids = _ids(ReceiptItem(id="7", text="rewritten"), ReceiptItem(id="8", text="too"))
    assert (ids.of("7", ""), ids.of("8", "")) == (["a"], ["b"])


def test_pieces_belong_to_the_document_that_holds_their_text():
    ids = _ids(ReceiptItem(id="7", text="one"), ReceiptItem(id="8", text="two"), ReceiptItem(id="9", text="three"))
    assert [ids.of(id_, "") for id_ in "789"] == [["a"], ["a"], ["b"]]


def test_documents_that_the_backend_took_for_one_are_both_answered_by_it():
    ids = _ids(ReceiptItem(id="7", text="same"), ReceiptItem(id="7", text="same"))
    assert ids.of("7", "") == ["a", "b"]


def test_where_one_id_stands_for_all_documents_the_text_decides():
    ids = _ids(ReceiptItem(id="7", text="one two"), ReceiptItem(id="7", text="three"))
    assert (ids.of("7", "three"), ids.of("7", "one two")) == (["b"], ["a"])
    assert ids.of("7", "one two three") == ["a", "b"]


def test_without_an_id_the_text_decides_and_a_strange_hit_keeps_its_rank():
    ids = _ids()
    assert ids.of(None, "three") == ["b"]
    assert ids.of("x", "never said") == ["unknown:x"]


class Streamed(Sequence):
    """Documents that are made when they are asked for, as those of a large file are read."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, place):
        return Document(id=f"document-{place}", text=f"{place} was said")

    def __iter__(self):
        return map(self.__getitem__, range(self.size))


def test_the_ids_of_a_large_corpus_are_not_held_in_memory():
    documents = Streamed(6_000)
    tracemalloc.start()
    ids = DocumentIds(documents)
    for first in range(0, len(documents), 500):
        added = [documents[place] for place in range(first, first + 500)]
        ids.learn(added, Receipt(items=[ReceiptItem(id=f"own-{one.id}", text=one.text) for one in added]))
        del added
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ids.of("own-document-4321", "") == ["document-4321"]
    assert ids.of(None, "17 was said") == ["document-17"]
    assert kept < 20 * len(documents), kept


def test_ids_are_told_apart_whatever_characters_they_have():
    ids = _ids(ReceiptItem(id="\ud800", text="x"), ReceiptItem(id="7", text="y"))
    assert (ids.of("\ud800", ""), ids.of("\ud801", ""), ids.of("7", "")) == (["a"], ["unknown:\ud801"], ["b"])


TURNS = [{"id": f"t{n}", "text": f"Ana drinks tea number {n}", "metadata": {"speaker": "Ana"}} for n in range(50)]


async def test_a_slow_target_that_nobody_named_is_left_alone_after_the_first_documents(ask, monkeypatch):
    monkeypatch.setattr("memstory.running.runner.CORPUS_SECONDS", 0.0)
    recording = await ask(documents=TURNS, queries=[{"id": "q", "text": "tea", "relevant": ["t1"]}], measure=True)
    assert recording.failure is None
    recording = await ask(
        documents=TURNS, queries=[{"id": "q", "text": "tea", "relevant": ["t1"]}], measure=True, is_named=False
    )
    assert recording.failure.kind == "unsupported"
    assert "to remember 50 documents would take about" in recording.failure.message
    assert "name it by --target" in recording.failure.message


async def test_a_target_that_does_not_remember_within_the_time_of_the_story_is_unsupported_and_says_so(ask):
    queries = [{"id": "q", "text": "tea", "relevant": ["t1"]}]
    recording = await ask(documents=TURNS, queries=queries, within=0.0)
    assert recording.failure.kind == "unsupported"
    assert "not within 0 s: to remember 50 documents" in recording.failure.message
    assert "--target" not in recording.failure.message


async def test_within_an_hour_everything_is_remembered_in_batches_that_grow(ask):
    adds = []

    class Watched(Oracle):
        async def add(self, items, scope):
            adds.append(len(items))
            return await super().add(items, scope)

    documents = [{"id": f"t{n}", "text": f"tea number {n}"} for n in range(700)]
    queries = [{"id": "q", "text": "tea number 7", "relevant": ["t7"]}]
    recording = await ask(Watched, documents=documents, queries=queries, within=3600.0)
    assert recording.failure is None
    assert adds == [20, 100, 500, 80]


def test_what_the_start_costs_does_not_count_against_a_large_corpus():
    limit = Limit(30.0)
    limit.check(0.1, expected=500.0, work="remember")
    with pytest.raises(NotSupported, match="not within 30 s: to remember would take about 500 s here"):
        limit.check(3.1, expected=500.0, work="remember")
    limit.check(29.0, expected=29.5, work="remember")


async def test_a_target_that_is_too_slow_to_be_asked_is_unsupported_too(ask, monkeypatch):
    class Slow(Oracle):
        async def search(self, query, scope):
            passed.append(0.05)
            return await super().search(query, scope)

    passed = [0.0]
    monkeypatch.setattr(retrieval, "perf_counter", lambda: sum(passed))
    queries = [{"id": f"q{n}", "text": "tea", "relevant": ["t1"]} for n in range(2000)]
    recording = await ask(Slow, documents=TURNS, queries=queries, within=1.0)
    assert recording.failure.kind == "unsupported"
    assert "not within 1 s: to ask 2000 questions would take about" in recording.failure.message


async def test_a_target_whose_first_search_builds_an_index_is_measured(ask, monkeypatch):
    class Indexing(Oracle):
        is_indexed = False

        async def search(self, query, scope):
            passed.append(0.0 if self.is_indexed else 3.0)
            self.is_indexed = True
            return await super().search(query, scope)

    passed = [0.0]
    monkeypatch.setattr(retrieval, "perf_counter", lambda: sum(passed))
    queries = [{"id": f"q{n}", "text": "tea", "relevant": ["t1"]} for n in range(20)]
    recording = await ask(Indexing, documents=TURNS, queries=queries, within=4.0)
    assert recording.failure is None


@pytest.mark.parametrize("measure", [True, False])
async def test_a_target_that_takes_the_corpus_in_time_is_measured_whoever_named_it(ask, measure):
    queries = [{"id": "q", "text": "drinks tea number 7", "relevant": ["t7"]}]
    recording = await ask(documents=TURNS, queries=queries, measure=measure, is_named=False)
    (record,) = recording.retrieval
    assert (record.documents, record.questions[0].retrieved[0]) == (50, "t7")


@pytest.mark.parametrize(("able", "given"), [((), {}), (("search.where",), {"speaker": "Ana"})])
async def test_metadata_are_for_memories_that_search_by_them(ask, able, given):
    seen = []

    class Watched(Oracle):
        async def add(self, items, scope):
            seen.extend(item.metadata for item in items)
            return await super().add(items, scope)

    await ask(Watched, able=able, documents=TURNS[:2], queries=[{"id": "q", "text": "tea", "relevant": ["t1"]}])
    assert seen == [given, given]


async def test_a_large_corpus_is_added_in_batches(ask, monkeypatch):
    monkeypatch.setattr("memstory.running.retrieval.BATCH", 20)
    adds = []

    class Watched(Oracle):
        async def add(self, items, scope):
            adds.append(len(items))
            return await super().add(items, scope)

    queries = [{"id": "q", "text": "Ana drinks tea number 45", "relevant": ["t45"], "stale": ["t4"], "cluster": "s"}]
    recording = await ask(Watched, documents=TURNS, queries=queries)
    assert adds == [20, 20, 10]
    (asked,) = recording.retrieval[0].questions
    assert (asked.retrieved[0], asked.stale, asked.cluster) == ("t45", ("t4",), "s")
    assert asked.tokens == sum(-(-len(TURNS[int(found[1:])]["text"]) // 4) for found in asked.retrieved)


async def test_distractors_are_drawn_from_the_file_that_the_story_names(ask, tmp_path):
    rows = "".join(json.dumps({"id": f"x{n}", "text": f"Bo drinks coffee number {n}"}) + "\n" for n in range(9))
    (tmp_path / "other.jsonl").write_text(rows)
    added = []

    class Watched(Oracle):
        async def add(self, items, scope):
            added.append([item.text for item in items])
            return await super().add(items, scope)

    recording = await ask(Watched, perturb={"distractors": 5}, distractors="other.jsonl")
    assert [record.documents for record in recording.retrieval] == [3, 8]
    assert [sum("coffee" in text for text in texts) for texts in added] == [0, 5]


async def test_what_comes_beyond_k_gains_nothing_and_is_counted(ask):
    class Generous(Oracle):
        async def search(self, query, scope):
            return await self.list(scope)

    (record,) = (await ask(Generous, k=2)).retrieval
    assert [(len(question.retrieved), question.surplus) for question in record.questions] == [(2, 1), (2, 1)]
    (exact,) = (await ask(k=2)).retrieval
    assert [question.surplus for question in exact.questions] == [None, None]


async def test_how_sure_a_memory_says_it_is_of_an_answer_is_recorded(ask):
    class Sure(Oracle):
        explained: ClassVar = {"d1": {"answerable": 0.4}, "d2": {"answerable": True, "rank": 2}, "d3": None}

        async def search(self, query, scope):
            hits = await self.list(scope)
            return [replace(hit, explain=self.explained[f"d{n}"]) for n, hit in enumerate(hits, 1)]

    (record,) = (await ask(Sure)).retrieval
    assert [question.answerable for question in record.questions] == [0.4, 0.4]
    (silent,) = (await ask()).retrieval
    assert [question.answerable for question in silent.questions] == [None, None]


LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "Ana: that is me."},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a kite"},
        ],
    },
    "qa": [{"question": "who flies a kite?", "evidence": ["D1:2"], "category": 4}],
}


@pytest.mark.parametrize(
    ("able", "as_turns", "texts"),
    [
        ("add.turns", True, ["Ana: that is me.", "Look! [shares a kite]"]),
        (
            "add.wait",
            False,
            ["[1:56 pm on 8 May, 2023] Ana: Ana: that is me.", "[1:56 pm on 8 May, 2023] Bob: Look! [shares a kite]"],
        ),
    ],
)
async def test_locomo_gives_speaker_session_and_date_as_fields_to_a_target_of_turns_and_as_text_to_others(
    tmp_path, able, as_turns, texts
):
    given = []

    class Watched(Oracle):
        async def add(self, items, scope):
            given.extend(items)
            return await super().add(items, scope)

    (tmp_path / "locomo.json").write_text(json.dumps([LOCOMO]))
    retrieval = Retrieval(mark=MARK, k=2, dataset="locomo", path=str(tmp_path / "locomo.json"))
    made = Story(id="Q1", title="t", mark=MARK, digest="d", retrieval=retrieval)
    case, options = Case(story=made, target="toy"), RunOptions(base=tmp_path)
    recording = await run(case, Factory(Watched, [able]), tmp_path / "workspace", options, trial=0)
    assert recording.failure is None
    assert [one.text for one in given] == texts
    said = {"session": "session_1", "said_at": "2023-05-08T13:56:00"}
    fields = [{"speaker": name, **said} if as_turns else {} for name in ("Ana", "Bob")]
    assert [
        {name: value for name, value in one.metadata.items() if name in ("speaker", *said)} for one in given
    ] == fields
    assert recording.retrieval[0].as_turns is as_turns


async def test_of_documents_that_nobody_said_no_form_is_recorded(ask):
    (record,) = (await ask(able=("add.metadata", "add.turns"))).retrieval
    assert record.as_turns is None


class Loading(Oracle):
    """Loads three at a time, and declines a batch that holds a text with `declined`."""

    size, declined = 3, "nothing"
    batches: ClassVar[list[list[str]]]
    added: ClassVar[list[list[str]]]

    def __init_subclass__(cls):
        cls.batches, cls.added = [], []

    async def add(self, items, scope):
        self.added.append([item.text for item in items])
        if any(self.declined in item.text for item in items):
            raise Refused("not that")
        return await super().add(items, scope)

    async def load(self, items, scope):
        while batch := list(islice(items, self.size)):
            if any(self.declined in item.text for item in batch):
                raise Refused("not that")
            self.batches.append([item.text for item in batch])
            yield await super().add(batch, scope)


def many(number):
    return [{"id": f"d{place}", "text": f"text {place} of many"} for place in range(number)]


LAST = [{"id": "q", "text": "text 6 of many", "relevant": ["d6"]}]


async def test_a_corpus_goes_the_targets_own_bulk_path_where_it_has_one(ask):
    class Watched(Loading):
        pass

    recording = await ask(Watched, able=["load"], documents=many(7), queries=LAST)
    assert recording.failure is None
    assert (Watched.added, [len(batch) for batch in Watched.batches]) == ([], [3, 3, 1])
    assert recording.retrieval[0].questions[0].retrieved[0] == "d6"

    class Plain(Loading):
        pass

    await ask(Plain, documents=many(7), queries=LAST)
    assert (Plain.batches, [len(batch) for batch in Plain.added]) == ([], [7])


async def test_what_a_bulk_path_declines_is_left_out_alone_and_the_rest_is_loaded(ask):
    class Declining(Loading):
        declined = "text 4 "

    recording = await ask(Declining, able=["load"], documents=many(8), queries=LAST)
    assert recording.failure is None
    (record,) = recording.retrieval
    assert record.refused == ("facts: d4: not that",)
    assert record.questions[0].retrieved[0] == "d6"
    assert [len(batch) for batch in Declining.batches] == [3, 2]
    assert [len(batch) for batch in Declining.added] == [3, 1, 2, 1, 1]


async def test_time_that_is_limited_is_looked_at_between_larger_and_larger_loads(ask):
    class Limited(Loading):
        size = 10**6

    recording = await ask(Limited, able=["load"], documents=many(150), queries=LAST, within=1000.0)
    assert recording.failure is None
    assert [len(batch) for batch in Limited.batches] == [20, 100, 30]


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (lambda _: [Receipt(items=[ReceiptItem(id="1", text="x")] * 8)], "8 lines for the 0 items"),
        (lambda items: [Receipt() for _ in items], "7 that have no receipt"),
        (lambda items: [Receipt(items=[ReceiptItem(id=next(items).text, text="x")])], "ended before the last item"),
        (lambda _: [None], "'load' of the target returned a malformed answer"),
        (lambda _: ["yes"], "malformed answer: it is a str"),
    ],
)
async def test_a_bulk_path_that_does_not_keep_its_word_is_an_error(ask, load, said):
    class Wrong(Oracle):
        async def load(self, items, scope):
            for receipt in load(items):
                yield receipt

    recording = await ask(Wrong, able=["load"], documents=many(7), queries=LAST)
    assert recording.failure.kind == "error"
    assert said in recording.failure.message


async def test_a_bulk_path_that_is_none_is_an_error_that_says_what_is_missing(ask):
    class Coroutine(Oracle):
        async def load(self, items, scope):
            return Receipt()

    for kind, said in ((Coroutine, "no async generator"), (Oracle, "declares 'load'")):
        recording = await ask(kind, able=["load"], documents=many(7), queries=LAST)
        assert recording.failure.kind == "error"
        assert said in recording.failure.message


async def test_of_a_corpus_in_a_file_no_more_is_in_memory_than_goes_in_at_once(ask):
    alive = []

    class Counting(Loading):
        size = 500

        async def load(self, items, scope):
            while batch := list(islice(items, self.size)):
                alive.append(sum(type(one) in (Document, Item) for one in gc.get_objects()))
                yield Receipt(items=[ReceiptItem(id=item.text, text="") for item in batch])

        async def search(self, query, scope):
            return []

    number = HELD + 2_000
    recording = await ask(Counting, able=["load"], documents=many(number), queries=LAST)
    assert recording.failure is None
    assert len(alive) == number / 500
    # A document and an item of each that goes in at once, and what is read of the file at once.
    assert max(alive) <= 2 * 500 + 1_000 + 10
