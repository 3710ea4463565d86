"""When two contents are one (C-16, C-17, CF-2)."""

from dataclasses import replace

import pytest

from memstory_reference.systems.layers.reconciliation import (
    Likeness,
    agree,
    compare,
    compare_texts,
    share_a_slot,
)
from memstory_reference.systems.layers.records import NOTE, Fact, Rule
from memstory_reference.text.words import token_list

ANN = Fact(category="relationship", subject="Ann", predicate="LOVES", object="Bo", evidence_quote="q")


def letters(count):
    return " ".join("abcdefghijklmnopqrst"[:count])


@pytest.mark.parametrize(
    ("few", "many", "likeness"),
    [(7, 8, "near"), (17, 20, "near"), (6, 7, "near"), (5, 6, "different"), (4, 5, "different"), (16, 19, "different")],
)
def test_the_threshold_counts_as_above(few, many, likeness):
    found = compare_texts(letters(few), letters(many), 0.85)
    assert (found.index, found.likeness) == (pytest.approx(few / many), likeness)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("take 10 mg", "take 20 mg"),
        ("always answer", "never answer"),
        ("I eat meat", "I do not eat meat"),
        ("I don't smoke", "I smoke"),
        ("I like it", "I hate it"),
        ("before lunch", "after lunch"),
        ("two cats", "three cats"),
        ("from 2 to 3", "from 3 to 2"),
        ("turn it on", "turn it off"),
    ],
)
def test_numbers_negations_and_poles_tell_apart(left, right):
    assert not agree(token_list(left), token_list(right))
    assert compare_texts(left, right, 0.0).likeness is Likeness.ALIKE


def test_case_and_punctuation_do_not_tell_apart():
    assert compare_texts("My boss, is TERRIBLE", "my boss is terrible.", 0.85).likeness is Likeness.SAME


def test_who_loves_whom_is_no_detail():
    assert compare(ANN, replace(ANN, subject="Bo", object="Ann"), 0.85).likeness is Likeness.ALIKE


def test_a_triple_is_the_same_whatever_its_quote():
    assert compare(ANN, replace(ANN, evidence_quote="other", predicate="loves"), 0.85).likeness is Likeness.SAME


def test_notes_are_one_only_word_for_word():
    note = Fact(category="note", subject="User", predicate=NOTE, object=letters(17), evidence_quote="q")
    assert compare(note, replace(note, object=letters(18)), 0.85).likeness is Likeness.DIFFERENT
    assert compare(note, replace(note, object=letters(17).upper() + "!"), 0.85).likeness is Likeness.SAME


def test_a_fact_and_a_rule_are_never_one():
    rule = Rule(rule="Ann loves Bo", explicit=True, evidence_quote="q")
    assert compare(ANN, rule, 0.85).likeness is Likeness.DIFFERENT
    assert not share_a_slot(ANN, rule)


def test_a_slot_is_subject_and_predicate():
    assert share_a_slot(ANN, replace(ANN, subject="ann", object="Cy"))
    assert not share_a_slot(ANN, replace(ANN, predicate="HATES"))


def test_whose_it_is_is_no_detail():
    long = replace(ANN, subject="User's sister", object=letters(17))
    assert compare(long, replace(long, subject="User's brother"), 0.85).likeness is Likeness.ALIKE
    assert compare(long, replace(long, object=letters(18)), 0.85).likeness is Likeness.NEAR
