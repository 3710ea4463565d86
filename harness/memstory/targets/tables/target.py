"""A target of a table: fills values into calls, sends them, and reads the replies."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Protocol, TypeVar, cast

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused, TargetError
from memstory.contract.target import (
    OLDER,
    Environment,
    Hit,
    Item,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    Target,
    Tree,
)
from memstory.targets.adapter import IdSequence, delete_listed
from memstory.targets.tables.replies import (
    MalformedError,
    MissingPathError,
    ReplyRow,
    ServerReply,
    data_of,
    excerpt,
    find,
    read_rows,
)
from memstory.targets.tables.table import USER_NAMES, Call, Operation, ToolTable, finds_by_key, lists_by_user
from memstory.targets.tables.templates import ITEMS, Values, render


class Transport(Protocol):
    """One connection for one open target.

    `shared` says that other cases, and other runs, talk to the same server: users are then made unique to the case.
    """

    shared: bool

    async def open(self, values: Values, options: Mapping[str, Tree]) -> None:
        """Connect; `values` are those of the case: `workspace`, `case`, `seed`; `options` those of the target.

        Raises:
            SetupError: the server cannot be had here at all.
            TargetError: it does not come up as it should.
        """
        ...

    async def close(self) -> None:
        """Disconnect, and end what was started."""
        ...

    async def about(self) -> Mapping[str, str]:
        """What the server says about itself."""
        ...

    def describe(self, call: Call, values: Values) -> str:
        """Return what `call` sends, in a line and without secrets."""
        ...

    async def call(self, call: Call, values: Values) -> ServerReply:
        """Fill in `call.spec`, send it, and return the reply; a failure that the server tells is its `problem`.

        Raises:
            TargetError: no reply came, or none that can be read.
        """
        ...


class UnknownError(Exception):
    """The server says that it knows nothing under this id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsReply:
    """A reply and its rows that fit `keep`; `read` is the number of rows before that."""

    reply: ServerReply
    read: int
    rows: Sequence[ReplyRow]


