"""Tools on the bus: one side serves a tool and announces it, the other knows tools by their announcements alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from memstory.contract.errors import UnavailableError
from memstory.contract.texts import did_you_mean
from memstory.contract.values import Json, ToolCall, ToolSchema
from memstory_reference.bus import Bus, Subscription
from memstory_reference.bus.calls import answerer
from memstory_reference.bus.subjects import TOOL_SCHEMA, TOOL_SCHEMA_WANTED, tool_request, tool_result
from memstory_reference.errors import InputError
from memstory_reference.input_checks import DEFAULT_LIMITS
from memstory_reference.ports import Envelope, Handler, NewId, NoRespondersError
from memstory_reference.text.lines import shorten
from memstory_reference.tooling import LocalTools

READY_SECONDS = 30.0

ToolsOf = Callable[[str, str | None], LocalTools]
"""The owner and the session of an envelope, never a model's arguments, to the tools that act for them."""


class ToolServer:
    """Serves tools: each request is answered on its subject, with its own id. `aliases` are other names of tools."""

    def __init__(
        self,
        tools_of: ToolsOf,
        bus: Bus,
        *,
        aliases: Mapping[str, str] | None = None,
        result_characters: int = DEFAULT_LIMITS.max_result_characters,
    ) -> None:
        self.specs = tools_of("", None).specs
        self._tools_of = tools_of
        self._bus = bus
        self._aliases = aliases or {}
        self._result_characters = result_characters
        self._subscriptions: list[Subscription] = []

    async def start(self) -> None:
        """Listen, then announce: who hears of a tool can already call it. Of several servers one answers a call."""
        for name in (*(one.name for one in self.specs), *self._aliases):
            own = self._aliases.get(name, name)
            answer = answerer(self._bus, tool_result(name), _publisher(own), partial(self._call, own), "the tool")
            await self._hear(tool_request(name), answer, _publisher(own), queue=_publisher(own))
        await self._hear(TOOL_SCHEMA_WANTED, lambda _: self.announce(), "ToolServer")
        await self.announce()

    async def announce(self) -> None:
        """Say what the tools are, to who listens now."""
        for one in self.specs:
            await self._announce(one.name, {"description": one.description, "parameters": one.parameters})

    async def stop(self) -> None:
        """Withdraw the tools and finish what they are doing."""
        for one in self.specs:
            await self._announce(one.name, None)
        while self._subscriptions:
            await self._subscriptions.pop().unsubscribe()

    async def _hear(self, subject: str, handler: Handler, name: str, queue: str | None = None) -> None:
        self._subscriptions.append(await self._bus.subscribe(subject, handler, name=name, queue=queue))

    async def _announce(self, name: str, schema: Mapping[str, Json] | None) -> None:
        aliases = [alias for alias, own in self._aliases.items() if own == name]
        payload = {"tool": name, "aliases": aliases, "schema": schema}
        await self._bus.publish(Envelope(subject=TOOL_SCHEMA, payload=payload, publisher=_publisher(name), owner=""))

    async def _call(self, name: str, request: Envelope) -> str:
        session = request.payload.get("session_id")
        tools = self._tools_of(request.owner, session if isinstance(session, str) else None)
        call = await tools.call(name, request.payload.get("args"))
        if call.error is not None:
            raise InputError(call.error)
        return shorten(str(call.result), self._result_characters)


def _publisher(name: str) -> str:
    """Return as whom a tool speaks.

    >>> _publisher("save_topic")
    'SaveTopicTool'
    """
    return "".join(word.capitalize() for word in name.split("_")) + "Tool"


