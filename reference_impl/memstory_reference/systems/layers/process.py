"""The layers memory in its own process; several processes may serve it if they share a store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from memstory.contract.target import Scope, Turn
from memstory.contract.values import Tree
from memstory_reference.bus import Bus
from memstory_reference.bus.calls import Act, Caller, CallServer, PartMissingError, refuse_a_second
from memstory_reference.errors import InputError
from memstory_reference.ports import NewId
from memstory_reference.system_memory import SystemMemory
from memstory_reference.systems.layers.identity import SESSION, USER
from memstory_reference.systems.layers.memory import LayersMemory
from memstory_reference.systems.layers.sessions import EndReason
from memstory_reference.systems.layers.values import status_line

PART = "layers"
TURN_SECONDS = 600.0


class LayersPart:
    """Serves turns and their sessions. Which process answers a turn makes no difference: all is in the store."""

    def __init__(self, memory: LayersMemory, bus: Bus, *, new_id: NewId) -> None:
        self._memory = memory
        self._bus = bus
        self._new_id = new_id
        self._caller = Caller(bus=bus, part=PART, new_id=new_id, name=PART)
        self._server: CallServer | None = None

    async def start(self) -> None:
        """Serve from now on; SetupError if the part is served from another store."""
        store = await self._memory.store_id()
        await refuse_a_second(self._caller, store=store)
        self._server = CallServer(PART, self._acts(), self._bus, store=store, new_id=self._new_id)
        await self._server.start()

    async def stop(self) -> None:
        """Answer what was asked, and end none of the sessions: they go on in the next process."""
        if self._server is not None:
            await self._server.stop()

    async def come_back(self) -> None:
        """Do nothing: a server that is there again knows what we listen to."""

    def _acts(self) -> dict[str, Act]:
        jobs = {name: self._job(name) for name in ("end", "forget", "recall", "feedback")}
        return {"turn": self._turn, "status": self._status, "settle": self._settle, **jobs}

    def _job(self, name: str) -> Act:
        async def act(args: Mapping[str, Tree], owner: str) -> Tree:
            given = {one: value for one, value in args.items() if one != "session_id"}
            return await self._memory.run(name, given, _scope(args, owner))

        return act

    async def _turn(self, args: Mapping[str, Tree], owner: str) -> Tree:
        turn = await self._memory.say(args.get("said", ""), _scope(args, owner))
        process = "" if self._server is None else self._server.process
        return {"answer": turn.answer, "context": turn.context, "notes": list(turn.notes), "process": process}

    async def _status(self, args: Mapping[str, Tree], owner: str) -> Tree:
        return await self._memory.inspect("status", {}, _scope(args, owner))

    async def _settle(self, _: Mapping[str, Tree], __: str) -> Tree:
        await self._memory.settle()
        return None


class RemoteLayersMemory(SystemMemory):
    """The layers memory in other processes, as far as a conversation needs it."""

    operations = frozenset({"chat"})
    store_name = "the processes on the bus"

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._latest = Scope(user="")
        self.answered_by: str | None = None
        """The process that answered last."""

    async def close(self) -> None:
        """Do nothing: each call has its own connection."""

    def status_line(self, status: Mapping[str, Tree]) -> str:
        return status_line(status)

    async def settle(self) -> None:
        """Return when what the latest turn leaves is decided, in the process that answered it."""
        if self.answered_by is None:
            return
        # If it is gone, the turn is looked at again when its session ends, in another process.
        with suppress(PartMissingError):
            await self._ask("settle", self._latest, self.answered_by)

    async def say(self, text: str, scope: Scope) -> Turn:
        told = await self._ask("turn", scope, said=text)
        self._latest, self.answered_by = scope, told["process"]
        return Turn(answer=told["answer"], context=told["context"], notes=told["notes"])

    async def _look_status(self, scope: Scope) -> Tree:
        return await self._caller.call("status", _owner(scope))

    async def _job_end(self, scope: Scope, *, reason: str = EndReason.EXPLICIT) -> Tree:
        return await self._ask("end", scope, reason=reason)

    async def _job_forget(self, scope: Scope, *, what: str) -> Tree:
        return await self._ask("forget", scope, what=what)

    async def _job_recall(self, scope: Scope, *, on: bool) -> Tree:
        return await self._ask("recall", scope, on=on)

    async def _job_feedback(self, scope: Scope, *, label: str, comment: str = "") -> Tree:
        return await self._ask("feedback", scope, label=label, comment=comment)

    async def _ask(self, act: str, scope: Scope, process: str | None = None, **arguments: Tree) -> Tree:
        return await self._caller.long_call(
            act,
            _owner(scope),
            timeout_seconds=TURN_SECONDS,
            process=process,
            session_id=scope.session,
            **arguments,
        )


def _owner(scope: Scope) -> str:
    return f"{USER}:{scope.user}" if scope.user else f"{SESSION}:{scope.session}"


def _scope(args: Mapping[str, Tree], owner: str) -> Scope:
    """Return whose call it is, and in which session: an envelope's owner is a user or a thread."""
    kind, _, name = owner.partition(":")
    if kind not in (USER, SESSION) or not name:
        raise InputError(f"layers: the owner of a call is '{USER}:ID' or '{SESSION}:ID', not {owner!r:.80}")
    return Scope(user=name, session=args.get("session_id")) if kind == USER else Scope(user="", session=name)
