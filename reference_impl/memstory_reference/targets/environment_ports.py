"""The parts of a memory in a case: what a story decides about them, what they are asked, how they fail on demand."""

from __future__ import annotations

import asyncio
import json
from array import array
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from inspect import iscoroutinefunction
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from memstory.contract.clock import Stopwatch
from memstory.contract.errors import MemstoryError, NotSupported, SetupError, StoryError, UnavailableError
from memstory.contract.models import (
    REPLY,
    BrokenReplyError,
    ChatModel,
    ChatModelUnavailableError,
    ChatRequest,
    PromptTooLongError,
    Reply,
    ToolRequest,
)
from memstory.contract.target import Environment, Tree
from memstory.models.conversation import CountedChat
from memstory.models.scripted_chat import ScriptedChat
from memstory.models.spoiled_replies import REPLIES, STATUSES, spoil
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors, IdleEmbedder
from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES, Profile, ProfiledEmbedder, sent_texts
from memstory_reference.composition.chat_models import make_chat, no_embedder, own_embedder
from memstory_reference.ports import EmbedderUnavailableError, NewId, Purpose, Vectors
from memstory_reference.setting_rules import CheckedSettings

FILE = "opened"
NOTHING = "none"
"""What a report calls the embedder of a memory without vectors; the log above it shows that it is never asked."""

KEPT_TEXTS = 10_000
"""Texts that are kept; the counts go on beyond."""

KEPT_CALLS = 1_000
SLOW_SECONDS = 0.2
CHAT_MODEL: Final = "chat model"
MODES = ("ok", "down", "slow", "garbage")
"""How a part behaves; `garbage` answers in the right form with wrong content."""

SPOILED = tuple(mode for mode in REPLIES if mode not in STATUSES)
"""How a chat model may reply beside that."""

MakeEmbedder = Callable[[str, str], ProfiledEmbedder]
"""Name and Ollama's address to an embedder; a factory shares what is expensive to load among its targets."""


class EnvironmentPorts:
    """What a system runs on in a case: fixed vectors, a scripted model where `env` has them, else those of `settings`.

    `switches` are the parts that the story can make fail; `embedding` runs while something is embedded, `counted`
    counts what the language model is asked. `after_reply` names the part of the model that does not answer the user,
    and so gets a switch. Where the memory has no vectors, nothing is embedded for the stand-in either.
    """

    def __init__(
        self,
        env: Environment,
        settings: CheckedSettings,
        make_embedder: MakeEmbedder,
        *,
        profile: Profile = NO_PREFIXES,
        new_id: NewId | None = None,
        after_reply: str | None = None,
    ) -> None:
        inner: ProfiledEmbedder = IdleEmbedder(NOTHING)
        if settings.embeds and env.vectors:
            inner = FixedVectors(env.vectors, profile=profile)
        elif settings.embeds:
            inner = make_embedder(settings.embedding_model, settings.ollama_host)
        if env.other_embedder:
            inner = OtherModel(inner)
        parts = {"embedder": "embedder", "model": CHAT_MODEL, "store": "store"}
        if after_reply is not None:
            parts[after_reply] = CHAT_MODEL
        self.switches = {name: FaultSwitch(part) for name, part in parts.items()}
        self.embedding = Stopwatch()
        self.embedder = WatchedEmbedder(inner, self.switches["embedder"], timed=self.embedding.running)
        self.counted = CountedChat(
            ScriptedChat(env.model_rules)
            if env.model_rules
            else make_chat(
                settings.chat, self._compared if settings.embeds else no_embedder, ollama_host=settings.ollama_host
            )
        )
        self.chat = WatchedModel(self.counted, self.switches["model"], after_reply=self.switches.get(after_reply or ""))
        self.new_id = new_id or seeded_ids(Path(env.workspace), env.seed)
        self._has_zero_vector = not all(map(any, env.vectors.values()))

    def _compared(self) -> WatchedEmbedder | None:
        # The stand-in's own: never the story's vectors, in no log, and out of reach of the story's faults.
        own = own_embedder()
        return WatchedEmbedder(own, timed=self.embedding.running) if own else None

    def set_fault(self, part: str, mode: str) -> None:
        """Make `part` behave as `mode` from now on."""
        if part not in self.switches:
            raise NotSupported(f"fault.{part}")
        allowed = self.switches[part].modes
        if mode not in allowed:
            raise StoryError(f"fault: {part} has no mode {mode!r}; allowed: {', '.join(allowed)}")
        self.switches[part].mode = mode

    @property
    def is_fault_injected(self) -> bool:
        """Whether the story has made some part fail, also by an embedder that answers with a zero vector."""
        return self._has_zero_vector or any(switch.mode != "ok" for switch in self.switches.values())


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


