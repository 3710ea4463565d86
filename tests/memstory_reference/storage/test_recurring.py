from datetime import timedelta

import pytest

from memstory.contract.clock import StoryClock
from memstory_reference.storage.recurring import Recurring

HOUR = timedelta(hours=1)


@pytest.fixture
def clock():
    return StoryClock()


async def test_a_failure_is_logged_and_the_work_goes_on_at_the_next_interval(clock, caplog):
    moments = []

    async def work():
        moments.append(clock.now())
        raise RuntimeError("the disk is full")

    recurring = Recurring("cleaning", work, clock)
    begun = clock.now()
    await recurring.start(HOUR)
    await clock.advance_to(begun + 2 * HOUR, recurring.settle)
    await recurring.stop()
    await clock.advance_to(begun + 4 * HOUR, recurring.settle)
    assert moments == [begun + HOUR, begun + 2 * HOUR]
    assert caplog.text.count("cleaning failed") == 2
