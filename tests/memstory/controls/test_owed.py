"""What the stories of what a memory owes must show: who passes them, who cannot, and which fault each one finds."""

import pytest

from memstory.bundled import bundled_stories
from memstory.controls import CONTROLS, MUTANTS
from memstory.language.stories import load_stories
from memstory.playing import play
from memstory.targets.vendors.chroma import ChromaFactory
from memstory.targets.vendors.sqlite import SqliteVecFactory

OWED = [
    story
    for path in sorted([*bundled_stories().glob("owed/*.yaml"), *bundled_stories().glob("advanced/*.yaml")])
    for story in load_stories(path, path.name)
    if not story.measure
]
# A process for each case: `test_controls_on_stories` runs them.
INSIDE = [story for story in OWED if "crash" not in story.needs]
IDS = sorted({story.id for story in INSIDE})
EACH = pytest.mark.parametrize("rows", [[one for one in INSIDE if one.id == name] for name in IDS], ids=IDS)


@EACH
async def test_the_oracle_passes_each_row_and_the_mutant_with_just_its_fault_fails(rows):
    for story in rows:
        oracle = await play(story, CONTROLS["oracle"]())
        assert (oracle.outcome, oracle.reason) == ("passed", None)
    for name in set(rows[0].control) & set(MUTANTS):
        assert "failed" in [(await play(story, MUTANTS[name]())).outcome for story in rows], name


@EACH
async def test_a_memory_that_remembers_nothing_passes_no_obligation(rows):
    for story in rows:
        assert (await play(story, CONTROLS["nothing"]())).outcome != "passed"


@pytest.mark.parametrize("factory", [SqliteVecFactory, ChromaFactory])
def test_a_plain_table_of_vectors_cannot_do_at_least_half(factory):
    able = factory().capabilities({})
    stories = {story.id for story in OWED}
    assert len(stories) >= 60
    assert len({story.id for story in OWED if story.needs - able}) >= len(stories) / 2


def test_no_story_depends_on_a_language_model():
    assert [story.id for story in OWED if story.needs & {"chat", "llm.scripted"}] == []
