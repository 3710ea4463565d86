"""play: a story is run and judged in one call, without pytest."""

from __future__ import annotations

import pytest

from memstory.contract.errors import Refused, SetupError
from memstory.controls import Oracle, OracleFactory
from memstory.language.stories import parse_stories
from memstory.playing import broken, case_of, play
from memstory.running.runner import RunOptions

STORY = """
story: P1
title: A story that is played
steps:
  - add: tea
  - list:
    expect: {hits: {count: 1}}
"""


def story(text=STORY):
    (one,) = parse_stories(text, "p.story.yaml")
    return one


class Counting(OracleFactory):
    """An oracle that knows what happened to its factory."""

    def __init__(self, kind=Oracle):
        self.kind, self.happened = kind, []

    def target(self):
        self.happened.append("target")
        return self.kind()

    async def start(self, folder):
        assert folder.is_dir()
        self.happened.append("start")

    async def stop(self):
        self.happened.append("stop")


async def test_a_story_is_run_and_judged_in_one_call():
    factory = Counting()
    result = await play(story(), factory)
    assert (result.id, result.outcome) == (f"P1[{factory.name}]", "passed")
    assert factory.happened == ["start", "target", "stop"]


async def test_with_a_workspace_the_factory_belongs_to_the_caller_and_nothing_is_left_behind(tmp_path):
    factory = Counting()
    result = await play(story(), factory, tmp_path, target="mine")
    assert (result.id, factory.happened) == ("P1[mine]", ["target"])
    assert list(tmp_path.iterdir()) == []


async def test_each_trial_has_a_fresh_memory_and_is_announced(tmp_path):
    begun = []
    result = await play(story(), Counting(), tmp_path, trials=3, before_trial=lambda: begun.append(1))
    assert result.outcome == "passed"
    assert [trial.recording.trial for trial in result.trials] == [0, 1, 2]
    assert len(begun) == 3


async def test_a_wrong_answer_fails_and_a_broken_target_is_an_error(tmp_path):
    wrong = await play(story(STORY.replace("count: 1", "count: 2")), Counting(), tmp_path)
    assert wrong.outcome == "failed"

    class Broken(Oracle):
        async def list(self, *_):
            raise ValueError("boom")

    assert (await play(story(), Counting(Broken), tmp_path)).outcome == "error"


async def test_a_step_with_eventually_is_asked_again_until_what_it_expects_is_so(tmp_path):
    class Late(Oracle):
        asked = 0

        async def list(self, *given):
            self.asked += 1
            if self.asked < 3:
                raise Refused("not yet")
            return await super().list(*given)

    result = await play(story(STORY.replace("{hits:", "{eventually: 5s, hits:")), Counting(Late), tmp_path)
    assert result.outcome == "passed", result.reason


async def test_options_of_the_run_reach_the_target(tmp_path):
    seen = []

    class Curious(Oracle):
        async def open(self, env, clock):
            seen.append(dict(env.options))
            await super().open(env, clock)

    await play(story(), Counting(Curious), tmp_path, options=RunOptions(target={"k": 1}))
    assert seen == [{"k": 1}]


@pytest.mark.parametrize("trials", [None, 3])
def test_a_case_that_cannot_begin_is_an_error_of_every_trial(trials):
    result = broken(case_of(story(), "mine", trials), SetupError("no server"))
    assert (result.outcome, len(result.trials)) == ("error", trials or 1)
    assert "no server" in result.reason
