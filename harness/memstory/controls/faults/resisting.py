"""Faults of resisting: stuffed texts, untrusted corrections, look-alikes, operators, and files that others changed."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from memstory.contract.clock import Clock
from memstory.contract.target import Environment, Hit, Item, Json, Query, Receipt, Ref, Scope
from memstory.controls.mutants import Mutant
from memstory.controls.oracle import OracleMemory

_LOOK_ALIKES: Final = str.maketrans("аеорсухіАЕОРСХ", "aeopcyxiAEOPCX")  # noqa: RUF001  (that is what it is about)


def _fold(name: str) -> str:
    return unicodedata.normalize("NFKC", name).translate(_LOOK_ALIKES)


class CountingWords(Mutant):
    """Scores a text by how often it has the words of the question."""

    def _place(self, hit: Hit, memory: OracleMemory | None) -> tuple[Any, ...]:
        return (False, 0, -len(hit.text.split()), 0.0, hit.id or "")


class TrustingAll(Mutant, record=lambda item: replace(item, source=None)):
    """Stores what a web page says as if the user had said it."""

    def _place(self, hit: Hit, memory: OracleMemory | None) -> tuple[Any, ...]:
        stuffed, source, score, begun, name = super()._place(hit, memory)
        return (stuffed, source, begun, score, name)


def _trusting(source: str) -> Callable[[Item], Item]:
    """Return a function that takes what `source` says for the user's word."""
    return lambda item: replace(item, source=None) if item.source == source else item


class TrustingTools(Mutant, record=_trusting("tool")):
    """Stores what a tool says as if the user had said it."""


class TrustingAssistants(Mutant, record=_trusting("assistant")):
    """Stores what an assistant says as if the user had said it."""


class IgnoringRoles(Mutant, record=lambda item: replace(item, role=None)):
    """Takes what the assistant says about itself as said by the user."""


class BelievingTags(Mutant):
    """Believes a page that claims to be verified."""

    def _trusted_metadata(self, item: Item) -> dict[str, Json]:
        return dict(item.metadata)


class DistrustingUsers(Mutant):
    """Drops what a user says is verified."""

    def _trusted_metadata(self, item: Item) -> dict[str, Json]:
        return {name: value for name, value in item.metadata.items() if name != "verified"}


class Obeying(Mutant):
    """Does what a text asks it to do."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        if any(re.search(r"(?i)\b(delete|forget|erase)\b.*\b(all|everything)\b", item.text) for item in items):
            self._forget(self._in(scope), durable=False)
        return await super().add(items, scope)


class SplittingLines(Mutant):
    """Stores each line of a text as a separate memory."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        whole = await super().add(items, scope)
        lines = [line for item in items for line in item.text.splitlines()[1:] if line]
        await super().add([Item(text=line) for line in lines], scope)
        return whole


class OperatorOwners(Mutant, sees=lambda user, owner: user == owner or re.search(r"[${}*%'\"\[\]]", user)):
    """Reads a user name that looks like a query operator as all users."""


class OperatorValues(Mutant):
    """Reads a mapping in a condition as a query operator."""

    def _fits(self, hit: Hit, where: Mapping[str, Json]) -> bool:
        return super()._fits(hit, {name: value for name, value in where.items() if not isinstance(value, Mapping)})


class QuotedValues(Mutant):
    """Ends the value of a condition at a quote in it."""

    def _fits(self, hit: Hit, where: Mapping[str, Json]) -> bool:
        return all("'" in str(value) for value in where.values()) if where else True


class LookAlikeOwners(Mutant, sees=lambda user, owner: _fold(user) == _fold(owner)):
    """Confuses user names whose letters look alike."""


class LookAlikeKeys(Mutant):
    """Confuses keys whose letters look alike."""

    def _find(self, ref: Ref, scope: Scope) -> OracleMemory | None:
        if ref.key is None:
            return super()._find(ref, scope)
        mine = self._in(Scope(user=scope.user))
        return next((one for one in mine if _fold(one.hit.key or "") == _fold(ref.key)), None)


class Echoing(Mutant):
    """Remembers again whatever it finds."""

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        found = await super().search(query, scope)
        await self.add([Item(text=hit.text) for hit in found[:1]], scope)
        return found


class Unsealed(Mutant):
    """Believes whatever its file says."""

    def _is_sound(self, digest: str, text: str) -> bool:
        return True


class SealingLength(Mutant):
    """Notices only a file whose length was changed."""

    def _is_sound(self, digest: str, text: str) -> bool:
        return len(digest) == 64 and text == json.dumps(json.loads(text))  # noqa: PLR2004  (of SHA-256)


class SealingLetters(Mutant):
    """Notices only letters that came or went, and none that changed their places."""

    def _seal(self, text: str) -> str:
        return super()._seal("".join(sorted(text)))


class ReadingHalves(Mutant):
    """Reads a truncated file as an empty one."""

    async def open(self, env: Environment, clock: Clock) -> None:
        file = Path(env.workspace) / "oracle.json"
        if file.exists() and not file.read_text("utf-8").endswith("}"):
            file.unlink()
        await super().open(env, clock)


class ObeyingDisguised(Mutant):
    """Does what a text asks it to do in other letters or with spaces between them."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        plain = ["".join(_fold(item.text).casefold().split()) for item in items]
        if any("deleteall" in text for text in plain):
            self._forget(self._in(scope), durable=False)
        return await super().add(items, scope)
