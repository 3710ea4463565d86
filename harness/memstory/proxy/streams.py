"""A whole answer as the stream that a caller asked for: one piece for the text and one for each tool call.

Whole pieces keep ids whole: one that is split over two pieces could not be filled in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from memstory.contract.values import Tree


def as_stream(answer: Mapping[str, Tree], *, with_usage: bool) -> Iterator[bytes]:
    """Yield the events of a chat completion."""
    head = {name: answer.get(name) for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for choice in answer.get("choices") or ():
        index, message = choice.get("index", 0), dict(choice.get("message") or {})
        calls = message.pop("tool_calls", None) or ()
        pieces = [{name: value for name, value in message.items() if value is not None}]
        pieces += [{"tool_calls": [{"index": place, **call}]} for place, call in enumerate(calls)]
        for delta in pieces:
            yield _event({**head, "choices": [{"index": index, "delta": delta, "finish_reason": None}]})
        end = choice.get("finish_reason") or "stop"
        yield _event({**head, "choices": [{"index": index, "delta": {}, "finish_reason": end}]})
    if with_usage and answer.get("usage"):
        yield _event({**head, "choices": [], "usage": answer["usage"]})
    yield b"data: [DONE]\n\n"


def _event(chunk: Tree) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode(errors="backslashreplace")
