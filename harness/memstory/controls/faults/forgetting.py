"""Faults of forgetting: deleted memories that are still shown, come back, or take others with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from memstory.contract.target import Hit, Item, Query, Ref, Scope
from memstory.controls.matching import squeezed, words_of
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import Memory, Oracle

_SHORT, _LONG = 4, 40


def _longest(text: str) -> int:
    return max((len(squeezed(token)) for token in text.split() if any(map(str.isdigit, token))), default=0)


class _Sparing(Mutant):
    """Acknowledges a deletion and keeps some of what was deleted."""

    def _is_spared(self, memory: Memory) -> bool:
        raise NotImplementedError

    def _forget(self, gone: Sequence[Memory], *, durable: bool) -> None:
        super()._forget([one for one in gone if not self._is_spared(one)], durable=durable)


class SparingShort(_Sparing):
    """Keeps a deleted secret that is short."""

    fault_name: ClassVar[str] = "sparing_short"

    def _is_spared(self, memory: Memory) -> bool:
        return 0 < _longest(memory.hit.text) <= _SHORT


class SparingLong(_Sparing):
    """Keeps a deleted secret that is long."""

    fault_name: ClassVar[str] = "sparing_long"

    def _is_spared(self, memory: Memory) -> bool:
        return _longest(memory.hit.text) >= _LONG


class SparingSecond(Mutant):
    """Forgets only the first of several things that are named."""

    fault_name: ClassVar[str] = "sparing_second"

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        return await super().delete_about(about[:1], scope, durable=durable)


class SparingOthers(Mutant):
    """Forgets only the first memory about a thing."""

    fault_name: ClassVar[str] = "sparing_others"

    def _about(self, about: Sequence[str], scope: Scope) -> Sequence[Memory]:
        return super()._about(about, scope)[:1]


class SparingEdited(_Sparing):
    """Keeps a deleted memory that was changed before."""

    fault_name: ClassVar[str] = "sparing_edited"

    def _is_spared(self, memory: Memory) -> bool:
        return any(one.memory.hit.id == memory.hit.id for one in self._past)


class LooseAbout(Mutant):
    """Takes each memory that shares a word with what is to be forgotten."""

    fault_name: ClassVar[str] = "loose_about"

    def _about(self, about: Sequence[str], scope: Scope) -> Sequence[Memory]:
        return [one for one in self._in(scope) if any(words_of(one.hit.text) & words_of(thing) for thing in about)]


class PrefixAbout(Mutant):
    """Takes an identifier for all that begin with it."""

    fault_name: ClassVar[str] = "prefix_about"

    def _about(self, about: Sequence[str], scope: Scope) -> Sequence[Memory]:
        wanted = [squeezed(thing) for thing in about]
        return [
            one
            for one in self._in(scope)
            if any(squeezed(token).startswith(thing) for token in one.hit.text.split() for thing in wanted)
        ]


class LiteralAbout(Mutant):
    """Takes an identifier for the spelling in which it is named."""

    fault_name: ClassVar[str] = "literal_about"

    def _about(self, about: Sequence[str], scope: Scope) -> Sequence[Memory]:
        return [one for one in self._in(scope) if any(thing in one.hit.text for thing in about)]


class FuzzyAbout(Mutant):
    """Takes identifiers for the same that differ in one character."""

    fault_name: ClassVar[str] = "fuzzy_about"

    def _about(self, about: Sequence[str], scope: Scope) -> Sequence[Memory]:
        def is_near(one: str, other: str) -> bool:
            return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) <= 1

        wanted = [squeezed(thing) for thing in about]
        return [
            one
            for one in self._in(scope)
            if any(is_near(squeezed(token), thing) for token in one.hit.text.split() for thing in wanted)
        ]


class WipingAbout(Mutant):
    """Forgets everything when nothing is known of what is to be forgotten."""

    fault_name: ClassVar[str] = "wiping_about"

    def _about(self, about: Sequence[str], scope: Scope) -> Sequence[Memory]:
        return super()._about(about, scope) or self._in(scope)


class LeakyAbout(Mutant):
    """Forgets what other users said of a thing, too."""

    fault_name: ClassVar[str] = "leaky_about"

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        for user in {one.user for one in self._memories} - {scope.user}:
            await super().delete_about(about, Scope(user=user), durable=durable)
        return await super().delete_about(about, scope, durable=durable)


class Miscounting(Mutant):
    """Says that one memory was forgotten, however many there were."""

    fault_name: ClassVar[str] = "miscounting"

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        return min(1, await super().delete_about(about, scope, durable=durable))


class RememberingContext(Mutant):
    """Makes the text for the prompt once, and keeps it."""

    fault_name: ClassVar[str] = "remembering_context"
    _made_text: str | None = None

    async def context(self, query: Query, scope: Scope) -> str:
        self._made_text = self._made_text or await super().context(query, scope)
        return self._made_text


class StaleExport(Mutant):
    """Leaves a deleted memory in what was exported before."""

    fault_name: ClassVar[str] = "stale_export"

    def _export(self) -> None:
        exported = self._path.with_name("export.json") if self._path else None
        if exported and not exported.exists():
            super()._export()


class QuotingLog(Mutant):
    """Writes the text of what is deleted into its log."""

    fault_name: ClassVar[str] = "quoting_log"

    def _forget(self, gone: Sequence[Memory], *, durable: bool) -> None:
        super()._forget(gone, durable=durable)
        self._log += [{"op": "deleted", "text": one.hit.text} for one in gone]


class QuotingRetractions(Mutant):
    """Keeps a note of what is no longer so, with its words."""

    fault_name: ClassVar[str] = "quoting_retractions"

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        texts = [one.hit.text for one in self._about(about, scope)]
        count = await super().delete_about(about, scope, durable=durable)
        await Oracle.add(self, [Item(text=f"No longer so: {text}") for text in texts], scope)
        return count


class LeavingFiles(Mutant):
    """Leaves what is deleted in an old copy of its file."""

    fault_name: ClassVar[str] = "leaving_files"

    def _save(self) -> None:
        if self._path and self._path.exists():
            self._path.with_suffix(".bak").write_bytes(self._path.read_bytes())
        super()._save()


class RebuildingDeleted(Mutant):
    """Finds deleted memories again once its index is rebuilt."""

    fault_name: ClassVar[str] = "rebuilding_deleted"

    def __init__(self) -> None:
        super().__init__()
        self._gone: list[Memory] = []

    def _forget(self, gone: Sequence[Memory], *, durable: bool) -> None:
        super()._forget(gone, durable=durable)
        self._gone += gone

    def _reindexed(self) -> int:
        self._memories += self._gone
        return super()._reindexed()


class PrefixSessions(Mutant):
    """Takes all sessions whose names begin alike for one when it forgets."""

    fault_name: ClassVar[str] = "prefix_sessions"

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref == Ref() and scope.session:
            mine = [one for one in self._memories if one.user == scope.user]
            self._forget([one for one in mine if (one.session or "").startswith(scope.session)], durable=False)
            self._save()
            return True
        return await super().delete(ref, scope)


class TellingThePast(Mutant):
    """Returns what was deleted in a search as of a time before."""

    fault_name: ClassVar[str] = "telling_the_past"

    def __init__(self) -> None:
        super().__init__()
        self._deleted: list[Memory] = []

    def _forget(self, gone: Sequence[Memory], *, durable: bool) -> None:
        super()._forget(gone, durable=durable)
        self._deleted += gone

    def _as_of(self, moment: str, scope: Scope) -> Sequence[Memory]:
        return [*super()._as_of(moment, scope), *(one for one in self._deleted if one.user == scope.user)]


class FindingByHash(Mutant):
    """Finds a deleted memory where the question is the deleted text itself."""

    fault_name: ClassVar[str] = "finding_by_hash"

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, Hit] = {}

    def _forget(self, gone: Sequence[Memory], *, durable: bool) -> None:
        super()._forget(gone, durable=durable)
        self._kept |= {word: one.hit for one in gone for word in words_of(one.hit.text)}

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        words = words_of(query.text)
        cached = [self._kept[word] for word in words if word in self._kept] if len(words) == 1 else []
        return [*await super().search(query, scope), *cached][: query.top_k]


class OneScript(Mutant):
    """Knows a name in the letters only in which it was told."""

    fault_name: ClassVar[str] = "one_script"

    def _about(self, about: Sequence[str], scope: Scope) -> Sequence[Memory]:
        return [one for one in super()._about(about, scope) if any(thing in one.hit.text for thing in about)]
