"""Puts the documents of a retrieval task into a memory, outdated versions first; maps hits back to documents."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from time import perf_counter
from typing import Final

from memstory.contract.errors import NotSupported, Refused, TargetError
from memstory.contract.target import Capability, Item, Receipt, ReceiptItem, Ref, Request, Scope, Target
from memstory.running.stage import FIRST_SESSION, Stage
from memstory.tasks.perturbation import Perturbed
from memstory.tasks.retrieval import Document, Many

BATCH: Final = 10_000
"""How many documents are added in one call."""

_FIRST_BATCH, _LARGER = 20, 5
"""Where time is limited, the first batch is small, and each further one several times as large."""

_SHOWS: Final = 0.1
"""After this share of the time, the last batch shows how long the rest will take; before, most of it is the start."""

_BETWEEN_VERSIONS = timedelta(hours=1)
_WITH_METADATA = ("add.metadata", "add.turns", "search.where")
_WAYS = ("update", "supersede")


class _Named:
    """Document ids by a key, of which nearly all have one: a list for each would take most of the memory."""

    def __init__(self) -> None:
        self._first: dict[Hashable, str] = {}
        self._more: dict[Hashable, list[str]] = {}

    def add(self, pairs: Iterable[tuple[Hashable, str]]) -> None:
        for key, id_ in pairs:
            if self._first.setdefault(key, id_) != id_ and id_ not in self._more.setdefault(key, []):
                self._more[key].append(id_)

    def of(self, key: Hashable) -> list[str]:
        first = self._first.get(key)
        return [] if first is None else [first, *self._more.get(key, ())]


class DocumentIds:
    """Which documents a hit stands for: an outdated version by its text, else by the id on its receipt, or by text."""

    def __init__(self, documents: Many[Document], outdated: Mapping[str, Sequence[str]] | None = None) -> None:
        self._by_id = _Named()
        # By the hash of their texts: a corpus may be larger than what fits into memory.
        self._by_text = _Named()
        self._documents = documents
        self._by_text.add((hash(document.text), document.id) for document in documents)
        # An outdated text may come back under the id of the current one: then it is not the document.
        self._outdated = {
            text: f"{id_}~{place}"
            for id_, texts in (outdated or {}).items()
            for place, text in enumerate(texts, start=1)
            if not self._by_text.of(hash(text))
        }

    def learn(self, added: Sequence[Document], receipt: Receipt) -> None:
        """Take note of the ids that the backend gave to what was added."""
        # One receipt item a document: they belong together by position. Otherwise the backend made pieces of them.
        if len(receipt.items) == len(added):
            pairs = zip(receipt.items, added, strict=True)
            self._by_id.add((item.id, document.id) for item, document in pairs if item.id is not None)
        else:
            named = (item for item in receipt.items if item.id is not None)
            self._by_id.add((item.id, id_) for item in named for id_ in self._by_content(item.text, added))

    def of(self, id_: str | None, text: str) -> list[str]:
        """Return the documents of a hit; one that nothing can be said about keeps its rank as `unknown:ID`."""
        if text in self._outdated:
            return [self._outdated[text]]
        known = self._by_id.of(id_) if id_ is not None else []
        if len(known) > 1:
            # A memory may take two documents for one; one that gives all the same id has not found them all.
            return [one for one in self._by_text.of(hash(text)) if one in known] or known
        return known or self._by_content(text, self._documents) or [f"unknown:{id_}"]

    def _by_content(self, text: str, documents: Many[Document]) -> list[str]:
        piece = text.strip()
        found = (document.id for document in documents if piece and piece in document.text)
        return self._by_text.of(hash(text)) or list(islice(found, 1))


def refuse_outdated(documents: Sequence[Document], able: frozenset[Capability]) -> None:
    """Raise NotSupported where nothing that a target can do makes a newer text of a document replace an older one."""
    keyed = "add.key" in able and all(document.key is not None for document in documents)
    if not keyed and able.isdisjoint(_WAYS):
        ways = "'update', 'supersede', or 'add.key' for documents that have keys"
        reason = f"'stale_repeats' needs a memory in which a newer text replaces an older one ({ways})"
        raise NotSupported("perturb.stale_repeats", reason)


@dataclass(frozen=True, slots=True)
class Limit:
    """How long remembering or asking may take, and whether that is only because nobody named the target."""

    seconds: float
    is_for_unnamed: bool = False

    def check(self, seconds: float, expected: float, work: str) -> None:
        """Raise NotSupported if `seconds` have shown that all the `work`, in words, would take too long."""
        if seconds >= self.seconds * _SHOWS and expected > self.seconds:
            hint = ", and nobody named this target: name it by --target" if self.is_for_unnamed else ""
            reason = f"not within {self.seconds:g} s: to {work} would take about {expected:.0f} s here{hint}"
            raise NotSupported("corpus.size", reason)


class Rememberer:
    """Adds documents to a memory; `able` is what its target can do, `kind` what documents without one are added as.

    With a `limit`, a memory that would take longer is left alone as soon as that shows.
    """

    def __init__(self, stage: Stage, able: frozenset[Capability], kind: str | None, limit: Limit | None = None) -> None:
        self._stage = stage
        self._limit = limit
        self._able = able
        # A memory may refuse fields that it does not know; one that searches by them knows any.
        self._takes_metadata = not able.isdisjoint(_WITH_METADATA)
        self._kind = kind
        self._scope = Scope(user=stage.env.owner, session=FIRST_SESSION)

    async def remember(self, task: Perturbed) -> DocumentIds:
        """Return how hits are distinguished, when everything is remembered and the target has settled."""
        documents, ages = task.collection.documents, task.outdated
        known = await self._outdated([one for one in documents if one.id in ages] if ages else [], ages)
        ids, begun, remaining = DocumentIds(documents, ages), perf_counter(), iter(documents)
        size, done = (BATCH if self._limit is None else _FIRST_BATCH), 0
        while batch := list(islice(remaining, size)):
            before = perf_counter()
            ids.learn(batch, await self._write(batch, [one.text for one in batch], known))
            done, now = done + len(batch), perf_counter()
            if self._limit is not None:
                rest = (now - before) / len(batch) * (len(documents) - done)
                self._limit.check(now - begun, now - begun + rest, f"remember {len(documents)} documents")
            size = min(size * _LARGER, BATCH)
        await self._stage.settle()
        return ids

    async def _outdated(
        self, changed: Sequence[Document], ages: Mapping[str, Sequence[str]]
    ) -> Mapping[str, str | None]:
        """Add the earlier texts, oldest first; return the id that the backend gave to each document."""
        known: dict[str, str | None] = {}
        for age in range(max(map(len, ages.values()), default=0)):
            receipt = await self._write(changed, [ages[document.id][age] for document in changed], known)
            if len(receipt.items) == len(changed):
                known.update((one.id, item.id) for one, item in zip(changed, receipt.items, strict=True))
            if "update" in self._able and not known:
                raise NotSupported("update", "'stale_repeats' needs a receipt with one id for each text that is added")
            await self._let_time_pass()
        return known

    async def _write(
        self, documents: Sequence[Document], texts: Sequence[str], known: Mapping[str, str | None]
    ) -> Receipt:
        """Add what is new in one call, then update one by one what a target can only replace by its id."""
        items = [self._item(document, text) for document, text in zip(documents, texts, strict=True)]
        updated = [place for place, document in enumerate(documents) if known and self._is_updated(document, known)]
        if not updated:
            return await self._stage.target.perform(Request.of(Target.add, items, self._scope))
        added = [place for place in range(len(items)) if place not in set(updated)]
        adding = Request.of(Target.add, [items[place] for place in added], self._scope)
        receipt = await self._stage.target.perform(adding) if added else Receipt()
        if len(receipt.items) != len(added):
            return receipt
        found: dict[int, ReceiptItem] = dict(zip(added, receipt.items, strict=True))
        for place in updated:
            found[place] = await self._update(known[documents[place].id], items[place])
        return Receipt(items=tuple(found[place] for place in range(len(items))))

    async def _update(self, id_: str | None, item: Item) -> ReceiptItem:
        if id_ is None:
            raise TargetError("'update' needs the id of what was added, but its receipt has none")
        try:
            updating = Request.of(Target.update, Ref(id=id_, kind=item.kind), item, self._scope)
            receipt = await self._stage.target.perform(updating)
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
        metadata = document.metadata if self._takes_metadata else {}
        return Item(text=text, key=document.key, kind=document.kind or self._kind, metadata=metadata)
