"""What is held of owners is what the database has, whoever writes, fails, forgets or waits meanwhile."""

import threading
from contextlib import suppress
from itertools import count

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memstory_reference.storage import held_rows
from memstory_reference.storage.held_rows import HELD_OWNERS, Change, HeldOwners, HeldRows
from memstory_reference.storage.vector_matrix import VectorMatrix

AXES = np.eye(4, dtype=np.float32)
TOKENS = [str(value) for value in range(len(AXES))]


def hold(held, owner, rows, version="1"):
    with held.at(owner, version) as value:
        value.extend(rows)


def is_held(held, owner):
    return held.has(owner, "1")


def test_those_asked_longest_ago_go_first(monkeypatch):
    monkeypatch.setattr(held_rows, "HELD_ROWS", 5)
    held = HeldRows(list)
    for owner in ("ann", "bob"):
        hold(held, owner, [1, 2])
    hold(held, "ann", [])
    hold(held, "eve", [1, 2])
    assert [is_held(held, one) for one in ("ann", "bob", "eve")] == [True, False, True]


def test_one_owner_of_more_rows_than_there_is_room_for_is_held_alone(monkeypatch):
    monkeypatch.setattr(held_rows, "HELD_ROWS", 2)
    held = HeldRows(list)
    hold(held, "ann", [1])
    hold(held, "bob", [1, 2, 3])
    assert [is_held(held, one) for one in ("ann", "bob")] == [False, True]
    held.drop("bob")
    hold(held, "ann", [1])
    hold(held, "bob", [1])
    assert [is_held(held, one) for one in ("ann", "bob")] == [True, True]


def test_owners_without_rows_leave_memory_too():
    held = HeldRows(list)
    for owner in range(HELD_OWNERS + 1):
        hold(held, owner, [])
    assert [is_held(held, one) for one in (0, 1, HELD_OWNERS)] == [False, True, True]


def test_writes_for_owners_that_nobody_asks_about_put_nobody_out():
    held = HeldRows(list)
    hold(held, "ann", [1])
    for owner in range(HELD_OWNERS + 1):
        held.follow(owner, "1", "2", list.clear)
    assert is_held(held, "ann")


def test_a_first_version_is_not_followed_for_there_may_have_been_rows_before_it():
    held = HeldRows(list)
    held.follow("ann", None, "1", lambda value: value.append("new"))
    assert not is_held(held, "ann")


def test_what_is_let_go_of_while_it_is_lent_takes_no_room(monkeypatch):
    monkeypatch.setattr(held_rows, "HELD_ROWS", 3)
    held = HeldRows(list)
    with held.at("ann", "1") as value:
        value.extend([1, 2])
        held.drop("ann")
    hold(held, "bob", [1])
    hold(held, "eve", [1])
    assert [is_held(held, one) for one in ("ann", "bob", "eve")] == [False, True, True]


@pytest.mark.parametrize("way", ["lend", "at", "follow"])
def test_what_breaks_off_in_the_middle_is_held_no_more(way):
    held = HeldRows(list)
    hold(held, "ann", [1, 2])

    def half(value):
        value.pop()
        raise RuntimeError

    def lent():
        with held.lend("ann") if way == "lend" else held.at("ann", "1") as value:
            half(value)

    with pytest.raises(RuntimeError):
        held.follow("ann", "1", "2", half) if way == "follow" else lent()
    for version in ("1", "2"):
        with held.at("ann", version) as value:
            assert value == []


def test_an_owner_is_lent_to_one_thread_at_a_time_and_others_go_on_meanwhile():
    held, order = HeldRows(list), []
    begun, go_on = threading.Event(), threading.Event()

    def first():
        with held.lend("ann") as value:
            begun.set()
            assert go_on.wait(30)
            value.append("first")

    def second():
        with held.lend("ann") as value:
            order.append(list(value))

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert begun.wait(30)
    threads[1].start()
    with held.lend("bob") as value:
        order.append(list(value))
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert order == [[], ["first"]]


@pytest.mark.parametrize("way", ["drop", "error"])
def test_who_waits_for_what_is_let_go_of_begins_anew(way):
    held, found = HeldRows(list), []
    begun, go_on = threading.Event(), threading.Event()

    def first():
        with suppress(RuntimeError), held.lend("ann") as value:
            value.append("forgotten")
            begun.set()
            assert go_on.wait(30)
            if way == "error":
                raise RuntimeError

    def second():
        with held.lend("ann") as value:
            found.append(list(value))

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert begun.wait(30)
    threads[1].start()
    if way == "drop":
        held.drop("ann")
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert found == [[]]


