"""The page of attacks names the stories that have its tags, and no others."""

import re
from pathlib import Path

from memstory.bundled import bundled_stories
from memstory.language.stories import load_stories

PAGE = (Path(__file__).parents[1] / "docs/explanation/attacks.md").read_text("utf-8")
ID = re.compile(r"ASI\d\d|AML_T\d{4}(_\d{3})?")


def test_each_tag_of_an_attack_has_its_row_with_all_of_its_stories():
    found = {}
    for path in bundled_stories().rglob("*.yaml"):
        for story in load_stories(path):
            for tag in filter(ID.fullmatch, story.tags):
                found.setdefault(tag, set()).add(story.id)
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|.*\| (.*?) \|$", PAGE, re.MULTILINE)
    assert {tag: set(stories.split(", ")) for tag, _, stories in rows} == found
    assert [tag for tag, name, _ in rows if tag.replace("_", ".") not in name] == []