@dataclass(slots=True)
class FaultSwitch:
    """How one part behaves at the moment; `landed` counts how often it really failed, was slow, or told garbage."""

    part: str
    mode: str = "ok"
    landed: int = 0
    slow_seconds: float = SLOW_SECONDS

    @property
    def modes(self) -> Sequence[str]:
        """How the part can behave."""
        return (*MODES, *REPLIES) if self.part == CHAT_MODEL else MODES

    def garbles(self) -> bool:
        """Return whether the part has to answer with wrong content now, which then counts: not each call can."""
        self.landed += self.mode == "garbage"
        return self.mode == "garbage"

    def spoiling(self) -> str | None:
        """Return in which way a reply has to be spoiled now, if at all, which then counts."""
        self.landed += self.mode in SPOILED
        return self.mode if self.mode in SPOILED else None

    async def pass_or_fail(self, error: type[UnavailableError] = UnavailableError) -> None:
        """Wait or raise as the mode says, before the part is asked."""
        self.landed += self.mode in ("down", "slow")
        if self.mode == "down":
            raise error(f"the story has taken the {self.part} down")
        if self.mode in STATUSES:
            status, self.mode = STATUSES[self.mode], "ok"
            self.landed += 1
            raise error(f"the story has had the {self.part} fail once with {status}")
        if self.mode == "slow":
            await asyncio.sleep(self.slow_seconds)


class FaultyPort:
    """Anything with async methods, behind a switch.

    Most stories have no fault: nothing stands between the memory and its store then.
    """

    free: ClassVar[Collection[str]] = ()
    """Methods that work in every mode."""
    garbage: ClassVar[Mapping[str, Callable[[], object]]] = {}
    """Methods that can answer with wrong content, and with which."""

    def __init__(self, inner: Any, switch: FaultSwitch) -> None:
        self._inner = inner
        self._switch = switch

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if self._switch.mode == "ok" or name in self.free or not iscoroutinefunction(method):
            return method

        async def pass_or_fail(*args: Any, **kwargs: Any) -> Any:
            await self._switch.pass_or_fail()
            if name in self.garbage and self._switch.garbles():
                return self.garbage[name]()
            return await method(*args, **kwargs)

        return pass_or_fail


class _FaultyIndex(FaultyPort):
    garbage: ClassVar = {"query": list}


class FaultyVectorStore(FaultyPort):
    """A vector store and all its indexes; its garbage is that they find nothing."""

    # A store that is down is still closed: its folder must be free for the next to open it.
    free = frozenset({"close"})

    async def index(self, collection: str, owner: str) -> _FaultyIndex:
        await self._switch.pass_or_fail()
        return _FaultyIndex(await self._inner.index(collection, owner), self._switch)