class Server:
    """A database that keeps all that it ever had of an owner, a process that holds it, and another that writes too."""

    def __init__(self):
        self.states = [(None, {})]
        self.held = HeldOwners()
        self.unfollowed = []
        self.versions = map(str, count(1))

    def write(self, changed, is_followed):
        before, rows = self.states[-1]
        version, changes = next(self.versions), changes_of(rows, changed)
        self.write_elsewhere(changed, version)
        self.unfollowed.append(lambda: self.held.follow("ann", before, version, changes))
        if is_followed:
            self.follow(-1)

    def write_elsewhere(self, changed, version=None):
        now = {**self.states[-1][1], **changed}
        rows = {one: value for one, value in now.items() if value is not None}
        self.states.append((version or next(self.versions), rows))

    def forget(self):
        self.forget_elsewhere()
        self.unfollowed.append(lambda: self.held.drop("ann"))

    def forget_elsewhere(self):
        self.states.append((None, {}))

    def roll_back(self, changed):
        # A write within a transaction of several: it is followed before anybody knows what becomes of it.
        before, rows = self.states[-1]
        self.held.follow("ann", before, next(self.versions), changes_of(rows, changed))

    def follow(self, place):
        if self.unfollowed:
            self.unfollowed.pop(place % len(self.unfollowed))()

    def failing_search(self, *given_with):
        self.search(*given_with, fails=True)

    def search(self, ask, beside=(), among=(), *, fails=False):
        states, held = self.states, self.held
        since, version = len(states) - 1, states[-1][0]

        def read():
            self.run(beside)
            rows = dict(states[-1][1])
            self.run(among)
            if fails:
                raise RuntimeError
            return rows

        with suppress(RuntimeError):
            if ask == "vectors":
                found = held.search("ann", "notes", version, read=lambda: matrix_of(read()), by=values_in)
            else:
                lists = held.lists("ann", "notes", version, TOKENS, read=lambda missing: lists_of(read(), missing))
                found = {str(row): int(token) for token, rows in zip(TOKENS, lists, strict=True) for row in rows}
            check(found, [rows for _, rows in states[since:]])

    def run(self, commands):
        for name, *given_with in commands:
            getattr(self, name)(*given_with)


def changes_of(rows, changed):
    def tokens(value):
        return frozenset() if value is None else frozenset([str(value)])

    return [
        Change(
            part="notes",
            id=one,
            row=int(one),
            vector=None if value is None else AXES[value],
            gone=tokens(rows.get(one)) - tokens(value),
            fresh=tokens(value),
        )
        for one, value in changed.items()
    ]


def matrix_of(rows):
    matrix = VectorMatrix()
    for one, value in rows.items():
        matrix.put(one, AXES[value])
    return matrix


def values_in(matrix):
    nearest = [matrix.nearest(axis, len(matrix)) for axis in AXES]
    return {one: value for value, found in enumerate(nearest) for one, cosine in found if cosine == 1}


def lists_of(rows, tokens):
    return {one: np.array(sorted(int(row) for row, value in rows.items() if str(value) == one), int) for one in tokens}


def check(found, states):
    """Each row was so at some moment of the search; of one that is not found, there was a moment without it."""
    for row in {*found, *(one for rows in states for one in rows)}:
        assert found.get(row) in [rows.get(row) for rows in states]


CHANGED = st.dictionaries(st.sampled_from(["1", "2", "3"]), st.none() | st.integers(0, 3), min_size=1)
ELSEWHERE = st.tuples(st.just("write_elsewhere"), CHANGED) | st.just(("forget_elsewhere",))
# What the process writes itself while a search has the owner is followed later.
MEANWHILE = ELSEWHERE | st.tuples(st.just("write"), CHANGED, st.just(value=False)) | st.just(("forget",))
ASKED = (st.sampled_from(["vectors", "tokens"]), st.lists(MEANWHILE, max_size=2), st.lists(MEANWHILE, max_size=2))
LOOK = ("search", "vectors")
SEARCH = st.tuples(st.just("search"), *ASKED)
STEPS = st.one_of(
    *(SEARCH, SEARCH, st.tuples(st.just("failing_search"), *ASKED)),
    *(st.tuples(st.just("write"), CHANGED, st.booleans()), ELSEWHERE, st.just(("forget",))),
    *(st.tuples(st.just("roll_back"), CHANGED), st.tuples(st.just("follow"), st.integers(-1, 1))),
)


@example([("write", {"1": 0}, True), LOOK, ("write_elsewhere", {"2": 1}), ("write", {"3": 2}, True), LOOK])
@example([("write", {"1": 0}, True), ("search", "vectors", [("write", {"1": 1}, False)]), ("follow", 0), LOOK])
@given(st.lists(STEPS, min_size=10, max_size=40))
def test_a_search_finds_what_the_database_has_whatever_this_or_another_process_writes_forgets_or_fails_to(steps):
    Server().run(steps)


@pytest.mark.parametrize("ask", ["vectors", "tokens"])
def test_rows_that_were_read_beside_the_first_write_are_not_served_once_their_owner_is_forgotten(ask):
    beside = [("write_elsewhere", {"1": 0})]
    Server().run([("search", ask, beside), ("forget_elsewhere",), ("search", ask)])
