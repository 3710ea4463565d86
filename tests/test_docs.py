"""The documents: the reference is what the code says, the tutorial is what happens, every block of YAML is a story."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from pathlib import Path

import pytest

import memstory
from memstory.cli import COMMANDS, load_command, parser_of
from memstory.controls import CONTROLS
from memstory.datasets.loading import LOCOMO, LONGMEMEVAL
from memstory.language.capabilities import FEATURES, operations
from memstory.language.grammar import grammar
from memstory.language.stories import InvalidStory, parse_stories
from memstory.playing import play
from memstory.targets.discovery import load_targets

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
TUTORIAL = DOCS / "tutorial/first-story.md"


def script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MADE = script("make_reference")
REFERENCE = "\n".join(path.read_text("utf-8") for path in sorted((DOCS / "reference").glob("*.md")))


def blocks(page):
    return re.findall(r"^```yaml\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


EVERY_BLOCK = [
    pytest.param(text, id=f"{page.relative_to(ROOT).as_posix()}-{number}")
    for page in PAGES
    for number, text in enumerate(blocks(page), 1)
]


@pytest.mark.parametrize("name", MADE.PAGES)
def test_the_reference_is_what_the_code_says(name):
    path = DOCS / f"reference/{name}.md"
    assert path.read_text("utf-8") == MADE.pages()[path], "make it again: python docs/make_reference.py"


def test_the_table_of_backends_is_what_the_adapters_say():
    assert MADE.BACKENDS.read_text("utf-8") == MADE.pages()[MADE.BACKENDS], (
        "make it again: python docs/make_reference.py"
    )


def test_no_page_of_the_reference_is_left_over():
    assert {path.stem for path in (DOCS / "reference").glob("*.md")} == set(MADE.PAGES)


def test_why_no_dataset_is_bundled_is_told_with_its_own_licence():
    page = (DOCS / "explanation/other-tools.md").read_text("utf-8")
    licences = {place.holds: place.get.rpartition(", ")[2].rstrip(")") for place in (LOCOMO, LONGMEMEVAL)}
    assert licences == {"LoCoMo": "CC BY-NC 4.0", "LongMemEval": "MIT"}
    assert [name for name, licence in licences.items() if f"{name} ({licence})" not in page] == []


def test_no_key_of_a_story_is_undocumented():
    names = set()

    def walk(schema):
        for key, inner in schema.items() if isinstance(schema, dict) else ():
            if key == "properties":
                names.update(inner)
            walk(inner)
        for inner in schema if isinstance(schema, list) else ():
            walk(inner)

    walk(grammar())
    shown = re.findall(r"`([^`\n]+)`|^## (\w+)$|(\w+): ", REFERENCE, re.MULTILINE)
    documented = {word for found in shown for part in found for word in re.findall(r"\w+", part)}
    assert names - documented == set()


def test_no_command_option_capability_or_control_is_undocumented():
    parsers = [parser_of(name, load_command(name)) for name in COMMANDS]
    typed = {word for parser in parsers for word in parser._option_string_actions} - {"-h", "--help"}
    controls = {f"control:{name}" for name in CONTROLS}
    wanted = {*typed, *operations(), *FEATURES, *controls, *(f"memstory {name}" for name in COMMANDS)}
    assert {word for word in wanted if f"{word}`" not in REFERENCE and f"## {word}\n" not in REFERENCE} == set()


def test_no_promised_name_is_undocumented():
    assert sorted(" ".join(names for _, names in MADE.PYTHON.values()).split()) == sorted(memstory.__all__)


@pytest.mark.parametrize("text", EVERY_BLOCK)
def test_every_block_of_yaml_is_a_story_or_steps_of_one(text):
    if "contians" in text:
        pytest.skip("the slip that the tutorial is about")
    if text.startswith("- "):
        text = f"story: A\ntitle: T\nsteps:\n{text}"
    errors = [
        str(error)
        for story in parse_stories(text, "block")
        if isinstance(story, InvalidStory)
        for error in story.errors
    ]
    assert errors == []


@pytest.mark.parametrize("text", [block for block in EVERY_BLOCK if block.values[0].startswith("story:")])
def test_every_whole_story_in_the_documents_runs(text, tmp_path):
    (factory,) = load_targets(["control:oracle"]).values()
    for number, story in enumerate(parse_stories(text, "block")):
        if not isinstance(story, InvalidStory):
            result = asyncio.run(play(story, factory, tmp_path / str(number)))
            failing_on_purpose = TUTORIAL.read_text("utf-8").count(text) == 1 and "count: 1" in text
            assert result.outcome in ({"failed"} if failing_on_purpose else {"passed", "unsupported"}), result.reason


@pytest.mark.slow
def test_the_tutorial_followed_word_by_word_prints_what_it_shows(tmp_path):
    page = TUTORIAL.read_text("utf-8")
    assert script("replay").replayed(page, tmp_path) == page, (
        "replay it: python docs/replay.py docs/tutorial/first-story.md"
    )


def test_the_tutorial_begins_with_the_command_of_the_readme():
    (command,) = re.findall(r"^python3 -m venv .* -s stories$", TUTORIAL.read_text("utf-8"), re.MULTILINE)
    assert command in (ROOT / "README.md").read_text("utf-8")


SAVED = "Save it as\n`a.txt`:\n```yaml\nx: 1\n```\n```console\n$ cat a.txt\nold\n```\n"


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("```console\n$ echo in 1.23s, 45 ms\n```\n", "$ echo in 1.23s, 45 ms\nin 0.10s, 0 ms\n"),
        (SAVED, "$ cat a.txt\nx: 1\n"),
        ("```console\n$ pwd\n```\n", "$ pwd\n/home/you/first-story\n"),
    ],
)
def test_a_page_is_replayed_with_what_is_really_printed(tmp_path, page, printed):
    assert script("replay").replayed(page, tmp_path).endswith(f"```console\n{printed}```\n")
