"""Environment -> ports of the layers: incognito has an embedder that nobody asks, and ids that touch no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from itertools import count

from memstory.target import Environment, Json
from memstory_reference.adapters.chat_models.scripted_chat import ScriptedChat
from memstory_reference.adapters.embedding.embedder_log import LoggedEmbedder
from memstory_reference.adapters.embedding.idle_embedder import IdleEmbedder
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES
from memstory_reference.adapters.faults import FaultyChat, FaultyEmbedder
from memstory_reference.composition.chat_models import OFFLINE, make_chat
from memstory_reference.composition.embedders import MINILM
from memstory_reference.errors import InputError, MemorySystemError
from memstory_reference.ports import ChatModel, Message, NewId, Reply, ToolSpec
from memstory_reference.systems.layers.config import LayersConfig
from memstory_reference.systems.layers.modes import MemoryMode, parse_mode
from memstory_reference.systems.topics.settings import default_topics
from memstory_reference.targets.chat_log import LoggedChat
from memstory_reference.targets.environment_ports import EnvironmentPorts, MakeEmbedder, environment_ports

CONFIG = tuple(field.name for field in fields(LayersConfig))
OPTIONS = (*CONFIG, "mode", "anonymous", "chat", "embedder", "ollama_host", "store")
SQLITE, POSTGRES = STORES = ("sqlite", "postgres")
REPLY = "chat"

EXTRACTOR = "extractor"
"""The part of the model that is asked after the reply; a story can make it fail alone."""


class NullEmbedder(IdleEmbedder):
    """What stands in the embedder's place in incognito: the log above it shows that nobody asks."""

    profile = NO_PREFIXES

    def __init__(self) -> None:
        super().__init__("none")


class WitnessedChat:
    """A model whose real failures are kept: the memory goes on without it, and no story may be judged by that."""

    def __init__(self, inner: ChatModel) -> None:
        self.name = inner.name
        self.failures: list[MemorySystemError] = []
        self._inner = inner

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        purpose: str = REPLY,
        temperature: float | None = None,
        response_schema: Mapping[str, Json] | None = None,
    ) -> Reply:
        try:
            return await self._inner.chat(
                messages, tools, purpose=purpose, temperature=temperature, response_schema=response_schema
            )
        except MemorySystemError as error:
            self.failures.append(error)
            raise


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
    """What the options decide; `anonymous` are users without a user id, the empty text being the case's own.

    `store` is where a durable memory lies; incognito has none.
    """

    config: LayersConfig
    mode: MemoryMode
    anonymous: frozenset[str]
    has_model: bool
    store: str

    @property
    def is_in_postgres(self) -> bool:
        """Whether the memory lies in Postgres."""
        return self.mode.is_durable and self.store == POSTGRES


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
    store = env.options.get("store", SQLITE)
    if store not in STORES:
        raise InputError(f"options: store is {store!r:.80}; allowed: {', '.join(STORES)}")
    return LayersChoice(
        config=LayersConfig().changed({name: env.options[name] for name in CONFIG if name in env.options}, "options"),
        mode=parse_mode(mode),
        anonymous=frozenset(anonymous),
        has_model=bool(env.model_rules) or env.options.get("chat", OFFLINE) != OFFLINE,
        store=store,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersEnvironment:
    """The ports of a case, and what really failed of its model."""

    ports: EnvironmentPorts
    model_failures: Sequence[MemorySystemError]


def layers_ports(env: Environment, choice: LayersChoice, make_embedder: MakeEmbedder) -> LayersEnvironment:
    """Return the ports of `env`, with a switch for what is asked of the model after the reply."""
    host, chat = env.options.get("ollama_host", default_topics().ollama_host), env.options.get("chat", OFFLINE)
    if choice.mode.is_durable:
        embedder = env.options.get("embedder", MINILM)
        ports = environment_ports(env, make_embedder=make_embedder, embedder=embedder, chat=chat, ollama_host=host)
    else:
        ports = _without_a_trace(env)
    inner = ScriptedChat(env.model_rules) if env.model_rules else make_chat(chat, None, ollama_host=host)
    witnessed = WitnessedChat(inner)
    reply, after = FaultyChat(witnessed), FaultyChat(witnessed)
    ports.chat = LoggedChat(AfterReply(reply, after))
    ports.switches |= {"model": reply, EXTRACTOR: after}
    return LayersEnvironment(ports=ports, model_failures=witnessed.failures)


def _without_a_trace(env: Environment) -> EnvironmentPorts:
    embedder = FaultyEmbedder(NullEmbedder())
    return EnvironmentPorts(
        embedder=LoggedEmbedder(embedder),
        chat=LoggedChat(make_chat(OFFLINE, None, ollama_host="")),
        new_id=counted_ids(env.seed),
        switches={"embedder": embedder},
        failures=[],
    )


def counted_ids(seed: int) -> NewId:
    """Return a source of ids that writes nothing down: what has them ends with the process."""
    numbers = count()
    return lambda: blake2b(f"incognito/{seed}/{next(numbers)}".encode(), digest_size=16).hexdigest()
