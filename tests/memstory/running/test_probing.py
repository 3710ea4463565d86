"""What a step with `forbid` looks at, and that its verdicts tell a leak from an empty memory."""

import pytest

from memstory.contract.errors import NotSupported
from memstory.contract.target import Hit
from memstory.controls import CONTROLS, OracleFactory
from memstory.controls.oracle import Oracle
from memstory.language.stories import parse_stories
from memstory.playing import play
from memstory.results.containment import is_in
from memstory.running.workspace_files import texts_in_files

STORY = """
story: P1
title: What is deleted is gone
steps:
  - add:
      - {text: The alarm code is kestrel., save: code}
      - {text: The alarm is in the hall., twin: true}
  - delete: {id: "${code}"}
    forbid: [Kestrel]
"""


def read(text=STORY):
    (story,) = parse_stories(text, "f.yaml")
    return story


def factory_with(target, *able):
    class Factory(OracleFactory):
        def capabilities(self, options):
            return super().capabilities(options) | {*able}

        def target(self):
            return target()

    return Factory()


def probe_of(result):
    return result.trials[0].recording.steps[-1].probe


async def test_a_deleted_text_is_looked_for_in_every_place_that_the_target_has():
    class Open(Oracle):
        async def context(self, query, scope):
            return "nothing"

        async def inspect(self, what, args, scope):
            return []

    result = await play(read(), factory_with(Open, "context", "inspect.log"))
    assert (result.outcome, result.reason) == ("passed", None)
    assert list(probe_of(result).looked) == ["result", "list", "search", "context", "log"]
    assert [(one.field, one.passed) for one in result.trials[0].verdicts] == [("forbid", True), ("twin", True)]


async def test_what_is_still_there_is_told_with_the_places():
    result = await play(read(), CONTROLS["undeleting"]())
    assert result.outcome == "failed"
    assert "forbid: 'Kestrel' is still in: list, search" in result.reason


async def test_a_context_or_a_log_that_still_holds_the_text_is_a_leak():
    class Summarising(Oracle):
        async def context(self, query, scope):
            return "Summary: the alarm code is KESTREL"

        async def inspect(self, what, args, scope):
            return [{"deleted": "The alarm code is kestrel."}]

    result = await play(read(), factory_with(Summarising, "context", "inspect.log"))
    assert "is still in: context, log" in result.reason


async def test_a_leak_that_was_found_counts_though_the_target_breaks_in_the_next_place():
    class Breaking(CONTROLS["undeleting"]().target().__class__):
        async def context(self, query, scope):
            raise RuntimeError("connection reset")

    result = await play(read(), factory_with(Breaking, "context"))
    assert (result.outcome, result.leaked) == ("failed", True)
    assert "forbid: 'Kestrel' is still in: list, search; then the target broke off: " in result.reason
    sound = await play(read(), factory_with(type("Sound", (Oracle,), {"context": Breaking.context}), "context"))
    assert (sound.outcome, sound.leaked) == ("error", None)


async def test_a_place_that_is_declared_and_cannot_be_looked_at_is_an_error():
    class Declining(Oracle):
        async def context(self, query, scope):
            raise NotSupported("context")

    result = await play(read(), factory_with(Declining, "context"))
    assert result.outcome == "error"
    assert "the target declares 'context', and says that it does not support it" in result.reason


async def test_a_memory_that_remembers_nothing_fails_by_the_twin_and_holds_no_forbidden_text():
    result = await play(read(), CONTROLS["nothing"]())
    assert [(one.field, one.passed) for one in result.trials[0].verdicts] == [("forbid", True), ("twin", False)]


async def test_a_deletion_that_takes_the_twin_too_fails():
    class Greedy(Oracle):
        async def delete(self, ref, scope):
            self._memories = []
            self._save()
            return True

    result = await play(read(), factory_with(Greedy))
    assert "twin: 'The alarm is in the hall.', which nobody deleted, is no longer found" in result.reason


async def test_files_count_only_where_the_story_requires_that_the_target_erases():
    class Leaving(Oracle):
        def _save(self):
            super()._save()
            with self._path.with_name("journal").open("a") as journal:
                journal.write(" ".join(one.hit.text for one in self._memories))

    assert (await play(read(), factory_with(Leaving))).outcome == "passed"
    erasing = read(STORY.replace("steps:", "requires: [delete.erases]\nsteps:"))
    assert "is still in: files" in (await play(erasing, factory_with(Leaving))).reason
    assert list(probe_of(await play(erasing, OracleFactory())).looked)[-1] == "files"


@pytest.mark.parametrize(
    "written",
    ["Zo\u00eb's PIN", '{"text": "Zo\\u00eb\\u2019s PIN"}', '{"text": "ZO\u00cb&#39;S PIN"}', "Zoe\u0308's  PIN"],
)
def test_a_text_is_found_in_a_file_however_it_is_written(written, tmp_path):
    (tmp_path / "journal").write_bytes(b"\x00\xff\x80" + written.encode() + b"\xfe")
    assert texts_in_files(tmp_path, ["Zo\u00eb's PIN", "Zo\u00eb\u2019s PIN", "tea"])[:1] == ["Zo\u00eb's PIN"]


@pytest.mark.parametrize("able", [{"list"}, set()], ids=["that lists a page", "that lists nothing"])
async def test_a_search_for_a_forbidden_text_goes_on_until_no_more_comes(able):
    class Long(Oracle):
        async def list(self, kinds, limit, scope):
            return (await super().list(kinds, limit, scope))[:20]

        async def search(self, query, scope):
            twin = [one.hit for one in self._memories if "hall" in one.hit.text]
            others = [Hit(id=f"x{number}", text=f"Nothing {number}") for number in range(490)]
            return [*twin, *others, Hit(id="y", text="The alarm code is kestrel.")][: query.top_k]

    class Factory(OracleFactory):
        def capabilities(self, options):
            return super().capabilities(options) - {"list"} | able

        def target(self):
            return Long()

    result = await play(read(), Factory())
    assert "is still in: search" in (result.reason or "")


def test_a_forbidden_text_without_a_twin_is_an_invalid_story():
    (story,) = parse_stories(STORY.replace(", twin: true", ""), "f.yaml")
    assert "mark an item of an earlier 'add' as 'twin'" in str(story.errors[0])


def test_a_text_is_found_in_any_form():
    assert is_in("CAFE\u0301  noir", [{"text": "a café noir."}])
    assert is_in("4711", {"pin": [4711]})
    assert not is_in("4711", {"pin": [47, 11], "text": None})
