"""What carries a mapped call to a server: MCP over stdio or HTTP, or plain HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from memstory.targets.mapping.replies import Reply
from memstory.targets.mapping.table import Call
from memstory.targets.mapping.templates import Values


class Transport(Protocol):
    """One connection for one open target.

    `shared` says that other cases, and other runs, talk to the same server: users are then made unique to the case.
    """

    shared: bool

    async def open(self, values: Values) -> None:
        """Connect; `values` are those of the case: `workspace`, `case`, `seed`.

        Raises:
            SetupError: the server cannot be had here at all.
            TargetError: it does not come up as it should.
        """
        ...

    async def close(self) -> None:
        """Disconnect, and end what was started."""
        ...

    async def about(self) -> Mapping[str, str]:
        """What the server says about itself."""
        ...

    async def call(self, call: Call, values: Values) -> Reply:
        """Fill in `call.spec`, send it, and return the reply; a failure that the server tells is its `problem`.

        Raises:
            TargetError: no reply came, or none that can be read.
        """
        ...
