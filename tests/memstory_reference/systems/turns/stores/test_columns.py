"""What is in memory of an owner is what the turns say, after any changes."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.turns.ranking import NOBODY
from memstory_reference.systems.turns.stores import index
from memstory_reference.systems.turns.stores.index import Columns, Features, Postings, stem_codes

WORDS = ["tea", "milk", "cocoa"]
names = st.sampled_from([None, "x", "y"])
changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.tuples(names, names), min_size=1, max_size=4)),
        st.tuples(st.just("change"), st.integers(0, 30), names, names),
        st.tuples(st.just("delete"), st.integers(0, 30)),
    ),
    max_size=12,
)


def features(number, session, speaker):
    return Features(
        number=number, moment=number, kind="turn", session=session, speaker=speaker, signs=0, words=number % 5
    )


def beside(alive):
    """The turn before and after each, from all that are alive."""
    spoken = {
        number: one for number, one in sorted(alive.items()) if one.session is not None and one.speaker is not None
    }
    found = dict.fromkeys(alive, (NOBODY, NOBODY))
    for number, own in spoken.items():
        mates = [other for other, one in spoken.items() if one.session == own.session]
        found[number] = (
            max((other for other in mates if other < number), default=NOBODY),
            min((other for other in mates if other > number), default=NOBODY),
        )
    return found


@given(changes)
def test_neighbours_speakers_and_means_hold_after_any_changes(steps):
    columns, alive, following = Columns(), {}, 1
    for kind, *rest in steps:
        if kind == "add":
            new = [features(following + place, *one) for place, one in enumerate(rest[0])]
            following += len(new)
            columns.put(new)
            alive |= {one.number: one for one in new}
        elif alive:
            number = sorted(alive)[rest[0] % len(alive)]
            if kind == "change":
                alive[number] = features(number, *rest[1:])
                columns.put([alive[number]])
            else:
                columns.discard([number])
                del alive[number]
    numbers = np.array(sorted(alive), np.int64)
    before, after = columns.neighbours(numbers)
    assert dict(zip(numbers.tolist(), zip(before.tolist(), after.tolist(), strict=True), strict=True)) == beside(alive)
    assert np.flatnonzero(columns["alive"]).tolist() == numbers.tolist()
    assert columns.turns == len(alive)
    assert columns.mean_words == sum(one.words for one in alive.values()) / max(len(alive), 1)
    assert set(columns.speakers) == {one.speaker for one in alive.values()} - {None}


@given(st.lists(st.tuples(st.lists(st.sampled_from(WORDS), max_size=5), st.booleans()), max_size=12), st.integers(0, 8))
def test_postings_say_who_has_a_word_how_often_after_any_changes(told, few):
    was, index._FEW = index._FEW, few
    try:
        postings, alive = Postings(), {}
        for number, (words, is_forgotten) in enumerate(told):
            postings.add(np.full(len(words), number), stem_codes(words))
            alive[number] = Counter(words)
            assert postings.of("tea")[0].tolist() == [one for one in alive if alive[one]["tea"]]
            if is_forgotten:
                postings.discard([number])
                del alive[number]
        for word in WORDS:
            numbers, times = postings.of(word)
            found = dict(zip(numbers.tolist(), times.tolist(), strict=True))
            assert found == {number: own[word] for number, own in alive.items() if own[word]}
    finally:
        index._FEW = was
