"""What a story needs of a target follows from its steps and expectations; nobody types it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memstory.language.story import Expectation, Matcher, Step
from memstory.target import Capability

_FROM_ARGUMENTS = {"min_score": "search.min_score", "where": "search.where", "token_budget": "search.budget"}
_SIMPLE = {
    "at": "clock", "advance": "clock", "end_session": "session", "say": "chat", "tools": "tool.schema",
    **{op: op for op in ("search", "list", "update", "delete", "feedback", "context", "tool", "restart", "crash")},
}  # fmt: skip
_WITHOUT_A_USER = frozenset(
    {"settle", "at", "advance", "restart", "crash", "fault", "tools", "inspect", "parallel", "repeat"}
)


def needs(steps: Sequence[Step]) -> frozenset[Capability]:
    """Return the capabilities that `steps` and their expectations call for."""
    every = list(_flat(steps))
    users = {step.user for step in every if step.op not in _WITHOUT_A_USER}
    several = len(users) > 1 or any("${" in (user or "") for user in users)
    scope = {"scope.user"} if several else set()
    return frozenset(scope.union(*map(_of_step, every)))


def _flat(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        yield from _flat(step.steps)


def _of_step(step: Step) -> set[Capability]:
    found = {_SIMPLE[step.op]} if step.op in _SIMPLE else set()
    match step.op:
        case "add":
            found |= {"add"} | ({"add.key"} if any("key" in item for item in step.args["items"]) else set())
        case "get":
            found.add("get.id" if "id" in step.args else "get.key")
        case "search" | "context":
            found |= {need for name, need in _FROM_ARGUMENTS.items() if name in step.args}
        case "run":
            found.add(f"job.{step.args['job']}")
        case "inspect" if step.args["what"] != "files":
            found.add(f"inspect.{step.args['what']}")
        case "fault":
            found.add(f"fault.{step.args['part']}")
        case _:
            pass
    return found.union(*(_of_expectation(step.op, expected) for expected in step.expect))


def _of_expectation(op: str, expected: Expectation) -> set[Capability]:
    if expected.field == "tool_calls":
        return {"chat.tools"}
    if expected.field == "hits" and op == "search":
        return set().union(*map(_of_hit_check, expected.matchers))
    return set()


def _of_hit_check(check: Matcher) -> set[Capability]:
    if check.name == "not":
        return set().union(*map(_of_hit_check, check.argument))
    if check.name in ("scores", "explain"):
        return {f"search.{check.name}"}
    if check.name not in ("first", "includes", "excludes", "order"):
        return set()
    fields = {field for entry in check.argument if not isinstance(entry, str) for field in entry}
    return {need for field, need in (("score", "search.scores"), ("explain", "search.explain")) if field in fields}
