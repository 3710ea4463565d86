import json
import subprocess
import sys

import pytest

from memstory.language.stories import InvalidStory, load_stories


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("story", ["my-own.story.yaml"]),
        ("corpus", ["my-own.jsonl", "my-own.queries.jsonl", "my-own.story.yaml"]),
        ("target", ["my_own.py", "my_own.story.yaml", "test_my_own.py"]),
    ],
)
def test_what_is_written_is_valid_at_once(terminal, kind, files):
    said = terminal.type("new", kind, "my-own")
    assert said.code == 0
    assert sorted(path.name for path in terminal.folder.iterdir()) == files
    assert sorted(line.split()[1] for line in said.out.splitlines() if line.startswith("wrote")) == files
    assert terminal.type("validate").code == 0


@pytest.mark.parametrize("kind", ["story", "corpus"])
def test_a_new_story_passes_on_the_oracle(terminal, kind):
    terminal.type("new", kind, "first")
    assert [result.outcome for result in terminal.record("first.story.yaml")] == ["passed"]


def test_the_command_that_a_new_target_names_runs_it(terminal):
    said = terminal.type("new", "target", "my-own")
    (line,) = [line for line in said.out.splitlines() if line.startswith("run it:")]
    words = line.removeprefix("run it:").split()
    assert words == ["memstory", "run", "my_own.story.yaml", "--target", "my_own:MyOwnFactory"]
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [sys.executable, "-m", "pytest", *words[2:], "-v", "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "3 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "does not support delete" in done.stdout


def test_a_new_target_keeps_the_contract_of_all_targets(terminal):
    said = terminal.type("new", "target", "my-own", "--folder", "adapter")
    (line,) = [line for line in said.out.splitlines() if line.startswith("test it:")]
    assert line.removeprefix("test it:").strip() == "(cd adapter) python -m pytest test_my_own.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "test_my_own.py", "-p", "no:cacheprovider"],
        cwd=terminal.folder / "adapter",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


def test_a_new_target_holds_what_it_declares_and_names_the_condition_that_it_does_not_take(terminal, monkeypatch):
    said = terminal.type("new", "target", "my-probed")
    (line,) = [line for line in said.out.splitlines() if line.startswith("probe it:")]
    words = line.removeprefix("probe it:").split()
    assert words == ["memstory", "probe", "my_probed:MyProbedFactory"]
    monkeypatch.syspath_prepend(str(terminal.folder))
    probed = terminal.type(*words[1:], "--json")
    assert probed.code == 0, probed.err
    found = {one["capability"]: one for one in json.loads(probed.out)}
    assert found["add.verbatim"]["holds"]
    assert found["get.id"]["holds"]
    assert "'search.budget'" in found["search.budget"]["why"]


def test_nothing_is_overwritten_and_nothing_is_half_written(terminal):
    taken = terminal.save("mine", "mine.queries.jsonl")
    said = terminal.type("new", "corpus", "mine")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert said.err.startswith("memstory new: mine.queries.jsonl ")
    assert list(terminal.folder.iterdir()) == [taken]
    assert taken.read_text() == "mine"


@pytest.mark.parametrize("name", ["../x", "1st", "a b", "", "x" * 51])
def test_what_is_no_name_is_refused(terminal, name):
    said = terminal.type("new", "story", name)
    assert said.code == 2
    assert said.err.startswith(f"memstory new: '{name}' ")
    assert list(terminal.folder.iterdir()) == []


def test_the_folder_is_made_and_named_in_what_to_do_next(terminal):
    said = terminal.type("new", "story", "a", "--folder", "deep/er")
    assert "memstory run deep/er/a.story.yaml" in said.out
    assert not isinstance(load_stories(terminal.folder / "deep/er/a.story.yaml", "a")[0], InvalidStory)


def test_the_schema_is_named_only_where_it_lies(terminal):
    terminal.type("new", "story", "before")
    terminal.type("schema", "--output", "story.schema.json")
    terminal.type("new", "story", "after")
    first_lines = [(terminal.folder / f"{name}.story.yaml").read_text().splitlines()[0] for name in ("before", "after")]
    assert first_lines[0].startswith("# What must a memory do?")
    assert first_lines[1] == "# yaml-language-server: $schema=story.schema.json"


@pytest.mark.parametrize("name", ["class", "async", "None"])
def test_a_target_that_python_cannot_import_by_its_name_is_refused(terminal, name):
    said = terminal.type("new", "target", name)
    assert said.code == 2
    assert all(word in said.err for word in (f"'{name}'", f"my_{name}"))
    assert [*terminal.folder.iterdir()] == []


@pytest.mark.parametrize("name", ["json", "pytest", "yaml"])
def test_a_target_that_would_hide_a_module_of_others_is_refused(terminal, name):
    said = terminal.type("new", "target", name)
    assert said.code == 2
    assert all(word in said.err for word in (f"'{name}'", f"my_{name}"))
    assert [*terminal.folder.iterdir()] == []


def test_a_story_may_have_the_name_of_a_module(terminal):
    assert terminal.type("new", "story", "json").code == 0
