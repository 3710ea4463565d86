"""Writes a shrunk program as a story: its operations as steps, and at the last one what the memory owes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import yaml

from memstory.contract.values import Item, Tree
from memstory.exploring.model import PROMISES, Violation, subject_of
from memstory.exploring.programs import OWNER, Action, Memo, Program
from memstory.language.stories import parse_stories
from memstory.language.story import Story

_AT_ONCE: Final = "Note ${{i}} of {user}: written at once."
_WIDTH: Final = 110
_NO_REFERENCE: Final = re.compile(r"\$\{(?!(m\d+|i)\})")


def story_text(id_: str, title: str, program: Program, violation: Violation) -> str:
    """Return the YAML of a story that fails where the program breaks the promise."""
    operations = program.operations
    is_shared = len(program.users) > 1 or program.users != {OWNER}
    named = {one.memory for one in operations if one.by == "id"} | _names_in(violation.expect)
    items: dict[str, Item] = {}
    steps = []
    for one in operations:
        steps.append(_step(one, named, items, is_shared=is_shared))
        if one.op == "update" and one.memory in items:
            items[one.memory] = replace(items[one.memory], text=one.memos[0].item.text)
        elif one.op == "add":
            items |= {memo.name: memo.item for memo in one.memos}
    _innermost(steps[-1])["expect"] = _expectation(violation, operations)
    if not _innermost(steps[-1])["expect"]:
        del _innermost(steps[-1])["expect"]
    promise = PROMISES[violation.promise]
    tree = {"story": id_, "title": title, "tags": ["explored", violation.promise], "harm": promise.harm,
            "steps": _escape(steps)}  # fmt: skip
    text: str = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=None)
    return text


def _escape(tree: Any) -> Any:
    """Return a tree in which only references to memories and counters are read as such."""
    if isinstance(tree, str):
        return _NO_REFERENCE.sub("$${", tree)
    if isinstance(tree, Mapping):
        return {name: _escape(value) for name, value in tree.items()}
    return [*map(_escape, tree)] if isinstance(tree, (list, tuple)) else tree


def read_story(text: str) -> Story | str:
    """Return the story, or why the language cannot say it."""
    (story,) = parse_stories(text, "explored")
    return story if isinstance(story, Story) else "; ".join(one.message for one in story.errors)


def _innermost(step: dict[str, Any]) -> dict[str, Any]:
    inner = step.get("other_process")
    return _innermost(inner["steps"][0]) if inner else step


def _names_in(expect: Tree) -> set[str]:
    if isinstance(expect, Mapping):
        return set().union(*(_names_in(one) for one in expect.values()))
    return {expect.removeprefix("${").removesuffix("}")} if isinstance(expect, str) else set()


def _expectation(violation: Violation, operations: Sequence[Action]) -> Tree:
    """Return what the last step expects; of memories that were added at once, whichever was lost, all of them."""
    at_once = [one for one in operations if one.at_once]
    memos = [memo for one in at_once for memo in one.memos]
    if not {named for memo in memos for named in (memo.name, memo.item.text)} & _names_in(violation.expect):
        return dict(violation.expect)
    user = operations[-1].user
    if violation.promise == "apart":
        others = {one.owner_of(place) for one in at_once for place in range(len(one.memos))} - {user}
        theirs = [f" of {other}: written at once." for other in sorted(others)]
        return {"hits": {"text": {"not": {"contains_any": theirs}}}}
    own = sum(one.owner_of(place) == user for one in at_once for place in range(len(one.memos)))
    texts = [_AT_ONCE.format(user=user).replace("${i}", str(i)) for i in range(own)]
    return {"hits": {"includes": [{"text": text} for text in texts]}}


def _step(operation: Action, named: set[str], items: Mapping[str, Item], *, is_shared: bool) -> dict[str, Any]:
    step: dict[str, Any] = {operation.op: _argument(operation, named, items)}
    match operation.op:
        case "delete all":
            step = {"delete": {"all": True}}
        case "advance":
            return {"advance": f"{operation.seconds:.0f}s"}
        case "restart" | "crash":
            return {operation.op: None}
        case _:
            pass
    if is_shared:
        step["as"] = operation.user
    if operation.session is not None:
        step["session"] = operation.session
    if operation.at_once:
        users = [operation.user, *([operation.second] if operation.second is not None else [])]
        steps = [{**step, "add": _AT_ONCE.format(user=user), **({"as": user} if is_shared else {})} for user in users]
        step = {"parallel": {"times": math.ceil(len(operation.memos) / len(users)), "steps": steps}}
    return {"other_process": {"steps": [step]}} if operation.elsewhere else step


def _argument(operation: Action, named: set[str], items: Mapping[str, Item]) -> Tree:
    match operation.op:
        case "add":
            return [_item(memo, named) for memo in operation.memos]
        case "list":
            return None if operation.limit is None else {"limit": operation.limit}
        case "search" | "context":
            more = {"top_k": operation.limit, "where": dict(operation.where) or None}
            return {"query": operation.text, **{name: value for name, value in more.items() if value is not None}}
        case _:
            one = items.get(operation.memory)
            by: Tree = "${" + operation.memory + "}"
            if one is not None and operation.by != "id":
                things = [one, *(items[name] for name in (operation.more,) if name in items)]
                by = one.key if operation.by == "key" else [subject_of(thing.text) or "" for thing in things]
            durable = {"durable": True} if operation.durable else {}
            if operation.op != "update":
                return {operation.by: by, **durable}
            new = operation.memos[0].item
            return {operation.by: by, "text": new.text, **({"metadata": dict(new.metadata)} if new.metadata else {})}


def _item(memo: Memo, named: set[str]) -> dict[str, Any]:
    item = memo.item
    fields: dict[str, Any] = {"text": item.text}
    if item.key is not None:
        fields["key"] = item.key
    if item.kind is not None:
        fields["kind"] = item.kind
    if item.metadata:
        fields["metadata"] = dict(item.metadata)
    if item.ttl is not None:
        fields["ttl"] = f"{item.ttl:.0f}s"
    if memo.name in named:
        fields["save"] = memo.name
    return fields
