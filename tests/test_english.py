"""Plain English in what people read: the worst habits stay out of docs, help, messages and titles.

It covers pages, titles of stories, and the comments, docstrings and messages of the code.
"""

import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from memstory.language.stories import load_stories
from memstory.language.story import Story

ROOT = Path(__file__).parents[1]
LONGEST_SLUG = 40
# Since Python 3.12 the text of an f-string is a token of another kind.
FSTRING_MIDDLE = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
HABITS = re.compile(
    r"(?:(?<!there )\b(?:is|are) no (?!longer|more|better|worse|other|such|slower)[a-z]+|\b(?:is|are) told\b|\banew\b"
    r"|\bwhat came\b(?! (?:back|out|before|after|behind))|\bof (?:its|their|our) own\b|\bwhat comes of\b"
    r"|\b(?:comes?|came) of it\b|\btold apart\b|\bin silence\b|\bin the place of\b|\bmust not be so\b"
    r"|\bwhoever\b|\bwhat became of\b|\bbut for (?:a|the|those|times|what)\b|\bin talk\b"
    r"|\blies? (?:in|beside|below) (?:a|the|its|memory)\b"
    r"|\b(?:holds?|held) against\b|\bthe present (?:folder|session|one)\b|\bsilent when it should be\b|\bnor is\b)",
    re.IGNORECASE,
)
READ_FIRST = re.compile(r"^(?:title|because): (.*)$", re.MULTILINE)
CODE = ("harness", "reference_impl", "benchmarks", "noxfile.py")
PAGES = ("README.md", "CONTRIBUTING.md", "RELEASING.md", "docs")


def read_by_people() -> Iterator[tuple[str, str]]:
    """Yield every text that people read, with its file: pages whole, titles of stories, and of code all but the code.

    Decisions are history, and the reference is made of the code.
    """
    for path in files(PAGES, ".md"):
        if not {"decisions", "reference"} & set(path.parts):
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
    for path in files(["stories"], ".yaml"):
        yield path.relative_to(ROOT).as_posix(), "\n".join(READ_FIRST.findall(path.read_text("utf-8")))
    for path in files(CODE, ".py"):
        yield path.relative_to(ROOT).as_posix(), "\n".join(words_of(path))


def files(names: Iterable[str], suffix: str) -> Iterator[Path]:
    for name in names:
        path = ROOT / name
        yield from [path] if path.is_file() else sorted(path.rglob(f"*{suffix}"))


def words_of(path: Path) -> Iterator[str]:
    """Yield comments, docstrings and messages."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in {tokenize.COMMENT, tokenize.STRING, FSTRING_MIDDLE}:
                yield token.string


def test_no_text_for_people_has_a_habit_that_stops_a_reader():
    found = {name: hits for name, text in read_by_people() if (hits := HABITS.findall(" ".join(text.split())))}
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "5 is no number",
        "it is told again",
        "a server of its own",
        "Nor is it",
        "is\nno list",
        "fails in silence",
        "Whoever reads it",
        "what became of it",
        "equal but for the times",
        "recall in talk",
        "the file lies beside the run",
    ],
)
def test_a_habit_is_found(text):
    assert HABITS.search(" ".join(text.split()))


@pytest.mark.parametrize(
    "text", ["there is no server", "it is no longer there", "its own server", "what came back", "the talk is over"]
)
def test_plain_english_is_not_a_habit(text):
    assert not HABITS.search(text)


def test_every_bundled_story_has_a_short_slug_of_its_own():
    files = [*(ROOT / "stories").rglob("*.yaml"), ROOT / "harness/memstory/templates/demo.story.yaml"]
    stories = {one.id: one for path in files for one in load_stories(path) if isinstance(one, Story)}
    assert {name: one.slug for name, one in stories.items() if not one.slug or len(one.slug) > LONGEST_SLUG} == {}
    assert [slug for slug, count in Counter(one.slug for one in stories.values()).items() if count > 1] == []
