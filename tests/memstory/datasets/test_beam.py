"""A made-up chat in the authors' form."""

import doctest
import json

import pytest

from memstory.contract.errors import Mark, SetupError, StoryError
from memstory.datasets import beam, load_task
from memstory.language.story import Retrieval
from memstory.tasks.retrieval import FileValues

MARK = Mark("stories/q.yaml", 4, 12)


def turn(id_, role, content, **more):
    return {"role": role, "id": id_, "content": content, **more}


CHAT = [
    {"batch_number": 1, "turns": [
        [turn(0, "user", "My sprint ends in May ->-> 1,1", time_anchor="March-15-2024"), turn(1, "assistant", "Good."),
         turn(2, "user", "It takes 300ms ->-> 1,2"), turn(3, "assistant", "So far."), turn(4, "user", " ")],
    ], "time_anchor": None},
    {"batch_number": 2, "turns": [
        [turn(5, "user", "It takes 250ms now", time_anchor="April-02-2024"), turn(6, "assistant", "Quicker.")],
    ]},
]  # fmt: skip
QUESTIONS = {
    "abstention": [{"question": "Which cat?", "ideal_response": "That is not known."}],
    "contradiction_resolution": [
        {"question": "Do I?", "ideal_answer": "both",
         "source_chat_ids": {"first_statement": [0], "second_statement": [6]}},
    ],
    "information_extraction": [{"question": "When does it end?", "answer": "May", "source_chat_ids": [0, 1]}],
    "knowledge_update": [
        {"question": "How long?", "answer": "250ms", "source_chat_ids": {"original_info": [2], "updated_info": [5]}},
        {"question": "How old?", "answer": "3", "source_chat_ids": None},
    ],
}  # fmt: skip


@pytest.fixture
def load(tmp_path):
    """Return a function that writes chats and loads their task."""

    def go(chat=CHAT, *, shortened=None, questions=QUESTIONS, unit="turn", **retrieval):
        folder = tmp_path / "100K" / "7"
        (folder / "probing_questions").mkdir(parents=True, exist_ok=True)
        (folder / "chat.json").write_text(chat if isinstance(chat, str) else json.dumps(chat, indent=1))
        if shortened is not None:
            (folder / "chat_trunecated.json").write_text(json.dumps(shortened))
        (folder / "probing_questions" / "probing_questions.json").write_text(json.dumps(questions))
        task = Retrieval(mark=MARK, dataset="beam", path=str(tmp_path / "100K"), unit=unit, **retrieval)
        return load_task(task, tmp_path)

    return go


def only(task):
    (collection,) = task.collections
    return collection


def test_a_message_is_a_memory_with_role_date_and_batch_and_without_the_generators_label(load):
    documents = only(load()).documents
    assert [(one.id, one.text) for one in documents] == [
        ("0", "[2024-03-15] user: My sprint ends in May"),
        ("1", "[2024-03-15] assistant: Good."),
        ("2", "[2024-03-15] user: It takes 300ms"),
        ("3", "[2024-03-15] assistant: So far."),
        ("5", "[2024-04-02] user: It takes 250ms now"),
        ("6", "[2024-04-02] assistant: Quicker."),
    ]
    assert documents[4].metadata == {"session": "b2", "said_at": "2024-04-02", "speaker": "user"}


def test_the_update_is_gold_and_the_original_is_outdated(load):
    asked = {one.id: one for one in only(load()).questions}
    update = asked["7/knowledge_update#0"]
    assert (update.relevant, update.stale, update.answer) == (("5",), ("2",), "250ms")
    assert asked["7/contradiction_resolution#0"].relevant == ("0", "6")
    assert asked["7/information_extraction#0"].relevant == ("0", "1")
    assert asked["7/information_extraction#0"].cluster == "7/b1"


def test_an_abstention_has_no_gold_and_is_judged_apart_and_a_question_without_source_is_not_judged(load):
    task = load()
    asked = {one.id: one for one in only(task).questions}
    assert (asked["7/abstention#0"].relevant, asked["7/abstention#0"].judged) == ((), True)
    assert asked["7/knowledge_update#1"].judged is False
    assert task.unusable == ("7/knowledge_update#1: no message is named as its source",)
    assert task.apart == ("abstention",)


def test_rounds_and_sessions_are_memories_where_the_story_says_so(load):
    rounds = only(load(unit="round"))
    assert [(one.id, one.text) for one in rounds.documents] == [
        ("0", "[2024-03-15] user: My sprint ends in May\nassistant: Good."),
        ("2", "[2024-03-15] user: It takes 300ms\nassistant: So far."),
        ("5", "[2024-04-02] user: It takes 250ms now\nassistant: Quicker."),
    ]
    assert [one.relevant for one in rounds.questions] == [(), ("0", "5"), ("0",), ("5",), ()]
    sessions = only(load(unit="session"))
    assert [one.id for one in sessions.documents] == ["b1", "b2"]
    # What was told before in the same session is not outdated where the session is the answer.
    assert [(one.relevant, one.stale) for one in sessions.questions][3] == (("b2",), ("b1",))


def test_the_shortened_chat_is_taken_as_the_authors_do_and_the_task_says_so(load):
    task = load(shortened=CHAT[:1])
    assert [one.id for one in only(task).documents] == ["0", "1", "2", "3"]
    assert "1 of 1 chats are in the shortened form, from which the authors answer" in task.notes


def test_the_longest_chats_have_their_batches_by_plan(load):
    documents = only(load([{"plan-1": CHAT[:1]}, {"plan-2": CHAT[1:]}], unit="session")).documents
    assert [one.id for one in documents] == ["plan-1/b1", "plan-2/b2"]


def test_a_long_chat_is_read_again_and_never_whole_in_memory(load, monkeypatch):
    monkeypatch.setattr(beam, "HELD", 2)
    documents = only(load()).documents
    assert isinstance(documents, FileValues)
    assert (len(documents), [one.id for one in documents]) == (6, ["0", "1", "2", "3", "5", "6"])


@pytest.mark.parametrize(
    "chat", ["{", "[1]", '[{"turns": 1}]', json.dumps(CHAT)[:-1]], ids=["cut", "bare", "other", "no end"]
)
def test_a_file_of_another_form_says_so_in_one_line(load, chat):
    with pytest.raises(SetupError, match=r"BEAM's format.*own files") as wrong:
        load(chat)
    assert "\n" not in str(wrong.value)


def test_a_folder_without_chats_and_a_chat_without_questions_are_told(tmp_path, load):
    with pytest.raises(SetupError, match="no numbered folders"):
        load_task(Retrieval(mark=MARK, dataset="beam", path=str(tmp_path)), tmp_path)
    load()
    (tmp_path / "100K" / "7" / "probing_questions" / "probing_questions.json").unlink()
    with pytest.raises(SetupError, match="fetch the set again"):
        load_task(Retrieval(mark=MARK, dataset="beam", path=str(tmp_path / "100K")), tmp_path)


def test_an_unknown_size_names_the_known_ones(tmp_path):
    with pytest.raises(StoryError, match=r"no split '2m'\. Known: 500k, 1m, 10m"):
        load_task(Retrieval(mark=MARK, dataset="beam", split="2m"), tmp_path)


def test_the_examples_hold():
    assert doctest.testmod(beam).failed == 0
