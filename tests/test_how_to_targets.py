"""The pages on targets of one's own: what they tell people to save and to type, saved and typed."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from memstory.targets.discovery import load_spec

ROOT = Path(__file__).parents[1]
HTTP = ROOT / "docs/how-to/http.md"


def block(page, language, number=0):
    found = re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return found[number]


def typed(folder, *words, **environment):
    """Type a command as in a shell where memstory is installed; `memstory` and `python` are this interpreter's."""
    start = ["-c", "import sys; from memstory.cli import main; sys.exit(main())"] if words[0] == "memstory" else []
    done = subprocess.run(  # noqa: S603  (the commands of our own pages)
        [sys.executable, *start, *words[1:]],
        cwd=folder,
        env={**os.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


OWN = ROOT / "docs/how-to/test-your-own-memory.md"
NOT_RUN = ROOT / "docs/how-to/memories-not-run-here.md"


@pytest.mark.parametrize(
    ("number", "name", "able"),
    [
        (0, "supermemory", {"add", "get.id", "search.scores", "update", "delete", "scope.user", "add.metadata"}),
        (1, "letta-archive", {"add.verbatim", "search.scores", "delete", "scope.user", "scope.session"}),
        (2, "mempalace", {"add.verbatim", "get.id", "update", "delete", "scope.user", "scope.session", "crash"}),
    ],
)
def test_a_table_for_a_memory_that_was_not_run_here_can_be_read_and_declares_what_the_page_says(
    tmp_path, number, name, able
):
    (tmp_path / "memstory.toml").write_text(block(NOT_RUN, "toml", number), "utf-8")
    assert able <= load_spec(f"{tmp_path / 'memstory.toml'}#{name}").capabilities({})


@pytest.fixture
def own_memory(tmp_path):
    """A folder with the adapter and the story of the page on one's own memory."""
    (tmp_path / "my_memory.py").write_text(block(OWN, "python"), "utf-8")
    (tmp_path / "mine.story.yaml").write_text(block(OWN, "yaml"), "utf-8")
    return tmp_path


def test_the_store_on_the_page_has_forty_lines():
    lines = [line for line in block(OWN, "python").splitlines() if line.strip()]
    assert len(lines) <= 40


def test_a_name_in_a_table_is_a_target(own_memory):
    (own_memory / "memstory.toml").write_text(block(OWN, "toml", 1), "utf-8")
    code, said = typed(own_memory, "python", "-m", "pytest", "mine.story.yaml", "--target", "mine", "-k", "MINE1")
    assert (code, "1 passed" in said) == (0, True), said


def test_a_name_from_a_conftest_is_a_target(own_memory):
    (own_memory / "conftest.py").write_text(block(OWN, "python", 2), "utf-8")
    code, said = typed(own_memory, "python", "-m", "pytest", "mine.story.yaml", "--target", "mine", "-k", "MINE1")
    assert (code, "1 passed" in said) == (0, True), said


def test_a_name_of_an_entry_point_is_a_target(own_memory):
    # An installed package, as small as one can be: what pip writes beside it is all that is read of it.
    told = own_memory / "my_memory-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: my-memory\nVersion: 1.0\n", "utf-8")
    (group, lines) = re.search(r'entry-points."([\w.]+)"\]\n(.*)', block(OWN, "toml", 2), re.DOTALL).groups()
    (told / "entry_points.txt").write_text(f"[{group}]\n{lines.replace(chr(34), '')}", "utf-8")
    words = ["python", "-m", "pytest", "mine.story.yaml", "--target", "mine", "-k", "MINE1"]
    code, said = typed(own_memory, *words, PYTHONPATH=str(own_memory))
    assert (code, "1 passed" in said) == (0, True), said


@pytest.fixture
def notes(tmp_path):
    """A folder with what the page on REST says to save, and its server."""
    (tmp_path / "notes_server.py").write_text(block(HTTP, "python"), "utf-8")
    (tmp_path / "memstory.toml").write_text(block(HTTP, "toml"), "utf-8")
    (tmp_path / "test_notes.py").write_text(block(HTTP, "python", 1), "utf-8")
    return tmp_path


def test_the_page_on_rest_works_word_by_word(notes):
    export, *commands = block(HTTP, "sh", -1).splitlines()
    name, _, key = export.removeprefix("export ").partition("=")
    for command, shown in zip(commands, [r"notes +yes", r"\d passed"], strict=True):
        words = [word.strip('"') for word in re.findall(r'"[^"]+"|\S+', command)]
        code, said = typed(notes, *words, **{name: key})
        assert code == 0, said
        assert re.search(shown, said)
        assert key not in said
    assert key not in (notes / "reports/latest/results.json").read_text("utf-8")


def test_the_table_on_the_page_keeps_the_contract_of_all_targets(notes):
    code, said = typed(notes, "python", "-m", "pytest", "test_notes.py", NOTES_KEY="key-for-trying")
    assert code == 0, said
    assert "passed" in said


def test_a_server_that_is_not_started_is_told_as_such(tmp_path):
    started = re.compile(r"^command = .*$", re.MULTILINE)
    table = started.sub(f'url = "http://127.0.0.1:{free_port()}"', block(HTTP, "toml"))
    (tmp_path / "memstory.toml").write_text(table, "utf-8")
    words = ["memstory", "run", "--bundled", "--target", "notes", "-k", "G1"]
    code, said = typed(tmp_path, *words, NOTES_KEY="key-for-trying")
    assert code == 1
    assert "no server answers at http://127.0.0.1" in said
