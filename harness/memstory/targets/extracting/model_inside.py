"""What adapters to memories with a language model inside have in common: the model's address, receipts, refusals."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memstory.clock import Clock
from memstory.errors import NotSupported, SetupError
from memstory.proxy.scripted_model import NAME, ScriptedModel
from memstory.target import Capability, Environment, Hit, Item, Json, Query, Receipt, ReceiptItem, Ref, Scope, Target
from memstory.targets.conditions import refuse_undeclared

ABLE: Final[frozenset[Capability]] = frozenset(
    {
        *("add", "add.infer", "search", "list", "get.id", "delete", "delete.reports_missing", "delete.scope"),
        *("scope.user", "llm.scripted", "inspect.model", "option.llm", "option.llm_url"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Where the model is that decides: the parameters of a client of OpenAI's protocol."""

    name: str
    url: str | None
    key: str


class ModelInside(Target):
    """A memory that asks a model on every `add`. A subclass says how it learns, lists, finds and forgets.

    What a receipt tells is read from the memory itself: these libraries do not say what they kept.
    """

    able: frozenset[Capability] = ABLE
    _scripted: ScriptedModel | None = None
    model: Model | None = None

    async def open(self, env: Environment, clock: Clock) -> None:
        if env.model_rules:
            self._scripted = ScriptedModel(env.model_rules)
            self.model = Model(name=NAME, url=self._scripted.url, key="none")
        elif "llm" in env.options:
            provider, _, name = str(env.options["llm"]).partition(":")
            if provider != "openai" or not name:
                raise SetupError(f"llm={env.options['llm']}: give openai:MODEL, and its address as llm_url=URL")
            url = env.options.get("llm_url") or os.environ.get("OPENAI_BASE_URL")
            key = os.environ.get("OPENAI_API_KEY", "none")
            self.model = Model(name=name, url=None if url is None else str(url), key=key)
        await self.open_memory(env)

    async def close(self) -> None:
        await self.close_memory()
        if self._scripted is not None:
            self._scripted.close()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        if self.model is None:
            reason = "its language model decides what to keep: choose one, --target-option llm=openai:MODEL"
            raise NotSupported("add", reason)
        return Receipt(items=[receipt for item in items for receipt in await self._added(item, scope)])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        return next((hit for hit in await self.kept(scope.user) if hit.id == ref.id), None)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, self.able)
        return await self.found(query, scope.user)

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return (await self.kept(scope.user))[:limit]

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        known = [hit for hit in await self.kept(scope.user) if ref.id in {None, hit.id}]
        for hit in known:
            await self.forget(hit, scope.user)
        return bool(known)

    async def inspect(self, what: str, args: Mapping[str, Json], scope: Scope) -> Json:
        if what != "model" or self._scripted is None:
            raise NotSupported(f"inspect.{what}", "only a model that the story scripts can be looked at")
        since = args.get("since", 0)
        return self._scripted.data(since if isinstance(since, int) else 0)

    async def open_memory(self, env: Environment) -> None:
        """Open the memory; `model` is known, or None."""
        raise NotImplementedError

    async def close_memory(self) -> None:
        """Close what was opened."""

    async def learn(self, text: str, user: str) -> None:
        """Let the memory take a message of the user."""
        raise NotImplementedError

    async def kept(self, user: str) -> Sequence[Hit]:
        """Return all that is kept of the user, oldest first."""
        raise NotImplementedError

    async def found(self, query: Query, user: str) -> Sequence[Hit]:
        """Return what answers the query, best first."""
        raise NotImplementedError

    async def forget(self, hit: Hit, user: str) -> None:
        """Delete what `kept` has shown."""
        raise NotImplementedError

    async def _added(self, item: Item, scope: Scope) -> Sequence[ReceiptItem]:
        before = {hit.id: hit.text for hit in await self.kept(scope.user)}
        try:
            await self.learn(item.text, scope.user)
        finally:
            # First of all a request that no rule answers is the story's fault, whatever the memory makes of it.
            if self._scripted is not None:
                self._scripted.check()
        changed = [hit for hit in await self.kept(scope.user) if before.get(hit.id) != hit.text]
        kept = [
            ReceiptItem(id=hit.id, text=hit.text, outcome="updated" if hit.id in before else "stored")
            for hit in changed
        ]
        return kept or [ReceiptItem(id=None, text=item.text, outcome="dropped")]
