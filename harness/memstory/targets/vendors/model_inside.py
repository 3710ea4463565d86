"""What adapters to memories with a language model inside have in common: the model's address, receipts, refusals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused, SetupError
from memstory.contract.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Json,
    ModelUse,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
)
from memstory.models.counted_model import CountedModel
from memstory.models.openai_server import openai_server
from memstory.targets.adapter import Adapter, refuse_keys, refuse_undeclared

MODEL_CAPABILITIES: Final[frozenset[Capability]] = frozenset(
    {
        *("add", "add.infer", "search", "list", "get.id", "delete", "delete.reports_missing", "delete.scope"),
        *("scope.user", "llm.scripted", "fault.replies", "inspect.model", "option.llm", "option.llm_url"),
    }
)


class ModelInside(Adapter):
    """A memory that asks a model on every `add`. A subclass says how it learns, lists, finds and forgets.

    What a receipt tells is read from the memory itself: these libraries do not say what they kept.
    """

    capabilities: ClassVar[frozenset[Capability]] = MODEL_CAPABILITIES
    model: CountedModel | None = None

    async def open(self, env: Environment, clock: Clock) -> None:
        self.model = counted_model(env)
        if self.model is None and "llm" in env.options:
            raise SetupError(f"llm={env.options['llm']}: give openai:MODEL, and its address as llm_url=URL")
        try:
            await self.open_memory(env)
        except BaseException:
            self._end_model()
            raise

    async def close(self) -> None:
        try:
            await self.close_memory()
        finally:
            self._end_model()

    @property
    def model_use(self) -> ModelUse | None:
        return None if self.model is None else self.model.use

    async def about(self) -> Mapping[str, str]:
        return {**await super().about(), "infer": self.model.label if self.model else "off"}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        if self.model is None:
            reason = "its language model decides what to keep: choose one, --target-option llm=openai:MODEL"
            raise NotSupported("model", reason)
        refuse_keys(items)
        return Receipt(items=[receipt for item in items for receipt in await self._add_item(item, scope)])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        if ref.id is None:
            raise NotSupported("get.key")
        return next((hit for hit in await self.memories(scope.user) if hit.id == ref.id), None)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, self.capabilities)
        try:
            return await self.matches(query, scope.user)
        finally:
            self._check_model()

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return (await self.memories(scope.user))[:limit]

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        known = [hit for hit in await self.memories(scope.user) if ref.id in {None, hit.id}]
        for hit in known:
            await self.forget(hit, scope.user)
        return bool(known)

    async def fault(self, part: str, mode: str) -> None:
        if part != "model" or self.model is None:
            await super().fault(part, mode)
        else:
            self.model.spoil(mode)

    async def fault_counts(self) -> Mapping[str, int]:
        return {**await super().fault_counts(), "model": self.model.spoiled_replies if self.model else 0}

    async def inspect(self, what: str, args: Mapping[str, Json], scope: Scope) -> Json:
        if what != "model":
            raise NotSupported(f"inspect.{what}")
        if self.model is None:
            raise NotSupported("model", "only the language model can be looked at, and there is none")
        since = args.get("since", 0)
        return self.model.data(since if isinstance(since, int) else 0)

    async def open_memory(self, env: Environment) -> None:
        """Open the memory; `model` is known, or None."""
        raise NotImplementedError

    async def close_memory(self) -> None:
        """Close what was opened."""

    async def learn(self, text: str, user: str) -> None:
        """Let the memory take a message of the user."""
        raise NotImplementedError

    async def memories(self, user: str) -> Sequence[Hit]:
        """Return all that is kept of the user, oldest first."""
        raise NotImplementedError

    async def matches(self, query: Query, user: str) -> Sequence[Hit]:
        """Return what answers the query, best first."""
        raise NotImplementedError

    async def forget(self, hit: Hit, user: str) -> None:
        """Delete what `memories` has shown."""
        raise NotImplementedError

    async def _add_item(self, item: Item, scope: Scope) -> Sequence[ReceiptItem]:
        asked = self.model.use if self.model else ModelUse()
        before = {hit.id: hit.text for hit in await self.memories(scope.user)}
        try:
            with spoiled_replies(self.model):
                await self.learn(item.text, scope.user)
        finally:
            self._check_model()
        changed = [hit for hit in await self.memories(scope.user) if before.get(hit.id) != hit.text]
        kept = [
            ReceiptItem(id=hit.id, text=hit.text, outcome="updated" if hit.id in before else "stored")
            for hit in changed
        ]
        said = self.model.last_reply(asked) if self.model else None
        return kept or [ReceiptItem(id=None, text=item.text, outcome="dropped", reason=said)]

    def _check_model(self) -> None:
        # That the model gave no answer comes first, whatever the memory makes of that.
        if self.model is not None:
            self.model.check()

    def _end_model(self) -> None:
        if self.model is not None:
            self.model.close()


@contextmanager
def spoiled_replies(model: CountedModel | None) -> Iterator[None]:
    """Take an error for a refusal, while the story spoils the replies of `model`: the memory says that it lost them."""
    try:
        yield
    except Exception as error:
        if model is None or not model.is_spoiled:
            raise
        raise Refused(f"{type(error).__name__}: {error}") from error


def counted_model(env: Environment) -> CountedModel | None:
    """Return the model that the story scripts, else the one of OpenAI's protocol that `llm` names; None without.

    Raises:
        SetupError: its server is OpenAI's own, and no key is set.
    """
    if env.model_rules:
        return CountedModel(rules=env.model_rules)
    provider, _, name = str(env.options.get("llm", "")).partition(":")
    if provider != "openai" or not name:
        return None
    named = env.options.get("llm_url")
    server = openai_server(None if named is None else str(named))
    return CountedModel(name, server=server.url, key=server.key)
