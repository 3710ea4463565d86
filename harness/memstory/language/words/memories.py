"""Steps on memories: add, get, list, update, delete, feedback, search, context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Required, TypeAlias, TypedDict

from memstory.contract.target import (
    OPERATORS,
    Capability,
    Hit,
    Item,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Request,
    Scope,
    Target,
    ToolSchema,
    Tree,
    operators_of,
)
from memstory.contract.texts import nearest
from memstory.language.matchers.expectable import context_tokens
from memstory.language.matchers.hits import needs_of_hit_checks
from memstory.language.reading import Reading, TreePath
from memstory.language.references import REFERENCE, unmark
from memstory.language.registry import unknown_name_message
from memstory.language.words.shapes import Count, Duration, Kind, Kinds, Name, Role, Rule, Vector
from memstory.language.words.times import read_duration, read_moment
from memstory.language.words.word import LISTS, Args, Needs, Word, as_value, in_items, in_list, whole_record
from memstory.results.recording import StepRecord


class _Item(TypedDict, total=False):
    text: Required[Annotated[str, "What to remember."]]
    kind: Kind
    vector: Vector
    key: Annotated[str, "The key to find it by."]
    metadata: Annotated[Mapping[str, Tree], "What else is kept with it."]
    ttl: Annotated[Duration, "Time to live, such as 30d or 500ms."]
    source: Annotated[Role, "Where it comes from, so how far it is trusted."]
    role: Annotated[Role, "Who said it."]
    twin: Annotated[
        bool | str,
        "Must stay: each later `forbid` checks that it, or this part of it, is still found.",
        Rule(minLength=1),
    ]
    save: Annotated[
        str,
        "A name for the id that it gets.",
        Rule(title="saved name", pattern="^[A-Za-z_][A-Za-z0-9_]*$", examples=["near", "first_fact"]),
    ]


_KeyedItem: TypeAlias = Annotated[_Item, Rule(title="key of an item")]


class _Ref(TypedDict, total=False):
    id: Annotated[Name, "The id, as ${saved}."]
    key: Annotated[str, "The key."]
    kind: Kind


class _AnyRef(_Ref, total=False):
    about: Annotated[
        str | list[Name],
        "What the memories to change are about, in words; one text or several.",
        Rule(minLength=1, minItems=1),
    ]


class _Update(_AnyRef, total=False):
    text: Required[Annotated[str, "The new text."]]
    vector: Vector
    metadata: Annotated[Mapping[str, Tree], "The new metadata."]


class _Delete(_AnyRef, total=False):
    durable: Annotated[Literal[True], "It stays forgotten when its source is added again."]
    all: Annotated[Literal[True], "Everything of this user (and session)."]


class _Feedback(_Ref, total=False):
    value: Required[Annotated[float, "The rating."]]


class _List(TypedDict, total=False):
    kinds: Kinds
    limit: Annotated[Count, "At most so many."]


class _Query(TypedDict, total=False):
    query: Required[Annotated[str, "What is asked."]]
    vector: Vector
    kinds: Kinds
    top_k: Annotated[Count, "At most so many hits."]
    min_score: Annotated[float, "No hit below this score."]
    token_budget: Annotated[Count, "At most so many tokens in all."]
    where: Annotated[
        Mapping[str, Tree],
        "Only memories with this metadata: a value for each name, or `{gt: 3, le: 9}`, `ne`, `in`, `exists`.",
    ]
    where_any: Annotated[
        list[Mapping[str, Any]], "Only memories that meet one of these, each as under `where`.", Rule(minItems=1)
    ]
    as_of: Annotated[str, 'As it was known at this moment, such as "2026-05-31T10:00:00Z".', Rule(title="moment")]
    options: Annotated[Mapping[str, Tree], "The target's own options."]


ITEM_CAPABILITIES: Final[Mapping[Capability, str]] = {
    "add.key": "remembers a text under a key that the caller chose",
    "add.metadata": "takes whatever is known of a text beside it, such as speaker, session and said_at of a turn",
    "add.ttl": "forgets a text when the time is over that was given with it",
    "add.source": "knows where a text comes from: what the user said is not outdone by a page that an agent read",
    "add.role": "knows who said a text",
    LISTS: "keeps lists and mappings in metadata",
}
"""What the keys of an item call for, such as `add.key`, and what a target with the capability does."""


def needs_of_item(item: Mapping[str, Tree]) -> Iterator[Capability]:
    """Yield the capabilities that a target needs for an item."""
    yield from (f"add.{key}" for key in item if f"add.{key}" in ITEM_CAPABILITIES)
    if any(isinstance(value, (list, Mapping)) for value in (item.get("metadata") or {}).values()):
        yield LISTS


def take_vector(reading: Reading, value: Args, name: str, path: TreePath) -> Args:
    """Return `value` without its vector, which `reading` keeps for the text under the key `name`."""
    if "vector" in value:
        reading.add_vector(unmark(value[name]), value["vector"], (*path, "vector"))
    return {key: inner for key, inner in value.items() if key != "vector"}


def read_text_or_mapping(reading: Reading, value: Tree, path: TreePath) -> Args:
    """Return {"text": …} and more keys of a text or mapping, without its vector."""
    return take_vector(reading, value if isinstance(value, dict) else {"text": value}, "text", path)


def list_kinds(args: Args) -> Args:
    """Return `args` with `kinds` as a list."""
    return {**args, "kinds": [args["kinds"]]} if isinstance(args.get("kinds"), str) else args


def hits_of(record: StepRecord) -> list[Tree]:
    """Return the recorded hits, each a mapping, of a result that is a list, one hit or None."""
    found = record.result if isinstance(record.result, list) else [record.result]
    return [hit for hit in found if hit is not None]


def hit_faults(limit: str) -> Callable[[StepRecord, Sequence[ToolSchema]], Iterator[tuple[str, str, str]]]:
    """Return a `faults` that finds more hits than the argument named `limit` allows, and hits that came twice."""

    def faults(record: StepRecord, _announced: Sequence[ToolSchema]) -> Iterator[tuple[str, str, str]]:
        hits, most = hits_of(record), record.args.get(limit)
        if most is not None and len(hits) > most:
            yield "hits", "limit", f"hits are {len(hits)}, asked for were at most {most}"
        seen = Counter((hit.get("id"), hit.get("text")) for hit in hits if hit.get("id") is not None)
        for (id_, text_), times in seen.items():
            if times > 1:
                yield "hits", "repeated", f"hits have the memory '{id_}' {times} times: {text_!r:.60}"

    return faults


def _read_items(reading: Reading, value: Tree, path: TreePath) -> Args:
    """Return {"items": [...]}, each with its `ttl` in seconds."""
    listed = (
        [(inner, (*path, index)) for index, inner in enumerate(value)] if isinstance(value, list) else [(value, path)]
    )
    items = [_read_item(reading, item, place) for item, place in listed]
    return {"items": [{name: inner for name, inner in item.items() if name != "save"} for item in items]}


def _read_item(reading: Reading, value: Tree, path: TreePath) -> Args:
    item = read_text_or_mapping(reading, value, path)
    reading.has_twin |= bool(item.get("twin"))
    if "ttl" in item:
        item["ttl"] = read_duration(reading, item["ttl"], (*path, "ttl")) / 1e6
        if not item["ttl"]:
            reading.fault((*path, "ttl"), "'ttl' must be at least 1us: with 0 the memory would be forgotten at once")
    return item


def _names_of_items(value: Tree) -> Mapping[str, str]:
    items = value if isinstance(value, list) else [value]
    return {
        item["save"]: f"items.{index}.id"
        for index, item in enumerate(items)
        if isinstance(item, dict) and "save" in item
    }


def _read_list(_reading: Reading, value: Tree, _path: TreePath) -> Args:
    if value is None:
        return {}
    return list_kinds(dict(value) if isinstance(value, dict) else {"kinds": value})


def _read_ref(reading: Reading, value: Tree, path: TreePath) -> Args:
    """Return the keys of a reference, with `about` as a list; none of them where everything is meant."""
    if isinstance(value, str):
        # A whole ${saved} is an id that the backend gave; any other text is a key that the caller chose.
        return {"id" if REFERENCE.fullmatch(value) else "key": value}
    args = dict(value)
    if args.pop("all", False):
        if {"id", "key", "about"} & args.keys():
            reading.fault(path, "'all' forgets everything; leave out what else names memories, or leave out 'all'")
        return args
    if "about" in args:
        if {"id", "key", "kind"} & args.keys():
            reading.fault(path, "'about' says in words what is meant; leave out 'id', 'key' and 'kind'")
        return {**args, "about": [args["about"]] if isinstance(args["about"], str) else args["about"]}
    if ("id" in args) == ("key" in args):
        found = "both are given" if "id" in args else "neither is"
        reading.fault(path, f"a memory is named by 'id' or by 'key', but {found}")
    return args


def _read_update(reading: Reading, value: Tree, path: TreePath) -> Args:
    return take_vector(reading, _read_ref(reading, value, path), "text", path)


def _receipt(record: StepRecord) -> Tree:
    if not isinstance(record.result, Mapping) or "items" not in record.result:
        return record.result
    items = record.result["items"]
    more = {name: [item.get(word) for item in items] for name, word in (("ids", "id"), ("outcomes", "outcome"))}
    return {**record.result, **more}


def _needs_of_add(args: Args) -> Iterator[str]:
    yield "add"
    for item in args["items"]:
        yield from needs_of_item(item)


def _update_request(args: Mapping[str, Tree], scope: Scope) -> Request[Receipt]:
    if "about" in args:
        return Request.of(Target.update_about, args["about"], as_value(Item, args), scope)
    return Request.of(Target.update, Ref(id=args.get("id"), key=args.get("key")), as_value(Item, args), scope)


def _delete_request(args: Mapping[str, Tree], scope: Scope) -> Request[bool] | Request[int]:
    if "about" in args:
        return Request.of(Target.delete_about, args["about"], scope, durable=args.get("durable", False))
    return Request.of(Target.delete, as_value(Ref, args), scope)


def _needs_of_change(operation: str) -> Callable[[Args], Iterator[str]]:
    def needs(args: Args) -> Iterator[str]:
        yield f"{operation}.about" if "about" in args else operation
        if args.get("durable"):
            yield f"{operation}.durable"
        if "text" in args:
            yield from (need for need in needs_of_item(args) if need != "add.key")

    return needs


CONDITIONS: Mapping[str, Capability] = {
    "min_score": "search.min_score",
    "where": "search.where",
    "where_any": "search.where.any",
    "token_budget": "search.budget",
    "as_of": "search.as_of",
}
"""The arguments of a query that a target must understand, or say that it does not."""

_BOUNDS: Final[Mapping[str, tuple[Sequence[type], str]]] = {
    **dict.fromkeys(("gt", "ge", "lt", "le"), ((int, float), "a number")),
    "in": ((list,), "a list of values"),
    "exists": ((bool,), "true or false"),
}
"""The types that the bound of an operator may have, and in words; `ne` takes any."""


def _read_query(reading: Reading, value: Tree, path: TreePath) -> Args:
    """Return the keys of a query, with `kinds` as a list and `as_of` in UTC."""
    args = dict(value) if isinstance(value, dict) else {"query": value}
    if "as_of" in args:
        args["as_of"] = read_moment(reading, args["as_of"], (*path, "as_of"))
    for place, conditions in _conditions(args):
        for name, condition in conditions.items():
            _check_operators(reading, condition, (*path, *place, name))
    return list_kinds(take_vector(reading, args, "query", path))


def _conditions(args: Mapping[str, Tree]) -> Iterator[tuple[TreePath, Mapping[str, Tree]]]:
    """Yield the path and the content of `where` and of each part of `where_any`."""
    yield ("where",), args.get("where") or {}
    yield from ((("where_any", place), one) for place, one in enumerate(args.get("where_any") or ()))


def _check_operators(reading: Reading, condition: Tree, path: TreePath) -> None:
    """Refuse an operator that is misspelt, or beside a name that is none, and a bound of another type."""
    said = condition if isinstance(condition, dict) else {}
    is_meant = any(one in OPERATORS or (one.isalpha() and nearest(one, OPERATORS)) for one in said)
    for operator, bound in said.items() if is_meant else ():
        if operator not in OPERATORS:
            reading.fault((*path, operator), unknown_name_message(operator, "operator", OPERATORS), at_key=True)
        elif operator in _BOUNDS and type(bound) not in _BOUNDS[operator][0]:
            reading.fault((*path, operator), f"'{operator}' takes {_BOUNDS[operator][1]}, found {bound!r:.60}")


def _query_of(args: Mapping[str, Tree]) -> Query:
    return as_value(Query, {**args, "text": args["query"], "kinds": tuple(args.get("kinds") or ())})


def _needs_of_query(operation: Capability) -> Needs:
    def needs(args: Any) -> list[Capability]:
        written = [condition for _, conditions in _conditions(args) for condition in conditions.values()]
        said = {one for condition in written for one in operators_of(condition)}
        operators = sorted({OPERATORS[one] for one in said})
        return [operation, *(need for name, need in CONDITIONS.items() if name in args), *operators]

    return needs


STEPS: Final = (
    Word(
        name="add",
        summary="remember one text or several",
        forms="one text, one item, or a list of items in order",
        argument=Annotated[str | _KeyedItem | list[str | _KeyedItem], Rule(minItems=1)],
        read=_read_items,
        saved_names=_names_of_items,
        request=lambda args, scope: Request.of(Target.add, [as_value(Item, item) for item in args["items"]], scope),
        capabilities={"add": "remembers texts", **ITEM_CAPABILITIES},
        needs=_needs_of_add,
        results={"receipt": _receipt},
        path_in_record=in_items,
        saved_from=ReceiptItem,
        in_session=True,
        settles=True,
        example="""