class TableTarget(Target):
    """What every target of a table can do; `class_for` adds the operations that the table has."""

    _clock: Clock
    _case: Values
    _ids: IdSequence | None

    def __init__(self, table: ToolTable, transport: Transport) -> None:
        self.table = table
        self._transport = transport
        self._one_at_a_time = asyncio.Lock() if table.serial else nullcontext()
        self._known_users: dict[str, asyncio.Task[None]] = {}
        self._sent: deque[tuple[Call, Values]] = deque(maxlen=_MOST_REQUESTS)

    async def open(self, env: Environment, clock: Clock) -> None:
        """Connect, and make the setup calls that are nobody's own."""
        case = blake2b(env.workspace.encode(), digest_size=4).hexdigest()
        self._is_preloaded = env.preloaded
        self._clock, self._case = clock, {"workspace": env.workspace, "case": case, "seed": env.seed, OLDER: env.older}
        self._ids = IdSequence(env) if _gives_ids(self.table) else None
        await self._transport.open(self._case, env.options)
        # What is preloaded is somebody's own: nothing is made in it, emptied or removed.
        general = [] if env.preloaded else [call for call in self.table.setup if not USER_NAMES & call.names]
        try:
            await self._calls(general, self.values(None))
        except BaseException:
            # Nobody closes what did not open.
            await self._transport.close()
            raise

    async def close(self) -> None:
        """Make the teardown calls, and disconnect."""
        for setting_up in self._known_users.values():
            setting_up.cancel()
        try:
            await self._calls([] if self._is_preloaded else self.table.teardown, self.values(None))
        finally:
            await self._transport.close()

    async def about(self) -> Mapping[str, str]:
        """Return what the server and the table say of it."""
        return {**await self._transport.about(), **self.table.about}

    async def settle(self) -> None:
        if "settle" in self.table.operations:
            await self.ask(self.table.operations["settle"], None, {})

    def take_requests(self) -> Sequence[str]:
        """Return the last requests since this was last asked."""
        taken = [self._request(call, values) for call, values in self._sent]
        self._sent.clear()
        return taken

    def _request(self, call: Call, values: Values) -> str:
        text = self._transport.describe(call, values)
        return text if len(text) <= _LONGEST_REQUEST else f"{text[:_LONGEST_REQUEST]}…"

    def operation(self, name: str) -> Operation:
        """Return what the table says of an operation; NotSupported if it says nothing."""
        if name not in self.table.operations:
            raise NotSupported(name)
        return self.table.operations[name]

    async def ask(self, operation: Operation, scope: Scope | None, values: Values) -> ServerReply:
        """Make the calls of `operation` and return the last reply.

        Raises:
            UnknownError: the reply matches `missing`.
            Refused: it matches `refuses`.
            TargetError: it matches `fails`, or the server says that it failed.
        """
        if scope is not None:
            await self._introduce(scope)
        return await self._calls(operation.calls, {**self.values(scope), **values}, operation)

    async def rows(self, operation: Operation, scope: Scope, values: Values) -> RowsReply:
        """Ask as `ask` does, and read the rows of the reply; one that is malformed is a TargetError."""
        filled = {**self.values(scope), **values}
        reply = await self.ask(operation, scope, values)
        try:
            found = read_rows(operation.rows, reply) if operation.rows else ()
        except MalformedError as error:
            raise TargetError(f"{self.table.name}: {operation.name}: {error}") from error
        return RowsReply(reply=reply, read=len(found), rows=[row for row in found if _is_kept(operation, row, filled)])

    async def _calls(self, calls: Sequence[Call], values: Values, operation: Operation | None = None) -> ServerReply:
        reply = ServerReply(text="")
        async with self._one_at_a_time:
            for call in calls:
                self._sent.append((call, values))
                reply = await self._transport.call(call, values)
                try:
                    self._judge(call, reply, operation)
                except TargetError as error:
                    raise TargetError(f"{error}\nsent: {self._request(call, values)}") from error
                values = {**values, **self._save_values(call, reply)}
        return reply

    def _judge(self, call: Call, reply: ServerReply, operation: Operation | None) -> None:
        said = str(reply)
        if reply.problem is not None and call.accepts is not None and call.accepts.search(said):
            return
        if operation is not None and operation.missing is not None and operation.missing.search(said):
            raise UnknownError(excerpt(reply))
        name = operation.name if operation else call.where
        if operation is not None and operation.refuses is not None and operation.refuses.search(said):
            raise Refused(f"{name}: {excerpt(reply)}")
        failed = operation is not None and operation.fails is not None and operation.fails.search(said)
        if failed or reply.problem is not None:
            raise TargetError(f"{self.table.name}: {name}: the server says: {excerpt(reply)}")

    def _save_values(self, call: Call, reply: ServerReply) -> Values:
        try:
            return {name: find(path, data_of(reply)) for name, path in call.save.items()}
        except (MissingPathError, MalformedError) as error:
            raise TargetError(f"{self.table.name}: {call.where} 'save': {error}") from error

    async def _introduce(self, scope: Scope) -> None:
        """Make the setup calls of a user, once; concurrent callers wait for them."""
        calls = [call for call in self.table.setup if USER_NAMES & call.names]
        if not calls or self._is_preloaded:
            return
        if scope.user not in self._known_users:
            self._known_users[scope.user] = asyncio.ensure_future(self._set_up(calls, scope))
        await asyncio.shield(self._known_users[scope.user])

    async def _set_up(self, calls: Sequence[Call], scope: Scope) -> None:
        await self._calls(calls, self.values(Scope(user=scope.user)))

    def values(self, scope: Scope | None) -> Values:
        """Return the placeholders that every call has."""
        now = self._clock.now().isoformat()
        if scope is None:
            return {**self._case, "now": now}
        user = f"{scope.user}-{self._case['case']}" if self._transport.shared and not self._is_preloaded else scope.user
        hashed = blake2b(user.encode(), digest_size=8).hexdigest()
        return {**self._case, "now": now, "user": user, "user_hash": hashed, "session": scope.session}

    def of_item(self, item: Item) -> Values:
        """Return the placeholders of one thing to remember, with an id that was never given before."""
        new = self._ids.next() if self._ids else None
        if new is not None and self._transport.shared:
            # A server that other cases use too must not be given the same id by two of them.
            new = f"{self._case['case']}.{new}"
        own = {"new_id": new, "own_id": item.key if item.key is not None else new}
        more = {"ttl": item.ttl, "source": item.source, "role": item.role}
        return {"text": item.text, "key": item.key, "kind": item.kind, "metadata": dict(item.metadata), **more, **own}

    async def of_ref(self, operation: Operation, ref: Ref, scope: Scope) -> Values:
        """Return what names the memory, and its old text where that is asked for.

        Raises:
            UnknownError: the memory had to be looked up, and is not there.
        """
        values = {"id": ref.id, "key": ref.key, "kind": ref.kind}
        by_key = ref.id is None and "key" not in operation.names
        is_scope = ref.id is None and ref.key is None
        if is_scope or not (operation.look_up or by_key or any(name.startswith("old_") for name in operation.names)):
            return values
        known = await self.look_up(ref, scope)
        if known is None:
            raise UnknownError(f"nothing is remembered under {ref.id or ref.key!r}")
        old = {"old_text": known.text, "old_key": known.key, "old_kind": known.kind}
        return {**values, "id": ref.id if ref.id is not None else known.id, **old}

    async def look_up(self, ref: Ref, scope: Scope) -> Hit | None:
        """Return the memory that `ref` names, or None."""
        operations = self.table.operations
        by_key = ref.id is None
        if by_key and not finds_by_key(operations):
            raise NotSupported("get.key")
        operation = self.operation("get_key" if by_key and "get_key" in operations else "get")
        try:
            answer = await self.rows(operation, scope, {"id": ref.id, "key": ref.key, "kind": ref.kind})
        except UnknownError:
            return None
        return hit_of(answer.rows[0]) if answer.rows else None

    async def _answer(self, operation: Operation, scope: Scope, values: Values) -> RowsReply:
        """Return the answer; a server that knows nothing gives no rows."""
        try:
            return await self.rows(operation, scope, values)
        except UnknownError:
            return RowsReply(reply=ServerReply(text=""), read=0, rows=())

    async def _pages(self, operation: Operation, scope: Scope, values: Values, limit: int | None) -> Sequence[Hit]:
        """Return what all pages have; one that comes twice is a TargetError, for there would be no end."""
        hits: list[Hit] = []
        previous: Sequence[ReplyRow] = ()
        for page in range(_MOST_PAGES):
            place = {"page": page + 1, "offset": page * (operation.page_size or 0)}
            answer = await self._answer(operation, scope, {**values, **place})
            if answer.rows and answer.rows == previous:
                raise TargetError(f"{self.table.name}: list: page {page + 1} is the same as the one before it")
            hits += map(hit_of, answer.rows)
            previous = answer.rows
            is_last = operation.page_size is None or answer.read < operation.page_size
            if is_last or (limit is not None and len(hits) >= limit):
                return hits[:limit]
        raise TargetError(f"{self.table.name}: list: there is no end to the pages")

    async def _is_known(self, operation: Operation, ref: Ref, scope: Scope, more: Values) -> bool:
        """Do something to what `ref` names; return whether the server knows it."""
        try:
            await self.ask(operation, scope, {**await self.of_ref(operation, ref, scope), **more})
        except UnknownError:
            return False
        return True

    async def _send_items(
        self,
        operation: Operation,
        items: Sequence[Item],
        each: Sequence[Values],
        *,
        scope: Scope,
        values: Values,
    ) -> list[ReceiptItem]:
        """Send items, and say what happened to each; one row of the reply stands for one item."""
        answer = await self.rows(operation, scope, values)
        outcome = _outcome(operation, answer.reply)
        rows = answer.rows
        if operation.rows is None or (len(rows) != len(items) and outcome in _WITHOUT_ROWS):
            rows = [_NO_ROW] * len(items)
        if len(rows) != len(items):
            said = f"{len(items)} sent, {len(rows)} found in the reply: {answer.reply}"
            raise TargetError(f"{self.table.name}: {operation.name}: {said:.400}")
        always = self.values(scope)
        return [
            _receipt(item, row, render(operation.id, {**always, **own}), outcome)
            for item, row, own in zip(items, rows, each, strict=True)
        ]


