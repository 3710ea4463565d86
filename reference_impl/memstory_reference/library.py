"""The six memories as a library: `open_memory` for plain code, `open_memory_async` for code that awaits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from memstory.contract.errors import NotSupported, Refused, StoryError
from memstory.contract.target import Hit, Item, Query, Ref, Scope, ToolCall, ToolSchema, Turn
from memstory.contract.values import Json, Tree
from memstory_reference.composition.extras import require_extras
from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    DEFAULT_OWNER,
    checked_count,
    checked_mapping,
    checked_number,
    checked_owner,
    plain_text,
)

if TYPE_CHECKING:
    from memstory_reference.composition.declaration import MemorySystem
    from memstory_reference.setting_rules import CheckedSettings
    from memstory_reference.system_memory import SystemMemory

P = ParamSpec("P")
T = TypeVar("T")
DEFAULT_SESSION = "default"
MOST_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncMemory:
    """One of the six, open. `user` is whose memory is meant, `owner` where none is given.

    Every method raises `InputError` for what the memory does not take, `NotSupported` for what it cannot do at all, and
    `UnavailableError` where a model or a database does not answer.
    """

    memory: SystemMemory
    owner: str = DEFAULT_OWNER

    async def add(
        self,
        text: str,
        user: str | None = None,
        *,
        session: str | None = None,
        key: str | None = None,
        kind: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> list[str]:
        """Remember a text; return the ids of what was made of it. InputError says why nothing was."""
        item = Item(
            text=plain_text(text, "text"),
            key=key if key is None else plain_text(key, "key"),
            kind=kind if kind is None else plain_text(kind, "kind"),
            metadata={} if metadata is None else checked_mapping(metadata, "metadata"),
        )
        receipt = await self.memory.add([item], self._scope(user, session))
        ids = [one.id for one in receipt.items if one.id is not None]
        reasons = [one.reason for one in receipt.items if one.reason]
        if not ids:
            raise InputError(f"this is not stored: {'; '.join(reasons) or 'it says nothing'}")
        return ids

    async def search(
        self,
        query: str,
        user: str | None = None,
        limit: int | None = None,
        *,
        session: str | None = None,
        min_score: float | None = None,
        where: Mapping[str, Json] | None = None,
    ) -> list[Hit]:
        """Return at most `limit` memories, best first; a hit has `text`, `score`, `id`, `kind`, `metadata`."""
        asked = Query(
            text=query,
            top_k=limit if limit is None else checked_count(limit, "limit"),
            min_score=min_score if min_score is None else checked_number(min_score, "min_score", -1, 1),
            where={} if where is None else checked_mapping(where, "where"),
        )
        return list(await self.memory.search(asked, self._part(user, session)))

    async def get(self, id: str, user: str | None = None) -> Hit | None:  # noqa: A002  (the word for it)
        """Return the memory of an id, or None."""
        return await self.memory.get(Ref(id=plain_text(id, "id")), self._scope(user))

    async def list(self, user: str | None = None, *, session: str | None = None, kind: str | None = None) -> list[Hit]:
        """Return all memories, of one kind or of all."""
        kinds = [] if kind is None else [plain_text(kind, "kind")]
        return [*await self.memory.list(self._part(user, session), kinds)]

    async def update(self, id: str, text: str, user: str | None = None) -> None:  # noqa: A002  (the word for it)
        """Replace the text of a memory; InputError if there is none of this id."""
        with _input_errors():
            await self.memory.update(Ref(id=plain_text(id, "id")), Item(text=text), self._scope(user))

    async def delete(self, id: str, user: str | None = None) -> bool:  # noqa: A002  (the word for it)
        """Delete one memory; False if there is none of this id."""
        return await self.memory.delete(Ref(id=plain_text(id, "id")), self._scope(user))

    async def delete_all(self, user: str | None = None, *, session: str | None = None) -> None:
        """Delete everything of a user, or of one session where a memory keeps sessions apart."""
        await self.memory.delete(Ref(), self._part(user, session))

    async def forget(self, id: str, user: str | None = None) -> Sequence[Hit]:  # noqa: A002  (the word for it)
        """Delete a memory with those that repeat what it says, in running talks too; return what went."""
        return (await self.memory.forget(plain_text(id, "id"), self._scope(user))).gone

    async def context(self, query: str, user: str | None = None, *, tokens: int | None = None) -> str:
        """Return the text that goes before a model's prompt, where the memory makes one."""
        budget = tokens if tokens is None else checked_count(tokens, "tokens", high=MOST_TOKENS)
        return await self.memory.context(Query(text=query, token_budget=budget), self._scope(user))

    async def say(self, text: str, user: str | None = None, *, session: str = DEFAULT_SESSION) -> str:
        """Take one turn with the memory's own agent; return the answer, as `turn` does with all that goes with it."""
        return (await self.turn(text, user, session=session)).answer

    async def turn(self, text: str, user: str | None = None, *, session: str = DEFAULT_SESSION) -> Turn:
        """Take one turn with the memory's own agent; return its `answer`, and `notes`, such as that it is not stored.

        `tool_calls` and `context` are what led to the answer, where the agent says it.
        """
        return await self.memory.say(text, self._scope(user, session))

    async def tools(self) -> Sequence[ToolSchema]:
        """Return the tools for a model of your own: name, description, JSON Schema of the arguments."""
        return await self.memory.tools()

    async def call_tool(
        self, name: str, arguments: Mapping[str, Json], user: str | None = None, *, session: str | None = None
    ) -> ToolCall:
        """Call one of `tools`, as a model asked for it; what is wrong with the call is in its `error`."""
        return await self.memory.tool(plain_text(name, "name"), arguments, self._scope(user, session), "Program")

    async def run(self, /, job: str, user: str | None = None, **arguments: Tree) -> Tree:
        """Run a job of the memory, such as `compress` or `reindex`; return what it reports."""
        with _input_errors():
            return await self.memory.run(job, arguments, self._scope(user))

    async def inspect(self, /, what: str, user: str | None = None, **arguments: Tree) -> Tree:
        """Return what can be looked at: `status` of each memory, `feedback` or `audit` of those that log it."""
        with _input_errors():
            return await self.memory.inspect(what, arguments, self._scope(user))

    async def export_rows(self, user: str | None = None) -> Sequence[Mapping[str, Tree]]:
        """Return every memory as JSON, as `import_rows` of the same kind of memory takes them."""
        return await self.memory.export_rows(self._scope(user))

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], user: str | None = None) -> Sequence[str]:
        """Add what `export_rows` returned, all of it or nothing; return for each row that is left out why."""
        return await self.memory.import_rows(rows, self._scope(user))

    async def settle(self) -> None:
        """Return when what the memory does in the background is done."""
        await self.memory.settle()

    async def close(self) -> None:
        """Release the store; what was acknowledged is there when it is opened again."""
        await self.memory.close()

    def _part(self, user: str | None, session: str | None) -> Scope:
        """Return what is read or deleted: never more than one session where one was named."""
        scope = self._scope(user, session)
        if session is not None and "scope.session" not in self.memory.capabilities():
            raise NotSupported("scope.session", "this memory does not keep its sessions apart; leave session out")
        return scope

    def _scope(self, user: str | None, session: str | None = None) -> Scope:
        owner = checked_owner(self.owner if user is None else user)
        return Scope(user=owner, session=session if session is None else checked_owner(session, "session"))