- add: The ferry leaves at nine.
  save: {ferry: id}
- add:
    - {text: Tea is steeped for two minutes., key: tea, metadata: {source: kitchen}}
    - {text: Bread bakes for an hour., kind: recipe, save: bread}
    - {text: The rice is on special offer., ttl: 2d, source: web, role: tool}
  expect:
    receipt: {items: {length: 3}}
""",
    ),
    Word(
        name="get",
        summary="look up one memory by id or key",
        forms="a key, ${saved} for an id, or {id} or {key}",
        argument=Annotated[str | _Ref, Rule(minProperties=1)],
        read=_read_ref,
        request=lambda args, scope: Request.of(Target.get, as_value(Ref, args), scope),
        capabilities={"get.id": "looks a memory up by its id", "get.key": "looks a memory up by its key"},
        needs=lambda args: ["get.id" if "id" in args else "get.key"],
        results={"hits": hits_of},
        path_in_record=lambda path: path.removeprefix("0.") if path != "0" else "",
        saved_from=Hit,
        example="""
- add: {text: The ferry leaves at nine., key: ferry}
  save: {ferry: id}
- get: ferry
  expect: {hits: {text: {contains: nine}}}
- get: ${ferry}
- get: {key: ferry, kind: fact}
""",
    ),
    Word(
        name="list",
        summary="list memories",
        forms="nothing, a kind, or a mapping",
        argument=str | _List | None,
        read=_read_list,
        request=lambda args, scope: Request.of(Target.list, scope, tuple(args.get("kinds") or ()), args.get("limit")),
        capabilities={"list": "enumerates memories"},
        results={"hits": hits_of},
        faults=hit_faults("limit"),
        path_in_record=in_list,
        saved_from=Hit,
        example="""