def hit_of(row: ReplyRow) -> Hit:
    """Return a row as a hit."""
    return Hit(**{"id": None, "text": "", **row.fields})


def _is_kept(operation: Operation, row: ReplyRow, values: Values) -> bool:
    for path, template in operation.keep.values():
        wanted = render(template, values)
        if wanted is None:
            continue
        try:
            found = find(path, row.whole)
        except MissingPathError:
            return False
        if not _meets(found, wanted):
            return False
    return True


def _meets(found: Tree, wanted: Tree) -> bool:
    """Return whether two values are the same; of a list, whether one of its elements is."""
    if isinstance(wanted, list):
        return any(_meets(found, one) for one in wanted)
    return wanted in found if isinstance(found, list) else bool(found == wanted)


def _gives_ids(table: ToolTable) -> bool:
    return any({"new_id", "own_id"} & operation.names for operation in table.operations.values())


_MOST_PAGES: Final = 10_000
_MOST_REQUESTS: Final = 5
_LONGEST_REQUEST: Final = 1000
_WITHOUT_ROWS: Final = frozenset({"dropped", "discarded", "skipped", "held"})
_NO_ROW: Final = ReplyRow(fields={}, whole=None)
_SAME_NAME: Final = ("add", "search", "list", "update", "delete", "feedback", "context")


