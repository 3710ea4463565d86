"""The bundled stories have readable slugs and, where finding is not the point, quote what they stored."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from memstory.controls import Oracle, OracleFactory
from memstory.language.stories import load_stories
from memstory.language.story import Story
from memstory.reporting.sections.columns import columns_of
from memstory.reporting.sections.outcomes import causes
from memstory.results.folder.results_file import read_results
from memstory.results.runs import NamedRun

ROOT = Path(__file__).parents[1]
LONGEST_SLUG = 40
FILES = ("owners", "writes", "changes", "texts", "durability", "edges", "processes", "searching")
# What a search makes of a question is what these are about.
OF_QUESTIONS = {"FS2", "FS3", "FS4", "FS11", "FS14", "FS16", "FS17", "FE24"}


class Substring(Oracle):
    """Finds a memory only where the whole query occurs in it."""

    async def search(self, query, scope):
        found = await super().search(replace(query, top_k=None), scope)
        return [hit for hit in found if query.text.casefold() in hit.text.casefold()][: query.top_k]


class SubstringFactory(OracleFactory):
    name: ClassVar[str] = "substring"
    spec: ClassVar[str | None] = "test_fair_stories:SubstringFactory"

    def target(self):
        return Substring()


@pytest.fixture(scope="module")
def run_of_substrings(tmp_path_factory):
    """The run of a memory that finds substrings alone, on some of the bundled stories."""
    folder = tmp_path_factory.mktemp("substrings")
    paths = [f"stories/faults/{name}.yaml" for name in FILES]
    paths += [f"stories/generic/{name}.yaml" for name in ("recall", "forget", "isolation")]
    command = [sys.executable, "-m", "pytest", *paths, "--target", SubstringFactory.spec, "--report", str(folder)]
    command += ["-q", "-p", "no:cacheprovider"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)  # noqa: S603  (our own command)
    return read_results(folder / "results.json")


def test_a_memory_that_finds_substrings_passes_the_fault_stories_that_are_not_about_questions(run_of_substrings):
    cases = [case for case in run_of_substrings.cases if "/faults/" in case.where]
    assert {case.story for case in cases if case.outcome != "passed"} == OF_QUESTIONS


def test_all_that_a_memory_of_substrings_fails_is_one_cause(run_of_substrings):
    (cause,) = causes(columns_of([NamedRun(name="one", run=run_of_substrings)]))
    assert (cause.cases[0].story, len(cause.cases) > len(OF_QUESTIONS)) == ("G1", True)


def test_each_precondition_is_another_bundled_story_and_no_circle():
    files = (ROOT / "stories").rglob("*.yaml")
    stories = {one.id: one for path in files for one in load_stories(path) if isinstance(one, Story)}
    on = {one.id: one.precondition for one in stories.values() if one.precondition}
    assert len(on) >= 60
    assert set(on.values()) <= set(stories)
    reached = set(stories) - set(on)
    for _ in on:
        reached |= {name for name, before in on.items() if before in reached}
    assert set(on) - reached == set(), "in a circle"


def test_every_bundled_story_has_a_short_slug_that_no_other_has():
    files = [*(ROOT / "stories").rglob("*.yaml"), ROOT / "harness/memstory/templates/demo.story.yaml"]
    stories = {one.id: one for path in files for one in load_stories(path) if isinstance(one, Story)}
    assert {name: one.slug for name, one in stories.items() if not one.slug or len(one.slug) > LONGEST_SLUG} == {}
    assert [slug for slug, count in Counter(one.slug for one in stories.values()).items() if count > 1] == []
