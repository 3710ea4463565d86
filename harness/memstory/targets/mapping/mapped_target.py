"""A memory behind a mapped server, as a target: the operations, and the class that has just those of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar, cast

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused, TargetError
from memstory.contract.target import Environment, Hit, Item, Query, Receipt, ReceiptItem, Ref, Scope, Target
from memstory.targets.mapping.able import finds_by_key
from memstory.targets.mapping.exchange import Answer, Exchange, UnknownError, hit_of
from memstory.targets.mapping.replies import Reply, Row
from memstory.targets.mapping.table import Operation, Table
from memstory.targets.mapping.templates import ITEMS, Values, render

_MOST_PAGES: Final = 10_000
_WITHOUT_ROWS: Final = frozenset({"dropped", "discarded", "skipped", "held"})
_NO_ROW: Final = Row(fields={}, whole=None)
_SAME_NAME: Final = ("add", "search", "list", "update", "delete", "feedback", "context")


Kind = TypeVar("Kind", bound="MappedTarget")


class MappedTarget(Target):
    """What every mapped target has, whatever its table maps."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    async def open(self, env: Environment, clock: Clock) -> None:
        await self.exchange.open(env, clock)

    async def close(self) -> None:
        await self.exchange.close()

    async def about(self) -> Mapping[str, str]:
        return await self.exchange.about()

    async def settle(self) -> None:
        if "settle" in self.exchange.table.operations:
            await self.exchange.ask(self.exchange.operation("settle"), None, {})


