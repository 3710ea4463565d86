"""A memory behind a REST interface, as a `[targets.NAME]` table with `type = "http"` describes it: ours or not."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from memstory.targets.child_server import ChildServer
from memstory.targets.tables.servers import ServerFactory, SharedServer, start_server
from memstory.targets.tables.table import Operation, ToolTable
from memstory.targets.tables.target import TableTarget, class_for

_UNKNOWN: Final = re.compile(r"\AHTTP (?:404|410)\b")
_DECLINED: Final = re.compile(r"\AHTTP (?:400|403|409|413|422)\b")
_ABOUT_ONE: Final = frozenset({"get", "get_key", "update", "delete", "feedback"})


class HttpTarget(TableTarget):
    """What a table maps, on the server that runs already or on one of ours."""

    def __init__(self, table: ToolTable, common: SharedServer[ChildServer]) -> None:
        from memstory.targets.tables.http_transport import HttpTransport  # noqa: PLC0415  (a vendor)

        # What it can do follows from the table as it is written: a server need not answer 404 for what is missing.
        table = with_status_codes(table)
        super().__init__(table, HttpTransport(table, common))


class HttpFactory(ServerFactory[ChildServer]):
    """Makes targets of one table of type http; each has its own client."""

    name: ClassVar[str] = "http"

    def __init__(self, table: ToolTable) -> None:
        super().__init__(table, class_for(table, HttpTarget), partial(start_server, table))

    async def start(self, folder: Path) -> None:
        from memstory.targets.tables import http_transport  # noqa: F401, PLC0415  (a vendor: reported here if it is missing)

        if "command" in self.table.settings:
            await super().start(folder)


def with_status_codes(table: ToolTable) -> ToolTable:
    """Return `table` with what status codes usually mean, where it says nothing of that itself.

    404 and 410 say of one memory that it is unknown; 400, 403, 409, 413 and 422 decline on purpose.
    """
    return replace(table, operations={name: _usual(one) for name, one in table.operations.items()})


def _usual(operation: Operation) -> Operation:
    missing = _UNKNOWN if operation.name in _ABOUT_ONE else None
    return replace(operation, missing=operation.missing or missing, refuses=operation.refuses or _DECLINED)
