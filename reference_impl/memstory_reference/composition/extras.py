"""Vendors that are extras of the package: where one is missing, the error says what to install."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import requires
from types import ModuleType
from typing import TYPE_CHECKING

from memstory.contract.errors import SetupError
from memstory.contract.installation import install_command

if TYPE_CHECKING:
    from memstory_reference.adapters.servers.nats_bus import NatsBus
    from memstory_reference.storage.postgres.place import PostgresPlace
    from memstory_reference.storage.postgres.postgres_database import Migrations
    from memstory_reference.storage.sql_database import SqlDatabase


OPENAI_CLIENT = ("the client of OpenAI's protocol", "openai", "openai")
POSTGRES_DRIVER = ("the driver of Postgres", "psycopg", "postgres")


@contextmanager
def require_extras() -> Iterator[None]:
    """Turn a failed import of any package that an extra brings into a SetupError that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        for line in requires("memstory") or ():
            brought = re.fullmatch(r"([\w.-]+).*; extra == '(.+)'", line.replace('"', "'"))
            if brought and brought[1].replace("-", "_").lower() == package:
                install = install_command(brought[2])
                raise SetupError(f"the package '{package}' is not installed. Install it with: {install}") from error
        raise


@contextmanager
def require_extra(what: str, package: str, name: str) -> Iterator[None]:
    """Turn a failed import of `package` into a SetupError: `what` is missing, and the extra `name` brings it."""
    try:
        yield
    except ImportError as problem:
        # A driver without its C library fails too, and names no module.
        if problem.name is not None and not problem.name.startswith(package):
            raise
        raise SetupError(f"{what} is missing. Install it with: {install_command(name)}") from problem


async def open_shared_database(place: PostgresPlace, migrations: Migrations, *, memory: str, model: str) -> SqlDatabase:
    """Open the database in `place`; raises as `open_postgres_database` does."""
    with require_extra(*POSTGRES_DRIVER):
        from memstory_reference.storage.postgres.postgres_database import open_postgres_database  # noqa: PLC0415
    return await open_postgres_database(place, migrations, memory=memory, model=model)


@asynccontextmanager
async def open_bus(address: str, name: str) -> AsyncIterator[NatsBus]:
    """Connect to the NATS server at `address`; at the end what is under way is finished, and the server left.

    SetupError if none answers, or its client is missing.
    """
    with require_extra("the client of NATS", "nats", "nats"):
        from memstory_reference.adapters.servers.nats_bus import open_nats_bus  # noqa: PLC0415
    bus = await open_nats_bus(address, name)
    try:
        yield bus
    finally:
        await bus.close()


def mcp_sdk() -> ModuleType:
    """Return the adapter to the MCP SDK, which is slow to import."""
    with require_extra("the MCP SDK", "mcp", "mcp"):
        from memstory_reference.adapters import mcp_server  # noqa: PLC0415
    return mcp_server


def http_service() -> ModuleType:
    """Return the adapter to Starlette and uvicorn."""
    with require_extra("the HTTP server", "starlette", "web"), require_extra("the HTTP server", "uvicorn", "web"):
        from memstory_reference.adapters.servers import http_service as adapter  # noqa: PLC0415
    return adapter
