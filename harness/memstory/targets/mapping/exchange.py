"""The talk with a mapped server: values are filled into calls, calls are sent in order, replies are judged and read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import blake2b

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused, TargetError
from memstory.contract.target import Environment, Hit, Item, Ref, Scope, Tree
from memstory.targets.given_ids import GivenIds
from memstory.targets.mapping.able import USER_NAMES, finds_by_key
from memstory.targets.mapping.paths import NotThereError, find
from memstory.targets.mapping.replies import MalformedError, Reply, Row, data_of, read_rows, shown
from memstory.targets.mapping.table import Call, Operation, Table
from memstory.targets.mapping.templates import Values, render
from memstory.targets.mapping.transport import Transport


class UnknownError(Exception):
    """The server says that it knows nothing under this id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """What stays the same while a target is open."""

    clock: Clock
    values: Values
    ids: GivenIds | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply with the rows in it that `keep` lets through; `read` is how many there were before."""

    reply: Reply
    read: int
    rows: Sequence[Row]


class Exchange:
    """One open target's talk with its server."""

    _opened: _Opened

    def __init__(self, table: Table, transport: Transport) -> None:
        self.table = table
        self._transport = transport
        self._one_at_a_time = asyncio.Lock() if table.serial else nullcontext()
        self._known_users: dict[str, asyncio.Task[None]] = {}

    async def open(self, env: Environment, clock: Clock) -> None:
        """Connect, and make the setup calls that are nobody's own."""
        case = blake2b(env.workspace.encode(), digest_size=4).hexdigest()
        values = {"workspace": env.workspace, "case": case, "seed": env.seed}
        ids = GivenIds(env) if _gives_ids(self.table) else None
        self._opened = _Opened(clock=clock, values=values, ids=ids)
        await self._transport.open(values)
        try:
            await self._calls([call for call in self.table.setup if not USER_NAMES & call.names], self.values(None))
        except BaseException:
            # Nobody closes what did not open.
            await self._transport.close()
            raise

    async def close(self) -> None:
        """Make the teardown calls, and disconnect."""
        for setting_up in self._known_users.values():
            setting_up.cancel()
        try:
            await self._calls(self.table.teardown, self.values(None))
        finally:
            await self._transport.close()

    async def about(self) -> Mapping[str, str]:
        """Return what the server and the table say of it."""
        return {**await self._transport.about(), **self.table.about}

    def operation(self, name: str) -> Operation:
        """Return what the table says of an operation; NotSupported if it says nothing."""
        if name not in self.table.operations:
            raise NotSupported(name)
        return self.table.operations[name]

    async def ask(self, operation: Operation, scope: Scope | None, values: Values) -> Reply:
        """Make the calls of `operation` and return the last reply.

        Raises:
            UnknownError: the reply matches `missing`.
            Refused: it matches `refuses`.
            TargetError: it matches `fails`, or the server says that it failed.
        """
        if scope is not None:
            await self._introduce(scope)
        return await self._calls(operation.calls, {**self.values(scope), **values}, operation)

    async def rows(self, operation: Operation, scope: Scope, values: Values) -> Answer:
        """Ask as `ask` does, and read the rows of the reply; one that is malformed is a TargetError."""
        filled = {**self.values(scope), **values}
        reply = await self.ask(operation, scope, values)
        try:
            found = read_rows(operation.rows, reply) if operation.rows else ()
        except MalformedError as error:
            raise TargetError(f"{self.table.name}: {operation.name}: {error}") from error
        return Answer(reply=reply, read=len(found), rows=[row for row in found if _is_kept(operation, row, filled)])

    async def _calls(self, calls: Sequence[Call], values: Values, operation: Operation | None = None) -> Reply:
        reply = Reply(text="")
        async with self._one_at_a_time:
            for call in calls:
                reply = await self._transport.call(call, values)
                self._judge(call, reply, operation)
                values = {**values, **self._saved(call, reply)}
        return reply

    def _judge(self, call: Call, reply: Reply, operation: Operation | None) -> None:
        said = str(reply)
        if reply.problem is not None and call.accepts is not None and call.accepts.search(said):
            return
        if operation is not None and operation.missing is not None and operation.missing.search(said):
            raise UnknownError(shown(reply))
        name = operation.name if operation else call.where
        if operation is not None and operation.refuses is not None and operation.refuses.search(said):
            raise Refused(f"{name}: {shown(reply)}")
        failed = operation is not None and operation.fails is not None and operation.fails.search(said)
        if failed or reply.problem is not None:
            raise TargetError(f"{self.table.name}: {name}: the server says: {shown(reply)}")

    def _saved(self, call: Call, reply: Reply) -> Values:
        try:
            return {name: find(path, data_of(reply)) for name, path in call.save.items()}
        except (NotThereError, MalformedError) as error:
            raise TargetError(f"{self.table.name}: {call.where} 'save': {error}") from error

    async def _introduce(self, scope: Scope) -> None:
        """Make the setup calls of a user, once; concurrent callers wait for them."""
        calls = [call for call in self.table.setup if USER_NAMES & call.names]
        if not calls:
            return
        if scope.user not in self._known_users:
            self._known_users[scope.user] = asyncio.ensure_future(self._set_up(calls, scope))
        await asyncio.shield(self._known_users[scope.user])

    async def _set_up(self, calls: Sequence[Call], scope: Scope) -> None:
        await self._calls(calls, self.values(Scope(user=scope.user)))

    def values(self, scope: Scope | None) -> Values:
        """Return the placeholders that every call has."""
        now = self._opened.clock.now().isoformat()
        if scope is None:
            return {**self._opened.values, "now": now}
        user = f"{scope.user}.{self._opened.values['case']}" if self._transport.shared else scope.user
        hashed = blake2b(user.encode(), digest_size=8).hexdigest()
        return {**self._opened.values, "now": now, "user": user, "user_hash": hashed, "session": scope.session}

    def of_item(self, item: Item) -> Values:
        """Return the placeholders of one thing to remember, with an id that was never given before."""
        new = self._opened.ids.next() if self._opened.ids else None
        if new is not None and self._transport.shared:
            # A server that other cases use too must not be given the same id by two of them.
            new = f"{self._opened.values['case']}.{new}"
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
        if not (operation.look_up or by_key or any(name.startswith("old_") for name in operation.names)):
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


def hit_of(row: Row) -> Hit:
    """Return a row as a hit."""
    return Hit(**{"id": None, "text": "", **row.fields})


def _is_kept(operation: Operation, row: Row, values: Values) -> bool:
    for path, template in operation.keep.values():
        wanted = render(template, values)
        if wanted is None:
            continue
        try:
            found = find(path, row.whole)
        except NotThereError:
            return False
        if not _meets(found, wanted):
            return False
    return True


def _meets(found: Tree, wanted: Tree) -> bool:
    """Return whether two values are the same; of a list, whether one of its elements is."""
    if isinstance(wanted, list):
        return any(_meets(found, one) for one in wanted)
    return wanted in found if isinstance(found, list) else bool(found == wanted)


def _gives_ids(table: Table) -> bool:
    return any({"new_id", "own_id"} & operation.names for operation in table.operations.values())
