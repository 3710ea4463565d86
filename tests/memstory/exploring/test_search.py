"""The search on memories whose faults are known: it finds them, as causes of their own, and accuses no sound one."""

import pytest

from memstory.contract.errors import SetupError, TargetError
from memstory.contract.target import Target, TargetFactory
from memstory.controls import FAULTS, Oracle, OracleFactory
from memstory.exploring import Limits, explore, search
from memstory.exploring.search import FAILS
from memstory.exploring.stories import read_story
from memstory.language.story import Story
from memstory.playing import play

SEED = 1


class Lame(OracleFactory):
    """An oracle that is not said to keep what it is given."""

    def capabilities(self, options):
        return super().capabilities(options) - {"add.verbatim"}


async def explored(factory, examples, findings=None, seed=SEED):
    limits = Limits(seconds=600, examples=examples, findings=findings)
    return await search(factory, seed=seed, limits=limits)


async def test_a_perfect_memory_breaks_no_promise():
    found = await explored(OracleFactory(), 40)
    assert (found.findings, found.unsteady) == ([], [])
    assert (found.examples, found.untried) == (40, {})
    assert sum(found.operations.values()) > 300


@pytest.mark.parametrize(
    ("fault", "promise", "seed"),
    [
        ("listing_deleted", "deleted", 1),
        ("dropping_metadata", "metadata", 2),
        ("capped_list", "kept", 3),
    ],
)
async def test_a_fault_is_found_and_its_story_fails_on_it_alone(fault, promise, seed, tmp_path):
    (finding,) = (await explored(FAULTS[fault](), 30, findings=1, seed=seed)).findings
    assert (finding.promise, finding.repeated, finding.written) == (promise, 3, FAILS)
    assert finding.steps <= 4
    story = read_story(finding.story)
    assert isinstance(story, Story)
    assert story.tags == ("explored", promise)
    outcomes = [(await play(story, factory, tmp_path)).outcome for factory in (FAULTS[fault](), OracleFactory())]
    assert outcomes == ["failed", "passed"]


async def test_a_seed_finds_the_same_again():
    one, other = [await explored(FAULTS["listing_deleted"](), 20) for _ in range(2)]
    assert [finding.name for finding in one.findings] == [finding.name for finding in other.findings]
    assert one.operations == other.operations


async def test_a_cause_is_found_once_however_often_it_is_met():
    found = await explored(FAULTS["listing_deleted"](), 40)
    names = [finding.name for finding in found.findings]
    assert len(names) == len(set(names))
    assert sum(finding.seen for finding in found.findings) > len(names)
    assert not [(one, other) for one in found.findings for other in found.findings
                if one is not other and one.is_within(other)]  # fmt: skip


async def test_a_memory_that_breaks_instead_of_answering_is_a_finding():
    class Breaking(Oracle):
        async def list(self, scope, kinds=(), limit=None):
            raise ZeroDivisionError("the list is broken")

    class BreakingFactory(OracleFactory):
        spec = None

        def target(self) -> Target:
            return Breaking()

    found = await explored(BreakingFactory(), 30)
    (finding,) = [one for one in found.findings if one.op == "list"]
    assert finding.promise == "answers"
    assert "ZeroDivisionError: the list is broken" in finding.says


async def test_a_server_may_have_an_error_for_a_kind_that_it_does_not_know():
    class Strict(Oracle):
        async def add(self, items, scope):
            if any(item.kind for item in items):
                raise TargetError("the server says: memory_type is unknown")
            return await super().add(items, scope)

    class StrictFactory(OracleFactory):
        spec = None

        def target(self) -> Target:
            return Strict()

    found = await explored(StrictFactory(), 20)
    assert (found.findings, found.unsteady, found.untried["add: refused"] > 0) == ([], [], True)


async def test_what_does_not_come_again_is_kept_apart():
    class Once(Oracle):
        is_over = False

        async def list(self, scope, kinds=(), limit=None):
            hits = await super().list(scope, kinds, limit)
            if Once.is_over or limit is not None or not hits:
                return hits
            Once.is_over = True
            return hits[1:]

    class OnceFactory(OracleFactory):
        spec = None

        def target(self) -> Target:
            return Once()

    found = await explored(OnceFactory(), 20)
    assert found.findings == []
    assert [(one.op, one.repeated, one.plays) for one in found.unsteady] == [("list", 0, 10)]


async def test_a_memory_that_decides_what_it_keeps_is_asked_for_less():
    found = await explored(Lame(), 10)
    assert (found.findings, found.left_out["promise kept"]) == ([], ["add.verbatim"])


async def test_a_memory_that_shows_nothing_is_not_explored():
    class Dark(OracleFactory):
        def capabilities(self, options):
            return super().capabilities(options) - {"list", "search"}

    with pytest.raises(SetupError, match="list or search"):
        await explored(Dark(), 10)


async def test_what_a_target_lacks_is_said_to_be_left_out():
    class Short(OracleFactory):
        def capabilities(self, options):
            return super().capabilities(options) - {"restart", "add.key"}

    found = await explored(Short(), 5)
    assert found.left_out["restart"] == ["restart"]
    assert found.left_out["same key"] == ["add.key"]


def test_a_test_fails_with_the_story_of_a_fault_and_passes_over_known_ones():
    with pytest.raises(AssertionError) as raised:
        explore(FAULTS["listing_deleted"], examples=20, seconds=600, seed=SEED)
    assert "story: X1" in str(raised.value)
    names = [line.strip("()") for line in str(raised.value).splitlines() if line.startswith("(")]
    done = explore(FAULTS["listing_deleted"](), examples=20, seconds=600, seed=SEED, known=names)
    assert isinstance(FAULTS["listing_deleted"](), TargetFactory)
    assert [one.name for one in done.findings] == names