- list:
  expect: {hits: {empty: true}}
- list: recipe
- list: {kinds: [recipe, fact], limit: 20}
""",
    ),
    Word(
        name="update",
        summary="replace the text of a memory",
        forms="{id}, {key} or {about}, and the new text",
        argument=_Update,
        read=_read_update,
        request=_update_request,
        capabilities={
            "update": "replaces what a memory says",
            "update.about": "replaces what it remembers of a thing that is named in words",
        },
        needs=_needs_of_change("update"),
        results={"receipt": _receipt},
        path_in_record=in_items,
        saved_from=ReceiptItem,
        example="""
- add: {text: The ferry leaves at nine., key: ferry}
- update: {key: ferry, text: The ferry leaves at ten.}
  expect: {receipt: {outcomes: [updated]}}
- update: {about: when the ferry leaves, text: The ferry leaves at eleven.}
""",
    ),
    Word(
        name="delete",
        summary="forget one memory, or all of them with `all`",
        forms="a key, ${saved} for an id, {id}, {key} or {about}, or {all: true}; `durable: true` for good",
        argument=Annotated[str | _Delete, Rule(minProperties=1)],
        read=_read_ref,
        request=_delete_request,
        capabilities={
            "delete": "forgets",
            "delete.about": "forgets what it remembers of a thing that is named in words",
            "delete.durable": "can forget for good: what is deleted stays away when its source is added again",
        },
        needs=_needs_of_change("delete"),
        results={"result": whole_record},
        example="""
