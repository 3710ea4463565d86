import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory.contract.errors import Mark, StoryError
from memstory.datasets import load_task
from memstory.datasets.jsonl import read_documents
from memstory.language.story import Retrieval
from memstory.tasks.retrieval import Collection, Document, digest_of

MARK = Mark("stories/q.yaml", 4, 12)
CORPORA = Path(__file__).parents[3] / "stories" / "corpora"
DOCUMENTS = '{"id": "a", "text": "one"}\n{"id": "b", "text": "two", "key": "k", "kind": "fact", "metadata": {"n": 1}}\n'
QUERIES = '{"id": "q1", "text": "one?", "relevant": ["a"], "category": "plain"}\n'


def wanted(corpus="c.jsonl", queries="c.queries.jsonl"):
    return Retrieval(mark=MARK, corpus=corpus, queries=queries)


def load(folder, documents=DOCUMENTS, queries=QUERIES):
    for name, content in (("c.jsonl", documents), ("c.queries.jsonl", queries)):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_task(wanted(), folder)


def refusal(folder, **content):
    with pytest.raises(StoryError) as refused:
        load(folder, **content)
    assert refused.value.mark == MARK
    assert str(refused.value).startswith("stories/q.yaml:4:12: ")
    return refused.value.message


def test_documents_queries_and_labels_are_read(tmp_path):
    task = load(tmp_path)
    (collection,) = task.collections
    assert task.name == "c"
    assert [document.id for document in collection.documents] == ["a", "b"]
    assert (list(collection.documents)[1].key, list(collection.documents)[1].metadata) == ("k", {"n": 1})
    (question,) = collection.questions
    assert (question.relevant, question.category, question.judged) == (("a",), "plain", True)


def test_a_question_that_nothing_answers_is_judged(tmp_path):
    (collection,) = load(tmp_path, queries='{"id": "q", "text": "?", "relevant": []}').collections
    assert collection.questions[0].judged
    assert collection.questions[0].relevant == ()


def test_what_else_a_query_says_is_read(tmp_path):
    said = {"wording": 2, "stale": ["b"], "asked_at": "2025-12-31", "cluster": "s1", "metadata": {"circle": 1}}
    (collection,) = load(tmp_path, queries=json.dumps({"id": "q", "text": "?", "relevant": ["a"]} | said)).collections
    question = collection.questions[0]
    assert (question.wording, question.stale, question.asked_at, question.cluster) == (2, ("b",), "2025-12-31", "s1")
    assert question.metadata == {"circle": 1}


def test_documents_are_read_again_each_time_and_counted_before(tmp_path):
    (collection,) = load(tmp_path).collections
    assert len(collection.documents) == 2
    assert [one.id for one in collection.documents] == [one.id for one in collection.documents] == ["a", "b"]


CIRCLES = "".join(
    json.dumps({"id": f"d{circle}", "text": f"turn {circle}", "metadata": {"circle": circle}}) + "\n"
    for circle in (1, 2)
)
ASKED = "".join(
    json.dumps({"id": f"q{circle}.{wording}", "text": "?", "relevant": [f"d{circle}"], "wording": wording,
                "category": "plain", "metadata": {"circle": circle}}) + "\n"
    for circle in (1, 2) for wording in (1, 2)
)  # fmt: skip


def selected(folder, **where):
    load(folder, documents=CIRCLES, queries=ASKED)
    return load_task(replace(wanted(), where=where), folder)


def test_where_selects_documents_and_questions_by_their_own_fields_and_their_metadata(tmp_path):
    (collection,) = selected(tmp_path, circle=2, wording=1).collections
    assert [document.id for document in collection.documents] == ["d2"]
    assert [question.id for question in collection.questions] == ["q2.1"]
    (collection,) = selected(tmp_path, circle=[1, 2], category="plain", wording=2).collections
    assert len(collection.documents) == 2
    assert [question.id for question in collection.questions] == ["q1.2", "q2.2"]


def test_two_selections_of_one_file_have_two_digests(tmp_path):
    assert selected(tmp_path, circle=1).digest != selected(tmp_path, circle=2).digest


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"cicle": 1}, "names 'cicle', a field that no row has: category, circle, wording"),
        ({"circle": 3}, "no line that"),
    ],
)
def test_a_selection_that_fits_nothing_is_refused(tmp_path, where, message):
    with pytest.raises(StoryError, match=message):
        selected(tmp_path, **where)


