"""The documents: the reference is what the code says, the tutorial is what happens, every block of YAML is a story."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import socket
import sys
from pathlib import Path

import pytest
import yaml

import memstory
from memstory.cli import COMMANDS, load_command, parser_of
from memstory.contract.target import OPERATIONS
from memstory.controls import CONTROLS
from memstory.data_sets import SETS
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
    # A dataclass looks its module up.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
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


def test_the_page_of_python_names_has_every_operation_that_an_adapter_may_override():
    page = (DOCS / "reference/python.md").read_text("utf-8")
    assert {name for name in OPERATIONS if f"| `{name}(" not in page} == set()
    assert "| `list(scope, kinds=…, limit=…)` |" in page
    assert "| `Query(text, kinds=…, top_k=…, min_score=…, token_budget=…," in page


def test_the_table_of_backends_is_what_the_adapters_say():
    assert MADE.BACKENDS.read_text("utf-8") == MADE.pages()[MADE.BACKENDS], (
        "make it again: python docs/make_reference.py"
    )


def test_no_page_of_the_reference_is_left_over():
    assert {path.stem for path in (DOCS / "reference").glob("*.md")} == set(MADE.PAGES)


def paths_of(nav):
    for entry in nav:
        inner = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from [inner] if isinstance(inner, str) else paths_of(inner)


def test_the_navigation_begins_with_the_readme_and_the_tutorial_and_has_every_page_but_the_decisions():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    assert [next(iter(section)) for section in nav] == [
        "Start", "How-to", "Reference", "Explanation", "Measurements", "Project",
    ]  # fmt: skip
    paths = list(paths_of(nav))
    assert paths[:2] == ["README.md", "docs/tutorial/first-story.md"]
    pages = {path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md") if path.parent.name != "decisions"}
    assert sorted(path for path in paths if path.startswith("docs/")) == sorted(pages)


def test_why_no_dataset_is_bundled_is_told_with_its_own_licence():
    page = (DOCS / "explanation/other-tools.md").read_text("utf-8")
    licences = {SETS[name].title: SETS[name].licence for name in ("locomo", "longmemeval")}
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


def test_a_module_that_a_page_names_exists():
    tops = ("harness", "reference_impl", "tests", "benchmarks", "docs", "stories", "packaging")
    ours = [f"/{path.relative_to(ROOT).as_posix()}" for top in tops for path in (ROOT / top).rglob("*.*")]
    lost = {
        (page.relative_to(ROOT).as_posix(), named)
        for page in PAGES
        for named in re.findall(r"`([\w-]+(?:/[\w-]+)*\.(?:py|toml))`", page.read_text("utf-8"))
        # Who follows another page writes files of their own.
        if page.parent.name in {"explanation", "decisions"} or named.startswith(tops)
        if not any(path.endswith(f"/{named}") for path in ours)
    }
    written_by_a_reader = {"memstory.toml"}
    assert {one for one in lost if one[1] not in written_by_a_reader and "NAME" not in one[1]} == set()


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_a_page_says_where_an_extra_is_installed(page):
    text = page.read_text("utf-8")
    for found in re.finditer(r"^(?:\$ )?pip install '\.", text, re.MULTILINE):
        assert "clone" in "\n\n".join(text[: found.start()].split("\n\n")[-3:]), text.count("\n", 0, found.start()) + 1


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


def test_the_tutorial_begins_with_the_command_of_the_readme():
    (command,) = re.findall(r"^python3 -m venv .*$", TUTORIAL.read_text("utf-8"), re.MULTILINE)
    assert command in (ROOT / "README.md").read_text("utf-8")


FOLLOW = script("follow")


def followed(folder, page):
    """Follow a page in an empty folder; return what happened, and what went wrong in one text."""
    home = folder.resolve() / "home"
    home.mkdir()
    shell = FOLLOW.Shell(folder=home, home=home, settings=FOLLOW.settings(home))
    walk = FOLLOW.Walk(name="page.md", shell=shell, sessions="nox -s stories")
    walk.follow(page)
    return walk, "\n".join(walk.wrong)


def sh(commands, mark=""):
    return f"<!-- follow: {mark} -->\n```sh\n{commands}\n```\n" if mark else f"```sh\n{commands}\n```\n"


SAVED = "Save it as\n`a.txt`:\n```yaml\nx: 1\n```\n"


@pytest.mark.parametrize(
    ("page", "ran"),
    [
        (sh("true\ntrue"), 2),
        (sh("# a remark\ntrue \\\n  --version"), 1),
        (sh("false\ntrue", "exits 1 0"), 2),
        (SAVED + sh("grep x a.txt"), 1),
        (sh("mkdir -p deep && cd deep\nexport NAME='an apple'") + sh('test "$NAME" = "an apple"\ntest ! -e deep'), 4),
    ],
)
def test_a_page_whose_commands_do_as_it_says_is_followed(tmp_path, page, ran):
    walk, wrong = followed(tmp_path, page)
    assert (walk.ran, walk.left, wrong) == (ran, [], "")


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        (sh("true\nfalse"), "page.md:1: ended with 1 instead of 0: false"),
        (sh("echo why; false"), "why"),
        (sh("true", "exits 1"), "page.md:2: ended with 0 instead of 1: true"),
        (sh("true", "exits 1 0"), "1 commands, but 2 exit codes"),
        (sh("true", "not here:"), "gives no reason"),
        (sh("true", "in CI: nox -s lifelines"), "no script in .ci runs 'nox -s lifelines'"),
        (sh("true", "skip it"), "says nothing that is known"),
        ("<!-- follow: exits 1 -->\n\n" + sh("true"), "does not stand directly before"),
        ("<!-- follow: exits 1 -->\n```yaml\nx: 1\n```\n", "before a block without commands"),
        (sh("false", "keeps running at 1"), "page.md:2: its port 1 does not answer"),
        ("```console\n$ echo new\nold\n```\n", "it really prints"),
    ],
)
def test_a_page_that_says_what_is_not_so_is_not_followed(tmp_path, page, wrong):
    assert wrong in followed(tmp_path, page)[1]


@pytest.mark.parametrize("mark", ["not here: needs a key", "in CI: nox -s stories"])
def test_commands_that_do_not_run_are_counted_with_the_reason(tmp_path, mark):
    walk, wrong = followed(tmp_path, sh("touch here\nfalse", mark))
    assert (walk.ran, walk.left, wrong) == (0, [f"page.md:2: {mark} (2 commands)"], "")
    assert not (tmp_path / "home/here").exists()


def test_a_server_of_a_page_answers_until_its_end(tmp_path):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    server = sh(f"{sys.executable} -m http.server --bind 127.0.0.1 {port}", f"keeps running at {port}")
    client = sh(f"{sys.executable} -c \"import socket; socket.create_connection(('127.0.0.1', {port})).close()\"")
    walk, wrong = followed(tmp_path, server + client)
    assert (walk.ran, wrong) == (2, "")
    with socket.socket() as one:
        assert one.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("```console\n$ echo in 1.23s, 45 ms\n```\n", "$ echo in 1.23s, 45 ms\nin 0.10s, 0 ms\n"),
        (SAVED + "```console\n$ cat a.txt\nold\n```\n", "$ cat a.txt\nx: 1\n"),
        ("```console\n$ pwd\n```\n", "$ pwd\n/home/you\n"),
    ],
)
def test_what_commands_really_print_can_be_put_into_a_page(tmp_path, page, printed):
    assert followed(tmp_path, page)[0].text.endswith(f"```console\n{printed}```\n")
