"""The backend's add, get and search as tools for a chat model: their schemas, and what they answer.

The names are those that stories use. What a tool refuses is in its result, for the model to read; a backend that breaks
raises, as that is not an answer.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memstory.contract.errors import NotSupported, Refused
from memstory.contract.models import ToolRequest
from memstory.contract.target import (
    Capability,
    Hit,
    Item,
    Query,
    Ref,
    Request,
    Responder,
    Scope,
    Target,
    ToolCall,
    ToolSchema,
    Tree,
)
from memstory.contract.texts import did_you_mean

FOUND_AT_MOST = 5
NOTHING_FOUND = "No memories found."

_KEYS: Final = ("add.key", "get.key")
_TO_REPLACE: Final = ("get.key", "delete")
_TOPIC_TEXT = "The topic: user.*, project.* or constraint.*, such as 'user.name'."


def _schema(name: str, description: str, required: Sequence[str], **arguments: str) -> ToolSchema:
    properties = {argument: {"type": "string", "description": text} for argument, text in arguments.items()}
    wanted = {"required": list(required)} if required else {}
    return ToolSchema(
        name=name, description=description, parameters={"type": "object", "properties": properties, **wanted}
    )


_SAVE_TOPIC = _schema(
    "save_topic",
    "Remember a preference, a rule or a fact for good, under a topic; it replaces what the topic held.",
    ("topic", "content"),
    topic=_TOPIC_TEXT,
    content="The value to remember.",
)
_RECALL_TOPIC = _schema(
    "recall_topic",
    "Look up what is remembered under a topic that you know or can guess.",
    ("topic",),
    topic=_TOPIC_TEXT,
)
_SAVE_MEMORY = _schema(
    "save_memory",
    "Remember something worth knowing later that belongs under no topic.",
    ("content",),
    content="What to remember, in a sentence that can be understood alone.",
)
_SEARCH_MEMORY = _schema(
    "search_memory",
    "Search everything that is remembered, earlier conversations too, by meaning.",
    ("query",),
    query="What to look for.",
)
_MEMORY_SAVE = replace(_SAVE_TOPIC, name="memory_save")
_MEMORY_RECALL = _schema(
    "memory_recall",
    "Look into the memory: with 'topic' for what is remembered under it, or with 'query' to search everything that is "
    "remembered, earlier conversations too. Give one of the two.",
    (),
    topic=_TOPIC_TEXT,
    query="What to look for.",
)

TOOLSETS: Mapping[str, Sequence[ToolSchema]] = {
    "single": (_SAVE_TOPIC, _RECALL_TOPIC, _SAVE_MEMORY, _SEARCH_MEMORY),
    "dual": (_MEMORY_RECALL, _MEMORY_SAVE),
    "notes": (_SAVE_MEMORY, _SEARCH_MEMORY),
}
"""`notes` is for backends that keep nothing under a key of the caller's; a story may ask for any of them."""


