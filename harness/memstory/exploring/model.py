"""What a memory owes: a plain model that follows the operations of a program, and says which answer breaks a promise.

It states hard promises alone, each tied to the capabilities that carry it. What a receipt says was not kept is not
expected back; what a memory may have merged with something else is unknown from then on, and nothing is asked of it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias

from memstory.contract.values import Capability, Hit, Item, Json, Receipt, Tree
from memstory.exploring import values
from memstory.exploring.programs import Action, Memo, own_query
from memstory.results.outcomes import Harm


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a memory owes: `title` says how it is broken, `needs` which capabilities carry it."""

    title: str
    harm: Harm
    needs: frozenset[Capability] = frozenset()


def _promise(title: str, harm: Harm, *needs: Capability) -> Promise:
    return Promise(title=title, harm=harm, needs=frozenset(needs))


PROMISES: Final[Mapping[str, Promise]] = {
    "apart": _promise("one user sees what another stored", "leak", "scope.user"),
    "untouched": _promise("one user changes what another stored", "leak", "scope.user"),
    "session_apart": _promise("one session sees what another holds", "leak", "scope.session_all"),
    "deleted": _promise("what was deleted comes back", "leak", "delete"),
    "forgotten": _promise("what was deleted for good comes back when it is added again", "leak", "delete.durable"),
    "expired": _promise("what has expired comes back", "leak", "add.ttl", "clock"),
    "kept": _promise("what was acknowledged is gone", "loss", "add.verbatim"),
    "outlives": _promise("what was acknowledged does not outlive a restart", "loss", "add.verbatim", "persistent"),
    "searchable": _promise("a search for its own text does not find a memory", "loss", "add.verbatim", "search"),
    "text": _promise("a text comes back changed", "wrong", "add.verbatim"),
    "metadata": _promise("metadata come back changed", "wrong", "add.metadata"),
    "key": _promise("a key comes back changed", "wrong", "add.key"),
    "current": _promise("what was replaced is still there", "wrong", "update"),
    "date": _promise("the date of a memory changes", "wrong", "clock"),
    "conditions": _promise("a search finds what does not meet its conditions", "wrong", "search.where"),
    "invented": _promise("something comes back that nobody stored", "wrong", "add.verbatim"),
    "once": _promise("a memory comes back more than once", "wrong"),
    "limit": _promise("more come back than were asked for", "wrong"),
    "filled": _promise("fewer come back than were asked for and are there", "rank", "add.verbatim"),
    "falling": _promise("scores do not fall from hit to hit", "rank", "search.scores"),
    "says_updated": _promise("an update of what is not there is acknowledged", "wrong", "update"),
    "says_deleted": _promise("a deletion does not say whether it deleted", "wrong", "delete.reports_missing"),
    "ids": _promise("an id names another memory than before", "wrong", "add.verbatim", "get.id"),
    "receipt": _promise("an acknowledgement does not say what became of each item", "wrong", "add.verbatim"),
    "takes": _promise("a plain text is refused", "loss", "add.verbatim"),
    "answers": _promise("an operation breaks instead of answering", "wrong"),
}
"""Every promise by the name that findings, tags and known lists use."""
LOSSES: Final = frozenset({"kept", "outlives", "searchable", "untouched"})
"""Names for one thing that is seen, a memory that is not there, by what was done before."""


