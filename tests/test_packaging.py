"""What is built is what people need, and what is pinned is what is asked for."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603  (our own words)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built) -> zipfile.ZipFile:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


@pytest.fixture(scope="module")
def sdist(built) -> set[str]:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}


def text(wheel: zipfile.ZipFile, name: str) -> str:
    (found,) = [path for path in wheel.namelist() if path.endswith(f".dist-info/{name}")]
    return wheel.read(found).decode()


def modules_of(source: str) -> set[str]:
    return {path.relative_to(ROOT / source).as_posix() for path in (ROOT / source).rglob("*.py")}


def test_wheel_holds_every_module_of_both_packages(wheel):
    expected = modules_of("harness") | modules_of("reference_impl")
    assert expected <= set(wheel.namelist())
    assert {"memstory/__init__.py", "memstory_reference/__init__.py"} <= expected


def test_wheel_holds_what_is_not_python(wheel):
    data = {
        path.relative_to(ROOT / source).as_posix()
        for source in ("harness", "reference_impl")
        for path in (ROOT / source).rglob("*")
        if path.is_file() and path.suffix in {".json", ".sql", ".toml", ".typed", ".yaml"}
    }
    assert {"memstory/py.typed", "memstory_reference/py.typed"} <= data
    assert data <= set(wheel.namelist())


def test_wheel_holds_the_grammar_of_stories(wheel):
    assert "memstory/story.schema.json" in wheel.namelist()


def test_wheel_holds_the_bundled_stories_inside_the_harness(wheel):
    # By `nox -s lifelines` and `nox -s baseline`, where those ran; no part of the stories.
    made = ("corpora/lifelines/distractors.jsonl", "corpora/growth/*.jsonl")
    stories = {
        f"memstory/{path.relative_to(ROOT).as_posix()}"
        for path in (ROOT / "stories").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not any(map(path.match, made))
    }
    assert {"memstory/stories/s5_memory_recall.yaml", "memstory/stories/corpora/distractors.jsonl"} <= stories
    assert stories <= set(wheel.namelist())


def test_wheel_holds_nothing_else(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"memstory", "memstory_reference"}


def test_wheel_announces_the_plugin_and_the_targets(wheel):
    points = text(wheel, "entry_points.txt")
    assert "[pytest11]\nmemstory = memstory.pytest_plugin" in points
    assert "[memstory.targets]" in points


@pytest.mark.parametrize("group", [*sorted(PROJECT["project"]["entry-points"]), "scripts"])
def test_every_entry_point_leads_to_a_module(group):
    project = PROJECT["project"]
    for reference in (project["scripts"] if group == "scripts" else project["entry-points"][group]).values():
        path = reference.split(":")[0].replace(".", "/")
        places = [
            ROOT / source / (path + end) for source in ("harness", "reference_impl") for end in (".py", "/__init__.py")
        ]
        assert any(place.is_file() for place in places), f"{reference} names no module"


def test_harness_alone_does_not_pull_a_vendor(wheel):
    asked = [Requirement(line) for line in Parser().parsestr(text(wheel, "METADATA")).get_all("Requires-Dist")]
    alone = {item.name for item in asked if item.marker is None or item.marker.evaluate({"extra": ""})}
    reference = {Requirement(line).name for line in PROJECT["project"]["optional-dependencies"]["reference"]}
    assert "chromadb" in reference
    assert alone & (reference | {"numpy", "ollama", "torch"}) == set()


def test_licence_is_shipped(wheel, sdist):
    assert "Apache License" in text(wheel, "licenses/LICENSE")
    assert "LICENSE" in sdist


def test_sdist_can_be_tested_and_built_again(sdist):
    assert {"pyproject.toml", "noxfile.py", "constraints.txt", "README.md", "tests/test_packaging.py"} <= sdist
    assert {name for name in sdist if name.startswith((".venv", ".nox", "reports/latest"))} == set()


CONSTRAINTS = ("constraints.txt", "tests/backends/constraints.txt")


def lines_of(*files: str) -> list[str]:
    return [line for file in files for line in (ROOT / file).read_text("utf-8").splitlines()]


def pins(*files: str) -> list[Requirement]:
    return [Requirement(line) for line in lines_of(*files)]


@pytest.mark.parametrize("file", CONSTRAINTS)
def test_constraints_are_exact_pins_and_nothing_else(file):
    exact = re.compile(r"[\w.-]+==[\w.+!]+( ; .+)?")
    lines = lines_of(file)
    assert [line for line in lines if not exact.fullmatch(line)] == []


def test_everything_that_pyproject_asks_for_is_pinned():
    project = PROJECT["project"]
    lists = [
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *PROJECT["dependency-groups"].values(),
    ]
    asked = [Requirement(line) for lines in lists for line in lines if isinstance(line, str)]
    # What is installed without dependencies is pinned where it is named: no command that resolves would take it.
    exact = [item for item in asked if str(item.specifier).startswith("==")]
    pinned = {canonicalize_name(pin.name) for pin in [*pins(*CONSTRAINTS), *exact]}
    missing = [str(item) for item in asked if item.name != "memstory" and canonicalize_name(item.name) not in pinned]
    assert missing == [], "CONTRIBUTING.md says how constraints.txt is made"


@pytest.mark.parametrize("file", CONSTRAINTS)
def test_every_pin_is_allowed_by_pyproject(file):
    project = PROJECT["project"]
    asked = {
        canonicalize_name(item.name): item
        for lines in [project["dependencies"], *project["optional-dependencies"].values()]
        for item in map(Requirement, lines)
    }
    wrong = [
        f"{pin} against {asked[key]}"
        for pin in pins(file)
        if (key := canonicalize_name(pin.name)) in asked
        and not asked[key].specifier.contains(str(pin.specifier).removeprefix("=="), prereleases=True)
    ]
    assert wrong == []
