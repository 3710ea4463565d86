"""A REST memory whose server the table starts: for each case its own, or one for all cases of a worker."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memstory.conformance import TargetContract
from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, SetupError, TargetError
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.targets.discovery import load_spec

SERVER = Path(__file__).parents[1] / "fake_rest_server.py"
ANN, BOB = Scope(user="ann"), Scope(user="bob")
TABLE = """
[targets.notes]
type = "http"
command = ["{{python}}", "notes_server.py", "{{port}}", {words}]
{more}

[targets.notes.add]
path = "/notes"
body = {{ user = "{{user}}", text = "{{text}}" }}
reply = {{ id = "id" }}

[targets.notes.get]
path = "/notes/{{id}}?user={{user}}"
reply = {{ id = "id", text = "text" }}

[targets.notes.search]
path = "/notes"
query = {{ user = "{{user}}", q = "{{query}}", limit = "{{top_k}}" }}
reply = {{ id = "id", text = "text", score = "score" }}
scores = "similarity"

[targets.notes.list]
path = "/notes?user={{user}}"
reply = {{ id = "id", text = "text" }}

[targets.notes.delete]
method = "DELETE"
path = "/notes/{{id}}?user={{user}}"
missing = "HTTP 404"

[targets.notes.delete_all]
method = "DELETE"
path = "/notes?user={{user}}"
"""


def spec_in(folder, *words, more=""):
    """Put the server beside the table, where a project has it."""
    folder.mkdir(exist_ok=True)
    shutil.copy(SERVER, folder / "notes_server.py")
    path = folder / "memstory.toml"
    path.write_text(TABLE.format(words=", ".join(map(json.dumps, words)), more=more), "utf-8")
    return f"{path}#notes"


@pytest.fixture
def spec(tmp_path):
    return spec_in(tmp_path / "project")


@asynccontextmanager
async def opened(factory, folder, case="case", **options):
    target = factory.target()
    await target.open(Environment(workspace=str(folder / case), owner="ann", options=options), StoryClock())
    try:
        yield target
    finally:
        await target.close()


class TestOwnServer(TargetContract):
    """The promises of every target, kept by a server for each case."""

    project = tempfile.TemporaryDirectory()

    @staticmethod
    def factory():
        return load_spec(spec_in(Path(TestOwnServer.project.name)))

    @classmethod
    def teardown_class(cls):
        super().teardown_class()
        cls.project.cleanup()


async def test_each_case_has_a_server_with_a_folder_of_its_own(spec, tmp_path):
    factory = load_spec(spec)
    async with opened(factory, tmp_path, "one") as one, opened(factory, tmp_path, "other") as other:
        await one.add([Item(text="the tea is green")], ANN)
        assert await other.list(ANN) == []
        assert [hit.text for hit in await one.search(Query(text="tea"), ANN)] == ["the tea is green"]
    assert (tmp_path / "one/notes.json").exists()
    assert not (tmp_path / "project/notes.json").exists()
    async with opened(factory, tmp_path, "one") as again:
        assert [hit.text for hit in await again.list(ANN)] == ["the tea is green"]


async def test_users_keep_their_names_on_a_server_of_the_case(spec, tmp_path):
    async with opened(load_spec(spec), tmp_path) as target:
        await target.add([Item(text="tea")], ANN)
    assert [note["user"] for note in json.loads((tmp_path / "case/notes.json").read_text("utf-8"))] == ["ann"]


async def test_cases_that_share_a_server_have_users_of_their_own(spec, tmp_path):
    factory = load_spec(spec)
    await factory.start(tmp_path)
    try:
        shared = {"one_server": True}
        async with (
            opened(factory, tmp_path, "one", **shared) as one,
            opened(factory, tmp_path, "other", **shared) as two,
        ):
            await one.add([Item(text="tea")], ANN)
            assert await two.list(ANN) == []
            assert len(await one.list(ANN)) == 1
    finally:
        await factory.stop()
    assert (tmp_path / "one server/notes.json").exists()


def test_what_an_own_server_promises_is_derived(spec):
    factory = load_spec(spec)
    own = {"scope.names", "persistent", "restart", "crash"}
    always = {
        "add",
        "add.verbatim",
        "search",
        "search.scores",
        "list",
        "get.id",
        "delete",
        "delete.scope",
        "scope.user",
    }
    assert factory.abilities({}) >= own | always
    shared = factory.abilities({"one_server": True})
    assert (shared & own, shared >= always) == (frozenset(), True)


@pytest.mark.parametrize(
    ("words", "more", "said"),
    [
        (["broken"], "", r"\[targets\.notes\] 'command' .*exit code 1.*\n.*no database at /srv/notes"),
        (
            ["mute"],
            "start_seconds = 0.3",
            r"\[targets\.notes\] 'command' did not listen at 127\.0\.0\.1:\d+ within 0\.3 s",
        ),
    ],
)
async def test_a_server_that_does_not_come_up_is_told_before_the_first_case(tmp_path, words, more, said):
    factory = load_spec(spec_in(tmp_path / "project", *words, more=more))
    with pytest.raises(SetupError, match=said):
        await factory.start(tmp_path)


async def test_a_server_that_does_not_find_the_file_beside_its_table_is_told_how_to_name_it(tmp_path):
    spec = spec_in(tmp_path / "project", "broken", "settings.json")
    (tmp_path / "project/settings.json").write_text("{}", "utf-8")
    with pytest.raises(SetupError, match=r"not given the settings\.json beside memstory\.toml.*'\./settings\.json'"):
        await load_spec(spec).start(tmp_path)


async def test_a_server_that_ends_in_the_middle_is_the_target_breaking(spec, tmp_path):
    target = load_spec(spec).target()
    await target.open(Environment(workspace=str(tmp_path / "case"), owner="ann"), StoryClock())
    await target._transport._server.close()
    with pytest.raises(TargetError, match="POST /notes"):
        await target.add([Item(text="x")], ANN)
    await target.close()


async def test_without_a_request_for_it_all_of_a_user_is_deleted_as_it_is_listed(tmp_path):
    spec = spec_in(tmp_path / "project")
    path = tmp_path / "project/memstory.toml"
    path.write_text(path.read_text("utf-8").partition("[targets.notes.delete_all]")[0], "utf-8")
    factory = load_spec(spec)
    assert "delete.scope" in factory.capabilities({})
    async with opened(factory, tmp_path) as target:
        await target.add([Item(text="Ann rows."), Item(text="Ann drinks tea.")], ANN)
        await target.add([Item(text="Bob sails.")], BOB)
        assert await target.delete(Ref(), ANN) is True
        assert (await target.list(ANN), len(await target.list(BOB))) == ([], 1)
        assert await target.delete(Ref(), ANN) is False


async def test_a_list_that_names_no_user_is_not_deleted(tmp_path):
    spec = spec_in(tmp_path / "project")
    path = tmp_path / "project/memstory.toml"
    text = path.read_text("utf-8").partition("[targets.notes.delete_all]")[0]
    path.write_text(text.replace('path = "/notes?user={user}"\nreply', 'path = "/notes"\nreply'), "utf-8")
    factory = load_spec(spec)
    assert "delete.scope" not in factory.capabilities({})
    with pytest.raises(NotSupported, match=r"delete\.scope"):
        await factory.target().delete(Ref(), ANN)
