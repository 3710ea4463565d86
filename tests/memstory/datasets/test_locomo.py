import doctest
import json
from collections import Counter

import pytest

from memstory.contract.errors import Mark, NotSupported, SetupError, StoryError
from memstory.datasets import load_task, locomo
from memstory.datasets.loading import place_of
from memstory.language.story import Retrieval

MARK = Mark("stories/q.yaml", 4, 12)

SAMPLE = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "session_10_date_time": "9:00 am on 2 June, 2023",
        "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "Later."}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Ann", "dia_id": "D2:1", "text": "Hello."},
            {
                "speaker": "Bob",
                "dia_id": "D2:2",
                "text": "Look!",
                "blip_caption": "a photo of a kite",
                "img_url": ["x"],
            },
        ],
        "session_3_date_time": "a date without turns",
    },
    "qa": [
        {"question": "one", "answer": 7, "evidence": ["D2:1; D2:2", "D:10:01"], "category": 1},
        {"question": "same", "evidence": ["D"], "category": 3},
        {"question": "same", "evidence": [], "category": 4},
        {"question": "other", "evidence": ["D2:1", "D2:9", "D2:1"], "category": 2},
        {"question": "false", "adversarial_answer": "no", "evidence": ["D10:1"], "category": 5},
    ],
}


def task_of(folder, samples):
    path = folder / "locomo.json"
    path.write_text(samples if isinstance(samples, str) else json.dumps(samples))
    return load_task(Retrieval(mark=MARK, dataset="locomo", path=str(path)), folder)


def questions_of(task):
    return {question.id: question for collection in task.collections for question in collection.questions}


def test_doctests_hold():
    assert doctest.testmod(locomo).failed == 0


def test_turns_become_documents_with_date_speaker_and_caption_in_the_order_of_sessions(tmp_path):
    (collection,) = task_of(tmp_path, [SAMPLE]).collections
    assert [(document.id, document.text) for document in collection.documents] == [
        ("D2:1", "[1:56 pm on 8 May, 2023] Ann: Hello."),
        ("D2:2", "[1:56 pm on 8 May, 2023] Bob: Look! [shares a photo of a kite]"),
        ("D10:1", "[9:00 am on 2 June, 2023] Ann: Later."),
    ]


def test_labels_are_split_and_slips_are_read(tmp_path):
    questions = questions_of(task_of(tmp_path, [SAMPLE]))
    assert questions["conv-1#0"].relevant == ("D2:1", "D2:2", "D10:1")
    assert questions["conv-1#3"].relevant == ("D2:1",)


def test_labels_that_name_no_turn_are_listed_and_never_guessed(tmp_path):
    task = task_of(tmp_path, [SAMPLE])
    assert task.unusable == (
        "conv-1#1: 'D' names no turn",
        "conv-1#2: no evidence is given",
        "conv-1#3: 'D2:9' names no turn",
    )
    questions = questions_of(task)
    assert [questions[f"conv-1#{index}"].judged for index in range(5)] == [True, False, False, True, True]


def test_categories_have_their_names_and_adversarial_is_kept_apart(tmp_path):
    task = task_of(tmp_path, [SAMPLE])
    names = [question.category for question in questions_of(task).values()]
    assert names == ["multi-hop", "open-domain", "single-hop", "temporal", "adversarial"]
    assert task.apart == ("adversarial",)


@pytest.mark.parametrize(
    "content",
    ["{", "[1]", '{"a": 1}', '[{"sample_id": "x"}]', "[" * 100_000, "\x00"],
    ids=["cut", "number", "object", "bare", "deep", "nul"],
)
def test_a_file_of_another_format_says_so_in_one_line(tmp_path, content):
    with pytest.raises(SetupError, match="own file"):
        task_of(tmp_path, content)


def test_an_unknown_category_is_not_guessed(tmp_path):
    odd = SAMPLE | {"qa": [SAMPLE["qa"][0] | {"category": 6}]}
    with pytest.raises(SetupError, match="KeyError: 6"):
        task_of(tmp_path, [odd])


def test_an_unknown_dataset_names_the_nearest(tmp_path):
    with pytest.raises(StoryError, match=r"q\.yaml:4:12: unknown dataset 'locomoo'.*Did you mean 'locomo'\?"):
        load_task(Retrieval(mark=MARK, dataset="locomoo"), tmp_path)


def test_the_real_file_gives_760_judged_questions(tmp_path):
    try:
        path = place_of("locomo").find(None, tmp_path, {"MEMSTORY_CACHE": str(tmp_path)})
    except NotSupported as absent:
        pytest.skip(str(absent))
    task = load_task(Retrieval(mark=MARK, dataset="locomo", path=str(path)), tmp_path, anywhere=True)
    judged = Counter(question.category for question in questions_of(task).values() if question.judged)
    assert judged == {"multi-hop": 142, "temporal": 156, "open-domain": 44, "single-hop": 418, "adversarial": 237}
    assert sum(len(collection.questions) for collection in task.collections) == 999
    assert sum(count for name, count in judged.items() if name not in task.apart) == 760


def test_a_session_is_a_memory_where_the_story_says_so(tmp_path):
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps([SAMPLE]))
    (collection,) = load_task(
        Retrieval(mark=MARK, dataset="locomo", path=str(path), unit="session"), tmp_path
    ).collections
    assert [(one.id, one.text) for one in collection.documents] == [
        ("session_2", "[1:56 pm on 8 May, 2023]\nAnn: Hello.\nBob: Look! [shares a photo of a kite]"),
        ("session_10", "[9:00 am on 2 June, 2023]\nAnn: Later."),
    ]
    assert [one.relevant for one in collection.questions] == [
        ("session_2", "session_10"), (), (), ("session_2",), ("session_10",),
    ]  # fmt: skip


@pytest.fixture
def audited(tmp_path):
    """Return a function that loads the sample with an audit of its labels."""

    def go(unit="turn", **correction):
        entry = {"question_id": "locomo_0_qa3", "question": "other", "correct_evidence": ["D2:2"], **correction}
        audit = tmp_path / "errors.json"
        audit.write_text(json.dumps([entry]))
        (tmp_path / "locomo10.json").write_text(json.dumps([SAMPLE]))
        environ = {"MEMSTORY_LOCOMO_AUDIT": str(audit), "MEMSTORY_CACHE": str(tmp_path)}
        retrieval = Retrieval(
            mark=MARK, dataset="locomo", path=str(tmp_path / "locomo10.json"), unit=unit, labels="audited"
        )
        return load_task(retrieval, tmp_path, environ=environ)

    return go


def test_an_audit_stands_beside_the_authors_labels_and_the_task_names_its_copy(audited):
    task = audited()
    questions = [question for collection in task.collections for question in collection.questions]
    assert [(one.relevant, one.audited) for one in questions][3] == (("D2:1",), ("D2:2",))
    assert [one.audited for one in questions[:3]] == [None, None, None]
    assert [note.partition(":")[0] for note in task.notes] == ["locomo", "locomo-audit"]


def test_evidence_of_an_audit_in_the_same_session_changes_nothing_by_session(audited):
    (collection,) = audited("session").collections
    assert collection.questions[3].audited is None


def test_an_audit_of_another_version_is_refused(audited):
    with pytest.raises(SetupError, match="another version of LoCoMo: conv-1#3"):
        audited(question="something else")


def test_only_locomo_has_an_audit(tmp_path):
    path = tmp_path / "l.json"
    path.write_text("[]")
    with pytest.raises(StoryError, match="'labels' goes with locomo"):
        load_task(Retrieval(mark=MARK, dataset="longmemeval", path=str(path), labels="audited"), tmp_path)
