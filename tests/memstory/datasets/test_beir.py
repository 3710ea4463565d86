import json

import pytest

from memstory.contract.errors import Mark, NotSupported, SetupError, StoryError
from memstory.datasets import load_task
from memstory.language.story import Retrieval

MARK = Mark("stories/q.yaml", 4, 12)
CORPUS = [
    {"_id": "d1", "title": "Tea", "text": "Ana drinks it green.", "metadata": {"year": 2024}},
    {"_id": "d2", "title": "", "text": "The deadline is in May."},
    {"_id": "d3", "title": "", "text": ""},
]
QUERIES = [
    {"_id": "q1", "text": "what does Ana drink?", "metadata": {"category": "food"}},
    {"_id": "q2", "text": "when is it due?", "metadata": {}},
    {"_id": "q9", "text": "of another split?"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td2\t1\n"


def written(folder, corpus=CORPUS, queries=QUERIES, **qrels):
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels").mkdir(exist_ok=True)
    for split, text in (qrels or {"test": QRELS}).items():
        (folder / "qrels" / f"{split}.tsv").write_text(text)
    return folder


def load(folder, **retrieval):
    return load_task(Retrieval(mark=MARK, dataset="beir", path=str(folder), **retrieval), folder)


def test_titles_texts_and_grades_above_nought_are_read(tmp_path):
    task = load(written(tmp_path))
    (collection,) = task.collections
    assert [(one.id, one.text) for one in collection.documents] == [
        ("d1", "Tea Ana drinks it green."),
        ("d2", "The deadline is in May."),
    ]
    assert next(iter(collection.documents)).metadata == {"year": 2024}
    assert [(one.id, one.relevant, one.category) for one in collection.questions] == [
        ("q1", ("d1",), "food"),
        ("q2", ("d2",), None),
    ]
    assert task.unusable == ()


def test_qrels_in_trec_form_and_beside_the_corpus_are_read(tmp_path):
    written(tmp_path, other="q1\td2\t1\n")
    (tmp_path / "qrels.tsv").write_text("q1 0 d1 1\n")
    (collection,) = load(tmp_path).collections
    assert [(one.id, one.relevant) for one in collection.questions] == [("q1", ("d1",))]


def test_the_split_is_the_one_that_is_named_or_test_or_the_only_one(tmp_path):
    written(tmp_path, dev="q9\td1\t1\n")
    assert [one.id for one in next(iter(load(tmp_path).collections)).questions] == ["q9"]
    written(tmp_path, test=QRELS)
    assert [one.id for one in next(iter(load(tmp_path).collections)).questions] == ["q1", "q2"]
    assert [one.id for one in next(iter(load(tmp_path, split="dev").collections)).questions] == ["q9"]
    with pytest.raises(SetupError, match=r"no qrels/train\.tsv; it has qrels/dev\.tsv, qrels/test\.tsv"):
        load(tmp_path, split="train")


def test_labels_of_no_use_are_listed_and_never_guessed(tmp_path):
    task = load(written(tmp_path, test="q1\td7\t1\nq2\td2\t0\nq5\td1\t1\n"))
    assert [question.judged for question in next(iter(task.collections)).questions] == [False, False]
    assert task.unusable == (
        "q1: no document has the id 'd7'",
        "q5: no query has this id",
        "q2: no document has a grade above 0",
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"corpus": [{"id": "d1", "text": "t"}]}, "corpus.jsonl:1: a row is an object with the texts '_id' and 'text'"),
        ({"queries": [["q1"]]}, "queries.jsonl:1: a row is an object"),
        ({"test": "h\n\nq1\td1\n"}, "test.tsv:3: found 'q1\\td1', allowed is: question, document, grade"),
    ],
)
def test_a_bad_line_is_named_with_its_file_and_number(tmp_path, content, message):
    with pytest.raises(StoryError) as refused:
        load(written(tmp_path, **content))
    assert message in refused.value.message


def test_an_id_that_comes_twice_is_refused(tmp_path):
    with pytest.raises(SetupError, match="2 documents have 1 ids"):
        load(written(tmp_path, corpus=[CORPUS[0], CORPUS[0]]))


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_folder_that_lacks_a_file_says_which(tmp_path, missing):
    (written(tmp_path) / missing).unlink()
    with pytest.raises(SetupError, match=missing):
        load(tmp_path)


def test_a_folder_that_is_not_there_is_unsupported_and_says_what_to_do(tmp_path):
    with pytest.raises(NotSupported, match="put the folder there"):
        load(tmp_path / "nowhere")


def test_for_a_preloaded_memory_the_corpus_is_not_read_and_all_labels_count(tmp_path):
    (written(tmp_path, test=f"{QRELS}q1\tfar\t1\n") / "corpus.jsonl").unlink()
    task = load(tmp_path, preloaded=True, user="ann")
    (collection,) = task.collections
    assert (len(collection.documents), task.unusable) == (0, ())
    assert [(one.id, one.relevant) for one in collection.questions] == [("q1", ("d1", "far")), ("q2", ("d2",))]
