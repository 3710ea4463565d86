"""Environment -> ports of the layers: incognito has an embedder that nobody asks, and ids that touch no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from itertools import count

from memstory.target import Environment, Json
from memstory_reference import bootstrap
from memstory_reference.adapters.embedder_log import LoggedEmbedder
from memstory_reference.adapters.faults import FaultyChat, FaultyEmbedder
from memstory_reference.adapters.idle_embedder import IdleEmbedder
from memstory_reference.adapters.prefixes import NO_PREFIXES
from memstory_reference.adapters.scripted_chat import ScriptedChat
from memstory_reference.errors import InputError
from memstory_reference.ports import ChatModel, Message, NewId, Reply, ToolSpec
from memstory_reference.settings import default_topics
from memstory_reference.systems.layers.config import LayersConfig
from memstory_reference.systems.layers.modes import MemoryMode, parse_mode
from memstory_reference.targets.chat_log import LoggedChat
from memstory_reference.targets.environment_ports import EnvironmentPorts, MakeEmbedder, environment_ports

CONFIG = tuple(field.name for field in fields(LayersConfig))
OPTIONS = (*CONFIG, "mode", "anonymous", "chat", "embedder", "ollama_host")
OFFLINE = "offline"
REPLY = "chat"

EXTRACTOR = "extractor"
"""The part of the model that is asked after the reply; a story can make it fail alone."""


class NullEmbedder(IdleEmbedder):
    """What stands in the embedder's place in incognito: the log above it shows that nobody asks."""

    profile = NO_PREFIXES

    def __init__(self) -> None:
        super().__init__("none")


class AfterReply:
    """A model whose calls after the reply have a switch of their own."""

    def __init__(self, reply: ChatModel, after: ChatModel) -> None:
        self.name = reply.name
        self._reply = reply
        self._after = after

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        purpose: str = REPLY,
        temperature: float | None = None,
        response_schema: Mapping[str, Json] | None = None,
    ) -> Reply:
        model = self._reply if purpose == REPLY else self._after
        return await model.chat(
            messages, tools, purpose=purpose, temperature=temperature, response_schema=response_schema
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersChoice:
    """What the options decide; `anonymous` are users who come without a user id, the empty text being the case's own."""

    config: LayersConfig
    mode: MemoryMode
    anonymous: frozenset[str]
    has_model: bool


def chosen(env: Environment) -> LayersChoice:
    """Return what the options decide; InputError names the one that is wrong."""
    foreign = [name for name in env.options if name not in OPTIONS]
    if foreign:
        raise InputError(f"options: unknown option {foreign[0]!r:.80}; known: {', '.join(OPTIONS)}")
    mode, anonymous = env.options.get("mode", MemoryMode.LOCAL), env.options.get("anonymous", [])
    if not isinstance(mode, str):
        raise InputError(f"options: mode is {mode!r:.80}; allowed: {', '.join(MemoryMode)}, guest")
    if not isinstance(anonymous, list) or not all(isinstance(name, str) for name in anonymous):
        raise InputError("options: anonymous is a list of users, the empty text being the one of steps without `as`")
    return LayersChoice(
        config=LayersConfig().changed({name: env.options[name] for name in CONFIG if name in env.options}, "options"),
        mode=parse_mode(mode),
        anonymous=frozenset(anonymous),
        has_model=bool(env.model_rules) or env.options.get("chat", OFFLINE) != OFFLINE,
    )


def layers_ports(env: Environment, choice: LayersChoice, make_embedder: MakeEmbedder) -> EnvironmentPorts:
    """Return the ports of `env`, with a switch for what is asked of the model after the reply."""
    host = env.options.get("ollama_host", default_topics().ollama_host)
    if choice.mode.is_durable:
        ports = environment_ports(
            env,
            make_embedder=make_embedder,
            embedder=env.options.get("embedder", bootstrap.MINILM),
            chat=env.options.get("chat", OFFLINE),
            ollama_host=host,
        )
        model: ChatModel = ports.chat
        switches = ports.switches
    else:
        name = env.options.get("chat", OFFLINE)
        model = ScriptedChat(env.model_rules) if env.model_rules else bootstrap.make_chat(name, None, ollama_host=host)
        faulty = FaultyEmbedder(NullEmbedder())
        switches = {"embedder": faulty}
        ports = EnvironmentPorts(
            embedder=LoggedEmbedder(faulty), chat=LoggedChat(model), new_id=counted_ids(env.seed), switches=switches
        )
    after = FaultyChat(model)
    reply = FaultyChat(model)
    switches |= {"model": reply, EXTRACTOR: after}
    return EnvironmentPorts(
        embedder=ports.embedder,
        chat=LoggedChat(AfterReply(reply, after)),
        new_id=ports.new_id,
        switches=switches,
    )


def counted_ids(seed: int) -> NewId:
    """Return a source of ids that writes nothing down: what has them ends with the process."""
    numbers = count()
    return lambda: blake2b(f"incognito/{seed}/{next(numbers)}".encode(), digest_size=16).hexdigest()
