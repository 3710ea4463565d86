"""A memory behind a REST interface, as a `[targets.NAME]` table with `type = "http"` describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from memstory.contract.target import Capability, Target, TargetFactory, Tree
from memstory.targets.tables.table import Operation, Table, capabilities_of
from memstory.targets.tables.target import TableTarget, class_for

_UNKNOWN: Final = re.compile(r"\AHTTP (?:404|410)\b")
_DECLINED: Final = re.compile(r"\AHTTP (?:400|403|409|413|422)\b")
_ABOUT_ONE: Final = frozenset({"get", "get_key", "update", "delete", "feedback"})


class HttpFactory(TargetFactory):
    """Makes targets of one table; each has its own client, the server is there already."""

    name: ClassVar[str] = "http"
    shares_server = True

    def __init__(self, table: Table) -> None:
        self._table = table
        self._target = class_for(table, TableTarget)

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        # Of the table as it is written: a server that need not answer 404 is not taken to report what is missing.
        return capabilities_of(self._table)

    async def start(self, folder: Path) -> None:
        from memstory.targets.tables import http_transport  # noqa: F401, PLC0415  (a vendor: reported here if it is missing)

    def target(self) -> Target:
        from memstory.targets.tables.http_transport import HttpTransport  # noqa: PLC0415  (as above)

        return self._target(with_status_codes(self._table), HttpTransport(self._table))


def with_status_codes(table: Table) -> Table:
    """Return `table` with what status codes usually mean, where it says nothing of that itself.

    404 and 410 say of one memory that it is unknown; 400, 403, 409, 413 and 422 decline on purpose.
    """
    return replace(table, operations={name: _usual(one) for name, one in table.operations.items()})


def _usual(operation: Operation) -> Operation:
    missing = _UNKNOWN if operation.name in _ABOUT_ONE else None
    return replace(operation, missing=operation.missing or missing, refuses=operation.refuses or _DECLINED)
