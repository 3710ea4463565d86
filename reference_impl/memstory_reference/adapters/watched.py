"""Embedders and chat models that are watched: what they are asked, what they fail at, and faults on demand."""

from __future__ import annotations

import json
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace

import numpy as np

from memstory.contract.errors import MemstoryError, UnavailableError
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
from memstory.contract.values import Tree
from memstory.models.spoiled_replies import spoil
from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder, sent_texts
from memstory_reference.adapters.faults import CHAT_MODEL, FaultSwitch
from memstory_reference.ports import EmbedderUnavailableError, Purpose, Vectors

KEPT_TEXTS = 10_000
"""Texts that are kept; the counts go on beyond."""

KEPT_CALLS = 1_000


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
