"""A task that a target leaves behind: what becomes of it is a warning of its case."""

import asyncio

import pytest

from memstory.controls import Oracle, OracleFactory
from memstory.language.stories import parse_stories
from memstory.playing import play
from memstory.running.runner import RunOptions

STORY = """
story: L1
title: A note is found
steps:
  - add: Elixir is my language
  - search: Elixir
    expect: {hits: {count: 1}}
"""


async def write(seconds=0.0):
    await asyncio.sleep(seconds)
    raise OSError("disk full")


class Leaving(Oracle):
    """Starts `write` in the background when something is added; `how` says what becomes of it."""

    how = "forgotten"

    async def add(self, items, scope):
        match self.how:
            case "forgotten":
                asyncio.create_task(write())  # noqa: RUF006  (as those do that forget it)
            case "kept":
                self.task = asyncio.create_task(write())
            case "late":
                self.task = asyncio.create_task(write(0.03))
            case "within another":
                asyncio.create_task(self.starts_another())  # noqa: RUF006  (as above)
            case "running":
                self.task = asyncio.create_task(asyncio.sleep(30))
            case "awaited":
                with pytest.raises(OSError, match="disk full"):
                    await asyncio.create_task(write())
            case "gathered":
                await asyncio.gather(write(), return_exceptions=True)
            case "cancelled":
                asyncio.create_task(write(30)).cancel()
        return await super().add(items, scope)

    async def starts_another(self):
        self.task = asyncio.create_task(write())


class LeavingFactory(OracleFactory):
    spec = "leaving_targets:Made"

    def target(self):
        return Leaving()


def leaving(way):
    class Factory(OracleFactory):
        spec = None

        def target(self):
            return type("Made", (Leaving,), {"how": way})()

    return Factory()


@pytest.fixture
def story():
    (read,) = parse_stories(STORY, "f.yaml")
    return read


@pytest.mark.parametrize("way", ["forgotten", "kept", "late", "within another"])
async def test_an_exception_that_nobody_fetched_is_a_warning_of_the_case(story, way):
    result = await play(story, leaving(way))
    assert (result.outcome, result.warnings) == (
        "passed", ("the target left a task behind that broke, write: OSError: disk full",)
    )  # fmt: skip


async def test_a_task_that_still_runs_is_a_warning_too(story):
    result = await play(story, leaving("running"))
    assert result.warnings == ("the target left a task behind that still runs, sleep: what becomes of it is not seen",)


@pytest.mark.parametrize("way", ["awaited", "gathered", "cancelled", "none"])
async def test_what_the_target_saw_to_is_no_warning(story, way):
    assert (await play(story, leaving(way))).warnings == ()


async def test_each_of_two_cases_at_once_has_its_own(story):
    first, second = await asyncio.gather(play(story, leaving("kept")), play(story, leaving("awaited")))
    assert (len(first.warnings), second.warnings) == (1, ())


async def test_the_tasks_of_others_and_a_factory_of_tasks_stay_as_they_were(story):
    loop, made = asyncio.get_running_loop(), []

    def factory(loop, coro, **more):
        made.append(coro)
        return asyncio.Task(coro, loop=loop, **more)

    loop.set_task_factory(factory)
    result = await play(story, leaving("kept"))
    after = asyncio.create_task(write())
    with pytest.raises(OSError, match="disk full"):
        await after
    assert len(result.warnings) == 1
    assert "write" in {coro.__name__ for coro in made}
    loop.set_task_factory(None)


async def test_a_target_in_its_own_process_tells_it_too(story, importable):
    result = await play(story, importable(LeavingFactory), options=RunOptions(hosted=True))
    assert result.outcome == "passed"
    assert result.warnings == ("the target left a task behind that broke, write: OSError: disk full",)
