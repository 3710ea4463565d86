"""Environment -> ports: what a story decides about embedder, language model, ids and faults, for every system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from pathlib import Path

import numpy as np

from memstory.contract.clock import Stopwatch
from memstory.contract.errors import NotSupported, SetupError, StoryError
from memstory.contract.target import Environment
from memstory.models.conversation import CountedChat
from memstory.models.scripted_chat import ScriptedChat
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors, IdleEmbedder
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES, Profile, ProfiledEmbedder
from memstory_reference.adapters.faults import CHAT_MODEL, FaultSwitch, faulty_vector_store, modes_of
from memstory_reference.adapters.watched import WatchedEmbedder, WatchedModel
from memstory_reference.composition.chat_models import make_chat, own_embedder
from memstory_reference.ports import NewId, Purpose, Vectors, VectorStore
from memstory_reference.setting_rules import CheckedSettings

FILE = "opened"
NOTHING = "none"
"""What a report calls the embedder of a memory without vectors; the log above it shows that it is never asked."""


def seeded_ids(workspace: Path, seed: int) -> NewId:
    """Return a source of ids from `seed`, how often the workspace was opened, and a count.

    The opening is written before the first id is given, so that ids go on without collision after a restart or crash.
    SetupError where it cannot be written.
    """
    file = workspace / FILE
    try:
        opened = _open_once_more(file)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SetupError(f"{file}: the workspace cannot be written ({reason}); choose another folder") from error
    numbers = count()
    return lambda: blake2b(f"{seed}/{opened}/{next(numbers)}".encode(), digest_size=16).hexdigest()


def counted_ids(seed: int) -> NewId:
    """Return a source of ids that writes nothing down: what has them ends with the process."""
    numbers = count()
    return lambda: blake2b(f"incognito/{seed}/{next(numbers)}".encode(), digest_size=16).hexdigest()


def _open_once_more(file: Path) -> int:
    """Add a byte to the file; return how many it has with that one: of several processes, each gets its own number."""
    # Not waited for until it is on the disk: stories kill processes, never the machine.
    with file.open("ab", buffering=0) as opened:
        opened.write(b".")
        return opened.tell()


MakeEmbedder = Callable[[str, str], ProfiledEmbedder]
"""Name and Ollama's address to an embedder; a factory shares what is expensive to load among its targets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPorts:
    """What a system runs on in a case.

    `switches` are the parts that the story can make fail; `embedding` runs while something is embedded, `counted`
    counts what the language model is asked. `has_zero_vector` is whether the story scripts an embedder that answers so.
    """

    embedder: WatchedEmbedder
    embedding: Stopwatch
    counted: CountedChat
    chat: WatchedModel
    new_id: NewId
    switches: dict[str, FaultSwitch]
    has_zero_vector: bool = False

    def with_faults(self, store: VectorStore) -> VectorStore:
        """Return `store` as one that the story can make fail."""
        return faulty_vector_store(store, self.switches["store"])

    def set_fault(self, part: str, mode: str) -> None:
        """Make `part` behave as `mode` from now on."""
        if part not in self.switches:
            raise NotSupported(f"fault.{part}")
        allowed = modes_of(self.switches[part].part)
        if mode not in allowed:
            raise StoryError(f"fault: {part} has no mode {mode!r}; allowed: {', '.join(allowed)}")
        self.switches[part].mode = mode

    @property
    def is_fault_injected(self) -> bool:
        """Whether the story has made some part fail."""
        return self.has_zero_vector or any(switch.mode != "ok" for switch in self.switches.values())


class OtherModel:
    """Another model than that of `inner`: its vectors have the same length, and no likeness to those of `inner`."""

    def __init__(self, inner: ProfiledEmbedder) -> None:
        self.model = f"other-{inner.model}"
        self.dimension = inner.dimension
        self.profile = inner.profile
        self._inner = inner

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """Return the vectors of `inner` backwards."""
        vectors = await self._inner.embed(texts, purpose)
        self.dimension = self._inner.dimension
        return np.flip(vectors, axis=1)


def environment_ports(
    env: Environment,
    settings: CheckedSettings,
    make_embedder: MakeEmbedder,
    *,
    profile: Profile = NO_PREFIXES,
    new_id: NewId | None = None,
    after_reply: str | None = None,
) -> EnvironmentPorts:
    """Return the ports of `env`: its fixed vectors and scripted model where it has them, else the models of `settings`.

    `after_reply` names the part of the model that does not answer the user, and so gets a switch. Where the memory has
    no vectors, nothing is embedded for the stand-in either.
    """
    inner: ProfiledEmbedder = IdleEmbedder(NOTHING)
    if settings.embeds and env.vectors:
        inner = FixedVectors(env.vectors, profile=profile)
    elif settings.embeds:
        inner = make_embedder(settings.embedding_model, settings.ollama_host)
    if env.other_embedder:
        inner = OtherModel(inner)
    switches = {"embedder": FaultSwitch("embedder"), "model": FaultSwitch(CHAT_MODEL), "store": FaultSwitch("store")}
    if after_reply is not None:
        switches[after_reply] = FaultSwitch(CHAT_MODEL)
    embedding = Stopwatch()
    embedder = WatchedEmbedder(inner, switches["embedder"], timed=embedding.running)

    def compared() -> WatchedEmbedder | None:
        # The stand-in's own: never the story's vectors, in no log, and out of reach of the story's faults.
        own = own_embedder() if settings.embeds else None
        return WatchedEmbedder(own, timed=embedding.running) if own else None

    model = (
        ScriptedChat(env.model_rules)
        if env.model_rules
        else make_chat(settings.chat, compared, ollama_host=settings.ollama_host)
    )
    counted = CountedChat(model)
    return EnvironmentPorts(
        embedder=embedder,
        embedding=embedding,
        counted=counted,
        chat=WatchedModel(counted, switches["model"], after_reply=switches.get(after_reply or "")),
        new_id=new_id or seeded_ids(Path(env.workspace), env.seed),
        switches=switches,
        has_zero_vector=not all(map(any, env.vectors.values())),
    )
