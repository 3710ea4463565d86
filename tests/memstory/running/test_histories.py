"""A retrieval task of several histories: refusals, samples, several cuts, other labels, and a run that goes on."""

from __future__ import annotations

import json

import pytest

from memstory.case import Case
from memstory.contract.errors import Mark, Refused, TargetError
from memstory.contract.target import Receipt, ReceiptItem, TargetFactory
from memstory.controls import Oracle
from memstory.judging.evaluation import evaluate
from memstory.language.story import Retrieval, Story
from memstory.results.folder.spool import HISTORIES_NAME, Histories
from memstory.running.runner import RunOptions, run

MARK = Mark("q.yaml", 4, 1)


class Factory(TargetFactory):
    def __init__(self, kind):
        self.kind = kind

    def capabilities(self, options):
        return frozenset({"add", "search"})

    def target(self):
        return self.kind()


class Refusing(Oracle):
    """Takes nothing that has one of its words, nor anything of the same call."""

    words = ("PLACEHOLDER",)

    async def add(self, items, scope):
        if any(word in item.text for item in items for word in self.words):
            raise Refused("it looks like a key")
        return await super().add(items, scope)


def entry(number):
    return {
        "question_id": f"e{number}",
        "question_type": "multi-session",
        "question": f"Which dog is number {number}?",
        "answer": "a beagle",
        "haystack_session_ids": ["answer_1", "noise_1"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [
            [{"role": "user", "content": f"Dog number {number} is a beagle.", "has_answer": True}],
            [{"role": "user", "content": "key=PLACEHOLDER"}, {"role": "assistant", "content": "A ring is a set."}],
        ],
        "answer_session_ids": ["answer_1"],
    }


@pytest.fixture
def measure(tmp_path):
    """Return a function that runs a task of histories on a target class, and judges it."""

    async def go(kind=Oracle, *, histories=4, sample=None, kept=None, progress=None, **retrieval):
        (tmp_path / "set.json").write_text(json.dumps([entry(number) for number in range(histories)]))
        task = Retrieval(mark=MARK, k=1, dataset="longmemeval", path="set.json", **retrieval)
        story = Story(id="L", title="t", mark=MARK, digest="d", retrieval=task, measure=True)
        options = RunOptions(base=tmp_path, sample=sample, histories=kept, progress=progress)
        case = Case(story=story, target="toy")
        return evaluate(case, [await run(case, Factory(kind), tmp_path / "work", options)])

    return go


async def test_a_refused_document_is_a_miss_that_is_counted_and_the_case_goes_on(measure):
    result = await measure(Refusing)
    (record,) = result.retrieval
    assert result.outcome == "measured"
    assert result.metrics["recall@1"] == 1.0
    assert record.refused == tuple(f"e{number}: noise_1_1: it looks like a key" for number in range(4))
    assert any(one.startswith("4 of 12 documents were refused and count as missed") for one in result.warnings)


@pytest.mark.parametrize("outcome", ["dropped", "discarded"])
async def test_what_a_receipt_says_was_not_kept_counts_as_refused(measure, outcome):
    class Drops(Oracle):
        async def add(self, items, scope):
            done = [await super(Drops, self).add([one], scope) for one in items if "PLACEHOLDER" not in one.text]
            kept = iter(one for receipt in done for one in receipt.items)
            dropped = ReceiptItem(id=None, text="", outcome=outcome, reason="it looks like a key")
            return Receipt(items=[dropped if "PLACEHOLDER" in one.text else next(kept) for one in items])

    result = await measure(Drops)
    (record,) = result.retrieval
    assert record.refused == tuple(f"e{number}: noise_1_1: it looks like a key" for number in range(4))


async def test_gold_that_was_refused_is_missed(measure):
    class RefusesOne(Refusing):
        words = ("number 2",)

    result = await measure(RefusesOne)
    assert result.metrics["recall@1"] == 0.75
    assert [question.places for question in result.retrieval[0].questions] == [(1,), (1,), (), (1,)]


async def test_a_memory_that_takes_nothing_is_an_error_and_no_low_score(measure):
    class RefusesAll(Refusing):
        words = ("",)

    result = await measure(RefusesAll)
    assert (result.outcome, result.scores) == ("error", ())
    assert "every document was refused, the first: answer_1_1: it looks like a key" in result.reason


async def test_scores_are_taken_at_each_cut_from_one_search_of_the_deepest(measure):
    asked = []

    class Watched(Oracle):
        async def search(self, query, scope):
            asked.append(query.top_k)
            return await super().search(query, scope)

    result = await measure(Watched, cuts=[5, 3])
    assert set(asked) == {5}
    assert {"recall@1", "success@3", "success@5", "ndcg@5"} <= set(result.metrics)
    assert result.retrieval[0].cuts == (5, 3)


async def test_a_sample_is_the_same_in_every_run_and_says_so(measure):
    result = await measure(sample=2)
    (record,) = result.retrieval
    again = await measure(sample=3)
    assert len(record.questions) == 2
    assert {one.id for one in record.questions} < {one.id for one in again.retrieval[0].questions}
    assert "a sample: 2 of 4 histories" in record.notes
    assert record.digest != again.retrieval[0].digest


async def test_a_run_that_was_killed_goes_on_and_gives_the_same_figures(measure, tmp_path):
    opened = []

    class Dies(Oracle):
        async def open(self, env, clock):
            opened.append(env.owner)
            if len(opened) == 3:
                raise TargetError("killed")
            await super().open(env, clock)

    whole = await measure()
    broken = await measure(Dies, kept=Histories(tmp_path, lambda tree: tree))
    assert broken.outcome == "error"
    with (tmp_path / HISTORIES_NAME).open("a") as file:
        file.write('\n{"key": "a torn li')
    shown = []
    resumed = await measure(
        Dies, kept=Histories(tmp_path, lambda tree: tree), progress=lambda done, total, _: shown.append((done, total))
    )
    assert len(opened) == 5
    assert shown == [(3, 4), (4, 4)]
    assert resumed.metrics == whole.metrics
    assert [one.retrieved for one in resumed.retrieval[0].questions] == [
        one.retrieved for one in whole.retrieval[0].questions
    ]


async def test_what_is_kept_of_another_task_is_not_taken(measure, tmp_path):
    await measure(kept=Histories(tmp_path, lambda tree: tree))
    opened = []

    class Counted(Oracle):
        async def open(self, env, clock):
            opened.append(env.owner)
            await super().open(env, clock)

    await measure(Counted, kept=Histories(tmp_path, lambda tree: tree), cuts=[5])
    assert len(opened) == 4


async def test_the_same_hits_are_held_against_both_kinds_of_labels(tmp_path, monkeypatch):
    def turn(number, text):
        return {"speaker": "Ann", "dia_id": f"D1:{number}", "text": text}

    sample = {
        "sample_id": "conv-1",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": [turn(1, "tea"), turn(2, "kite")],
        },
        "qa": [
            {"question": "what did Ann fly", "answer": "a kite", "evidence": ["D1:1"], "category": 4},
            {"question": "what did Ann drink", "answer": "tea", "evidence": ["D1:1"], "category": 4},
        ],
    }  # fmt: skip
    audit = [{"question_id": "locomo_0_qa0", "question": "what did Ann fly", "correct_evidence": ["D1:2"]}]
    (tmp_path / "locomo.json").write_text(json.dumps([sample]))
    (tmp_path / "errors.json").write_text(json.dumps(audit))
    monkeypatch.setenv("MEMSTORY_LOCOMO_AUDIT", str(tmp_path / "errors.json"))
    task = Retrieval(mark=MARK, k=1, dataset="locomo", path="locomo.json", labels="audited")
    story = Story(id="L", title="t", mark=MARK, digest="d", retrieval=task, measure=True)
    case = Case(story=story, target="toy")
    recording = await run(case, Factory(Oracle), tmp_path / "work", RunOptions(base=tmp_path))
    published, audited = evaluate(case, [recording]).retrieval
    assert [dict(one.level) for one in (published, audited)] == [{"labels": "as published"}, {"labels": "audited"}]
    assert [one.retrieved for one in published.questions] == [one.retrieved for one in audited.questions]
    assert [one.relevant for one in audited.questions] == [("D1:2",), ("D1:1",)]
    assert "the audit names other evidence for 1 of the 2 judged questions" in audited.notes
