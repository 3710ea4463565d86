"""Makes a program that breaks a promise as small and as plain as it can be and still break it.

It knows what an operation is: it takes away halves of them, then single ones, then what each remembers; then it makes
what is left plainer. What cannot be taken away is the cause.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from time import monotonic
from typing import Any, Final

from memstory.contract.values import Json
from memstory.exploring import values
from memstory.exploring.programs import OTHER, OWNER, USUAL_LIMIT, Action, Memo, Program, own_query

Fails = Callable[[Program], Awaitable[bool]]
"""Whether a program still breaks the same promise by the same operation."""


async def shrink(program: Program, fails: Fails, seconds: float) -> Program:
    """Return a program with as few and as plain operations as were found in `seconds`."""
    end = monotonic() + seconds
    is_smaller = True
    while is_smaller and monotonic() < end:
        is_smaller = False
        for step in (_without_operations, _without_memos, _plainer):
            candidates = step(program)
            while (candidate := next(candidates, None)) is not None and monotonic() < end:
                if candidate != program and await fails(candidate):
                    program, is_smaller = candidate, True
                    candidates = step(program)
    return program


def _without_operations(program: Program) -> Iterator[Program]:
    yield from (replace(program, operations=rest) for rest in _shorter(program.operations) if rest)


def _shorter(things: Sequence[Action]) -> Iterator[tuple[Action, ...]]:
    size = len(things) // 2
    while size:
        # From the end: what comes last was done least before the promise broke.
        for begin in range(len(things) - size, -1, -size):
            yield (*things[:begin], *things[begin + size :])
        size //= 2


def _without_memos(program: Program) -> Iterator[Program]:
    for place, operation in enumerate(program.operations):
        if operation.op != "add":
            continue
        size = len(operation.memos) // 2
        while size:
            for begin in range(0, len(operation.memos), size):
                rest = (*operation.memos[:begin], *operation.memos[begin + size :])
                if rest:
                    yield _at(program, place, replace(operation, memos=rest))
            size //= 2


def _plainer(program: Program) -> Iterator[Program]:
    for user in sorted(program.users - {OWNER}):
        yield _rename(program, user, OWNER, frozenset())
        if user != OTHER:
            yield _rename(program, user, OTHER, frozenset({"two users"}))
    sessionless = tuple(replace(one, session=None, tags=one.tags - {"session"}) for one in program.operations)
    yield replace(program, operations=sessionless)
    for place, operation in enumerate(program.operations):
        for simple in _simple_operations(operation):
            yield _at(program, place, simple)
        for number, memo in enumerate(operation.memos):
            for plain in _plain_memos(memo):
                memos = (*operation.memos[:number], plain, *operation.memos[number + 1 :])
                changed = _at(program, place, replace(operation, memos=memos))
                yield _with_text(changed, memo.item.text, plain.item.text)


def _rename(program: Program, user: str, to: str, tags: frozenset[str]) -> Program:
    operations = tuple(
        replace(
            one,
            user=to if one.user == user else one.user,
            second=to if one.second == user else one.second,
            tags=tags | {tag for tag in one.tags if "user" not in tag},
        )
        if user in (one.user, one.second)
        else one
        for one in program.operations
    )
    return replace(program, operations=operations)


_PLAIN: Final[Sequence[tuple[str, Any, str]]] = (
    ("elsewhere", False, "elsewhere"), ("second", None, "two users"), ("durable", False, "durable"),
    ("more", "", "two things"), ("at_once", False, "at once"),
)  # fmt: skip
"""Fields of an operation with what is plain there, and the tag that goes with what is not."""


def _simple_operations(operation: Action) -> Iterator[Action]:
    for name, plain, tag in _PLAIN:
        if getattr(operation, name) != plain and (name != "at_once" or operation.second is None):
            batch = {"batch"} if tag == "at once" else set()
            yield replace(operation, tags=operation.tags - {tag} | batch, **{name: plain})
    if len(operation.memos) == 1 and operation.tags & {"batch", "many", "at once"}:
        yield replace(operation, tags=operation.tags - {"batch", "many", "at once"}, at_once=False)
    if operation.more:
        yield replace(operation, memory=operation.more, more="", tags=operation.tags - {"two things"})
    if operation.by == "about":
        yield replace(operation, by="id", tags=operation.tags - {"by about"} | {"by id"})
    if "limit" in operation.tags:
        usual = None if operation.op == "list" else USUAL_LIMIT
        yield replace(operation, limit=usual, tags=operation.tags - {"limit"})
    for number in range(len(operation.where) if len(operation.where) > 1 else 0):
        rest = (*operation.where[:number], *operation.where[number + 1 :])
        yield replace(operation, where=rest, tags=operation.tags - {"two conditions"})
    if "again" in operation.tags:
        yield replace(operation, tags=operation.tags - {"again"})


def _plain_memos(memo: Memo) -> Iterator[Memo]:
    item = memo.item
    if item.metadata:
        bare = frozenset(tag for tag in memo.tags if not tag.startswith(("metadata", "name:", "value:")))
        yield replace(memo, item=replace(item, metadata={}), tags=bare)
        for name in item.metadata if len(item.metadata) > 1 else ():
            rest = {one: value for one, value in item.metadata.items() if one != name}
            yield replace(memo, item=replace(item, metadata=rest), tags=memo.tags - _tags_gone(rest))
        for family, plain in (("name:", {"place": next(iter(item.metadata.values()))}), ("value:", None)):
            if len(item.metadata) == 1 and any(tag.startswith(family) for tag in memo.tags):
                fields = plain if plain is not None else dict.fromkeys(item.metadata, "kitchen")
                tags = frozenset(tag for tag in memo.tags if not tag.startswith(family))
                yield replace(memo, item=replace(item, metadata=fields), tags=tags)
    if item.key is not None:
        bare = frozenset(tag for tag in memo.tags if tag not in ("key", "same key") and not tag.startswith("key:"))
        yield replace(memo, item=replace(item, key=None), tags=bare)
        if any(tag.startswith("key:") for tag in memo.tags):
            tags = frozenset(tag for tag in memo.tags if not tag.startswith("key:"))
            yield replace(memo, item=replace(item, key=f"user.{memo.name}"), tags=tags)
    if item.ttl is not None:
        yield replace(memo, item=replace(item, ttl=None), tags=memo.tags - {"ttl"})
    if item.kind is not None:
        yield replace(memo, item=replace(item, kind=None), tags=memo.tags - {"kind"})
    if any(tag.startswith(_OF_TEXT) for tag in memo.tags):
        tags = frozenset(tag for tag in memo.tags if not tag.startswith(_OF_TEXT))
        yield replace(memo, item=replace(item, text=plain_text(memo)), tags=tags)


_OF_TEXT: Final = ("text:", "equal texts")
_ODD_VALUES: Final = {**values.ODD_VALUES, **values.NESTED_VALUES}


def _tags_gone(rest: Mapping[str, Json]) -> AbstractSet[str]:
    """Return what is not odd about a memo of which this is left of the metadata."""
    # 0, False and 0.0 are equal, and each is odd in another way.
    left = {(type(value), repr(value)) for value in rest.values()}
    of_values = {tag for tag, value in _ODD_VALUES.items() if (type(value), repr(value)) not in left}
    return of_values | {tag for tag, name in values.ODD_NAMES.items() if name not in rest}


def plain_text(memo: Memo) -> str:
    """Return a text that nobody would call odd."""
    return f"Note {memo.name.removeprefix('m')}: the ferry leaves at nine."


def _with_text(program: Program, was: str, now: str) -> Program:
    """Return the program whose searches for one text ask for another."""
    if was == now:
        return program
    asked = tuple(
        replace(one, text=own_query(now)) if one.text == own_query(was) else one for one in program.operations
    )
    return replace(program, operations=asked)


def _at(program: Program, place: int, operation: Action) -> Program:
    operations = (*program.operations[:place], operation, *program.operations[place + 1 :])
    return replace(program, operations=operations)
