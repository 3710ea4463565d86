"""Files that are changed behind a memory's back, and time that passes: both are seen to happen."""

import asyncio

import pytest

from memstory.contract.errors import TargetError
from memstory.controls import CONTROLS, OracleFactory
from memstory.language.stories import parse_stories
from memstory.playing import play
from memstory.running.workspace_files import tamper


async def result_of(steps, factory=OracleFactory):
    lines = "".join(f"  - {step}\n" for step in steps)
    (story,) = parse_stories(f"story: A\ntitle: T\nsteps:\n{lines}", "f.yaml")
    return await play(story, factory())


@pytest.mark.parametrize("change", ["{edit: {tea: ale}}", "{cut: '*.json'}"])
async def test_a_memory_with_integrity_refuses_files_that_were_changed(change):
    result = await result_of(["add: tea", f"{{tamper: {change}, expect: {{error: true}}}}"])
    assert (result.outcome, result.reason) == ("passed", None)


async def test_a_memory_without_it_tells_what_the_files_say_now():
    steps = ["add: tea", "tamper: {edit: {tea: ale}}", "{list: , expect: {hits: {first: {text: ale}}}}"]
    result = await result_of(steps, CONTROLS["unsealed"])
    assert (result.outcome, result.reason) == ("passed", None)


async def test_files_that_vanish_are_gone_at_the_next_opening():
    result = await result_of(["add: tea", "tamper: {remove: oracle.json}", "{list: , expect: {hits: {empty: true}}}"])
    assert (result.outcome, result.reason) == ("passed", None)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"edit": {"ale": "tea"}}, "no file holds 'ale'"), ({"remove": "*.idx"}, "no file is called '*.idx'"),
     ({"cut": "*.idx"}, "no file is called '*.idx'"), ({"edit": {"tea": "tea"}}, "'tea' stays what it is"),
     ({"cut": "empty"}, "'empty' is empty")],
)  # fmt: skip
def test_a_change_that_finds_nothing_to_change_is_an_error(tmp_path, change, said):
    (tmp_path / "a.json").write_text("tea")
    (tmp_path / "empty").touch()
    with pytest.raises(TargetError, match="so that nothing was changed and this shows nothing") as error:
        tamper(tmp_path, change)
    assert said in str(error.value)


def test_a_symlink_is_not_followed(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "outside").write_text("tea")
    (tmp_path / "inner/link").symlink_to(tmp_path / "outside")
    with pytest.raises(TargetError):
        tamper(tmp_path / "inner", {"edit": {"tea": "ale"}})
    assert (tmp_path / "outside").read_text() == "tea"


async def test_waiting_moves_the_clock_of_the_story_where_the_target_goes_by_it():
    result = await result_of(["wait: 3s", "list:"])
    first, second = result.trials[0].recording.steps
    assert (first.at, second.at) == ("2026-01-01T12:00:00+00:00", "2026-01-01T12:00:03+00:00")


async def test_for_other_targets_real_time_passes_too(monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    class Timeless(OracleFactory):
        def capabilities(self, options):
            return super().capabilities(options) - {"clock"}

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert (await result_of(["wait: 1.2s", "list:"], Timeless)).outcome == "passed"
    assert slept == [1.2]
