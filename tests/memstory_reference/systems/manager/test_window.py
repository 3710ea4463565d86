from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.manager.agent import ContextWindow, WindowEntry

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def entry(role, content):
    return WindowEntry(role=role, content=content, timestamp=NOON)


def filled(turns, size=5):
    window = ContextWindow(size)
    for number in range(1, turns + 1):
        window.add(entry("user", f"u{number}"))
        window.add(entry("assistant", f"a{number}"))
    return window


def contents(window):
    return [one.content for one in window.entries]


def test_six_turns_leave_the_last_five():
    assert contents(filled(6)) == ["u2", "a2", "u3", "a3", "u4", "a4", "u5", "a5", "u6", "a6"]


def test_in_the_middle_of_the_sixth_turn_no_answer_comes_first():
    window = filled(5)
    window.add(entry("user", "u6"))
    assert contents(window) == ["u2", "a2", "u3", "a3", "u4", "a4", "u5", "a5", "u6"]


def test_a_window_of_no_turns_keeps_nothing():
    assert contents(filled(3, size=0)) == []


def test_a_cleared_window_is_empty():
    window = filled(3)
    window.clear()
    assert contents(window) == []


def test_what_was_handed_out_does_not_change_with_the_window():
    window = filled(1)
    before = window.entries
    window.add(entry("user", "u2"))
    assert [one.content for one in before] == ["u1", "a1"]


@given(st.integers(0, 6), st.lists(st.sampled_from(["user", "assistant"]), max_size=40))
def test_a_window_never_holds_too_much_and_always_begins_with_the_user(size, roles):
    window = ContextWindow(size)
    for number, role in enumerate(roles):
        window.add(entry(role, str(number)))
        assert len(window.entries) <= 2 * size
        assert not window.entries or window.entries[0].role == "user"