Kind = TypeVar("Kind", bound="TableTarget")


class _Operations(TableTarget):
    """All that can be mapped; `class_for` takes out what a table has, for what is overridden is what is declared."""

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        operation = self.operation("add")
        size = operation.batch if operation.takes_items else 1
        done: list[ReceiptItem] = []
        for start in range(0, len(items), size):
            part = items[start : start + size]
            each = [self.of_item(item) for item in part]
            values = {ITEMS: each} if operation.takes_items else each[0]
            done += await self._send_items(operation, part, each, scope=scope, values=values)
        return Receipt(items=done)

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        return await self.look_up(ref, scope)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        operation = self.operation("search")
        values = _of_query(query, operation)
        _refuse_unmapped(operation, {**values, "session": scope.session})
        answer = await self._answer(operation, scope, values)
        return [hit_of(row) for row in answer.rows][: query.top_k]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        operation = self.operation("list")
        values: Values = {"kinds": [*kinds] or None, "limit": limit, "page_size": operation.page_size}
        _refuse_unmapped(operation, {**values, "session": scope.session})
        return await self._pages(operation, scope, values, limit)

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        operation = self.operation("update")
        each = self.of_item(item)
        try:
            named = await self.of_ref(operation, ref, scope)
            # What the caller says of the memory wins over what its new contents leave open.
            values = {**each, **{name: value for name, value in named.items() if value is not None}}
            done = await self._send_items(operation, [item], [values], scope=scope, values=values)
        except UnknownError as error:
            raise Refused(f"update: {error}") from error
        return Receipt(items=done)

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is not None or ref.key is not None:
            return await self._is_known(self.operation("delete"), ref, scope, {})
        if "delete_all" not in self.table.operations:
            if ref != Ref() or scope.session is not None or not lists_by_user(self.table):
                raise NotSupported("delete.scope")
            return await delete_listed(self, scope)
        operation = self.operation("delete_all")
        _refuse_unmapped(operation, {"kind": ref.kind, "session": scope.session})
        return await self._is_known(operation, ref, scope, {})

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        return await self._is_known(self.operation("feedback"), ref, scope, {"value": value})

    async def context(self, query: Query, scope: Scope) -> str:
        operation = self.operation("context")
        values = _of_query(query, operation)
        _refuse_unmapped(operation, values)
        answer = await self._answer(operation, scope, values)
        if operation.rows is None:
            return answer.reply.text
        return "\n".join(hit_of(row).text for row in answer.rows)


def class_for(table: ToolTable, base: type[Kind]) -> type[Kind]:
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
        k = k if operation.max_top_k is None else min(k, operation.max_top_k)
    return {
        "query": query.text,
        "top_k": k,
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


def _receipt(item: Item, row: ReplyRow, own_id: str | None, outcome: str) -> ReceiptItem:
    found = row.fields
    return ReceiptItem(
        id=found.get("id", own_id),
        text=found.get("text", item.text),
        outcome=outcome,
        kind=found.get("kind", item.kind),
        key=found.get("key", item.key),
    )


def _outcome(operation: Operation, reply: ServerReply) -> str:
    usual = "updated" if operation.name == "update" else "stored"
    return next((word for word, pattern in operation.outcomes.items() if pattern.search(str(reply))), usual)