@dataclass(slots=True, kw_only=True)
class ToolBox:
    """The tools that were announced since it listens, in the order of their first announcement."""

    bus: Bus
    new_id: NewId
    caller: str
    timeout_seconds: float = 30.0
    _specs: dict[str, ToolSchema] = field(default_factory=dict)
    _aliases: dict[str, str] = field(default_factory=dict)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _subscription: Subscription | None = None

    async def listen(self) -> None:
        """Hear announcements from now on."""
        self._subscription = await self.bus.subscribe(TOOL_SCHEMA, self._on_message, name=self.caller)

    async def inquire(self) -> None:
        """Have every tool that runs announced again: those that were started before us, too."""
        await self.bus.publish(Envelope(subject=TOOL_SCHEMA_WANTED, payload={}, publisher=self.caller, owner=""))

    async def stop(self) -> None:
        """Hear no more, and know no tool any more."""
        if self._subscription is not None:
            await self._subscription.unsubscribe()
        self._specs.clear()

    async def ready(self, names: Sequence[str], timeout_seconds: float = READY_SECONDS) -> None:
        """Return when all of `names` are announced; TimeoutError names those that are not."""
        async with self._changed:
            try:
                async with asyncio.timeout(timeout_seconds):
                    await self._changed.wait_for(lambda: set(names) <= set(self._specs))
            except TimeoutError:
                missing = ", ".join(sorted(set(names) - set(self._specs)))
                raise TimeoutError(f"these tools were not announced within {timeout_seconds:g} s: {missing}") from None

    def specs(self) -> list[ToolSchema]:
        """Return the tools as a model sees them."""
        return list(self._specs.values())

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Json],
        *,
        owner: str,
        session_id: str | None = None,
        caller: str | None = None,
    ) -> ToolCall:
        """Call a tool over the bus, as `caller`; whatever goes wrong is in the outcome."""
        own_name = self._aliases.get(name, name)
        if own_name not in self._specs:
            return ToolCall(name=name, args=arguments, error=self._unknown(name))
        return await call_tool(
            self.bus,
            Envelope(
                subject=tool_request(own_name),
                payload={"args": arguments, "session_id": session_id},
                publisher=caller or self.caller,
                owner=owner,
                request_id=self.new_id(),
            ),
            timeout_seconds=self.timeout_seconds,
        )

    def _unknown(self, name: str) -> str:
        near = did_you_mean(name, [*self._specs, *self._aliases])
        return f"there is no tool named {name[:80]!r}; there are: {', '.join(self._specs) or 'none'}.{near}"

    async def _on_message(self, envelope: Envelope) -> None:
        name, spec, aliases = _announcement(envelope.payload)
        async with self._changed:
            self._aliases = {alias: own for alias, own in self._aliases.items() if own != name}
            if spec is None:
                self._specs.pop(name, None)
            else:
                self._specs[name] = spec
                self._aliases.update(dict.fromkeys(aliases, name))
            self._changed.notify_all()


async def call_tool(bus: Bus, request: Envelope, *, timeout_seconds: float) -> ToolCall:
    """Send a request made by whatever agent, and return what the tool answered."""
    name = request.subject.rpartition(".")[2]
    arguments = request.payload.get("args")
    arguments = arguments if isinstance(arguments, Mapping) else {}
    try:
        told = (await bus.request(request, tool_result(name), timeout_seconds=timeout_seconds)).payload
    except NoRespondersError:
        told = {"error": f"no tool named '{name}' is running"}
    except TimeoutError:
        told = {"error": f"the tool '{name}' did not answer within {timeout_seconds:g} seconds"}
    except (InputError, UnavailableError) as error:
        told = {"error": str(error)}
    if "error" in told:
        return ToolCall(name=name, args=arguments, error=str(told["error"]))
    return ToolCall(name=name, args=arguments, result=str(told.get("result", "")))


def _announcement(payload: Mapping[str, Json]) -> tuple[str, ToolSchema | None, list[str]]:
    name, schema, aliases = payload.get("tool"), payload.get("schema"), payload.get("aliases", [])
    if not isinstance(name, str) or not isinstance(aliases, list):
        raise InputError("tool.schema: an announcement has 'tool' (text), 'aliases' (a list) and 'schema'")
    if schema is None:
        return name, None, []
    if not isinstance(schema, dict) or not isinstance(schema.get("parameters"), dict):
        raise InputError(f"tool.schema: the schema of {name!r:.80} has no 'parameters' object")
    description = str(schema.get("description", ""))
    return name, ToolSchema(name=name, description=description, parameters=schema["parameters"]), [*map(str, aliases)]
