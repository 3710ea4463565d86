"""Tools on the bus: one side serves a tool and announces it, the other knows tools by their announcements alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.texts import did_you_mean
from memstory.contract.values import Json, ToolCall, ToolSchema
from memstory_reference.bus.subjects import TOOL_SCHEMA, TOOL_SCHEMA_WANTED, tool_request, tool_result
from memstory_reference.errors import InputError
from memstory_reference.input_checks import DEFAULT_LIMITS
from memstory_reference.ports import Bus, Envelope, NewId, NoRespondersError, Subscription
from memstory_reference.text.lines import shorten
from memstory_reference.tooling.local_tools import check_arguments

READY_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCaller:
    """For whom a tool acts: from the envelope, never from a model's arguments."""

    owner: str
    session_id: str | None = None


ToolFunction = Callable[[Mapping[str, Json], ToolCaller], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool: what a model sees of it, and what it does. `aliases` are other names that it answers to."""

    spec: ToolSchema
    call: ToolFunction
    aliases: Sequence[str] = ()


class ToolServer:
    """Serves one tool: answers each request on its subject, with the request's own id."""

    def __init__(self, tool: Tool, bus: Bus, result_characters: int = DEFAULT_LIMITS.max_result_characters) -> None:
        self._tool = tool
        self._bus = bus
        self._result_characters = result_characters
        self._publisher = "".join(word.capitalize() for word in tool.spec.name.split("_")) + "Tool"
        self._subscriptions: list[Subscription] = []

    async def start(self) -> None:
        """Listen, then announce: who hears of the tool can already call it. Of several servers one answers a call."""
        for name in (self._tool.spec.name, *self._tool.aliases):
            subscription = await self._bus.subscribe(
                tool_request(name), self._answerer(name), name=self._publisher, queue=self._publisher
            )
            self._subscriptions.append(subscription)
        self._subscriptions.append(
            await self._bus.subscribe(TOOL_SCHEMA_WANTED, self._on_request, name=self._publisher)
        )
        await self.announce()

    async def announce(self) -> None:
        """Say what the tool is, to who listens now."""
        await self._announce({"description": self._tool.spec.description, "parameters": self._tool.spec.parameters})

    async def stop(self) -> None:
        """Withdraw the tool and finish what it is doing."""
        await self._announce(None)
        for subscription in self._subscriptions:
            await subscription.unsubscribe()
        self._subscriptions.clear()

    async def _on_request(self, _: Envelope) -> None:
        await self.announce()

    async def _announce(self, schema: Mapping[str, Json] | None) -> None:
        payload = {"tool": self._tool.spec.name, "aliases": list(self._tool.aliases), "schema": schema}
        await self._bus.publish(Envelope(subject=TOOL_SCHEMA, payload=payload, publisher=self._publisher, owner=""))

    def _answerer(self, name: str) -> Callable[[Envelope], Awaitable[None]]:
        async def answer(envelope: Envelope) -> None:
            try:
                payload = {"result": await self._outcome(envelope)}
            except MemstoryError as error:
                payload = {"error": str(error)}
            except Exception as error:
                # The caller must not wait forever for a broken tool; the bus logs and counts what broke it.
                await self._reply(name, envelope, {"error": f"the tool failed ({type(error).__name__})"})
                raise
            await self._reply(name, envelope, payload)

        return answer

    async def _outcome(self, envelope: Envelope) -> str:
        arguments = check_arguments(self._tool.spec, envelope.payload.get("args"))
        session = envelope.payload.get("session_id")
        caller = ToolCaller(owner=envelope.owner, session_id=session if isinstance(session, str) else None)
        return shorten(await self._tool.call(arguments, caller), self._result_characters)

    async def _reply(self, name: str, request: Envelope, payload: Mapping[str, Json]) -> None:
        query_id = request.payload.get("query_id")
        await self._bus.publish(
            Envelope(
                subject=tool_result(name),
                payload=payload,
                publisher=self._publisher,
                owner=request.owner,
                request_id=request.request_id or (query_id if isinstance(query_id, str) else None),
            )
        )


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
        """Hear no more."""
        if self._subscription is not None:
            await self._subscription.unsubscribe()

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
        self, name: str, arguments: Mapping[str, Json], *, owner: str, session_id: str | None = None
    ) -> ToolCall:
        """Call a tool over the bus; whatever goes wrong is in the outcome."""
        own_name = self._aliases.get(name, name)
        if own_name not in self._specs:
            return ToolCall(name=name, args=arguments, error=self._unknown(name))
        return await call_tool(
            self.bus,
            Envelope(
                subject=tool_request(own_name),
                payload={"args": arguments, "session_id": session_id},
                publisher=self.caller,
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
        reply = await bus.request(request, tool_result(name), timeout_seconds=timeout_seconds)
    except NoRespondersError:
        return ToolCall(name=name, args=arguments, error=f"no tool named '{name}' is running")
    except TimeoutError:
        text = f"the tool '{name}' did not answer within {timeout_seconds:g} seconds"
        return ToolCall(name=name, args=arguments, error=text)
    except (InputError, UnavailableError) as error:
        return ToolCall(name=name, args=arguments, error=str(error))
    if "error" in reply.payload:
        return ToolCall(name=name, args=arguments, error=str(reply.payload["error"]))
    return ToolCall(name=name, args=arguments, result=str(reply.payload.get("result", "")))


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