@contextmanager
def _input_errors() -> Iterator[None]:
    """Raise as InputError what is a story's mistake, or a refusal, where a memory is played."""
    try:
        yield
    except (Refused, StoryError) as error:
        raise InputError(str(error)) from error


def _blocking(
    method: Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[OpenMemory, P], T]:
    """Return a method of `AsyncMemory` as one that returns when it is done, with the same arguments and docstring."""

    @wraps(method)
    def call(self: OpenMemory, /, *args: P.args, **more: P.kwargs) -> T:
        return self._wait(method(self._inner, *args, **more))

    return call


class OpenMemory:
    """An `AsyncMemory` for code that does not await: the same methods, which return when it is done.

    It runs in a thread of its own until `close`, which `with` calls.
    """

    def __init__(self, system: str, path: str | Path | None, owner: str, settings: Mapping[str, Tree]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"memory {system}", daemon=True)
        self._thread.start()
        try:
            self._inner = self._wait(_open(system, path, owner, settings))
        except BaseException:
            self._end()
            raise

    add = _blocking(AsyncMemory.add)
    search = _blocking(AsyncMemory.search)
    get = _blocking(AsyncMemory.get)
    list = _blocking(AsyncMemory.list)
    update = _blocking(AsyncMemory.update)
    delete = _blocking(AsyncMemory.delete)
    delete_all = _blocking(AsyncMemory.delete_all)
    forget = _blocking(AsyncMemory.forget)
    context = _blocking(AsyncMemory.context)
    say = _blocking(AsyncMemory.say)
    turn = _blocking(AsyncMemory.turn)
    tools = _blocking(AsyncMemory.tools)
    call_tool = _blocking(AsyncMemory.call_tool)
    run = _blocking(AsyncMemory.run)
    inspect = _blocking(AsyncMemory.inspect)
    export_rows = _blocking(AsyncMemory.export_rows)
    import_rows = _blocking(AsyncMemory.import_rows)
    settle = _blocking(AsyncMemory.settle)

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        if not self._loop.is_closed():
            try:
                self._wait(self._inner.close())
            finally:
                self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise InputError("this memory is closed; open it again with open_memory")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def open_memory(
    system: str, path: str | Path | None = None, *, owner: str = DEFAULT_OWNER, **settings: Tree
) -> OpenMemory:
    """Open a memory of this machine: topics, observations, pipeline, layers, manager or turns.

    `path` is its folder, which is made where there is none, or the URL of a Postgres database; None is the folder that
    the commands use. `owner` is whose memory it is in calls that name nobody.
    `settings` are those of the memory, such as `embedding_model`, `chat` or `top_k`.
    """
    return OpenMemory(system, path, owner, settings)


