"""A target whose answers are checked before use; every way to break becomes one error.

Only what the shape of an answer says is judged here: its content is for the expectations of a story.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, TargetError
from memstory.contract.target import (
    Capability,
    Connection,
    Environment,
    Item,
    Receipt,
    Request,
    Scope,
    Target,
    Usage,
    hints,
)
from memstory.running.endings import describe_error, message_of

Answer = TypeVar("Answer")
Check = Callable[[Any], str]
"""Says what is wrong with a value, after its place in it: `[0].text is None, not a text`; empty if nothing is."""

_SHOWN = 60
_END: Final = object()
_ASKING: Final = frozenset({"about", "search"})
_WORDS: Mapping[Any, tuple[str, tuple[type, ...]]] = {
    str: ("a text", (str,)),
    float: ("a number", (float, int)),
    int: ("a whole number", (int,)),
    bool: ("true or false", (bool,)),
}


class GuardedTarget:
    """`inner` as the harness talks to it.

    An answer of another type than `memstory.contract.target` declares is a TargetError that says where and what it is;
    so is a NotSupported of an operation for something that the target declares, which is `able`.
    """

    def __init__(self, inner: Target, able: frozenset[Capability]) -> None:
        self.inner = inner
        self._able = able

    async def open(self, env: Environment, clock: Clock) -> None:
        with contain_exits():
            await self.inner.open(env, clock)

    async def close(self) -> None:
        with contain_exits():
            await self.inner.close()

    def usage(self) -> Usage:
        return self.inner.usage()

    async def perform(self, request: Request[Answer]) -> Answer:
        with self._believed():
            answer = await self.inner.perform(request)
        _refuse_malformed(request.op, answer_check(request.op)(answer))
        return answer

    async def load(self, items: Iterator[Item], scope: Scope) -> AsyncIterator[Receipt]:
        with self._believed():
            receipts = self.inner.load(items, scope)
        if not hasattr(receipts, "__anext__"):
            if asyncio.iscoroutine(receipts):
                receipts.close()
            raise TargetError(
                "'load' of the target is no async generator: define it with 'async def', and 'yield' receipts"
            )
        while True:
            with self._believed():
                receipt = await anext(receipts, _END)
            if receipt is _END:
                return
            _refuse_malformed("load", answer_check("add")(receipt))
            yield cast("Receipt", receipt)

    @contextmanager
    def _believed(self) -> Iterator[None]:
        with contain_exits():
            try:
                yield
            except NotSupported as error:
                # Of one that is raised while it opens, the machine may be the cause.
                if error.capability not in self._able:
                    raise
                denied = f"the target declares '{error.capability}', and says that it does not support it"
                raise TargetError(f"{denied}: {message_of(error)}") from error


def _refuse_malformed(op: str, wrong: str) -> None:
    if wrong:
        raise TargetError(f"'{op}' of the target returned a malformed answer: it{wrong}")


class AskedTarget:
    """`inner`, of which nothing is wanted but answers: what a preloaded memory holds is somebody's own."""

    def __init__(self, inner: Connection) -> None:
        self._inner = inner

    async def open(self, env: Environment, clock: Clock) -> None:
        await self._inner.open(env, clock)

    async def close(self) -> None:
        await self._inner.close()

    def usage(self) -> Usage:
        return self._inner.usage()

    async def perform(self, request: Request[Answer]) -> Answer:
        if request.op not in _ASKING:
            raise TargetError(f"'{request.op}' was about to be done to a preloaded memory, which is only asked")
        return await self._inner.perform(request)

    def load(self, items: Iterator[Item], scope: Scope) -> AsyncIterator[Receipt]:
        raise TargetError("'load' was about to be done to a preloaded memory, which is only asked")