class WatchedEmbedder:
    """An embedder with a log, above every cache, of what was really sent, with the prefixes of its profile.

    Its garbage is one and the same vector for every text. `failures` are the real ones: a system puts them into words,
    and no story may be judged by these. `timed` is entered while `inner` works.
    """

    def __init__(
        self,
        inner: ProfiledEmbedder,
        switch: FaultSwitch | None = None,
        *,
        timed: Callable[[], AbstractContextManager[object]] = nullcontext,
        kept: int = KEPT_TEXTS,
    ) -> None:
        self.model = inner.model
        self.dimension = inner.dimension
        self.profile = inner.profile
        self.failures: list[UnavailableError] = []
        self._inner = inner
        self._switch = switch or FaultSwitch("embedder")
        self._timed = timed
        self._texts_after = array("q", [0])  # position n: how many texts the first n calls held
        self._sent: deque[tuple[int, Purpose, str]] = deque(maxlen=kept)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        # Noted before the call: one that fails was made all the same.
        call = len(self._texts_after)
        self._texts_after.append(self._texts_after[-1] + len(texts))
        self._sent.extend((call, purpose, text) for text in sent_texts(self.profile, texts, purpose))
        await self._switch.pass_or_fail(EmbedderUnavailableError)
        try:
            with self._timed():
                vectors = await self._inner.embed(texts, purpose)
        except UnavailableError as error:
            self.failures.append(error)
            raise
        self.dimension = self._inner.dimension
        if self._switch.garbles():
            vectors = np.zeros_like(vectors)
            vectors[:, :1] = 1.0
        return vectors

    def data(self, since: int = 0) -> dict[str, Tree]:
        """Return `calls`, `texts`, `sent` and `purposes` of the calls after call number `since` (all by default).

        `sent` and `purposes` run in parallel, oldest first, and hold the latest texts only.
        """
        calls = len(self._texts_after) - 1
        since = min(max(since, 0), calls)
        kept = [(purpose, text) for call, purpose, text in self._sent if call > since]
        return {
            "calls": calls - since,
            "texts": self._texts_after[calls] - self._texts_after[since],
            "sent": [text for _, text in kept],
            "purposes": [purpose.value for purpose, _ in kept],
        }


class WatchedModel:
    """A chat model with a log of its calls; its garbage is neither language nor a tool call.

    `failures` are the real ones. `after_reply` is the switch of the calls that do not answer the user, where they
        have one.
    """

    def __init__(
        self, inner: ChatModel, switch: FaultSwitch | None = None, *, after_reply: FaultSwitch | None = None
    ) -> None:
        self.name = inner.name
        self.failures: list[MemstoryError] = []
        self._inner = inner
        self._switch = switch or FaultSwitch(CHAT_MODEL)
        self._after_reply = after_reply or self._switch
        self._calls = 0
        self._log: deque[dict[str, Tree]] = deque(maxlen=KEPT_CALLS)

    async def chat(self, request: ChatRequest) -> Reply:
        self._calls += 1
        entry: dict[str, Tree] = {
            "call": self._calls,
            "purpose": request.purpose,
            "temperature": request.temperature,
            "messages": [asdict(message) for message in request.messages],
            "tools": [tool.name for tool in request.tools],
            "reply": None,
        }
        # Noted before the call: one that fails was made all the same.
        self._log.append(entry)
        switch = self._switch if request.purpose == REPLY else self._after_reply
        await switch.pass_or_fail(ChatModelUnavailableError)
        if switch.garbles():
            reply = Reply(content='{"": [[[ ...')
        else:
            try:
                reply = await self._inner.chat(request)
            except (BrokenReplyError, PromptTooLongError):
                raise  # the model was there: what a memory makes of that is the story's to judge
            except MemstoryError as error:
                self.failures.append(error)
                raise
            if mode := switch.spoiling():
                reply = spoiled_reply(mode, reply)
        entry["reply"] = asdict(reply)
        return reply

    def data(self, since: int = 0) -> dict[str, Tree]:
        """Return `calls` and the `log` of the calls after call number `since`."""
        return {
            "calls": max(0, self._calls - max(since, 0)),
            "log": [entry for entry in self._log if entry["call"] > since],
        }


def spoiled_reply(mode: str, reply: Reply) -> Reply:
    """Return a reply as a model gives it that does badly; arguments that are no JSON break it off."""
    calls = [
        {"function": {"name": one.name, "arguments": json.dumps(dict(one.arguments))}} for one in reply.tool_requests
    ]
    spoiled = spoil(mode, {"role": "assistant", "content": reply.content, **({"tool_calls": calls} if calls else {})})
    requests = []
    for call in spoiled.get("tool_calls") or ():
        name, arguments = call["function"]["name"], _arguments(call["function"]["arguments"])
        if arguments is None:
            raise BrokenReplyError(f"the story has spoiled the arguments of the call of {name}")
        requests.append(ToolRequest(name=name, arguments=arguments))
    return replace(reply, content=spoiled["content"], tool_requests=tuple(requests))


def _arguments(text: str) -> dict[str, Tree] | None:
    try:
        arguments = json.loads(text)
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None