@asynccontextmanager
async def open_memory_async(
    system: str, path: str | Path | None = None, *, owner: str = DEFAULT_OWNER, **settings: Tree
) -> AsyncIterator[AsyncMemory]:
    """Open a memory as `open_memory` does, for code that awaits; it is closed at the end of the block."""
    memory = await _open(system, path, owner, settings)
    try:
        yield memory
    finally:
        await memory.close()


def reindex_memory(system: str, path: str | Path | None = None, **settings: Tree) -> int:
    """Embed all texts of a closed memory again, by `embedding_model` of the settings; return how many.

    All or none: a process that is killed meanwhile leaves a memory that is reindexed again.
    """
    chosen, checked = _choose(system, path, settings)
    return asyncio.run(chosen.reindex(checked))


def back_up_memory(system: str, path: str | Path | None, to: str | Path, **settings: Tree) -> None:
    """Copy a memory, which may be open, to the new folder `to`, which `open_memory` can open."""
    chosen, checked = _choose(system, path, settings)
    chosen.back_up(checked, Path(to))


async def _open(system: str, path: str | Path | None, owner: str, settings: Mapping[str, Tree]) -> AsyncMemory:
    chosen, checked = _choose(system, path, settings)
    whose = checked_owner(owner)
    with require_extras():
        return AsyncMemory(memory=await chosen.open(checked), owner=whose)


def _choose(system: str, path: str | Path | None, settings: Mapping[str, Tree]) -> tuple[MemorySystem, CheckedSettings]:
    # Only now: an import of this package must not need its extra.
    with require_extras():
        from memstory_reference.composition.systems import system_named  # noqa: PLC0415

    chosen = system_named(system)
    return chosen, chosen.settings(None, settings, "open_memory", None if path is None else str(path))
