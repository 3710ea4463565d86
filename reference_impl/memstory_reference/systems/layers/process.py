"""The layers memory in its own process; several processes may serve it if they share a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from memstory.contract.target import Scope, Turn
from memstory.contract.values import Tree
from memstory_reference.bus import Bus
from memstory_reference.bus.calls import Act, Caller, CallServer, PartMissingError, refuse_a_second
from memstory_reference.errors import InputError
from memstory_reference.ports import NewId
from memstory_reference.system_memory import SystemMemory
from memstory_reference.systems.layers.identity import SESSION, USER
from memstory_reference.systems.layers.memory import LayersMemory
from memstory_reference.systems.layers.service import LayersService, trouble_notes
from memstory_reference.systems.layers.sessions.session_end import EndReason
from memstory_reference.systems.layers.values import status_line

PART = "layers"
START_BY = "memstory-reference serve layers"
TURN_SECONDS = 600.0


class LayersPart:
    """Serves turns and their sessions. Which process answers a turn makes no difference: all is in the store."""

    def __init__(self, service: LayersService, bus: Bus, *, new_id: NewId) -> None:
        self._service = service
        self._memory = LayersMemory(service, store_name=PART)
        self._bus = bus
        self._new_id = new_id
        self._caller = Caller(bus=bus, part=PART, new_id=new_id, name=PART, start_by=START_BY)
        self._server: CallServer | None = None

    async def start(self) -> None:
        """Serve from now on; SetupError if the part is served from another store."""
        store = await self._service.store_name()
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
        said = args.get("said")
        if not isinstance(said, str):
            raise InputError(f"said must be text, not {type(said).__name__}")
        answer = await self._service.turn(said, await self._memory.who(_scope(args, owner)))
        process = "" if self._server is None else self._server.process
        trouble = dict(answer.diagnostics)
        return asdict(LayersAnswer(answer=answer.answer, context=answer.context, trouble=trouble, process=process))

    async def _status(self, args: Mapping[str, Tree], owner: str) -> Tree:
        return await self._memory.inspect("status", {}, _scope(args, owner))

    async def _settle(self, _: Mapping[str, Tree], __: str) -> Tree:
        await self._service.settle()
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersAnswer:
    """A turn that was taken somewhere: `trouble` is what went wrong on the way to the reply."""

    answer: str
    context: str = ""
    trouble: Mapping[str, Tree] = field(default_factory=dict)
    process: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLayers:
    """One owner's conversation with layers in other processes."""

    caller: Caller
    user_id: str | None
    thread_id: str

    async def turn(self, said: str) -> LayersAnswer:
        """Take one turn; UnavailableError if no process answers."""
        return LayersAnswer(**await self._long_call("turn", said=said))

    async def settle(self, answer: LayersAnswer) -> None:
        """Return when what the turn leaves is decided, in the process that answered it."""
        try:
            await self._long_call("settle", process=answer.process)
        except PartMissingError:
            # It is gone: the turn is looked at again when its session ends, in another process.
            return

    async def end(self, reason: str) -> Mapping[str, Tree]:
        """End the session; return what `end_data` does."""
        report: Mapping[str, Tree] = await self._long_call("end", reason=reason)
        return report

    async def status(self) -> Mapping[str, Tree]:
        """Return counts and the state of the memory."""
        status: Mapping[str, Tree] = await self.caller.call("status", self._owner())
        return status

    async def forget(self, what: str) -> str:
        """Forget what words or an id name; return what the person hears."""
        return str(await self._long_call("forget", what=what))

    async def recall(self, *, on: bool) -> None:
        """Switch the use of memories on or off, until it is switched again."""
        await self._long_call("recall", on=on)

    async def feedback(self, label: str, comment: str) -> None:
        """Keep what the person thinks of the session."""
        await self._long_call("feedback", label=label, comment=comment)

    async def _long_call(self, act: str, process: str | None = None, **arguments: Tree) -> Tree:
        return await self.caller.long_call(
            act,
            self._owner(),
            timeout_seconds=TURN_SECONDS,
            process=process,
            session_id=self.thread_id,
            **arguments,
        )

    def _owner(self) -> str:
        return f"{USER}:{self.user_id}" if self.user_id is not None else f"{SESSION}:{self.thread_id}"


class RemoteLayersMemory(SystemMemory):
    """The layers memory in other processes, as far as a conversation needs it."""

    operations = frozenset({"chat"})
    store_name = "the processes on the bus"

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._latest: tuple[RemoteLayers, LayersAnswer] | None = None

    async def close(self) -> None:
        """Do nothing: each call has its own connection."""

    def status_line(self, status: Mapping[str, Tree]) -> str:
        return status_line(status)

    async def settle(self) -> None:
        if self._latest is not None:
            talk, answer = self._latest
            await talk.settle(answer)

    async def say(self, text: str, scope: Scope) -> Turn:
        answer = await self._talk(scope).turn(text)
        self._latest = (self._talk(scope), answer)
        return Turn(answer=answer.answer, context=answer.context, notes=trouble_notes(answer.trouble))

    async def _look_status(self, scope: Scope) -> Tree:
        return await self._talk(scope).status()

    async def _job_end(self, scope: Scope, *, reason: str = EndReason.EXPLICIT) -> Tree:
        return await self._talk(scope).end(reason)

    async def _job_forget(self, scope: Scope, *, what: str) -> Tree:
        return await self._talk(scope).forget(what)

    async def _job_recall(self, scope: Scope, *, on: bool) -> Tree:
        await self._talk(scope).recall(on=on)

    async def _job_feedback(self, scope: Scope, *, label: str, comment: str = "") -> Tree:
        await self._talk(scope).feedback(label, comment)

    def _talk(self, scope: Scope) -> RemoteLayers:
        return RemoteLayers(caller=self._caller, user_id=scope.user or None, thread_id=str(scope.session))


def _scope(args: Mapping[str, Tree], owner: str) -> Scope:
    """Return whose call it is, and in which session: an envelope's owner is a user or a thread."""
    kind, _, name = owner.partition(":")
    if kind not in (USER, SESSION) or not name:
        raise InputError(f"layers: the owner of a call is '{USER}:ID' or '{SESSION}:ID', not {owner!r:.80}")
    return Scope(user=name, session=args.get("session_id")) if kind == USER else Scope(user="", session=name)
