"""Calls between processes: a part answers requests on the bus with a result, or with the reason why there is none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from memstory.contract.errors import MemstoryError, SetupError, UnavailableError
from memstory.contract.values import Tree
from memstory_reference.bus.bus import Bus, Subscription
from memstory_reference.bus.subjects import call_request, call_result
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.ports import Envelope, Handler, NewId, NoRespondersError

Act = Callable[[Mapping[str, Tree], str], Awaitable[Tree]]
"""Arguments and owner to a result. The owner is the envelope's, never an argument."""

ALIVE = "alive"
ALIVE_SECONDS = 3.0
LOOK_SECONDS = 2.0
"""How long a process that is at work may be gone before its caller knows."""

KINDS: Mapping[str, type[MemstoryError]] = {
    "input": InputError,
    "conflict": StoreConflictError,
    "setup": SetupError,
    "unavailable": UnavailableError,
}


class Requests(Protocol):
    """What a caller needs of a bus."""

    async def request(self, envelope: Envelope, reply_subject: str, *, timeout_seconds: float) -> Envelope:
        """Publish and return the reply."""
        ...


class CallServer:
    """Serves the calls of one part. Where several processes serve it, one of them answers a request."""

    def __init__(self, part: str, acts: Mapping[str, Act], bus: Bus, *, store: str, new_id: NewId) -> None:
        self._part = part
        self._acts = {**acts, ALIVE: self._alive}
        self._bus = bus
        self._store = store
        self.process = f"{os.getpid()}-{new_id()}"
        """What callers tell this process by."""
        self._subscriptions: list[Subscription] = []

    async def start(self) -> None:
        """Answer calls from now on."""
        for name, act in self._acts.items():
            subject = call_request(self._part, name)
            answer = self._answerer(name, act)
            for pattern, queue in ((subject, self._part), (f"{subject}.{self.process}", None)):
                one = await self._bus.subscribe(pattern, answer, name=self._part, queue=queue)
                self._subscriptions.append(one)

    async def stop(self) -> None:
        """Take no more calls; those under way are answered."""
        while self._subscriptions:
            await self._subscriptions.pop().unsubscribe()

    async def _alive(self, _: Mapping[str, Tree], __: str) -> Tree:
        return {"process": self.process, "store": self._store}

    def _answerer(self, name: str, act: Act) -> Handler:
        async def work(request: Envelope) -> Tree:
            return await act(_arguments(request), request.owner)

        return answerer(self._bus, call_result(self._part, name), self._part, work, self._part)


def answerer(bus: Bus, subject: str, publisher: str, work: Callable[[Envelope], Awaitable[Tree]], who: str) -> Handler:
    """Return what answers requests: with the result of `work`, or with the reason why there is none.

    `who` is what a caller hears to have failed, where something breaks.
    """

    async def answer(request: Envelope) -> None:
        query_id = request.payload.get("query_id")
        reply = Envelope(
            subject=subject,
            payload={},
            publisher=publisher,
            owner=request.owner,
            request_id=request.request_id or (query_id if isinstance(query_id, str) else None),
        )
        try:
            await bus.publish(replace(reply, payload={"result": await work(request)}))
        except MemstoryError as error:
            # What cannot travel, such as a result that is too large, is a reason too.
            await bus.publish(replace(reply, payload={"error": str(error), "kind": _kind(error)}))
        except Exception as error:
            # The caller must not wait forever for what is broken; the bus logs and counts what broke it.
            text = f"{who} failed ({type(error).__name__}); the log of its process says more"
            await bus.publish(replace(reply, payload={"error": text, "kind": "unavailable"}))
            raise

    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Calls one part."""

    bus: Requests
    part: str
    new_id: NewId
    name: str
    timeout_seconds: float = 30.0

    async def call(self, act: str, owner: str, **arguments: Tree) -> Tree:
        """Return the part's result, or raise the error that it answered with.

        Raises:
            UnavailableError: no process serves the part, it is silent, or the bus is not there; after a silence it
                is unknown whether what was asked has happened.
        """
        return await self._call(call_request(self.part, act), act, owner, arguments, self.timeout_seconds)

    async def long_call(
        self, act: str, owner: str, *, timeout_seconds: float, process: str | None = None, **arguments: Tree
    ) -> Tree:
        """Do as `call` does, with `process` or any, and notice within seconds when the one at work is gone."""
        process = process or str((await self._alive(ALIVE))["process"])
        subject = f"{call_request(self.part, act)}.{process}"
        asked = asyncio.create_task(self._call(subject, act, owner, arguments, timeout_seconds))
        try:
            while not (await asyncio.wait([asked], timeout=LOOK_SECONDS))[0]:
                try:
                    await self._alive(f"{ALIVE}.{process}")
                except PartMissingError as error:
                    raise PartMissingError(
                        f"the process of {self.part} that was asked is gone; whether '{act}' was done is not known"
                    ) from error
                except PartSilentError:
                    # It may be too busy to say so: the time of the call itself decides.
                    continue
            return await asked
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    async def alive(self) -> Mapping[str, Tree] | None:
        """Return who serves the part, None if nobody does."""
        try:
            return await self._alive(ALIVE)
        except PartMissingError:
            return None

    async def _alive(self, name: str) -> Mapping[str, Tree]:
        found: Mapping[str, Tree] = await self._call(call_request(self.part, name), ALIVE, "", {}, ALIVE_SECONDS)
        return found

    async def _call(
        self, subject: str, act: str, owner: str, arguments: Mapping[str, Tree], timeout_seconds: float
    ) -> Tree:
        request = Envelope(
            subject=subject,
            payload={"args": dict(arguments)},
            publisher=self.name,
            owner=owner,
            request_id=self.new_id(),
        )
        try:
            reply = await self.bus.request(request, call_result(self.part, act), timeout_seconds=timeout_seconds)
        except NoRespondersError as error:
            raise PartMissingError(f"no process serves {self.part}. Start one: {start_command(self.part)}") from error
        except TimeoutError as error:
            raise PartSilentError(
                f"{self.part} did not answer '{act}' within {timeout_seconds:g} seconds; whether it was done is not "
                "known"
            ) from error
        return _result(reply.payload)


def start_command(part: str) -> str:
    """Return what a person types to start a part."""
    return f"memstory-reference serve {part}"


class PartMissingError(UnavailableError):
    """A part that no process serves."""


class PartSilentError(UnavailableError):
    """A part that is served, and does not answer in time."""


async def refuse_a_second(caller: Caller, *, store: str) -> None:
    """Raise SetupError if the part is served from another store: callers would find half of what they stored."""
    found = await caller.alive()
    if found is not None and (not store or found.get("store") != store):
        raise SetupError(
            f"{caller.part} is served on this bus already, by process {found.get('process')}; stop that one first, or "
            "use another bus"
        )


def _arguments(request: Envelope) -> Mapping[str, Tree]:
    arguments = request.payload.get("args")
    if not isinstance(arguments, dict):
        raise InputError(f"{request.subject}: the payload has 'args', an object")
    return arguments


def _kind(error: MemstoryError) -> str:
    return next((kind for kind, leaf in KINDS.items() if isinstance(error, leaf)), "unavailable")


def _result(payload: Mapping[str, Tree]) -> Tree:
    if "error" in payload:
        raise KINDS.get(str(payload.get("kind")), UnavailableError)(str(payload["error"]))
    return payload.get("result")
