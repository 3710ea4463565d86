"""The narrow mutants: each is the oracle but for one thing. `test_controls_on_stories` shows that stories find them."""

import re
from importlib import import_module
from pkgutil import iter_modules

import pytest

from memstory.bundled import bundled_stories
from memstory.case import cases_of
from memstory.contract.clock import StoryClock
from memstory.contract.errors import SetupError
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.controls import BROAD, FAULTS, MUTANTS, OracleFactory, faults
from memstory.controls.mutants import Mutant
from memstory.language.stories import load_stories
from memstory.targets.discovery import load_spec

ANN, BOB = Scope(user="ann"), Scope(user="bob")
ABOUT_IT = {"losing_emoji", "dropping_last", "one_too_many", "repeating_hits"}
STORIES = [
    story
    for path in sorted((bundled_stories() / "faults").glob("*.yaml"))
    for story in load_stories(path, path.name)
    if not story.measure
]

OWED = [
    story
    for path in sorted([*bundled_stories().glob("owed/*.yaml"), *bundled_stories().glob("advanced/*.yaml")])
    for story in load_stories(path, path.name)
]


@pytest.fixture
def opened(tmp_path):
    async def make(name):
        target = FAULTS[name]().target()
        await target.open(Environment(workspace=str(tmp_path), owner="ann"), StoryClock())
        return target

    return make


def test_every_fault_is_registered_under_the_name_of_its_class():
    modules = [import_module(f"{faults.__name__}.{found.name}") for found in iter_modules(faults.__path__)]
    written = [
        name for module in modules for name, one in vars(module).items()
        if isinstance(one, type) and issubclass(one, Mutant) and one.__module__ == module.__name__ and name[0] != "_"
    ]  # fmt: skip
    assert len(FAULTS) == 243
    assert sorted(name.replace("_", "") for name in FAULTS) == sorted(name.lower() for name in written)
    assert FAULTS["short_of_top_k"].mutant.__name__ == "ShortOfTopK"


def test_every_mutant_says_its_fault_in_one_line():
    said = {name: (factory.__doc__ or "").strip() for name, factory in MUTANTS.items()}
    assert {name: text for name, text in said.items() if not text.endswith(".") or "\n" in text} == {}


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_another_process_finds_a_mutant_by_its_spec(name):
    found = load_spec(MUTANTS[name].spec)
    assert (type(found), found.name) == (MUTANTS[name], f"control:{name}")


def test_a_name_that_is_no_control_is_no_spec():
    with pytest.raises(SetupError, match=r"'control:leaky_gte'.*'control:leaky_get'"):
        load_spec("control:leaky_gte")


def test_only_mutants_that_are_about_it_run_stories_that_kill():
    able = {name for name, factory in MUTANTS.items() if "crash" in factory().capabilities({})}
    of_processes = {"reading_once", "keeping_deleted_by_others", "taking_no_turns"}
    assert able == {*BROAD, *of_processes, "writing_at_the_end", "leaving_locks"}
    everything = OracleFactory().capabilities({})
    left = [everything - factory().capabilities({}) for factory in MUTANTS.values()]
    assert all(one in (set(), {"crash", "other_process"}) for one in left)


@pytest.mark.parametrize("name", sorted(set(FAULTS) - ABOUT_IT))
async def test_a_plain_text_is_kept_and_found_by_a_mutant_that_is_not_about_it(opened, name):
    target = await opened(name)
    receipt = await target.add([Item(text="the ferry leaves")], ANN)
    await target.add([Item(text="the harbour sleeps")], ANN)
    assert "the ferry leaves" in [hit.text for hit in await target.list(ANN)]
    found = await target.search(Query(text="ferry"), ANN)
    assert [hit.text for hit in found] == ["the ferry leaves"]
    gone = await target.get(Ref(id=receipt.items[0].id), ANN)
    assert gone is not None
    assert gone.text == "the ferry leaves"


async def test_a_leak_by_id_leaves_search_and_list_tight(opened):
    target = await opened("leaky_get")
    receipt = await target.add([Item(text="the ferry leaves")], ANN)
    assert (await target.get(Ref(id=receipt.items[0].id), BOB)).text == "the ferry leaves"
    assert (await target.search(Query(text="ferry"), BOB), await target.list(BOB)) == ([], [])


