"""What a model's reply looks like when the model does badly, as messages and answers of OpenAI's protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from memstory.contract.values import Tree

REPLIES: Final[Mapping[str, str]] = {
    "cut": "ends in its middle",
    "fenced": "stands in a fence of Markdown, with prose around it",
    "list": "is a list of what was to be an object",
    "strings": "has texts where objects were to be",
    "refusal": "says that it cannot help",
    "empty": "says nothing",
    "foreign": "answers in another language, in prose",
    "busy": "is refused once with 429, and comes at the next try",
    "broken": "fails once with 500, and comes at the next try",
    "timeout": "fails once with 408, and comes at the next try",
}
"""How a reply can be spoiled, each with what it then does."""

STATUSES: Final[Mapping[str, int]] = {"busy": 429, "broken": 500, "timeout": 408}
"""The ways that fail once, each with its HTTP status."""

_PROSE: Final[Mapping[str, str]] = {
    "refusal": "I'm sorry, but I can't help with that.",
    "empty": "",
    "foreign": "Natürlich! Das merke ich mir gern, danke für den Hinweis.",
}


def spoil(mode: str, message: Mapping[str, Tree]) -> dict[str, Tree]:
    """Return the `message` of a reply as a model gives it that does as `REPLIES` says of `mode`."""
    if mode in _PROSE:
        return {"role": "assistant", "content": _PROSE[mode]}
    change, calls = _CHANGES[mode], message.get("tool_calls")
    if not calls:
        return {**message, "content": change(message.get("content") or "")}
    if mode == "fenced":
        return {**message, "content": "Sure, I will keep this:"}
    spoiled = [
        {**call, "function": {**call["function"], "arguments": change(call["function"]["arguments"])}} for call in calls
    ]
    return {**message, "tool_calls": spoiled}


def _as_strings(text: str) -> str:
    try:
        tree = json.loads(text)
    except ValueError:
        return re.sub(r"<[^>]*>", "", text)
    return json.dumps(_flat(tree))


def _flat(tree: Tree) -> Tree:
    """Return {"memory": [{"text": "x"}]} as {"memory": ["x"]}, and an object without such a list as its first text."""
    lists = {name: value for name, value in tree.items() if isinstance(value, list)} if isinstance(tree, dict) else {}
    if any(isinstance(one, dict) for value in lists.values() for one in value):
        return {**tree, **{name: [_first_text(one) for one in value] for name, value in lists.items()}}
    return _first_text(tree)


def _first_text(tree: Tree) -> Tree:
    texts = [value for value in tree.values() if isinstance(value, str)] if isinstance(tree, dict) else []
    return max(texts, key=len) if texts else tree


_CHANGES: Final[Mapping[str, Callable[[str], str]]] = {
    "cut": lambda text: text[: len(text) // 2],
    "fenced": lambda text: f"Sure, here is what I would keep:\n\n```json\n{text}\n```\n\nShall I go on?",
    "list": lambda text: f"[{text}]",
    "strings": _as_strings,
}
