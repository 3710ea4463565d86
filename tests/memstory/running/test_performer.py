"""A fault that a story injects has to be seen to land."""

import pytest

from memstory.contract.errors import Refused
from memstory.contract.target import Target
from memstory.controls import OracleFactory
from memstory.controls.oracle import Oracle
from memstory.language.stories import parse_stories
from memstory.playing import play


class Failing(Oracle):
    """Searches with an embedder that can fail."""

    is_down, landed = False, 0

    async def fault(self, part, mode):
        self.is_down = mode != "ok"

    async def fault_counts(self):
        return {"embedder": self.landed}

    async def search(self, query, scope):
        if self.is_down:
            self.landed += 1
            raise Refused("the embedder is down")
        return await super().search(query, scope)


class Untelling(Failing):
    async def fault_counts(self):
        return await Target.fault_counts(self)


def factory_of(kind):
    class Factory(OracleFactory):
        def capabilities(self, options):
            return super().capabilities(options) | {"fault.embedder"}

        def target(self):
            return kind()

    return Factory()


async def outcome_of(*steps, kind=Failing):
    lines = "".join(f"  - {step}\n" for step in ("add: tea", *steps))
    (story,) = parse_stories(f"story: A\ntitle: T\nsteps:\n{lines}", "f.yaml")
    result = await play(story, factory_of(kind))
    return result.outcome, result.reason or ""


FOUND = "{search: tea, expect: {hits: {count: 1}}}"
REFUSED = "{search: tea, expect: {error: true}}"
DOWN, OK = "{fault: {embedder: down}}", "{fault: {embedder: ok}}"


@pytest.mark.parametrize("steps", [(DOWN, REFUSED), (DOWN, REFUSED, OK, FOUND), (DOWN, REFUSED, "{restart: }", FOUND)])
async def test_a_fault_that_something_met_is_judged(steps):
    assert await outcome_of(*steps) == ("passed", "")


@pytest.mark.parametrize(
    "steps",
    [
        (DOWN, "{list: , expect: {hits: {count: 1}}}"),
        (DOWN, OK, FOUND),
        (DOWN, "{restart: }", FOUND),
        (DOWN, REFUSED, OK, DOWN, "{list: , expect: {hits: {count: 1}}}"),
        (DOWN, "{fault: {embedder: slow}}", REFUSED),
    ],
)
async def test_a_fault_that_nothing_met_is_an_error_and_no_pass(steps):
    outcome, reason = await outcome_of(*steps)
    assert outcome == "error"
    assert "the fault of the embedder did not land: nothing used the embedder while it failed" in reason


async def test_a_target_that_cannot_tell_whether_its_faults_land_is_an_error():
    outcome, reason = await outcome_of(DOWN, REFUSED, kind=Untelling)
    assert outcome == "error"
    assert "cannot say whether that happened" in reason
