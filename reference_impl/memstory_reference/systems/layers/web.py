"""What the layers offer over HTTP: status, turns, ends, and an owner's memories, as mappings of JSON (C-02, C-15)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields, replace
from importlib.resources import files

from memstory.contract.values import Tree
from memstory_reference.errors import InputError, NotFoundError
from memstory_reference.input_checks import checked_count
from memstory_reference.systems.layers.identity import checked_id
from memstory_reference.systems.layers.records.entries import entry_of, format_working_memory_entries
from memstory_reference.systems.layers.records.record import LABELS, Fact, Layer, MemoryRecord, Rule, Standing
from memstory_reference.systems.layers.records_desk import record_data
from memstory_reference.systems.layers.service import LayersService, OwnerSession
from memstory_reference.systems.layers.turns.session_end import EndReason, end_data

ROOT = "/api/memory"
MOST = 500
_DIGITS = 9
_SHELVED = (Standing.ACTIVE, Standing.ARCHIVED, Standing.SUPERSEDED)

Arguments = Mapping[str, Tree]


def memory_page() -> str:
    """Return the page of what is remembered: one file, which asks this service alone."""
    return files(__package__).joinpath("memories.html").read_text("utf-8")


class LayersWeb:
    """Each method answers one request; `user_id`, or without one `session_id`, says whose memory it is."""

    def __init__(self, service: LayersService) -> None:
        self._service = service

    def acts(self) -> list[tuple[str, str, Callable[[Arguments], Awaitable[Tree]]]]:
        """Return method, path and what answers it."""
        one = f"{ROOT}/memories/{{id}}"
        return [
            ("GET", f"{ROOT}/status", self._status),
            ("POST", f"{ROOT}/turn", self._turn),
            ("POST", f"{ROOT}/end", self._end),
            ("POST", f"{ROOT}/voice", self._voice),
            ("GET", f"{ROOT}/memories", self._list),
            ("GET", f"{ROOT}/search", self._search),
            ("GET", f"{ROOT}/export", self._export),
            ("POST", f"{ROOT}/forget", self._forget),
            ("POST", f"{ROOT}/recall", self._recall),
            ("POST", f"{ROOT}/feedback", self._feedback),
            ("GET", one, self._get),
            ("PATCH", one, self._edit),
            ("DELETE", one, self._delete),
            ("POST", f"{one}/archive", self._archive),
            ("POST", f"{one}/restore", self._restore),
        ]

    async def _who(self, args: Arguments) -> OwnerSession:
        return await self._service.who(
            checked_id(args.get("user_id"), "user_id"), checked_id(args.get("session_id"), "session_id")
        )

    async def _talking(self, args: Arguments) -> OwnerSession:
        if checked_id(args.get("session_id"), "session_id") is None:
            raise InputError("say which session with session_id")
        return await self._who(args)

    async def _status(self, args: Arguments) -> Tree:
        return await self._service.status((await self._who(args)).owner)

    async def _turn(self, args: Arguments) -> Tree:
        answer = await self._service.turn(_text(args, "said"), await self._talking(args))
        return {"answer": answer.answer, "context": answer.context, "trouble": dict(answer.diagnostics)}

    async def _end(self, args: Arguments) -> Tree:
        return end_data(await self._service.end_session(await self._talking(args), EndReason.WEB))

    async def _voice(self, args: Arguments) -> Tree:
        turns = args.get("turns")
        if not isinstance(turns, list) or not all(isinstance(one, dict) for one in turns):
            raise InputError("turns must be a list of objects with user and assistant")
        spoken = [(_text(one, "user"), str(one.get("assistant", ""))) for one in turns]
        return {"ended": await self._service.finalise_voice(spoken, await self._talking(args)) is not None}

    async def _list(self, args: Arguments) -> Tree:
        owner = (await self._who(args)).owner
        standings = _SHELVED if _switch(args, "archived") else (Standing.ACTIVE,)
        most = checked_count(_number(args.get("limit", MOST)), "limit", 1, MOST)
        found = await self._service.records.listed(owner, _layers(args), standings)
        return {"memories": [record_view(record) for record in found[:most]], "total": len(found)}

    async def _search(self, args: Arguments) -> Tree:
        owner = (await self._who(args)).owner
        found = await self._service.records.search(owner, _text(args, "query"), _layers(args))
        return {"memories": [{**record_view(one.record), "score": round(one.score, 6)} for one in found]}

    async def _export(self, args: Arguments) -> Tree:
        return await self._service.records.export((await self._who(args)).owner)

    async def _forget(self, args: Arguments) -> Tree:
        done = await self._service.forget((await self._who(args)).owner, _text(args, "what"))
        return {"forgotten": [one.id for one in done.records], "summaries": done.summaries, "turns": done.turns}

    async def _recall(self, args: Arguments) -> Tree:
        owner = (await self._who(args)).owner
        await self._service.set_recall(owner, on=args.get("on"))
        return {"recall": (await self._service.status(owner))["recall"]}

    async def _feedback(self, args: Arguments) -> Tree:
        given = (args.get("label"), args.get("source", "web"), args.get("comment", ""))
        return {"id": await self._service.give_feedback(await self._talking(args), *given)}

    async def _get(self, args: Arguments) -> Tree:
        return record_view((await self._found(args))[1])

    async def _edit(self, args: Arguments) -> Tree:
        owner, record = await self._found(args)
        changes, allowed = args.get("content"), _editable(record)
        if not isinstance(changes, dict) or not changes or not set(changes) <= set(allowed):
            raise InputError(f"content must be an object with one or more of {', '.join(allowed)}")
        return record_view(await self._service.records.edit(owner, record.id, replace(record.content, **changes)))

    async def _delete(self, args: Arguments) -> Tree:
        owner, record = await self._found(args)
        done = await self._service.forget_records(owner, [record.id])
        return {"deleted": record.id, "summaries": done.summaries, "turns": done.turns}

    async def _archive(self, args: Arguments) -> Tree:
        owner, record = await self._found(args)
        return {"archived": await self._service.records.archive(owner, record.id)}

    async def _restore(self, args: Arguments) -> Tree:
        owner, record = await self._found(args)
        return {"restored": await self._service.records.restore(owner, record.id)}

    async def _found(self, args: Arguments) -> tuple[str, MemoryRecord]:
        owner, identifier = (await self._who(args)).owner, _text(args, "id")
        record = await self._service.records.get(owner, identifier)
        if record is None:
            raise NotFoundError(f"this owner has no memory {identifier!r:.80}")
        return owner, record


def record_view(record: MemoryRecord) -> dict[str, Tree]:
    """Return a record as JSON, with the label that people read and the line that a prompt would have."""
    line = format_working_memory_entries([entry_of(record)])
    return {**record_data(record), "label": LABELS[record.layer], "line": line, "editable": _editable(record)}


def _editable(record: MemoryRecord) -> list[str]:
    match record.content:
        case Fact():
            return [one.name for one in fields(Fact)]
        case Rule():
            return ["rule", "evidence_quote"]
        case _:
            return ["summary"]


def _layers(args: Arguments) -> tuple[Layer, ...]:
    kind = args.get("kind")
    if kind is None:
        return tuple(Layer)
    if not isinstance(kind, str) or kind not in set(Layer):
        raise InputError(f"kind must be one of {', '.join(Layer)}")
    return (Layer(kind),)


def _text(args: Arguments, name: str) -> str:
    value = args.get(name)
    if not isinstance(value, str):
        raise InputError(f"{name} must be text, not {type(value).__name__}")
    return value


def _switch(args: Arguments, name: str) -> bool:
    return args.get(name) in (True, "true", "1")


def _number(value: Tree) -> Tree:
    # A query has texts alone.
    is_typed = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS
    return int(value) if is_typed else value