def usual_toolset(able: frozenset[Capability]) -> str:
    """Return the toolset for a backend that can do `able`, where nobody chose one.

    >>> usual_toolset(frozenset({"add", "search"}))
    'notes'
    """
    return "single" if able.issuperset(_KEYS) else "notes"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTools:
    """The tools of one toolset over one open backend, which can do `able`."""

    target: Responder
    able: frozenset[Capability]
    schemas: Sequence[ToolSchema]

    async def call(self, request: ToolRequest, scope: Scope) -> ToolCall:
        """Return the call with its result, or with why it was refused.

        Raises:
            NotSupported: the tool needs what the backend cannot do.
        """
        given = {name: value for name, value in request.arguments.items() if not _is_blank(value)}
        wrong = self._wrong(request.name, given)
        if wrong is not None:
            return ToolCall(name=request.name, args=request.arguments, error=f"error: {wrong}")
        try:
            return ToolCall(
                name=request.name, args=request.arguments, result=await self._do(request.name, given, scope)
            )
        except Refused as refusal:
            return ToolCall(name=request.name, args=request.arguments, error=f"refused: {refusal}")

    async def _do(self, name: str, given: Mapping[str, str], scope: Scope) -> str:
        calls: Mapping[str, Callable[[Mapping[str, str], Scope], Awaitable[str]]] = {
            "save_topic": self._save_topic,
            "memory_save": self._save_topic,
            "recall_topic": self._recall_topic,
            "memory_recall": self._recall,
            "save_memory": self._save,
            "search_memory": self._search,
        }
        return await calls[name](given, scope)

    async def _save_topic(self, args: Mapping[str, str], scope: Scope) -> str:
        self._need("add.key", "keeps a text under a topic")
        topic = args["topic"]
        return f"Memory saved: {topic}{await self._put(topic, args['content'], scope)}"

    async def _put(self, topic: str, text: str, scope: Scope) -> str:
        """Add `text` under a topic; a backend that keeps the first text of a key has that one deleted before."""
        owner = Scope(user=scope.user)
        try:
            return await self._add(Item(text=text, key=topic), scope)
        except Refused:
            held = None
            if self.able.issuperset(_TO_REPLACE):
                held = await self.target.perform(Request.of(Target.get, Ref(key=topic), owner))
            if held is None or held.text == text:
                raise
            await self.target.perform(Request.of(Target.delete, Ref(id=held.id), owner))
        try:
            return await self._add(Item(text=text, key=topic), scope)
        except Refused:
            # The new text itself is refused: what was held stays.
            await self._add(Item(text=held.text, key=topic), scope)
            raise

    async def _recall_topic(self, args: Mapping[str, str], scope: Scope) -> str:
        self._need("get.key", "looks up a topic")
        found = await self.target.perform(Request.of(Target.get, Ref(key=args["topic"]), Scope(user=scope.user)))
        if found is None:
            return f"No memory is kept under '{args['topic']}'."
        # On one line, so that no remembered text looks like a second entry.
        return f"[Memory: {args['topic']}] {' '.join(found.text.split())}"

    async def _recall(self, args: Mapping[str, str], scope: Scope) -> str:
        return await (self._recall_topic if "topic" in args else self._search)(args, scope)

    async def _save(self, args: Mapping[str, str], scope: Scope) -> str:
        return f"Memory saved.{await self._add(Item(text=args['content']), scope)}"

    async def _add(self, item: Item, scope: Scope) -> str:
        """Add `item`; return what its receipt says of it, in brackets, for the model must know if a part was left out.

        A backend that takes it and keeps nothing of it has not saved it.
        """
        receipt = await self.target.perform(Request.of(Target.add, [item], scope))
        if receipt.items and not any(one.is_kept for one in receipt.items):
            reason = next((one.reason for one in receipt.items if one.reason), "the memory did not keep it")
            raise Refused(f"this is not stored: {reason}")
        reasons = "; ".join(dict.fromkeys(one.reason for one in receipt.items if one.is_kept and one.reason))
        return f" ({reasons})" if reasons else ""

    async def _search(self, args: Mapping[str, str], scope: Scope) -> str:
        query = Query(text=args["query"], top_k=FOUND_AT_MOST)
        hits = await self.target.perform(Request.of(Target.search, query, Scope(user=scope.user)))
        if not hits:
            return NOTHING_FOUND
        return json.dumps({"memories": [_as_json(hit) for hit in hits[:FOUND_AT_MOST]]}, ensure_ascii=False)

    def _need(self, capability: Capability, what: str) -> None:
        if capability not in self.able:
            reason = f"the model's tool {what}, and the target does not support '{capability}'"
            raise NotSupported(capability, reason)

    def _wrong(self, name: str, given: Mapping[str, Tree]) -> str | None:
        """Return what is wrong with a call, or None: models call tools that are not there, with what they like."""
        known = {schema.name: schema.parameters for schema in self.schemas}
        if name not in known:
            return f"there is no tool named {name[:80]!r}; there are: {', '.join(known)}.{did_you_mean(name, known)}"
        allowed: Mapping[str, Tree] = known[name]["properties"]
        wrong = {
            "is missing": [one for one in known[name].get("required", ()) if one not in given],
            "is unknown": [one for one in given if one not in allowed],
            "must be text": [one for one, value in given.items() if not isinstance(value, str)],
        }
        for said, names in wrong.items():
            if names:
                return f"the argument '{names[0]}' {said}; '{name}' takes {', '.join(allowed)}"
        return None if given else f"'{name}' takes one of {', '.join(allowed)}"


def _is_blank(value: Tree) -> bool:
    """Say whether a model has left this argument out: of two that may be given it fills in both, one with nothing."""
    return value is None or (isinstance(value, str) and not value.strip())


def _as_json(hit: Hit) -> Mapping[str, Tree]:
    shown = {"text": hit.text, "topic": hit.key, "created_at": hit.created_at, "score": hit.score}
    return {name: value for name, value in shown.items() if value is not None}
