import threading

import pytest

from memstory_reference.adapters.vectors import timely
from memstory_reference.adapters.vectors.timely import StuckError, TimedThread


@pytest.fixture(autouse=True)
def _in_a_moment(monkeypatch):
    monkeypatch.setattr(timely, "SECONDS", 0.2)


def test_what_a_call_returns_or_raises_is_returned_or_raised():
    calls = TimedThread("x")
    assert calls.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        calls.run(divmod, 1, 0)
    calls.close()


def test_a_call_that_times_out_by_itself_is_not_stuck():
    def raising():
        raise TimeoutError("its own")

    calls = TimedThread("x")
    with pytest.raises(TimeoutError, match="its own"):
        calls.run(raising)
    assert calls.run(int) == 0
    calls.close()


def test_after_a_stuck_call_nothing_more_is_asked():
    calls, stuck, made = TimedThread("the library"), threading.Event(), []
    for call in (stuck.wait, lambda: made.append(1)):
        with pytest.raises(StuckError, match=r"the library did not return within 0\.2 s"):
            calls.run(call)
    stuck.set()
    calls.close()
    assert made == []
