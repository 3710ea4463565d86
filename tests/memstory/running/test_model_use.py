"""What a step asked of a language model, as recordings and reports tell it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memstory.contract.target import ModelUse, TargetFactory
from memstory.contract.values import Receipt, ReceiptItem
from memstory.controls import Oracle
from memstory.language.stories import parse_stories
from memstory.playing import play
from memstory.running.runner import RunOptions

STORY = """
story: E1
title: Some steps ask a model
steps:
  - add: tea
  - list:
  - repeat: {times: 2, steps: [{add: coffee}]}
  - parallel: {times: 3, steps: [{add: milk}]}
  - restart:
  - add: water
  - add: nothing of this
  - {add: nothing of that, expect: {receipt: {outcomes: [dropped]}}}
"""
CALL = ModelUse(calls=2, failed=1, prompt_tokens=10, answer_tokens=3, seconds=0.5)


class Asking(Oracle):
    """Asks a model twice for each text; the first call fails."""

    use = ModelUse()

    @property
    def model_use(self):
        return self.use

    async def add(self, items, scope):
        self.use += CALL
        if "nothing" in items[0].text:
            dropped = ReceiptItem(id=None, text=items[0].text, outcome="dropped", reason="its model answered: Sure!")
            return Receipt(items=[dropped])
        return await super().add(items, scope)


class AskingFactory(TargetFactory):
    name, spec = "asking", "asking_target:Made"
    kind = Asking

    def capabilities(self, options):
        return frozenset({"add", "list", "restart", "persistent"})

    def target(self):
        return self.kind()


async def played(factory, tmp_path, *, hosted=False):
    (story,) = parse_stories(STORY, "e.story.yaml")
    result = await play(story, factory, tmp_path / "work", options=RunOptions(hosted=hosted))
    assert result.outcome == "passed", result.reason
    return result


@pytest.mark.parametrize("hosted", [False, True])
async def test_steps_record_it_in_this_process_and_in_another(tmp_path, importable, hosted):
    steps = (await played(importable(AskingFactory), tmp_path, hosted=hosted)).trials[0].recording.steps
    found = [(step.op, step.model) for step in steps if len(step.path) == 1]
    once = [("add", CALL), ("list", None), ("repeat", None), ("parallel", CALL + CALL + CALL), ("restart", None)]
    assert found == [*once, *[("add", CALL)] * 3]
    assert [step.model for step in steps if step.path[0] == 2 and len(step.path) > 1] == [CALL, CALL]
    assert {step.model for step in steps if step.path[0] == 3 and len(step.path) > 1} == {None}


async def test_a_target_without_a_model_says_nothing(tmp_path):
    factory = AskingFactory()
    factory.kind = Oracle
    story = STORY.replace("{add: nothing of that, expect: {receipt: {outcomes: [dropped]}}}", "add: that")
    (story,) = parse_stories(story, "e.story.yaml")
    result = await play(story, factory, tmp_path / "work", options=RunOptions())
    assert {step.model for step in result.trials[0].recording.steps} == {None}
    assert not any("nothing was kept" in warning for warning in result.warnings)


async def test_an_add_that_kept_nothing_is_a_warning_unless_the_story_expects_it(tmp_path):
    (warning,) = (await played(AskingFactory(), tmp_path)).warnings
    assert warning == "e.story.yaml:11:5 step 7 (add): nothing was kept of it; its model answered: Sure!"


def test_uses_are_added_and_told_apart_where_tokens_are_counted_or_not():
    silent = ModelUse(calls=1, seconds=1.0)
    both = CALL + silent
    assert both == ModelUse(calls=3, failed=1, prompt_tokens=10, answer_tokens=3, seconds=1.5)
    assert both.since(CALL) == ModelUse(calls=1, prompt_tokens=0, answer_tokens=0, seconds=1.0)
    assert (silent + silent).since(silent) == silent
    assert str(silent) == "model: calls 1, 1.00 s"
    assert str(replace(silent, answer_tokens=3)) == "model: calls 1, tokens ? + 3, 1.00 s"
