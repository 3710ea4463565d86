"""A step's arguments -> a request -> the answer of the target as JSON: the steps that only need the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from memstory.codec import encode
from memstory.requests import (
    Add,
    AnnounceTools,
    CallTool,
    Context,
    Delete,
    EndSession,
    Fault,
    Feedback,
    Get,
    Inspect,
    List,
    RunJob,
    Say,
    Search,
    Settle,
    Update,
)
from memstory.target import Connection, Item, Json, Query, Ref, Request, Scope

Arguments = Mapping[str, Json]

IN_SESSION: Final = frozenset({"say", "add", "tool", "end_session"})
"""Steps that happen in the user's present session; all others see every session, unless they name one."""

SETTLED: Final = frozenset({"say", "add"})
"""Steps after which the harness waits for background work, so that no story is a race."""


async def answered(target: Connection, request: Request[Any], scope: Scope) -> Json:
    """Return the answer; the harness cuts hits to `top_k`: a backend that returns more gains nothing by it."""
    answer = encode(await target.perform(request, scope))
    return answer[: request.query.top_k] if isinstance(request, Search) else answer


def _ref(args: Arguments) -> Ref:
    return Ref(id=args.get("id"), key=args.get("key"), kind=args.get("kind"))


def _item(args: Arguments) -> Item:
    return Item(text=args["text"], key=args.get("key"), kind=args.get("kind"), metadata=args.get("metadata") or {})


def _query(args: Arguments) -> Query:
    return Query(
        text=args["query"],
        kinds=tuple(args.get("kinds") or ()),
        top_k=args.get("top_k"),
        min_score=args.get("min_score"),
        token_budget=args.get("token_budget"),
        where=args.get("where") or {},
        options=args.get("options") or {},
    )


def _inspect(args: Arguments) -> Inspect:
    since = {} if args.get("since") is None else {"since": args["since"]}
    return Inspect(what=args["what"], args={**(args.get("args") or {}), **since})


REQUESTS: Final[Mapping[str, Callable[[Arguments], Request[Any]]]] = {
    "say": lambda args: Say(text=args["text"]),
    "add": lambda args: Add(items=[_item(item) for item in args["items"]]),
    "get": lambda args: Get(ref=_ref(args)),
    "search": lambda args: Search(query=_query(args)),
    "list": lambda args: List(kinds=tuple(args.get("kinds") or ()), limit=args.get("limit")),
    "update": lambda args: Update(ref=Ref(id=args.get("id"), key=args.get("key")), item=_item(args)),
    "delete": lambda args: Delete(ref=_ref(args)),
    "feedback": lambda args: Feedback(ref=_ref(args), value=args["value"]),
    "context": lambda args: Context(query=_query(args)),
    "tool": lambda args: CallTool(name=args["name"], args=args.get("args") or {}, caller=args.get("caller")),
    "tools": lambda _args: AnnounceTools(),
    "run": lambda args: RunJob(job=args["job"], args=args.get("args") or {}),
    "inspect": _inspect,
    "end_session": lambda args: EndSession(reason=args.get("reason") or "explicit"),
    "settle": lambda _args: Settle(),
    "fault": lambda args: Fault(part=args["part"], mode=args["mode"]),
}
"""By the name of the step."""
