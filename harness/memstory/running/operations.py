"""A step's arguments -> one call of the target -> the result as JSON: the operations that only need the target."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from memstory.codec import encode
from memstory.target import Item, Json, Query, Ref, Scope, Target

Arguments = Mapping[str, Json]
Operation = Callable[[Target, Arguments, Scope], Awaitable[Json]]

OPERATIONS: dict[str, Operation] = {}
"""By the name of the step."""

IN_SESSION = frozenset({"say", "add", "tool", "end_session"})
"""Steps that happen in the user's present session; all others see every session, unless they name one."""

SETTLED = frozenset({"say", "add"})
"""Steps after which the harness waits for background work, so that no story is a race."""


def operation(name: str) -> Callable[[Operation], Operation]:
    """Enter a function under the name of its step."""

    def enter(function: Operation) -> Operation:
        if name in OPERATIONS:
            raise ValueError(f"two operations are named '{name}'")
        OPERATIONS[name] = function
        return function

    return enter


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


@operation("say")
async def _say(target: Target, args: Arguments, scope: Scope) -> Json:
    return encode(await target.say(args["text"], scope))


@operation("add")
async def _add(target: Target, args: Arguments, scope: Scope) -> Json:
    return encode(await target.add([_item(item) for item in args["items"]], scope))


@operation("get")
async def _get(target: Target, args: Arguments, scope: Scope) -> Json:
    return encode(await target.get(_ref(args), scope))


@operation("search")
async def _search(target: Target, args: Arguments, scope: Scope) -> Json:
    query = _query(args)
    hits = encode(await target.search(query, scope))
    # The harness cuts: a backend that returns more than it was asked for gains nothing by it.
    return hits if query.top_k is None else hits[: query.top_k]


@operation("list")
async def _list(target: Target, args: Arguments, scope: Scope) -> Json:
    return encode(await target.list(scope, tuple(args.get("kinds") or ()), args.get("limit")))


@operation("update")
async def _update(target: Target, args: Arguments, scope: Scope) -> Json:
    ref = Ref(id=args.get("id"), key=args.get("key"))
    return encode(await target.update(ref, _item(args), scope))


@operation("delete")
async def _delete(target: Target, args: Arguments, scope: Scope) -> Json:
    return await target.delete(_ref(args), scope)


@operation("feedback")
async def _feedback(target: Target, args: Arguments, scope: Scope) -> Json:
    return await target.feedback(_ref(args), args["value"], scope)


@operation("context")
async def _context(target: Target, args: Arguments, scope: Scope) -> Json:
    return await target.context(_query(args), scope)


@operation("tool")
async def _tool(target: Target, args: Arguments, scope: Scope) -> Json:
    return encode(await target.tool(args["name"], args.get("args") or {}, scope, args.get("caller")))


@operation("tools")
async def _tools(target: Target, _args: Arguments, _scope: Scope) -> Json:
    return encode(await target.tools())


@operation("run")
async def _run(target: Target, args: Arguments, scope: Scope) -> Json:
    return encode(await target.run(args["job"], args.get("args") or {}, scope))


@operation("inspect")
async def _inspect(target: Target, args: Arguments, scope: Scope) -> Json:
    since = {} if args.get("since") is None else {"since": args["since"]}
    return encode(await target.inspect(args["what"], {**(args.get("args") or {}), **since}, scope))


@operation("end_session")
async def _end_session(target: Target, args: Arguments, scope: Scope) -> Json:
    await target.end_session(scope, args.get("reason") or "explicit")
    return None


@operation("settle")
async def _settle(target: Target, _args: Arguments, _scope: Scope) -> Json:
    await target.settle()
    return None


@operation("fault")
async def _fault(target: Target, args: Arguments, _scope: Scope) -> Json:
    await target.fault(args["part"], args["mode"])
    return None