class _Operations(MappedTarget):
    """All that can be mapped; `class_for` takes out what a table has, for what is overridden is what is declared."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        operation = self.exchange.operation("add")
        size = operation.batch if operation.takes_items else 1
        done: list[ReceiptItem] = []
        for start in range(0, len(items), size):
            part = items[start : start + size]
            each = [self.exchange.of_item(item) for item in part]
            values = {ITEMS: each} if operation.takes_items else each[0]
            done += await _stored(self.exchange, operation, part, each, scope=scope, values=values)
        return Receipt(items=done)

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        return await self.exchange.look_up(ref, scope)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        operation = self.exchange.operation("search")
        values = _of_query(query, operation)
        _refuse_unmapped(operation, {**values, "session": scope.session})
        answer = await _found(self.exchange, operation, scope, values)
        return [hit_of(row) for row in answer.rows][: query.top_k]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        operation = self.exchange.operation("list")
        values: Values = {"kinds": [*kinds] or None, "limit": limit, "page_size": operation.page_size}
        _refuse_unmapped(operation, {**values, "session": scope.session})
        return await _listed(self.exchange, operation, scope, values, limit)

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        operation = self.exchange.operation("update")
        each = self.exchange.of_item(item)
        try:
            named = await self.exchange.of_ref(operation, ref, scope)
            # What the caller says of the memory wins over what its new contents leave open.
            values = {**each, **{name: value for name, value in named.items() if value is not None}}
            done = await _stored(self.exchange, operation, [item], [values], scope=scope, values=values)
        except UnknownError as error:
            raise Refused(f"update: {error}") from error
        return Receipt(items=done)

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            return await _forget_all(self.exchange, ref, scope)
        operation = self.exchange.operation("delete")
        try:
            await self.exchange.ask(operation, scope, await self.exchange.of_ref(operation, ref, scope))
        except UnknownError:
            return False
        return True

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        operation = self.exchange.operation("feedback")
        try:
            named = await self.exchange.of_ref(operation, ref, scope)
            await self.exchange.ask(operation, scope, {**named, "value": value})
        except UnknownError:
            return False
        return True

    async def context(self, query: Query, scope: Scope) -> str:
        operation = self.exchange.operation("context")
        values = _of_query(query, operation)
        _refuse_unmapped(operation, values)
        answer = await _found(self.exchange, operation, scope, values)
        if operation.rows is None:
            return answer.reply.text
        return "\n".join(hit_of(row).text for row in answer.rows)


def class_for(table: Table, base: type[Kind]) -> type[Kind]:
    """Return `base` with the operations of `table`, and no others."""
    wanted = {name for name in _SAME_NAME if name in table.operations}
    if "get" in table.operations or finds_by_key(table.operations):
        wanted.add("get")
    members = {name: vars(_Operations)[name] for name in sorted(wanted)}
    return cast("type[Kind]", type(base.__name__, (base,), {"__module__": base.__module__, **members}))


def _of_query(query: Query, operation: Operation) -> Values:
    k = query.top_k
    if k is not None:
        k *= operation.overfetch
        k = k if operation.k_most is None else min(k, operation.k_most)
    return {
        "query": query.text,
        "k": k,
        "kinds": [*query.kinds] or None,
        "where": dict(query.where) or None,
        "min_score": query.min_score,
        "token_budget": query.token_budget,
        "as_of": query.as_of,
    }


_LIMITING: Final = {
    "session": "scope.session",
    "where": "search.where",
    "min_score": "search.min_score",
    "token_budget": "search.budget",
    "as_of": "search.as_of",
}


def _refuse_unmapped(operation: Operation, values: Values) -> None:
    """Raise NotSupported for a condition that the table does not map: left out, it would find too much."""
    for name in ("kinds", "kind", *_LIMITING):
        if values.get(name) is not None and name not in operation.names:
            raise NotSupported(
                _LIMITING.get(name, f"{operation.name}.{name}"),
                f"'{operation.name}' has no {{{name}}} in {operation.where}",
            )


async def _found(exchange: Exchange, operation: Operation, scope: Scope, values: Values) -> Answer:
    """Return the answer; a server that knows nothing gives no rows."""
    try:
        return await exchange.rows(operation, scope, values)
    except UnknownError:
        return Answer(reply=Reply(text=""), read=0, rows=())


async def _listed(
    exchange: Exchange, operation: Operation, scope: Scope, values: Values, limit: int | None
) -> Sequence[Hit]:
    """Return what all pages have; one that comes twice is a TargetError, for there would be no end."""
    hits: list[Hit] = []
    previous: Sequence[Row] = ()
    for page in range(_MOST_PAGES):
        place = {"page": page + 1, "offset": page * (operation.page_size or 0)}
        answer = await _found(exchange, operation, scope, {**values, **place})
        if answer.rows and answer.rows == previous:
            raise TargetError(f"{exchange.table.name}: list: page {page + 1} is the same as the one before it")
        hits += map(hit_of, answer.rows)
        previous = answer.rows
        is_last = operation.page_size is None or answer.read < operation.page_size
        if is_last or (limit is not None and len(hits) >= limit):
            return hits[:limit]
    raise TargetError(f"{exchange.table.name}: list: there is no end to the pages")


async def _forget_all(exchange: Exchange, ref: Ref, scope: Scope) -> bool:
    if "delete_all" not in exchange.table.operations:
        raise NotSupported("delete.scope")
    operation = exchange.operation("delete_all")
    values = {"kind": ref.kind}
    _refuse_unmapped(operation, {**values, "session": scope.session})
    try:
        await exchange.ask(operation, scope, values)
    except UnknownError:
        return False
    return True


async def _stored(
    exchange: Exchange,
    operation: Operation,
    items: Sequence[Item],
    each: Sequence[Values],
    *,
    scope: Scope,
    values: Values,
) -> list[ReceiptItem]:
    """Send items, and say what happened to each; one row of the reply stands for one item."""
    answer = await exchange.rows(operation, scope, values)
    outcome = _outcome(operation, answer.reply)
    rows = answer.rows
    if operation.rows is None or (len(rows) != len(items) and outcome in _WITHOUT_ROWS):
        rows = [_NO_ROW] * len(items)
    if len(rows) != len(items):
        said = f"{len(items)} sent, {len(rows)} found in the reply: {answer.reply}"
        raise TargetError(f"{exchange.table.name}: {operation.name}: {said:.400}")
    always = exchange.values(scope)
    return [
        _receipt(item, row, render(operation.id, {**always, **own}), outcome)
        for item, row, own in zip(items, rows, each, strict=True)
    ]


def _receipt(item: Item, row: Row, own_id: str | None, outcome: str) -> ReceiptItem:
    found = row.fields
    return ReceiptItem(
        id=found.get("id", own_id),
        text=found.get("text", item.text),
        outcome=outcome,
        kind=found.get("kind", item.kind),
        key=found.get("key", item.key),
    )


def _outcome(operation: Operation, reply: Reply) -> str:
    usual = "updated" if operation.name == "update" else "stored"
    return next((word for word, pattern in operation.outcomes.items() if pattern.search(str(reply))), usual)
