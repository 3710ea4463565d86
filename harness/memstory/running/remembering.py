"""Puts the documents of a retrieval task into a memory, outdated versions first; tells which hit is which document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from memstory.errors import NotSupported, Refused, TargetError
from memstory.requests import Add, Update
from memstory.running.stage import FIRST_SESSION, Stage
from memstory.target import Capability, Item, Receipt, ReceiptItem, Ref, Scope
from memstory.tasks.perturbation import Perturbed
from memstory.tasks.retrieval import Document

_BETWEEN_VERSIONS = timedelta(hours=1)
_WAYS = ("update", "supersede")


class DocumentIds:
    """Which documents a hit stands for: an outdated version by its text, else by the id on its receipt, or by text."""

    def __init__(
        self, documents: Sequence[Document], receipt: Receipt, outdated: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._by_id: dict[str, list[str]] = {}
        self._by_text: dict[str, list[str]] = {}
        self._documents = documents
        for document in documents:
            self._by_text.setdefault(document.text, []).append(document.id)
        # An outdated text may come back under the very id of the present one: then it is not the document.
        self._outdated = {
            text: f"{id_}~{place}"
            for id_, texts in (outdated or {}).items()
            for place, text in enumerate(texts, start=1)
            if text not in self._by_text
        }
        # One receipt item a document: they belong together by position. Otherwise the backend made pieces of them.
        by_position = len(receipt.items) == len(documents)
        for number, item in enumerate(receipt.items):
            if item.id is not None:
                ids = [documents[number].id] if by_position else self._by_content(item.text)
                known = self._by_id.setdefault(item.id, ids)
                if known is not ids:
                    known += [one for one in ids if one not in known]

    def of(self, id_: str | None, text: str) -> list[str]:
        """Return the documents of a hit; one that nothing can be said about keeps its rank as `unknown:ID`."""
        if text in self._outdated:
            return [self._outdated[text]]
        if id_ is not None and id_ in self._by_id:
            return self._by_id[id_]
        return self._by_content(text) or [f"unknown:{id_}"]

    def _by_content(self, text: str) -> list[str]:
        if text in self._by_text:
            return self._by_text[text]
        piece = text.strip()
        return [document.id for document in self._documents if piece and piece in document.text][:1]


def refuse_outdated(documents: Sequence[Document], able: frozenset[Capability]) -> None:
    """Raise NotSupported where nothing that a target can do makes a newer text of a document replace an older one."""
    keyed = "add.key" in able and all(document.key is not None for document in documents)
    if not keyed and able.isdisjoint(_WAYS):
        ways = "'update', 'supersede', or 'add.key' for documents that have keys"
        reason = f"'stale_repeats' needs a memory in which a newer text replaces an older one ({ways})"
        raise NotSupported("perturb.stale_repeats", reason)


class Rememberer:
    """Adds documents to a memory; `able` is what its target can do, `kind` what documents without one are added as."""

    def __init__(self, stage: Stage, able: frozenset[Capability], kind: str | None) -> None:
        self._stage = stage
        self._able = able
        self._kind = kind
        self._scope = Scope(user=stage.env.owner, session=FIRST_SESSION)

    async def remember(self, task: Perturbed) -> DocumentIds:
        """Return how hits are told apart, when everything is remembered and the target has settled."""
        documents, ages = task.collection.documents, task.outdated
        known: dict[str, str | None] = {}
        changed = [document for document in documents if document.id in ages]
        for age in range(max(map(len, ages.values()), default=0)):
            await self._write(changed, [ages[document.id][age] for document in changed], known)
            if "update" in self._able and not known:
                raise NotSupported("update", "'stale_repeats' needs a receipt with one id for each text that is added")
            await self._let_time_pass()
        receipt = await self._write(documents, [document.text for document in documents], known)
        await self._stage.settle()
        return DocumentIds(documents, receipt, ages)

    async def _write(
        self, documents: Sequence[Document], texts: Sequence[str], known: dict[str, str | None]
    ) -> Receipt:
        """Add what is new in one call, then update one by one what a target can only replace by its id."""
        items = [self._item(document, text) for document, text in zip(documents, texts, strict=True)]
        updated = [place for place, document in enumerate(documents) if self._is_updated(document, known)]
        added = [place for place in range(len(items)) if place not in set(updated)]
        adding = Add(items=[items[place] for place in added])
        receipt = await self._stage.target.perform(adding, self._scope) if added else Receipt()
        if len(receipt.items) != len(added):
            return receipt
        found: dict[int, ReceiptItem] = dict(zip(added, receipt.items, strict=True))
        for place in updated:
            found[place] = await self._update(known[documents[place].id], items[place])
        known.update({documents[place].id: item.id for place, item in found.items()})
        return Receipt(items=tuple(found[place] for place in range(len(items))))

    async def _update(self, id_: str | None, item: Item) -> ReceiptItem:
        if id_ is None:
            raise TargetError("'update' needs the id of what was added, but its receipt has none")
        try:
            updating = Update(ref=Ref(id=id_, kind=item.kind), item=item)
            receipt = await self._stage.target.perform(updating, self._scope)
        except Refused as error:
            # It has lost what it acknowledged: the questions will show that.
            return ReceiptItem(id=id_, text=item.text, outcome="dropped", reason=str(error))
        return receipt.items[0] if receipt.items else ReceiptItem(id=id_, text=item.text, outcome="updated")

    def _is_updated(self, document: Document, known: Mapping[str, str | None]) -> bool:
        return document.id in known and not self._has_usable_key(document) and "update" in self._able

    def _has_usable_key(self, document: Document) -> bool:
        return document.key is not None and "add.key" in self._able

    async def _let_time_pass(self) -> None:
        await self._stage.settle()
        if "clock" in self._able:
            await self._stage.move_to(self._stage.clock.now() + _BETWEEN_VERSIONS)

    def _item(self, document: Document, text: str) -> Item:
        return Item(text=text, key=document.key, kind=document.kind or self._kind, metadata=document.metadata)
