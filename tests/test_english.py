"""Plain English in what people read: the worst habits stay out of docs, help, messages and titles.

Uses that are still there are counted in `ALLOWED`: the numbers may only fall.
"""

import re
from collections import Counter
from pathlib import Path

from memstory.language.stories import load_stories
from memstory.language.story import Story

ROOT = Path(__file__).parents[1]
LONGEST_SLUG = 40
HABITS = re.compile(
    r"\b(?:(?:is|are) no (?!longer|more|better|worse|other)[a-z]+|(?:is|are) told|anew|what came|of its own"
    r"|what comes of|(?:holds?|held) against|the present (?:folder|session|one)|silent when it should be)\b",
    re.IGNORECASE,
)
TITLE = re.compile(r"^title: (.*)$", re.MULTILINE)
MESSAGE = re.compile(r"(?:raise \w+\(|say\(|complain\(|help=|about=|summary=|description=).*?[\"'](.*)[\"']")


def read_by_people() -> dict[str, str]:
    """Every text that people read, by file: pages whole, of stories the titles, of code the messages and the help."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    # Decisions are history; the reference is made of the code.
    texts = {page: page.read_text("utf-8") for page in pages if not {"decisions", "reference"} & set(page.parts)}
    for path in (ROOT / "stories").rglob("*.yaml"):
        texts[path] = "\n".join(TITLE.findall(path.read_text("utf-8")))
    for path in (ROOT / "harness").rglob("*.py"):
        texts[path] = "\n".join(MESSAGE.findall(path.read_text("utf-8")))
    return {path.relative_to(ROOT).as_posix(): text for path, text in texts.items()}


def habits() -> dict[str, list[str]]:
    found = {name: HABITS.findall(text) for name, text in read_by_people().items()}
    return {name: hits for name, hits in found.items() if hits}


ALLOWED = {"docs": 40, "stories": 30, "harness": 33}
"""How many are left of old, by folder: a page, a title or a message that is written today has none."""


def test_no_text_for_people_gets_a_habit_that_stops_a_reader():
    found = habits()
    for folder, allowed in ALLOWED.items():
        own = {name: hits for name, hits in found.items() if name.startswith(folder)}
        assert sum(map(len, own.values())) <= allowed, own


def test_the_readme_and_the_pages_that_are_read_first_have_none():
    first = {
        "README.md",
        "docs/index.md",
        "docs/tutorial/first-story.md",
        "docs/how-to/chat.md",
        "docs/how-to/compare.md",
    }
    assert {name: hits for name, hits in habits().items() if name in first} == {}


def test_every_bundled_story_has_a_short_slug_of_its_own():
    files = [*(ROOT / "stories").rglob("*.yaml"), ROOT / "harness/memstory/templates/demo.story.yaml"]
    stories = {one.id: one for path in files for one in load_stories(path) if isinstance(one, Story)}
    assert {name: one.slug for name, one in stories.items() if not one.slug or len(one.slug) > LONGEST_SLUG} == {}
    assert [slug for slug, count in Counter(one.slug for one in stories.values()).items() if count > 1] == []
