"""A chat model scripted by stateless rules, so that restarts, crashes and parallel users do not confuse it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from memstory.contract.errors import MemstoryError
from memstory.contract.models import ChatRequest, Message, Reply, ToolRequest
from memstory.contract.values import Tree

SHOWN_CHARACTERS = 2_000


class UnscriptedCallError(MemstoryError):
    """A call that no rule of the story answers; it shows the prompt, for the story's author to write one."""


class ScriptedChat:
    """Answers by the first rule `{when: {purpose, contains, tool_result_contains}, reply}` that fits the call.

    `contains` looks at the last message that no tool wrote, `tool_result_contains` at the tool results behind it. A
    rule without `tool_result_contains` does not fit a call that has tool results, unless it says nothing of `when`.
    """

    name = "scripted by the story"

    def __init__(self, rules: Sequence[Mapping[str, Tree]]) -> None:
        self._rules = rules

    async def chat(self, request: ChatRequest) -> Reply:
        said, results = _split(request.messages)
        for rule in self._rules:
            if _fits(rule.get("when") or {}, request.purpose, said, results):
                return reply_of(rule["reply"])
        raise UnscriptedCallError(_no_rule_message(request.purpose, said, results, self._rules))


def _no_rule_message(purpose: str, said: str, results: Sequence[str], rules: Sequence[Mapping[str, Tree]]) -> str:
    prompt = [_shorten(said), *(f"[tool result] {_shorten(result)}" for result in results)]
    conditions = [
        f"  {number}. when: {json.dumps(rule.get('when') or {}, ensure_ascii=False)}"
        for number, rule in enumerate(rules, 1)
    ]
    return "\n".join(
        [
            f"no rule under `model:` fits this call (purpose {purpose}):",
            *prompt,
            "the rules are:" if rules else "there are no rules.",
            *conditions,
            f"Add a rule, such as: {{when: {{purpose: {purpose}, contains: ...}}, reply: ...}}",
        ]
    )


def _shorten(text: str) -> str:
    """Return the beginning and the end of a long text: what is asked often stands last."""
    half = SHOWN_CHARACTERS // 2
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:half]}\n[…]\n{text[-half:]}"


def _split(messages: Sequence[Message]) -> tuple[str, list[str]]:
    """Return what was said last, and the tool results that came after it."""
    results: list[str] = []
    for message in reversed(messages):
        if message.role == "tool":
            results.insert(0, message.content)
        elif not message.tool_requests:
            return message.content, results
    return "", results


def _fits(when: Mapping[str, Tree], purpose: str, said: str, results: Sequence[str]) -> bool:
    if when.get("purpose", purpose) != purpose:
        return False
    reads_results = not when or bool(_texts(when.get("tool_result_contains")))
    return (reads_results or not results) and has_texts(when, said, results)


def has_texts(when: Mapping[str, Tree], said: str, results: Sequence[str]) -> bool:
    """Return whether the texts of a rule's `contains` are in `said`, and those of `tool_result_contains` in results."""
    wanted = _texts(when.get("tool_result_contains"))
    is_said = all(part in said for part in _texts(when.get("contains")))
    return is_said and all(any(part in result for result in results) for part in wanted)


def reply_of(reply: Tree) -> Reply:
    """Return the `reply` of a rule: a text, or a mapping with `text`, `tool_calls` and `thinking`."""
    if isinstance(reply, str):
        return Reply(content=reply)
    requests = [
        ToolRequest(name=call["name"], arguments=call.get("args") or {}) for call in reply.get("tool_calls") or ()
    ]
    return Reply(content=reply.get("text") or "", tool_requests=requests, thinking=reply.get("thinking"))


def _texts(value: Tree) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
