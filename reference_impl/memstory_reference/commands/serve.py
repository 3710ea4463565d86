"""`memstory-reference serve`: one part of a memory system in its own process, on a bus or over HTTP."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from importlib.resources import files
from typing import Any, Final

from memstory.contract.errors import NotSupported, UnavailableError
from memstory.contract.target import Hit, Item, Query, Ref, Scope
from memstory.contract.values import Tree
from memstory_reference.bus.permissions import server_configuration
from memstory_reference.commands.memory import chosen_settings, forget_meant
from memstory_reference.composition.extras import http_service, open_bus
from memstory_reference.errors import InputError, NotFoundError
from memstory_reference.input_checks import checked_count, checked_mapping, checked_owner, plain_text
from memstory_reference.system_memory import SystemMemory, own_arguments

HIGHEST_PORT = 65_535
ROOT: Final = "/api/memory"
MOST = 500
_DIGITS = 9
_OF_A_MEMORY: Final = ("user_id", "session_id", "text", "kind", "key", "metadata")
_OF_ONE: Final = {"archive": "archived", "restore": "restored"}
"""Jobs that are done with one memory, and what their answer is called."""

Arguments = Mapping[str, Tree]


def run(parsed: argparse.Namespace) -> int:
    """Serve the part that was typed, or print what a server needs to know of all."""
    if parsed.part == "config":
        sys.stdout.write(server_configuration(lambda _: secrets.token_urlsafe(24), parsed.host, parsed.port))
        return 0
    return asyncio.run(serve_http(parsed) if parsed.part == "http" else _serve(parsed))


async def serve_http(parsed: argparse.Namespace) -> int:
    """Serve until a signal ends it: what was asked is answered, then sessions end."""
    if not 1 <= parsed.port <= HIGHEST_PORT:
        raise InputError(f"--port {parsed.port} is not allowed; allowed: 1 to {HIGHEST_PORT}")
    web = http_service()
    system, settings = chosen_settings(parsed)
    memory = await system.open(settings)
    try:
        page = files(__package__).joinpath("memories.html").read_text("utf-8")
        app = web.http_app(MemoryWeb(memory).acts(), page, parsed.host, parsed.port)
        server = web.HttpServer(app, parsed.host, parsed.port, lambda: _announce(parsed))
        on_signals(server.stop)
        await server.serve()
        await memory.shut_down()
    finally:
        await memory.close()
    return 0


def _announce(parsed: argparse.Namespace) -> None:
    sys.stdout.write(f"{parsed.system}: http://{parsed.host}:{parsed.port}/ shows what is remembered; Ctrl-C ends it\n")
    sys.stdout.flush()


def on_signals(stop: Callable[[], None]) -> None:
    """Have a signal end this process only when it has finished what it took; a second one ends it at once."""
    loop = asyncio.get_running_loop()

    def once() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, once)


async def _serve(parsed: argparse.Namespace) -> int:
    """Serve until a signal ends it; what was taken is finished first."""
    stopped = asyncio.Event()
    system, settings = chosen_settings(parsed)
    served = system.parts[parsed.part]
    async with open_bus(parsed.bus, parsed.part) as bus, served.opener(settings, bus) as part:
        await part.start()
        try:
            bus.connection.when_back.append(part.come_back)
            on_signals(stopped.set)
            sys.stdout.write(f"{parsed.part}: serving on {bus.connection.place}; Ctrl-C ends it\n")
            sys.stdout.flush()
            await _first(stopped.wait(), bus.connection.wait_closed())
        finally:
            await part.stop()
    if not stopped.is_set():
        raise UnavailableError(f"the bus at {bus.connection.place} has closed the connection for good")
    return 0


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    tasks = [asyncio.create_task(one) for one in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class MemoryWeb:
    """Each method answers one request; `user_id`, or without one `session_id`, says whose memory it is."""

    def __init__(self, memory: SystemMemory) -> None:
        self._memory = memory
        able = memory.capabilities()
        self._jobs = sorted(one.removeprefix("job.") for one in able if one.startswith("job."))
        self._of_one = [job for job in _OF_ONE if "id" in own_arguments(type(memory), job)]

    def acts(self) -> list[tuple[str, str, Callable[[Arguments], Awaitable[Tree]]]]:
        """Return method, path and what answers it: a job that a route names is reached by that alone."""
        one = f"{ROOT}/memories/{{id}}"
        own = [
            ("GET", f"{ROOT}/status", self._status),
            ("POST", f"{ROOT}/turn", self._turn),
            ("GET", f"{ROOT}/memories", self._list),
            ("POST", f"{ROOT}/memories", self._add),
            ("GET", f"{ROOT}/search", self._search),
            ("GET", f"{ROOT}/export", self._export),
            ("POST", f"{ROOT}/forget", self._forget),
            ("GET", one, self._get),
            ("PATCH", one, self._edit),
            ("DELETE", one, self._delete),
        ]
        named = [("POST", f"{one}/{job}", self._done_with_one(job)) for job in self._of_one]
        rest = [job for job in self._jobs if job not in (*self._of_one, "forget")]
        return [*own, *named, *(("POST", f"{ROOT}/{job}", self._run_job(job)) for job in rest)]

    async def _status(self, args: Arguments) -> Tree:
        status = await self._memory.inspect("status", {}, _scope(args))
        counts = {name: status[name] for name in self._memory.counted if name in status}
        # A memory may have labels of its own for its counts.
        return {"counts": counts, "labels": {name: name for name in counts}, **status, "jobs": self._jobs}

    async def _turn(self, args: Arguments) -> Tree:
        if not args.get("session_id"):
            raise InputError("say which session with session_id")
        turn = await self._memory.say(_text(args, "said"), _scope(args))
        return {"answer": turn.answer, "context": turn.context or "", "notes": list(turn.notes)}

    async def _list(self, args: Arguments) -> Tree:
        scope, kinds = _owner(args), _kinds(args)
        most = checked_count(_number(args.get("limit", MOST)), "limit", 1, MOST)
        found = list(await self._memory.list(scope, kinds))
        if args.get("archived") in (True, "true", "1"):
            found += [hit for hit in await self._memory.list_archived(scope) if not kinds or hit.kind in kinds]
        return {"memories": [self._memory.view(hit) for hit in found[:most]], "total": len(found)}

    async def _add(self, args: Arguments) -> Tree:
        unknown = [name for name in args if name not in _OF_A_MEMORY]
        if unknown:
            raise InputError(f"{unknown[0]!r:.80} is unknown; allowed: {', '.join(_OF_A_MEMORY)}")
        metadata = checked_mapping(args.get("metadata") or {}, "metadata")
        key = None if args.get("key") is None else _text(args, "key")
        item = Item(text=_text(args, "text"), kind=next(iter(_kinds(args)), None), key=key, metadata=metadata)
        receipt = await self._memory.add([item], _scope(args))
        return {"memories": [{"id": one.id, "outcome": one.outcome, "reason": one.reason} for one in receipt.items]}

    async def _search(self, args: Arguments) -> Tree:
        top_k = None if args.get("limit") is None else checked_count(_number(args["limit"]), "limit", 1, MOST)
        query = Query(text=_text(args, "query"), kinds=_kinds(args), top_k=top_k)
        return {"memories": [self._memory.view(hit) for hit in await self._memory.search(query, _owner(args))]}

    async def _export(self, args: Arguments) -> Tree:
        return {"records": list(await self._memory.export_rows(_owner(args)))}

    async def _forget(self, args: Arguments) -> Tree:
        what = _text(args, "what")
        if "forget" in self._jobs:
            return {"said": await self._memory.run("forget", {"what": what}, _scope(args))}
        done = await forget_meant(self._memory, what, _owner(args))
        return {"forgotten": [hit.id for hit in done.gone], "mentions": [hit.id for hit in done.mentions]}

    async def _get(self, args: Arguments) -> Tree:
        return self._memory.view(await self._find(args))

    async def _edit(self, args: Arguments) -> Tree:
        hit = await self._find(args)
        changes, allowed = args.get("content"), self._memory.view(hit)["editable"]
        if not allowed:
            raise NotSupported("update", "this memory has no field that can be edited: delete it, and add it again")
        if not isinstance(changes, dict) or not changes or not set(changes) <= set(allowed):
            raise InputError(f"content must be an object with one or more of {', '.join(allowed)}")
        return self._memory.view(await self._memory.edit(hit, changes, _owner(args)))

    async def _delete(self, args: Arguments) -> Tree:
        hit = await self._find(args)
        await self._memory.delete(Ref(id=hit.id), _owner(args))
        return {"deleted": hit.id}

    def _run_job(self, job: str) -> Callable[[Arguments], Awaitable[Tree]]:
        async def run(args: Arguments) -> Tree:
            given = {name: value for name, value in args.items() if name not in ("user_id", "session_id")}
            report = await self._memory.run(job, given, _scope(args))
            return report if isinstance(report, dict) else {"result": report}

        return run

    def _done_with_one(self, job: str) -> Callable[[Arguments], Awaitable[Tree]]:
        async def run(args: Arguments) -> Tree:
            hit = await self._find(args)
            return {_OF_ONE[job]: await self._memory.run(job, {"id": hit.id}, _owner(args))}

        return run

    async def _find(self, args: Arguments) -> Hit:
        hit = await self._memory.get(Ref(id=_text(args, "id")), _owner(args))
        if hit is None:
            raise NotFoundError(f"this owner has no memory {args['id']!r:.80}")
        return hit


def _scope(args: Arguments) -> Scope:
    """Return whose memory a request is about, and in which session."""
    user, session = args.get("user_id"), args.get("session_id")
    for name in ("user_id", "session_id"):
        if args.get(name) is not None:
            plain_text(args[name], name)
    if not user and not session:
        raise InputError("a memory belongs to somebody: say whose with user_id, or with session_id alone")
    return Scope(
        user=checked_owner(user, "user_id") if user else "",
        session=checked_owner(session, "session_id") if session else None,
    )


def _owner(args: Arguments) -> Scope:
    """Return whose memory a request is about, in all sessions."""
    scope = _scope(args)
    return Scope(user=scope.user) if scope.user else scope


def _kinds(args: Arguments) -> list[str]:
    return [_text(args, "kind")] if args.get("kind") is not None else []


def _text(args: Arguments, name: str) -> str:
    value = args.get(name)
    if value is None:
        raise InputError(f"{name} must be text, and is missing")
    return plain_text(value, name)


def _number(value: Tree) -> Tree:
    # A query has texts alone.
    is_typed = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS
    return int(value) if is_typed else value