Conditions: TypeAlias = Sequence[tuple[str, Json]]
"""Names of metadata fields, with the value that each must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """An answer that breaks a promise; `expect` is what a story expects of the step that got it."""

    promise: str
    says: str
    expect: Mapping[str, Tree] = field(default_factory=dict)


State: TypeAlias = Literal["kept", "deleted", "expired", "forgotten", "unknown", "refused"]


@dataclass(slots=True, kw_only=True)
class ModelMemory:
    """A memory of the program: what is known of it, and what it was before."""

    name: str
    user: str
    session: str | None
    item: Item
    id: str | None
    until: datetime | None
    state: State = "kept"
    former: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    created_at: str | None = None
    replaced: Mapping[str, Json] = field(default_factory=dict)
    intruders: list[str] = field(default_factory=list)
    is_attacked: bool = False


@dataclass(slots=True, kw_only=True)
class Model:
    """A memory as it should be. `judge` takes the answers in order; `able` is what the target can do."""

    able: frozenset[Capability]
    memories: dict[str, ModelMemory] = field(default_factory=dict)
    forgotten: set[tuple[str, str]] = field(default_factory=set)
    reopened: bool = False

    def memory(self, name: str) -> ModelMemory | None:
        """Return the memory of that name; None where the program no longer stores it."""
        return self.memories.get(name)

    def judge(self, operation: Action, answer: Tree, now: datetime) -> Violation | None:
        """Take the answer of an operation at a moment; return the promise that it breaks, if one."""
        self._expire(now)
        judges: Mapping[str, Callable[[Action, Any], Violation | None]] = {
            "add": lambda adding, receipt: self._judge_add(adding, receipt, now),
            "update": self._judge_update, "delete": self._judge_delete, "delete all": self._judge_delete_all,
            "get": self._judge_get, "list": self._judge_hits, "search": self._judge_hits,
            "context": self._judge_context,
        }  # fmt: skip
        self.reopened |= operation.op in ("restart", "crash")
        return judges[operation.op](operation, answer) if operation.op in judges else None

    def refuse(self, operation: Action) -> Violation | None:
        """Take note that the memory declined an operation: it changes nothing, but for a part of a batch.

        Return the promise that this breaks, if nothing is odd about what was to be added.
        """
        is_whole = "add.batch_atomic" in self.able or len(operation.memos) == 1
        state: State = "refused" if is_whole and not operation.at_once else "unknown"
        for place, memo in enumerate(operation.memos if operation.op == "add" else ()):
            self._put(operation, memo, operation.owner_of(place), state=state)
        is_plain = operation.op == "add" and operation.all_tags <= {"batch", "many", "two users"}
        # What was forgotten for good may keep away what is only like it.
        is_plain &= all(user != operation.user for user, _ in self.forgotten)
        says = f"refused is {operation.memos[0].item.text!r:.80}" if is_plain else ""
        return self._violation("takes", says, {}) if is_plain else None

    def may_refuse(self, operation: Action) -> bool:
        """Return whether an operation asks for what a memory should decline: a change of what is not there."""
        if operation.op == "add":
            return any(self._is_forgotten(operation.user, memo.item.text) for memo in operation.memos)
        one = self.memory(operation.memory)
        return operation.op == "update" and (one is None or not self._referents(operation, one))

    def _is_forgotten(self, user: str, text: str) -> bool:
        return (user, visible_words(text)) in self.forgotten

    def _referents(self, operation: Action, one: ModelMemory) -> Sequence[ModelMemory]:
        """Return what a user has by the name under which an operation speaks of a memory."""
        own = self._of(operation.user)
        if operation.by == "key":
            return [other for other in own if other.item.key == one.item.key]
        if operation.by == "about":
            named = [one, *filter(None, [self.memory(operation.more)])]
            subjects = {subject_of(other.item.text) for other in named if other.state != "refused"}
            return [other for other in own if subject_of(other.item.text) in subjects]
        # Where a key is the id, users may have the same one, and each means his own by it.
        return [other for other in own if other is one or one.id in other.ids]

    def _has(self, promise: str) -> bool:
        return PROMISES[promise].needs <= self.able

    def _violation(self, promise: str, says: str, expect: Mapping[str, Tree]) -> Violation | None:
        return Violation(promise=promise, says=says, expect=expect) if self._has(promise) else None

    def _of(self, user: str, session: str | None = None) -> list[ModelMemory]:
        return [
            one
            for one in self.memories.values()
            if one.user == user and one.state in ("kept", "unknown") and session in (None, one.session)
        ]

    def _expire(self, now: datetime) -> None:
        for one in self.memories.values():
            if one.state == "kept" and one.until is not None and now >= one.until:
                one.state = "expired"

    def _put(
        self, operation: Action, memo: Memo, user: str, id_: str | None = None, now: datetime | None = None, *,
        state: State,
    ) -> None:  # fmt: skip
        until = now + timedelta(seconds=memo.item.ttl) if now and memo.item.ttl is not None else None
        if state in ("kept", "unknown") and self._is_forgotten(user, memo.item.text):
            state = "forgotten"
        if memo.item.key is not None and state != "refused":
            for old in self._of(user):
                if old.item.key == memo.item.key:
                    # The key now names another text, under the same id or a new one.
                    old.state = "deleted" if state == "kept" else "unknown"
        self.memories[memo.name] = ModelMemory(
            name=memo.name, user=user, session=operation.session, item=memo.item, id=id_,
            until=until, state=state, ids={id_} if id_ else set(),
        )  # fmt: skip

    def _judge_add(self, operation: Action, answer: Receipt, now: datetime) -> Violation | None:
        memos, items = operation.memos, answer.items
        if len(items) != len(memos):
            for place, memo in enumerate(memos):
                self._put(operation, memo, operation.owner_of(place), state="unknown")
            says = f"{len(memos)} items were added, and the receipt has {len(items)}"
            return self._violation("receipt", says, {"receipt": {"items": {"length": len(memos)}}})
        merges = bool({"dedup", "supersede"} & self.able)
        taken: Violation | None = None
        for place, (memo, item) in enumerate(zip(memos, items, strict=True)):
            user, is_merged = operation.owner_of(place), merges or item.outcome in ("bumped", "superseded")
            if item.outcome in ("discarded", "dropped", "skipped"):
                state: State = "refused"
            else:
                state = "unknown" if is_merged or item.outcome == "held" else "kept"
            # A memory may keep a key in a form of its own, which its receipt has to say.
            is_renamed = memo.item.key is not None and item.key is not None
            own = replace(memo, item=replace(memo.item, key=item.key)) if is_renamed else memo
            if is_merged:
                for other in self._of(user):
                    other.state = "unknown"
            elif state == "kept":
                taken = taken or self._taken_id(operation, user, own, item.id)
            self._put(operation, own, user, item.id, now, state=state)
        return taken

    def _taken_id(self, operation: Action, user: str, memo: Memo, id_: str | None) -> Violation | None:
        """Say whose the id was before that a new memory is given; what a key replaces may leave it its own."""
        for old in self.memories.values():
            is_other = memo.item.key is None or memo.item.key != old.item.key
            if old.user == user and id_ in old.ids and is_other and not self._same(memo.item.text, old.item.text):
                says = f"{memo.item.text!r:.80} has the id that {old.item.text!r:.80} was given"
                is_of_batch = any(one.name == old.name for one in operation.memos)
                unlike: Mapping[str, Tree] = {"all": {"not": {"same_as": old.name}}}
                expect = {"json_schema": {"uniqueItems": True}} if is_of_batch else unlike
                return self._violation("ids", says, {"receipt": {"ids": expect}})
        return None

    def _judge_update(self, operation: Action, answer: Receipt) -> Violation | None:
        one, memo = self.memory(operation.memory), operation.memos[0]
        if one is None:
            return None
        meant = self._referents(operation, one)
        if one.state == "unknown" and not meant:
            return None
        if len(meant) != 1 or meant[0].state == "unknown":
            # Whatever has the new text now, it may come back.
            stray = replace(memo, item=replace(memo.item, key=None))
            self._put(operation, stray, operation.user, state="unknown")
            for other in meant:
                other.state = "unknown"
        if len(meant) > 1 or any(other.state == "unknown" for other in meant):
            return None
        if not meant:
            one.intruders.append(memo.item.text)
            return self._violation("says_updated", "updating what is not there is acknowledged", {"error": True})
        (one,) = meant
        one.former.append(one.item.text)
        # A memory replaces metadata or adds to it: of fields that were not named again nothing is expected.
        one.replaced = {**one.replaced, **one.item.metadata} if memo.item.metadata else one.replaced
        metadata = memo.item.metadata or one.item.metadata
        one.item = replace(one.item, text=memo.item.text, metadata=metadata)
        fresh = answer.items[0].id if answer.items else None
        if fresh is not None:
            one.id = fresh
            one.ids.add(fresh)
        return None

    def _judge_delete_all(self, operation: Action, _answer: Tree) -> None:
        for one in self._of(operation.user, operation.session):
            # What has a key belongs to its user, and may stay when a session is forgotten.
            one.state = "unknown" if operation.session is not None and one.item.key is not None else "deleted"

    def _judge_delete(self, operation: Action, answer: int) -> Violation | None:
        one = self.memory(operation.memory)
        if one is None:
            return None
        meant = self._referents(operation, one)
        if one.state == "unknown" and not meant:
            return None
        is_known = all(other.state == "kept" for other in meant)
        one.is_attacked |= one.user != operation.user
        for other in meant:
            if operation.durable:
                # Of what may never have been stored, nothing is known but that its user wants to forget.
                self.forgotten.add((other.user, visible_words(other.item.text) if other.state == "kept" else ""))
            other.state = "deleted" if other.state == "kept" else "unknown"
        if not is_known or answer == len(meant) or (operation.by != "about" and bool(answer) == bool(meant)):
            return None
        says = f"deleting {len(meant)} that are there says {answer}"
        return self._violation("says_deleted", says, {"result": len(meant) if operation.by == "about" else bool(meant)})

    def _judge_get(self, operation: Action, answer: Hit | None) -> Violation | None:
        named = self.memory(operation.memory)
        one = next(iter(self._referents(operation, named)), named) if named else None
        if named is None or one is None:
            return None
        if answer is not None and named.user != operation.user and answer.text in (named.item.text, *named.former):
            return self._seen_by_another(operation, named, one, answer)
        if one.user != operation.user or one.state in ("unknown", "refused"):
            return None
        if one.state == "kept":
            lost = self._loss(one, operation, {"hits": {"empty": False}})
            return lost if answer is None else next(self._differences(one, answer), None)
        is_back = answer is not None and self._same(answer.text, one.item.text) and not self._twin_of(one)
        says = f"it is {one.state}: {one.item.text!r:.80}"
        return self._violation(one.state, says, {"hits": {"empty": True}}) if is_back else None

    def _seen_by_another(
        self, operation: Action, named: ModelMemory, own: ModelMemory, answer: Hit
    ) -> Violation | None:
        """Say that a user reads another's memory, unless his `own` of that name says the same."""
        if own is not named and self._same(answer.text, own.item.text):
            return None
        says = f"user {operation.user!r} reads what user {named.user!r} stored: {answer.text!r:.80}"
        without: Tree = {"empty": True} if own is named else {"excludes": {"text": {"equals": answer.text}}}
        return self._violation("apart", says, {"hits": without})

    def _twin_of(self, one: ModelMemory) -> bool:
        return any(other is not one and self._same(other.item.text, one.item.text) for other in self._of(one.user))

    def _loss(self, one: ModelMemory, operation: Action, expect: Mapping[str, Tree]) -> Violation | None:
        promise = "outlives" if self.reopened else "searchable" if operation.op == "search" else "kept"
        promise = "untouched" if one.is_attacked else promise
        says = f"{operation.op} lacks what was acknowledged: {one.item.text!r:.80}"
        return self._violation(promise, says, expect)

    def _same(self, one: str, other: str) -> bool:
        return one == other if "add.exact" in self.able else visible_words(one) == visible_words(other)

    def _differences(self, one: ModelMemory, hit: Hit) -> Iterator[Violation]:
        """Yield what of a hit is not as it was stored."""
        is_named = hit.id is not None and one.ids == {hit.id}
        name_of_id: dict[str, Tree] = {"id": "${" + one.name + "}"} if is_named else {}
        entry: dict[str, Tree] = {**name_of_id, "text": {"equals": one.item.text}}
        found: list[tuple[str, str, Mapping[str, Tree]]] = []
        if hit.text in one.intruders:
            says = f"what user {one.user!r} stored now says what another wrote: {hit.text!r:.80}"
            found.append(("untouched", says, entry))
        elif not self._same(hit.text, one.item.text):
            is_former = any(self._same(hit.text, old) for old in one.former)
            says = f"stored was {one.item.text!r:.120}, and back comes {hit.text!r:.120}"
            found.append(("current" if is_former else "text", says, entry))
        for name, value in one.item.metadata.items():
            if name not in hit.metadata or not equal_as_json(hit.metadata[name], value):
                back = repr(hit.metadata[name]) if name in hit.metadata else "nothing"
                says = f"the metadata field {name!r} was {value!r:.80}, and back comes {back:.80}"
                found.append(("metadata", says, {**entry, "metadata": {"fields": {name: {"equals": value}}}}))
        if one.item.key is not None and hit.key not in (None, one.item.key):
            says = f"the key was {one.item.key!r:.80}, and back comes {hit.key!r:.80}"
            found.append(("key", says, {**entry, "key": {"equals": one.item.key}}))
        if hit.created_at is not None and one.created_at not in (None, hit.created_at):
            says = f"its date was {one.created_at}, and is {hit.created_at}"
            found.append(("date", says, {**entry, "created_at": {"equals": one.created_at}}))
        one.created_at = one.created_at or hit.created_at
        for promise, says, fields in found:
            if violation := self._violation(promise, says, {"hits": {"includes": fields}}):
                yield violation

    def _judge_hits(self, operation: Action, hits: Sequence[Hit]) -> Violation | None:
        ids = Counter(hit.id for hit in hits)
        if again := [hit for hit in hits if hit.id is not None and ids[hit.id] > 1]:
            text = again[0].text
            times = sum(one.item.text == text for one in self._of(operation.user, operation.session))
            says = f"{text!r:.80} comes {ids[again[0].id]} times"
            return self._violation("once", says, {"hits": {"text": {"occurs": {text: {"le": max(times, 1)}}}}})
        if operation.limit is not None and len(hits) > operation.limit:
            says = f"{operation.limit} were asked for, and {len(hits)} come back"
            return self._violation("limit", says, {"hits": {"count": {"le": operation.limit}}})
        own = self._of(operation.user, operation.session)
        strange = (found for hit in hits if (found := self._judge_hit(operation, hit, own)) is not None)
        return next(strange, None) or self._judge_absent(operation, hits, own) or self._judge_scores(operation, hits)

    def _judge_context(self, operation: Action, answer: str) -> Violation | None:
        """Say whether the text for a prompt has what it must not have: of another user, deleted, expired, replaced."""
        own = self._of(operation.user)
        for one in self.memories.values():
            is_own = one.user == operation.user
            former = [(old, "current" if is_own else "apart") for old in one.former if is_own is False or one in own]
            for text, promise in ((one.item.text, one.state if is_own else "apart"), *former):
                if promise in ("kept", "unknown", "refused") or text not in answer:
                    continue
                if not any(text in other.item.text for other in own):
                    without = {"text": {"not": {"contains": text}}}
                    return self._violation(promise, f"the text for a prompt has {text!r:.80}", without)
        return None

    def _judge_hit(self, operation: Action, hit: Hit, own: Sequence[ModelMemory]) -> Violation | None:
        one = next((one for one in own if hit.id is not None and hit.id in one.ids), None)
        if one is None and (gone := self._gone_with(hit.id, operation.user)) is not None:
            says = f"it is {gone.state}: {hit.text!r:.80}"
            # What a key replaced may have left its id to what is there now; of equal texts, the id tells which it is.
            is_told = not any(self._same(hit.text, other.item.text) for other in own)
            which: Tree = {"text": {"equals": hit.text}} if is_told else gone.name
            return self._violation(gone.state, says, {"hits": {"excludes": which}})
        if one is None and (other := self._other_with(hit.id, operation.user)) is not None:
            return self._of_other_session(operation, hit, other)
        unknown = (other for other in self._with_id(hit.id, operation.user) if other.state == "unknown")
        alike = (other for other in own if self._same(hit.text, other.item.text))
        one = one or next(unknown, None) or next(alike, None)
        if one is None:
            return next(self._explanations(operation, hit))
        if one.state == "unknown":
            return None
        if not self._may_meet(one, operation.where):
            says = f"asked for was {dict(operation.where)!r:.80}, found is {dict(one.item.metadata)!r:.80}"
            return self._violation("conditions", says, {"hits": {"excludes": one.name}})
        return next(self._differences(one, hit), None)

    def _with_id(self, id_: str | None, user: str) -> Sequence[ModelMemory]:
        return [one for one in self.memories.values() if one.user == user and id_ is not None and id_ in one.ids]

    def _gone_with(self, id_: str | None, user: str) -> ModelMemory | None:
        mine = self._with_id(id_, user)
        return mine[0] if mine and all(one.state in _GONE for one in mine) else None

    def _other_with(self, id_: str | None, user: str) -> ModelMemory | None:
        return next((one for one in self._with_id(id_, user) if one.state == "kept"), None)

    def _of_other_session(self, operation: Action, hit: Hit, one: ModelMemory) -> Violation | None:
        says = f"session {operation.session!r} sees what {one.session!r} holds: {hit.text!r:.80}"
        # A key names one thing of its user, in whatever session it was said.
        which = {"hits": {"excludes": one.name}}
        return None if one.item.key is not None else self._violation("session_apart", says, which)

    def _explanations(self, operation: Action, hit: Hit) -> Iterator[Violation | None]:
        """Yield what a hit may be that is not among what should be seen; None: nothing can be said of it."""
        without = {"hits": {"excludes": {"text": {"equals": hit.text}}}}
        mine = [one for one in self.memories.values() if one.user == operation.user]
        # What may be a memory of which nothing is known, in whatever session, is not called deleted.
        mine.sort(key=lambda one: {"forgotten": 0, "unknown": 1}.get(one.state, 2))
        for one in mine:
            if one.state == "kept" and self._same(hit.text, one.item.text):
                yield self._of_other_session(operation, hit, one)
            if one.state == "kept" and any(self._same(hit.text, old) for old in one.former):
                yield self._violation("current", f"the former text is there: {hit.text!r:.80}", without)
        for one in mine:
            is_it = self._same(hit.text, one.item.text) or hit.text in one.former
            if one.state in _GONE and is_it:
                yield self._violation(one.state, f"it is {one.state}: {hit.text!r:.80}", without)
            if one.state in ("unknown", "refused") and self._same(hit.text, one.item.text):
                yield None
        for one in self.memories.values():
            if one.user != operation.user and hit.text in (one.item.text, *one.former):
                says = f"user {operation.user!r} sees what user {one.user!r} stored: {hit.text!r:.80}"
                yield self._violation("apart", says, without)
        if any(one.state == "unknown" for one in mine):
            yield None
        yield self._violation("invented", f"nobody stored {hit.text!r:.120}", without)

    def _may_meet(self, one: ModelMemory, where: Conditions) -> bool:
        fields = one.item.metadata
        return _fits(fields, where) or (bool(one.replaced) and _fits({**one.replaced, **fields}, where))

    def _judge_absent(self, operation: Action, hits: Sequence[Hit], own: Sequence[ModelMemory]) -> Violation | None:
        """Say what should have come back and did not."""
        wanted = [one for one in own if one.state == "kept" and _fits(one.item.metadata, operation.where)]
        if operation.op == "search" and "add.key.apart" in self.able:
            wanted = [one for one in wanted if one.item.key is None]
        if operation.op == "search" and operation.text != values.COMMON_WORD:
            return self._judge_own_text(operation, hits, wanted)
        if operation.op == "search" and {"embedder.fixed", "search.min_score"} <= self.able:
            # It may leave out what is not near enough, and one common word is not much.
            return None
        fitting = sum(self._may_meet(one, operation.where) for one in own)
        limit = fitting if operation.limit is None else operation.limit
        if fitting <= limit:
            return self._first_lost(operation, hits, wanted)
        says = f"{len(hits)} come back, {limit} were asked for, and {len(wanted)} are there"
        is_short = len(hits) < limit <= len(wanted)
        return self._violation("filled", says, {"hits": {"count": limit}}) if is_short else None

    def _judge_own_text(
        self, operation: Action, hits: Sequence[Hit], wanted: Sequence[ModelMemory]
    ) -> Violation | None:
        wanted = [one for one in wanted if own_query(one.item.text) == operation.text]
        if "embedder.fixed" in self.able:
            # By meaning, the first words of a long text need not be near to the whole, and others may be as near.
            ties = bool(hits) and hits[0].score == hits[-1].score
            wanted = [] if ties else [one for one in wanted if one.item.text == operation.text]
        least = max(operation.limit or 0, 1)
        # Of equal texts one is enough: a search may show it once.
        if (
            operation.limit == 0
            or len(wanted) > least
            or any(self._same(hit.text, one.item.text) for one in wanted for hit in hits)
        ):
            return None
        return self._first_lost(operation, hits, wanted[-1:])

    def _first_lost(self, operation: Action, hits: Sequence[Hit], wanted: Sequence[ModelMemory]) -> Violation | None:
        """Say which of these is not among the hits, by its id or, where ids say nothing, by its text."""
        found = {hit.id for hit in hits if hit.id is not None}
        known = {id_ for one in self.memories.values() for id_ in one.ids}
        texts = Counter(visible_words(hit.text) for hit in hits if hit.id is None or hit.id not in known)
        for one in wanted:
            text = visible_words(one.item.text)
            if one.ids & found:
                continue
            if not texts[text]:
                return self._loss(one, operation, {"hits": {"includes": one.name}})
            texts[text] -= 1
        return None

    def _judge_scores(self, operation: Action, hits: Sequence[Hit]) -> Violation | None:
        scores = [hit.score for hit in hits if hit.score is not None]
        is_ranked = operation.op == "search" and not any(name.startswith("rank.") for name in self.able)
        rises = is_ranked and any(after > before + _ROUNDING for before, after in pairwise(scores))
        if not rises and all(map(math.isfinite, scores)):
            return None
        return self._violation("falling", f"the scores are {scores!r:.120}", _FALLING)


