"""What makes a retrieval task harder: which levels there are, and what each of them holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.tasks.perturbation import level_name, levels_of, outdated_texts, perturb_collection
from memstory.tasks.retrieval import Collection, Document, Question

DOCUMENTS = tuple(Document(id=f"d{number}", text=f"fact {number}") for number in range(5))
QUESTIONS = (
    Question(id="q1", text="one?", relevant=("d1",), variants=("uno?", "eins?")),
    Question(id="q2", text="two?"),
)
TASK = Collection(id="c", documents=DOCUMENTS, questions=QUESTIONS)
POOL = tuple(Document(id=f"x{number}", text=f"other {number}") for number in range(30))


def at(seed="s", task=TASK, **level):
    return perturb_collection(task, level, POOL, seed)


def ids(found):
    return [document.id for document in found.collection.documents]


def test_the_plain_task_comes_first_and_only_once():
    assert levels_of({"distractors": 200}) == ({"distractors": 0}, {"distractors": 200})
    assert levels_of({"distractors": [0, 200]}) == ({"distractors": 0}, {"distractors": 200})
    assert levels_of({"paraphrase": True, "shuffle": False}) == ({"paraphrase": False}, {"paraphrase": True})
    assert levels_of({}) == ({},)


def test_two_lists_give_every_combination():
    levels = levels_of({"distractors": [10, 20], "stale_repeats": [1, 2]})
    assert [tuple(level.values()) for level in levels] == [(0, 0), (10, 1), (10, 2), (20, 1), (20, 2)]


def test_a_level_is_named_by_what_it_changes():
    assert level_name({"distractors": 0, "shuffle": False}) == "plain"
    assert level_name({"distractors": 20, "shuffle": True}) == "distractors 20, shuffle"
    assert level_name({}) == ""


@given(st.text(max_size=5), st.integers(0, 20), st.integers(0, 10))
def test_a_higher_level_holds_the_distractors_of_a_lower_one(seed, count, more):
    few, many = ids(at(seed, distractors=count)), ids(at(seed, distractors=count + more))
    assert set(few) <= set(many)
    assert len(many) == len(DOCUMENTS) + count + more


@given(st.text(max_size=5), st.integers(0, 20))
def test_distractors_do_not_change_the_order_of_the_documents(seed, count):
    assert [one for one in ids(at(seed, distractors=count)) if one.startswith("d")] == ["d0", "d1", "d2", "d3", "d4"]


def test_the_same_seed_gives_the_same_and_another_one_something_else():
    assert ids(at("a", distractors=9, shuffle=True)) == ids(at("a", distractors=9, shuffle=True))
    assert ids(at("a", distractors=9)) != ids(at("b", distractors=9))
    assert sorted(ids(at("a", shuffle=True))) == ids(at())
    assert ids(at("a", shuffle=True)) != ids(at())


def test_a_distractor_that_is_a_document_is_no_distractor():
    pool = (Document(id="x", text="fact 1"), Document(id="d2", text="new"), Document(id="y", text="new"))
    assert [document.id for document in perturb_collection(TASK, {"distractors": 1}, pool, "s").collection.documents if
            document.id not in {"d0", "d1", "d2", "d3", "d4"}] == ["y"]  # fmt: skip


def test_more_distractors_than_there_are_is_refused_with_their_number():
    with pytest.raises(ValueError, match="31 distractors are asked for, but there are 30"):
        at(distractors=31)


def test_variants_are_asked_instead_of_their_query():
    asked = at(paraphrase=True).collection.questions
    assert [(one.id, one.text, one.relevant) for one in asked] == [
        ("q1~1", "uno?", ("d1",)),
        ("q1~2", "eins?", ("d1",)),
        ("q2", "two?", ()),
    ]


def test_a_task_without_variants_cannot_be_paraphrased():
    plain = Collection(id="c", documents=DOCUMENTS, questions=QUESTIONS[1:])
    with pytest.raises(ValueError, match="no query lists any"):
        at(task=plain, paraphrase=True)


def test_listed_versions_are_taken_before_made_up_ones_the_newest_of_them_last():
    document = Document(id="a", text="It costs 10 euros.", outdated=("It was free.", "It cost 5 euros."))
    assert outdated_texts(document, 1) == ("It cost 5 euros.",)
    assert outdated_texts(document, 3) == ("It costs 13 euros.", "It was free.", "It cost 5 euros.")
    assert outdated_texts(document, 0) == ()


@given(st.text(max_size=20), st.integers(0, 9))
def test_no_two_versions_of_a_text_are_the_same(text, count):
    versions = outdated_texts(Document(id="a", text=text), count)
    assert len({*versions, text}) == count + 1


def test_every_document_has_as_many_versions_and_no_distractor_has_any():
    outdated = at(stale_repeats=2, distractors=4).outdated
    assert {id_: len(texts) for id_, texts in outdated.items()} == {f"d{number}": 2 for number in range(5)}
