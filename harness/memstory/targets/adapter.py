"""What adapters to libraries share: capabilities, refusals, receipts, ids, and the owners of data on shared servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from socket import gethostname
from typing import Any, ClassVar, Final

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

NOT_DEFAULT: Final = "adapter settings that differ from the default"
"""The fact of a target's `about` that lists them."""


class Adapter(Target):
    """A target whose capabilities do not depend on its options: `capabilities` says what it can do."""

    capabilities: ClassVar[frozenset[Capability]]

    not_default: ClassVar[Mapping[str, str]] = {}
    """Settings of the library that are not its default here, each with the default and the reason, for reports."""

    async def about(self) -> Mapping[str, str]:
        settings = "; ".join(f"{setting} ({why})" for setting, why in self.not_default.items())
        return {"store": self.store_name(), **({NOT_DEFAULT: settings} if settings else {})}

    async def fault_counts(self) -> Mapping[str, int]:
        return {}

    def store_name(self) -> str:
        """Return what the backend is, with its version."""
        raise NotImplementedError


class AdapterFactory(TargetFactory):
    """Makes targets of one class, `adapter`, and declares the capabilities of that class."""

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
        ("search.where.any", bool(query.where_any)),
    )
    for capability, is_asked in conditions:
        if is_asked and capability not in declared:
            raise NotSupported(capability)


def refuse_keys(items: Sequence[Item]) -> None:
    """Raise NotSupported for an item with a key, where the backend keeps none."""
    if any(item.key is not None for item in items):
        raise NotSupported("add.key")


def stored_receipt(items: Sequence[Item], ids: Sequence[str]) -> Receipt:
    """Return the receipt for `items`, which were stored unchanged; `ids` has the id of each, in their order."""
    return Receipt(items=[receipt_item(item, id_, "stored") for item, id_ in zip(items, ids, strict=True)])


def receipt_item(item: Item, id_: str, outcome: str) -> ReceiptItem:
    """Return the line of a receipt for an item that was stored unchanged; `outcome` is a word of `ReceiptItem`."""
    return ReceiptItem(id=id_, text=item.text, outcome=outcome, kind=item.kind, key=item.key)


async def delete_listed(target: Target, scope: Scope) -> bool:
    """Delete all of a scope, one after the other as it is listed, where nothing does it at once; False for nothing."""
    everywhere, gone, before = Scope(user=scope.user), False, set[str]()
    while listed := {hit.id for hit in await target.list(scope) if hit.id is not None}:
        if listed == before:  # It does not forget.
            break
        gone = any([await target.delete(Ref(id=one), everywhere) for one in sorted(listed)]) or gone
        before = listed
    return gone


def unknown_refusal(ref: Ref) -> Refused:
    """Return the `Refused` to raise where an update names a memory that is not there."""
    return Refused(f"update: nothing is remembered under {ref.id or ref.key!r}")


class IdSequence:
    """New ids for backends whose callers choose them: none is given twice in a workspace, not even after a crash.

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
    """Return `HOST:WORKSPACE`, which is stored beside the data of a workspace on a server that others use too."""
    return f"{gethostname()}:{workspace}"


def is_gone(owner: str) -> bool:
    """Return whether data may be removed: their owner is a workspace of this machine, and its folder is gone."""
    host, _, workspace = owner.partition(":")
    return host == gethostname() and not Path(workspace).exists()
