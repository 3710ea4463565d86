"""A made-up file in the form that the authors publish."""

import json

import pytest

from memstory.contract.errors import Mark, SetupError
from memstory.datasets import json_list, load_task
from memstory.language.story import Retrieval

MARK = Mark("stories/q.yaml", 4, 12)


def entry(id_, answering, *, kind="multi-session", labelled=True):
    told = {"role": "user", "content": "I adopted a beagle."} | ({"has_answer": True} if labelled else {})
    return {
        "question_id": id_,
        "question_type": kind,
        "question": "Which dog does the user have?",
        "answer": "a beagle",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["answer_1", "noise_1", "noise_1"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00", "2023/05/22 (Mon) 10:00"],
        "haystack_sessions": [
            [told, {"role": "assistant", "content": "Lovely!"}],
            [{"role": "user", "content": "What is a füzzy set?"}, {"role": "assistant", "content": "  "}],
            [{"role": "user", "content": "And a ring?"}],
        ],
        "answer_session_ids": answering,
    }


ENTRIES = [
    entry("e1", ["answer_1"]),
    entry("e2_abs", ["answer_1"], labelled=False),
    entry("e3", [], kind="temporal-reasoning", labelled=False),
]


def load(folder, content=ENTRIES, **retrieval):
    path = folder / "longmemeval_s.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1))
    return load_task(Retrieval(mark=MARK, dataset="longmemeval", path=str(path), **retrieval), folder)


def test_a_turn_is_a_memory_with_its_date_and_role(tmp_path):
    first = next(iter(load(tmp_path).collections))
    assert [(one.id, one.text) for one in first.documents] == [
        ("answer_1_1", "[2023/05/20 (Sat) 02:21] user: I adopted a beagle."),
        ("answer_1_2", "[2023/05/20 (Sat) 02:21] assistant: Lovely!"),
        ("noise_1_1", "[2023/05/21 (Sun) 10:00] user: What is a füzzy set?"),
        ("noise_1~2_1", "[2023/05/22 (Mon) 10:00] user: And a ring?"),
    ]
    assert first.documents[0].metadata["session"] == "answer_1"
    (question,) = first.questions
    assert (question.id, question.relevant, question.category) == ("e1", ("answer_1_1",), "multi-session")
    assert question.asked_at == "2023/05/30 (Tue) 23:40"


def test_a_session_is_a_memory_where_the_story_says_so(tmp_path):
    task = load(tmp_path, unit="session")
    first = next(iter(task.collections))
    assert task.name == "longmemeval-session"
    assert [one.id for one in first.documents] == ["answer_1", "noise_1", "noise_1~2"]
    assert first.documents[0].text == "[2023/05/20 (Sat) 02:21]\nuser: I adopted a beagle.\nassistant: Lovely!"
    assert first.questions[0].relevant == ("answer_1",)


def test_abstention_is_kept_apart_and_a_question_without_a_label_is_listed(tmp_path):
    task = load(tmp_path)
    questions = [question for collection in task.collections for question in collection.questions]
    assert [(one.category, one.relevant, one.judged) for one in questions[1:]] == [
        ("abstention", (), True),
        ("temporal-reasoning", (), False),
    ]
    assert task.apart == ("abstention",)
    assert task.unusable == ("e3: no turn is marked as its answer",)


@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_the_file_is_read_in_pieces_of_any_size(tmp_path, monkeypatch, size):
    monkeypatch.setattr(json_list, "_CHUNK", size)
    task = load(tmp_path)
    assert len(task.collections) == 3
    assert [collection.id for collection in task.collections] == ["e1", "e2_abs", "e3"]


@pytest.mark.parametrize(
    "content",
    ["{", "[1]", '{"a": 1}', '[{"question_id": "x"}]', '[{"question_id": ', "", json.dumps(ENTRIES)[:-1]],
    ids=["object", "number", "whole object", "bare", "cut", "empty", "no end"],
)
def test_a_file_of_another_format_says_so(tmp_path, content):
    with pytest.raises(SetupError, match=r"LongMemEval's format.*own file"):
        load(tmp_path, content)
