"""Words that stand together in a clause, however they are spelt and whatever stands between."""

from memstory_reference.systems.layers.policy import Frame, Words, clauses, readings

WISH = Frame("2: want* wish* > die my_end")


def test_a_frame_needs_its_words_in_order_and_near():
    assert WISH.find("i really wanted to die")
    assert WISH.find("i want my end")
    assert not WISH.find("die is what i want")
    assert not WISH.find("i want to see how they all die")


def test_a_frame_does_not_reach_over_the_end_of_a_clause():
    assert clauses("I want tea. He did die", ()) == ("i want tea", "he did die")
    assert not any(WISH.find(one) for one in clauses("I want it. Die!", ()))


def test_words_that_turn_the_meaning_switch_a_frame_off():
    frame = Frame("4: want* > die ! film")
    assert frame.find("i want to die")
    assert not frame.find("in the film they want to die")


def test_a_frame_at_the_end_asks_for_nothing_behind_it():
    frame = Frame("4: not > want > to_live > $")
    assert frame.find("i do not want to live anymore")
    assert not frame.find("i do not want to live in oslo")


def test_short_forms_and_misspelt_words_are_read_as_what_they_stand_for():
    assert clauses("I can't, wanna kil", ("kill",)) == ("i can not want to kill",)
    assert clauses("don\u2019t be sucidal", ("suicidal",)) == ("do not be suicidal",)
    assert clauses("a skilled cook", ("kill",)) == ("a skilled cook",)


def test_digits_are_read_as_letters_too():
    assert readings("k1ll it", ()) == [("k1ll it",), ("kill it",)]


def test_the_name_of_a_list_stands_for_its_words():
    assert Words("my KIN").occurs_in("and stepmother")
    assert Words("SELF").entries == ("i",)
