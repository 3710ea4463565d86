"""What an adapter answers to a write, where the backend keeps a text as it is and under the name it was given."""

from __future__ import annotations

from collections.abc import Sequence

from memstory.contract.errors import Refused
from memstory.contract.target import Item, Receipt, ReceiptItem, Ref


def stored(items: Sequence[Item], ids: Sequence[str]) -> Receipt:
    """Return the receipt for `items`, each of them under the id at its place."""
    return Receipt(items=[receipt_item(item, id_, "stored") for item, id_ in zip(items, ids, strict=True)])


def updated(item: Item, id_: str) -> Receipt:
    """Return the receipt for what now has an id that was known."""
    return Receipt(items=[receipt_item(item, id_, "updated")])


def receipt_item(item: Item, id_: str, outcome: str) -> ReceiptItem:
    """Return what happened to `item`."""
    return ReceiptItem(id=id_, text=item.text, outcome=outcome, kind=item.kind, key=item.key)


def unknown(ref: Ref) -> Refused:
    """Return the refusal of an update of what is not there."""
    return Refused(f"update: nothing is remembered under {ref.id or ref.key!r}")
