"""What a server was sent because of a step, as recordings, failures and reports tell it."""

from __future__ import annotations

import pytest

from memstory.contract.target import TargetFactory
from memstory.controls import Oracle
from memstory.language.stories import parse_stories
from memstory.playing import play
from memstory.results.folder.results_file import without_steps
from memstory.running.runner import RunOptions

STORY = """
story: R1
title: Some steps send
steps:
  - add: tea
  - new_session:
  - search: tea
    expect: {hits: {count: %s}}
  - parallel: {times: 2, steps: [{add: milk}]}
"""


class Sending(Oracle):
    """Stands for a target that talks to a server."""

    def __init__(self):
        super().__init__()
        self._sent = []

    def take_requests(self):
        taken, self._sent = self._sent, []
        return taken

    async def add(self, items, scope):
        self._sent.append(f"POST /notes {items[0].text}")
        return await super().add(items, scope)

    async def search(self, query, scope):
        self._sent.append(f"GET /notes?q={query.text}")
        return await super().search(query, scope)

    async def settle(self):
        self._sent.append("POST /flush")


class SendingFactory(TargetFactory):
    name, spec = "sending", "sending_target:Made"
    kind = Sending

    def capabilities(self, options):
        return frozenset({"add", "search"})

    def target(self):
        return self.kind()


async def played(factory, tmp_path, *, count=1, hosted=False):
    (story,) = parse_stories(STORY % count, "r.story.yaml")
    return await play(story, factory, tmp_path / "work", options=RunOptions(hosted=hosted))


@pytest.mark.parametrize("hosted", [False, True])
async def test_a_step_records_what_it_sent_and_nothing_that_was_sent_around_it(tmp_path, importable, hosted):
    result = await played(importable(SendingFactory), tmp_path, hosted=hosted)
    sent = [(step.op, [*step.requests]) for step in result.trials[0].recording.steps]
    assert sent[:3] == [("add", ["POST /notes tea"]), ("new_session", []), ("search", ["GET /notes?q=tea"])]
    assert all(requests == [] for _, requests in sent[3:]), "of steps at once nobody says whose they were"


@pytest.mark.parametrize(("count", "kept"), [(1, []), (9, ["GET /notes?q=tea"])])
async def test_results_keep_it_of_trials_that_did_not_pass(tmp_path, count, kept):
    slim = without_steps(await played(SendingFactory(), tmp_path, count=count))
    assert [*slim.trials[0].times[2].requests] == kept