def _fits(metadata: Mapping[str, Json], where: Conditions) -> bool:
    return all(name in metadata and equal_as_json(metadata[name], value) for name, value in where)


_GONE: Final = ("deleted", "expired", "forgotten")
_FALLING: Final = {"hits": {"falling": True}}
_ROUNDING: Final = 1e-9


def subject_of(text: str) -> str | None:
    """Return what a text is about: the number that it has alone; None where it has none.

    >>> subject_of("Note 107: the ferry leaves at nine.")
    'note 107'
    """
    found = re.search(r"\bnote (\d+)", text, re.IGNORECASE)
    return f"note {found[1]}" if found else None


@lru_cache(10_000)
def visible_words(text: str) -> str:
    """Return a text without characters that nobody sees, and with single blanks."""
    seen = "".join(
        " " if one.isspace() else one for one in text if one.isspace() or unicodedata.category(one)[0] != "C"
    )
    return " ".join(seen.replace("\ufffd", "").split())


def equal_as_json(one: Json, other: Json) -> bool:
    """Return whether two values are the same in JSON: `1` is `1.0` and is not `true`.

    >>> equal_as_json(1, 1.0), equal_as_json(1, True), equal_as_json([0], [False])
    (True, False, False)
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal_as_json(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(equal_as_json, one, other))
    return one == other