def test_every_fault_has_a_story_that_names_it_and_every_fault_story_a_fault():
    named = {name for story in (*STORIES, *OWED) for name in story.control}
    assert set(FAULTS) - named == set()
    assert [story.id for story in STORIES if not set(story.control) & set(FAULTS)] == []


def test_a_fault_story_is_tagged_and_says_what_its_fault_does():
    assert [story.id for story in STORIES if "fault" not in story.tags or not story.control_because] == []


def test_a_story_of_what_is_owed_says_its_harm_and_which_mutant_fails_it():
    assert len({story.id for story in OWED}) >= 60
    assert [story.id for story in OWED if not story.harm or "owed" not in story.tags] == []
    judged = [story for story in OWED if not story.measure]
    assert [story.id for story in judged if not set(story.control) & set(MUTANTS) or not story.control_because] == []
    assert [story.id for story in OWED if story.needs & {"chat", "llm.scripted"}] == []


def test_a_narrow_mutant_gets_the_stories_that_name_it():
    targets = ["control:oracle", "control:leaky", "control:leaky_get", "fts5"]
    cases = list(cases_of(STORIES, targets))
    assert {case.story.id for case in cases if case.target == "control:leaky_get"} == {"FO1"}
    assert all(sum(case.target == name for case in cases) == len(STORIES) for name in ("control:oracle", "fts5"))


def test_no_fault_story_names_a_backend():
    names = r"chroma|langgraph|mem0|llama|txtai|sqlite|fts5|bm25|topics|pipeline|layers|observations|postgres|mcp"
    told = [
        path.name for path in (bundled_stories() / "faults").glob("*.yaml") if re.search(names, path.read_text("utf-8"))
    ]
    assert told == []


@pytest.mark.parametrize(
    ("name", "found"),
    [("dropping_last", []), ("one_too_many", ["ferry", "harbour"]), ("repeating_hits", ["ferry", "ferry"])],
)
async def test_a_search_brings_less_or_more_than_it_should(opened, name, found):
    target = await opened(name)
    await target.add([Item(text="ferry"), Item(text="harbour")], ANN)
    assert [hit.text for hit in await target.search(Query(text="ferry", top_k=1), ANN)] == found


@pytest.mark.parametrize(
    ("name", "kept", "found"),
    [
        ("trimming", [("a ferry", {"deck": 2}), ("ferry", {"deck": 3})], 2),
        ("text_metadata", [(" a ferry", {"deck": "2"}), ("ferry ", {"deck": "3"})], 2),
        ("forgetting_early", [(" a ferry", {"deck": 2})], 1),
        ("short_of_top_k", [(" a ferry", {"deck": 2}), ("ferry ", {"deck": 3})], 1),
        ("dropping_last", [(" a ferry", {"deck": 2}), ("ferry ", {"deck": 3})], 1),
    ],
)
async def test_a_fault_in_the_head_of_a_class_is_made_at_its_place_alone(opened, name, kept, found):
    target = await opened(name)
    items = [Item(text=" a ferry", metadata={"deck": 2}), Item(text="ferry ", metadata={"deck": 3}, ttl=60)]
    await target.add(items, ANN)
    assert [(hit.text, hit.metadata) for hit in await target.list(ANN)] == kept
    hits = await target.search(Query(text="ferry", top_k=2), ANN)
    assert [hit.text for hit in hits] == [text for text, _ in kept][:found]


async def test_two_names_and_two_things_are_taken_for_one_where_the_head_of_a_class_says_so(opened):
    target = await opened("folding_owners")
    await target.add([Item(text="Room 112 is taken.")], Scope(user="Ann"))
    assert [hit.text for hit in await target.list(ANN)] == ["Room 112 is taken."]
    assert await target.list(BOB) == []
    target = await opened("fuzzy_about")
    await target.add([Item(text="Room 112 is taken."), Item(text="Room 225 is free.")], ANN)
    assert await target.delete_about(["113"], ANN) == 1
