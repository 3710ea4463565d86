"""What a forge and an index read in this repository agrees with pyproject.toml and with itself."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SOURCE = PROJECT["urls"]["Source"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


FOLDERS = (".github", "docs", "harness", "packaging", "reference_impl", "stories", "tests")
TEXTS = {".cff", ".json", ".md", ".py", ".toml", ".yaml", ".yml"}


def texts():
    """Every text of the tree by its name; this file has no address to set."""
    paths = [*ROOT.glob("*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    for path in paths:
        if path.suffix in TEXTS and path.is_file() and path != Path(__file__):
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def test_the_address_of_the_repository_is_the_same_wherever_it_stands():
    shape = re.compile(r"https://[\w.-]+/[\w./-]*?\bmemstory\b")
    wrong = [
        f"{name}: {found}"
        for name, text in texts()
        for found in shape.findall(text)
        if found != SOURCE and "your.git.host" not in found and "git.example" not in found
    ]
    assert wrong == []


def test_the_action_is_named_by_the_owner_and_the_version_of_pyproject():
    owner = SOURCE.removeprefix("https://github.com/")
    named = [one for _, text in texts() for one in re.findall(r"uses: (\S*memstory@\S+)", text)]
    assert set(named) == {f"{owner}@v{PROJECT['version']}"}


def load(name):
    spec = importlib.util.spec_from_file_location(f"memstory_{name}", ROOT / f"packaging/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def release(tmp_path):
    """A tree of which a release may be made."""
    for name in ("pyproject.toml", "CHANGELOG.md", "CITATION.cff", "packaging/pytest-memstory/pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = (
            (ROOT / name)
            .read_text("utf-8")
            .replace(SOURCE, "https://github.com/me/it")
            .replace("(unreleased)", "(2026-12-01)")
        )
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_a_release_whose_places_agree_may_be_made(release):
    assert list(load("release_check").faults(release, f"v{PROJECT['version']}")) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("pyproject.toml", f'version = "{PROJECT["version"]}"', 'version = "9.9.9"', "the tag is"),
        (
            "packaging/pytest-memstory/pyproject.toml",
            f"memstory=={PROJECT['version']}",
            "memstory==9.9.9",
            "another version",
        ),
        ("CITATION.cff", f"version: {PROJECT['version']}", "version: 9.9.9", "CITATION.cff"),
        ("CHANGELOG.md", "(2026-12-01)", "(unreleased)", "CHANGELOG.md"),
        ("pyproject.toml", "github.com/me/", "github.com/_OWNER_/", "not set"),
    ],
)
def test_a_release_is_refused_where_a_place_was_forgotten(release, file, old, new, said):
    text = (release / file).read_text("utf-8")
    assert old in text
    (release / file).write_text(text.replace(old, new), "utf-8")
    assert any(said in fault for fault in load("release_check").faults(release, f"v{PROJECT['version']}"))


def test_the_links_of_the_page_on_an_index_lead_into_the_repository():
    import doctest  # noqa: PLC0415  (hatchling, which the hook imports, is in the group `test` alone)

    assert doctest.testmod(load("readme_hook")).failed == 0


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_pins_its_actions_by_commit_and_begins_without_rights(workflow):
    text = workflow.read_text("utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    assert [one for one, rest in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) or "# v" not in rest] == []
    assert yaml.safe_load(text)["permissions"] in ({}, {"contents": "read"})


def test_the_same_action_has_one_commit_everywhere():
    used = {}
    for _, text in texts():
        for action, commit in re.findall(r"uses: ([\w./-]+)@([0-9a-f]{40})", text):
            used.setdefault(action, set()).add(commit)
    assert {action: commits for action, commits in used.items() if len(commits) > 1} == {}
    assert "actions/checkout" in used


def test_workflows_and_release_notes_run_sessions_that_exist():
    sessions = set(re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text("utf-8"), re.MULTILINE))
    pages = [*WORKFLOWS, ROOT / "RELEASING.md", ROOT / "SECURITY.md"]
    named = {
        name for page in pages for words in re.findall(r"nox -s ((?:\"?[a-z]+\b)+)", page.read_text("utf-8"))
        for name in re.findall("[a-z]+", words)
    }  # fmt: skip
    assert {"dist", "bill", "pythons"} <= named
    assert named <= sessions


def test_a_classifier_is_claimed_for_the_pythons_that_ci_tests_and_no_other():
    claimed = {one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)}
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    everything = next(
        step["with"]["python-version"]
        for step in jobs["all"]["steps"]
        if "with" in step and "python-version" in step["with"]
    )
    assert claimed == {everything, *jobs["pythons"]["strategy"]["matrix"]["python"]}


def test_an_editor_finds_each_schema_where_its_id_says():
    entries = json.loads((ROOT / "packaging/schemastore/catalog-entries.json").read_text("utf-8"))
    assert {name for entry in entries for name in entry["fileMatch"]} == {
        "*.story.yaml",
        "*.story.yml",
        "memstory.toml",
    }
    for entry in entries:
        path = entry["url"].removeprefix(f"{SOURCE}/raw/main/")
        assert json.loads((ROOT / path).read_text("utf-8"))["$id"] == entry["url"]