@contextmanager
def contain_exits() -> Iterator[None]:
    """Make a TargetError of what a backend raises that is not an Exception: an exit, a panic, a cancellation.

    A cancellation from outside, which is a time limit or the user's own interruption, goes on as it is.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt)) and _is_cancelled_from_outside():
            raise
        raise TargetError(f"the target raised {describe_error(error)}") from error


def _is_cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@cache
def answer_check(op: str) -> Check:
    """Return the check of answers of an operation."""
    return _check_of(hints(op)["return"])


def _check_of(hint: Any) -> Check:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or hint in (None, type(None)):
        # What an operation without an answer returns is nobody's concern.
        return _anything
    if origin in (Union, types.UnionType):
        (inner,) = (_check_of(one) for one in args if one is not type(None))
        return lambda value: "" if value is None else inner(value)
    if origin is Sequence:
        return _sequence_check(_check_of(args[0]), _glance(args[0]))
    if origin is Mapping:
        return _mapping_check(_check_of(args[1]))
    return _dataclass_check(hint) if is_dataclass(hint) and isinstance(hint, type) else _plain_check(hint)


def _anything(_value: Any) -> str:
    return ""


def _plain_check(kind: Any) -> Check:
    word, allowed = _WORDS[kind]

    def check(value: Any) -> str:
        if isinstance(value, allowed) and (kind is bool or not isinstance(value, bool)):
            return ""
        return f" is {_describe_value(value)}, not {word}"

    return check


def _sequence_check(inner: Check, glance: Callable[[Sequence[Any]], bool]) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, (list, tuple)):
            return f" is {_describe_value(value)}, not a list"
        # Thousands of memories at once, nearly always right: looked at in detail where something is wrong.
        if glance(value) or not any(map(inner, value)):
            return ""
        return next(f"[{number}]{wrong}" for number, wrong in enumerate(map(inner, value)) if wrong)

    return check


def _glance(hint: Any) -> Callable[[Sequence[Any]], bool]:
    """Return what sees, one field of all values after the other, that nothing is wrong; False: look at each."""
    if not (is_dataclass(hint) and isinstance(hint, type)):
        return lambda _values: False
    columns = [(attrgetter(name), _types_of(one)) for name, one in _hints_of(hint).items()]

    def glance(values: Sequence[Any]) -> bool:
        if not {hint}.issuperset(map(type, values)):
            return False
        for field_of, types_of_field in columns:
            if not types_of_field.issuperset(map(type, map(field_of, values))):
                return False
        maps = (filter(None, map(field_of, values)) for field_of, types_of_field in columns if dict in types_of_field)
        return all({str}.issuperset(map(type, chain.from_iterable(one))) for one in maps)

    return glance


def _types_of(hint: Any) -> frozenset[type]:
    """Return the types by which alone a value is known to fit, with texts as the keys of a dict."""
    found: set[type] = set()
    for one in get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,):
        if one in _WORDS:
            found.update(_WORDS[one][1])
        elif get_origin(one) is Mapping and get_args(one)[1] is Any:
            found.add(dict)
        elif one is type(None):
            found.add(one)
    return frozenset(found)


def _mapping_check(inner: Check) -> Check:
    def check(value: Any) -> str:
        if type(value) is dict and not value:
            return ""
        if not isinstance(value, Mapping):
            return f" is {_describe_value(value)}, not a mapping"
        for name in value:
            if not isinstance(name, str):
                return f" has the key {_describe_value(name)}, not a text"
            if inner is not _anything and (wrong := inner(value[name])):
                return f"[{name!r}]{wrong}"
        return ""

    return check


def _dataclass_check(cls: type) -> Check:
    checks = {name: _check_of(hint) for name, hint in _hints_of(cls).items()}

    def check(value: Any) -> str:
        if not isinstance(value, cls):
            return f" is {_describe_value(value)}, not a {cls.__name__}"
        return next((f".{name}{wrong}" for name, one in checks.items() if (wrong := one(getattr(value, name)))), "")

    return check


def _hints_of(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def _describe_value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value)
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  (a value of a broken backend: it is reported that it cannot be shown)
        text = f"its repr raises {type(error).__name__}"
    return f"a {type(value).__name__} ({text if len(text) <= _SHOWN else f'{text[:_SHOWN]}…'})"