def test_unknown_gold_ids_are_listed_and_left_out_and_none_is_guessed(tmp_path):
    queries = '{"id": "q1", "text": "?", "relevant": ["a", "A"]}\n{"id": "q2", "text": "?", "relevant": ["zz"]}'
    task = load(tmp_path, queries=queries)
    first, second = task.collections[0].questions
    assert (first.relevant, first.judged) == (("a",), True)
    assert (second.relevant, second.judged) == ((), False)
    assert task.unusable == ("q1: no document has the id 'A'", "q2: no document has the id 'zz'")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "c.jsonl:2: not a JSON object"),
        ('["a"]', "c.jsonl:2: found list of texts, allowed is an object"),
        ('{"id": "x"}', "c.jsonl:2: the field 'text' is missing"),
        ('{"id": "x", "text": "  "}', "c.jsonl:2: 'text' is empty"),
        ('{"id": 7, "text": "y"}', "c.jsonl:2: 'id' is number, allowed is text"),
        ('{"id": "x", "text": "y", "key": null}', "c.jsonl:2: 'key' is null, allowed is text"),
        ('{"id": "x", "text": "y", "metdata": {}}', "Did you mean 'metadata'?"),
        ('{"id": "a", "text": "y"}', "c.jsonl:2: the id 'a' was used in line 1 already"),
        ('{"id": "x", "id": "z", "text": "y"}', "c.jsonl:2: not a JSON object: a field is given twice"),
        ('{"id": "x", "text": "y", "metadata": {"n": NaN}}', "c.jsonl:2: not a JSON object: NaN is not a JSON number"),
        (b'{"id": "x", "text": "\xff"}', "c.jsonl:2: byte 22 is not UTF-8"),
        ('{"id": "x", "text": "y", "metadata": {"n": ' + "[" * 100_000, "c.jsonl:2: the values are nested too deep"),
    ],
)
def test_a_bad_line_is_named_with_its_file_and_number(tmp_path, line, message):
    raw = line if isinstance(line, bytes) else line.encode()
    assert message in refusal(tmp_path, documents=b'{"id": "a", "text": "one"}\n' + raw + b"\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "q", "text": "?"}', "c.queries.jsonl:1: the field 'relevant' is missing"),
        ('{"id": "q", "text": "?", "relevant": "a"}', "'relevant' is text, allowed is list of texts"),
        ('{"id": "q", "text": "?", "relevant": [1]}', "'relevant' is list, allowed is list of texts"),
        ('{"id": "q", "text": "?", "relevant": ["a", "a"]}', "'relevant' names an id twice"),
    ],
)
def test_a_bad_query_is_named_with_its_file_and_number(tmp_path, line, message):
    assert message in refusal(tmp_path, queries=line)


@pytest.mark.parametrize("empty", ["", "\n\n  \n"])
def test_a_file_without_lines_is_refused(tmp_path, empty):
    assert "c.jsonl holds no line" in refusal(tmp_path, documents=empty)
    assert "c.queries.jsonl holds no line" in refusal(tmp_path, queries=empty)


def test_empty_lines_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path):
    task = load(tmp_path, documents="\ufeff" + DOCUMENTS.replace("\n", "\r\n\r\n"))
    assert len(task.collections[0].documents) == 2


