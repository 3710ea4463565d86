"""What adapters share: what they can do, conditions that they refuse, receipts, ids, and whose data are left over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from socket import gethostname
from typing import Any, ClassVar

from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import (
    Capability,
    Environment,
    Item,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    Target,
    TargetFactory,
    Tree,
)


class Adapter(Target):
    """A target that can always do the same: `declared`."""

    capabilities: ClassVar[frozenset[Capability]]


class AdapterFactory(TargetFactory):
    """Makes targets of one class, `adapter`, which are declared to do what that class says."""

    adapter: ClassVar[type[Adapter]]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.spec = f"{cls.__module__}:{cls.__qualname__}"

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        return self.adapter.capabilities

    def target(self) -> Target:
        return self.adapter()


def refuse_undeclared(query: Query, scope: Scope, declared: frozenset[Capability]) -> None:
    """Raise NotSupported for a condition that is not among `declared`: left out, the search would find too much."""
    conditions = (
        ("scope.session", scope.session is not None),
        ("search.min_score", query.min_score is not None),
        ("search.budget", query.token_budget is not None),
        ("search.as_of", query.as_of is not None),
        ("search.where", bool(query.where or query.kinds)),
    )
    for capability, is_asked in conditions:
        if is_asked and capability not in declared:
            raise NotSupported(capability)


def refuse_keys(items: Sequence[Item]) -> None:
    """Raise NotSupported for an item with a key, where the backend keeps none."""
    if any(item.key is not None for item in items):
        raise NotSupported("add.key")


def stored_receipt(items: Sequence[Item], ids: Sequence[str]) -> Receipt:
    """Return the receipt for `items`, each of them stored as it is under the id at its place."""
    return Receipt(items=[receipt_item(item, id_, "stored") for item, id_ in zip(items, ids, strict=True)])


def receipt_item(item: Item, id_: str, outcome: str) -> ReceiptItem:
    """Return what happened to `item`, which the backend keeps as it is."""
    return ReceiptItem(id=id_, text=item.text, outcome=outcome, kind=item.kind, key=item.key)


def unknown_refusal(ref: Ref) -> Refused:
    """Return the refusal of an update of what is not there."""
    return Refused(f"update: nothing is remembered under {ref.id or ref.key!r}")


class IdSequence:
    """Ids for backends that want them of their caller: none is ever given twice, not even after a crash.

    It counts what it gives, and in the workspace how often this memory was opened.
    """

    def __init__(self, env: Environment) -> None:
        # A byte for each opening: of several processes that open it at once, each adds one and gets its own number.
        with (Path(env.workspace) / "opened").open("ab", buffering=0) as opened:
            opened.write(b".")
            self._prefix = f"m{env.seed}.{opened.tell() - 1}"
        self._given = 0

    def next(self) -> str:
        """Return an id that was not given before: `m`, the seed, the opening and a number, with dots between."""
        self._given += 1
        return f"{self._prefix}.{self._given}"


def owner_of(workspace: str) -> str:
    """Return what is noted with the data of `workspace` on a shared server: `HOST:WORKSPACE`."""
    return f"{gethostname()}:{workspace}"


def is_gone(owner: str) -> bool:
    """Return whether nobody opens the data of this owner again: a workspace of this machine that is not there."""
    host, _, workspace = owner.partition(":")
    return host == gethostname() and not Path(workspace).exists()