- add: The ferry leaves at nine.
  save: {ferry: id}
- delete: ${ferry}
  expect: {result: true}
- delete: {about: [the ferry, the harbour], durable: true}
- delete: {all: true}
""",
    ),
    Word(
        name="feedback",
        summary="rate a memory",
        forms="{id} or {key}, and the value",
        argument=_Feedback,
        read=_read_ref,
        request=lambda args, scope: Request.of(Target.feedback, as_value(Ref, args), args["value"], scope),
        capabilities={"feedback": "takes ratings"},
        results={"result": whole_record, "receipt": whole_record},
        example="""
- add: The ferry leaves at nine.
  save: {ferry: id}
- feedback: {id: "${ferry}", value: 1}
""",
    ),
    Word(
        name="search",
        summary="ranked retrieval",
        forms="the query, or a mapping",
        argument=str | _Query,
        read=_read_query,
        request=lambda args, scope: Request.of(Target.search, _query_of(args), scope),
        capabilities={
            "search": "ranked retrieval",
            "search.as_of": "finds what it held at a given moment",
            "search.budget": "keeps a search within a number of tokens",
            "search.explain": "explains the scores of hits",
            "search.min_score": "leaves out hits below a score",
            "search.scores": "gives scores with hits",
            "search.where": "searches by metadata",
            "search.where.any": "searches by one or the other of several conditions (`where_any`)",
            "search.where.exists": "searches by whether metadata have a name (`exists`)",
            "search.where.in": "searches by metadata with one of several values (`in`)",
            "search.where.ne": "searches by metadata with any but one value (`ne`)",
            "search.where.order": "searches by metadata above or below a number (`gt`, `ge`, `lt`, `le`)",
        },
        needs=_needs_of_query("search"),
        needs_to_judge={"hits": needs_of_hit_checks},
        results={"hits": hits_of},
        faults=hit_faults("top_k"),
        path_in_record=in_list,
        saved_from=Hit,
        example="""
- search: when does the ferry leave
  expect: {hits: {count: {ge: 1}}}
- search: {query: when does the ferry leave, top_k: 3, min_score: 0.5, where: {source: port}}
""",
    ),
    Word(
        name="context",
        summary="the text that the memory would put into a prompt",
        forms="the query, or a mapping",
        argument=str | _Query,
        read=_read_query,
        request=lambda args, scope: Request.of(Target.context, _query_of(args), scope),
        capabilities={"context": "gives the text that it would put into a prompt"},
        needs=_needs_of_query("context"),
        results={"text": whole_record, "context_tokens": context_tokens},
        example="""
- context: {query: when does the ferry leave, token_budget: 200}
  expect:
    text: {contains: nine}
    context_tokens: {le: 200}
""",
    ),
)