def test_line_separators_inside_a_text_do_not_split_it(tmp_path):
    (collection,) = load(tmp_path, documents='{"id": "a", "text": "one\u2028two\x85three"}').collections
    assert next(iter(collection.documents)).text == "one\u2028two\x85three"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(content=st.binary(max_size=60) | st.text(alphabet='{}[]",:0aid\\\n textrelevant', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_with_a_place(tmp_path, content):
    try:
        load(tmp_path, documents=content)
    except StoryError as error:
        assert error.message.startswith("c.jsonl")  # noqa: PT017  (that it may also be read is the point)


PIECES = [
    '{"id": "',
    "a",
    "b",
    '"',
    '\\"',
    ", ",
    '"text"',
    ": ",
    '"text": "t',
    '"}',
    "}",
    "{",
    "[",
    "]",
    "1",
    "\n",
    ',"id" : "c"',
]
ROW = st.builds(
    '{{"id": "{}", "text": "{}"}}\n'.format, st.integers(0, 20), st.sampled_from(["one", 'o\\"ne', "{", "}, {"])
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(parts=st.lists(ROW | st.lists(st.sampled_from(PIECES), max_size=6).map("".join), max_size=5))
def test_each_line_is_one_object_whatever_the_lines_around_it_are(tmp_path, parts):
    path = tmp_path / "any.jsonl"
    path.write_text("".join(parts), encoding="utf-8")
    try:
        found = read_documents(path, MARK)
    except StoryError:
        return
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
    assert [[("id", one.id), ("text", one.text)] for one in found] == [
        sorted(json.loads(line, object_pairs_hook=list)) for line in lines
    ]


TEXTS = st.text(st.characters(codec=None), max_size=8)


@given(
    st.lists(st.builds(Document, id=TEXTS, text=TEXTS, key=st.none() | TEXTS, metadata=st.just({}) | st.just({"n": 1})))
)
def test_the_digest_of_documents_is_that_of_their_json(documents):
    fields = [{"id": one.id, "key": one.key, "kind": None, "metadata": one.metadata, "outdated": [], "text": one.text}
              for one in documents]  # fmt: skip
    whole = json.dumps([{"documents": fields, "id": "c", "questions": []}], separators=(",", ":"))
    collection = Collection(id="c", documents=documents, questions=())
    assert digest_of([collection]) == hashlib.sha256(whole.encode()).hexdigest()


def test_the_digest_is_of_the_content_and_not_of_its_layout(tmp_path):
    first = load(tmp_path).digest
    respaced = '{"text":"one","id":"a"}\n\n' + DOCUMENTS.split("\n")[1]
    assert load(tmp_path, documents=respaced).digest == first
    assert load(tmp_path, documents=DOCUMENTS.replace("two", "too")).digest != first
    assert load(tmp_path, queries=QUERIES.replace('"a"', '"b"')).digest != first


@pytest.mark.parametrize("name", ["../outside.jsonl", "/etc/hostname", "inner/../../outside.jsonl", "link.jsonl"])
def test_a_path_out_of_the_stories_is_refused_even_through_a_link(tmp_path, name):
    root = tmp_path / "stories"
    (root / "inner").mkdir(parents=True)
    (tmp_path / "outside.jsonl").write_text(DOCUMENTS)
    (root / "link.jsonl").symlink_to(tmp_path / "outside.jsonl")
    with pytest.raises(StoryError, match="outside the stories' root"):
        load_task(wanted(corpus=name), root)


def test_a_story_in_a_folder_reaches_the_corpora_beside_it_by_either_path(tmp_path):
    root = tmp_path / "stories"
    quality = root / "quality"
    corpora = root / "corpora"
    quality.mkdir(parents=True)
    corpora.mkdir()
    load(corpora)
    for prefix in ("../corpora", "corpora"):
        task = load_task(wanted(f"{prefix}/c.jsonl", f"{prefix}/c.queries.jsonl"), quality)
        assert len(task.collections[0].documents) == 2


def test_a_missing_file_is_named_with_its_nearest(tmp_path):
    load(tmp_path)
    with pytest.raises(StoryError, match=r"no file cc\.jsonl.*Did you mean c\.jsonl\?"):
        load_task(wanted(corpus="cc.jsonl"), tmp_path)
    with pytest.raises(StoryError, match=r"no file nowhere/d\.jsonl"):
        load_task(wanted(corpus="nowhere/d.jsonl"), tmp_path)


@pytest.mark.parametrize("missing", ["corpus", "queries"])
def test_a_corpus_without_queries_and_the_reverse_are_refused(tmp_path, missing):
    load(tmp_path)
    with pytest.raises(StoryError, match="needs both"):
        load_task(wanted(**{missing: None}), tmp_path)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    load(tmp_path)
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(StoryError, match=r"no file folder\.jsonl"):
        load_task(wanted(corpus="folder.jsonl"), tmp_path)


@pytest.mark.parametrize(
    ("corpus", "queries", "documents", "questions"),
    [("facts", "facts", 61, 60), ("facts", "unanswerable", 61, 20), ("ranking", "ranking", 50, 10)],
)
def test_the_bundled_corpora_have_no_unusable_label(corpus, queries, documents, questions):
    task = load_task(wanted(f"{corpus}.jsonl", f"{queries}.queries.jsonl"), CORPORA)
    (collection,) = task.collections
    assert (len(collection.documents), len(collection.questions)) == (documents, questions)
    assert task.unusable == ()
    assert all(question.judged for question in collection.questions)
    assert all(bool(question.relevant) == (queries != "unanswerable") for question in collection.questions)


def test_no_question_repeats_a_document_word_for_word():
    for path in CORPORA.glob("*.queries.jsonl"):
        corpus = CORPORA / f"{path.name.replace('unanswerable', 'facts').removesuffix('.queries.jsonl')}.jsonl"
        texts = {json.loads(line)["text"].strip("?.").lower() for line in corpus.read_text().splitlines()}
        asked = {json.loads(line)["text"].strip("?.").lower() for line in path.read_text().splitlines()}
        assert not texts & asked


def test_questions_of_a_preloaded_memory_are_read_without_a_corpus(tmp_path):
    def load(*rows, **more):
        (tmp_path / "mine.queries.jsonl").write_text("".join(f"{row}\n" for row in rows))
        mark = Mark("s.yaml", 1, 1)
        retrieval = Retrieval(mark=mark, queries="mine.queries.jsonl", preloaded=True, user="ann", **more)
        return load_task(retrieval, tmp_path)

    good = '{"id": "q1", "text": "t", "relevant": ["far"], "category": "c"}'
    task = load(good)
    (collection,) = task.collections
    assert (task.name, task.unusable, len(collection.documents)) == ("mine", (), 0)
    assert [(one.id, one.relevant, one.judged) for one in collection.questions] == [("q1", ("far",), True)]
    for rows, more, said in [
        ((good, good), {}, "mine.queries.jsonl:2: the id 'q1' was used in line 1"),
        ((good, '{"id": "q2"}', "{"), {}, "mine.queries.jsonl:2: the field 'text' is missing"),
        ((), {}, "mine.queries.jsonl holds no line"),
        ((good,), {"where": {"category": "d"}}, "holds no line that 'where' selects"),
        ((good,), {"where": {"size": 1}}, "'where' names 'size', a field that no row has: category"),
    ]:
        with pytest.raises(StoryError) as wrong:
            load(*rows, **more)
        assert said in wrong.value.message
