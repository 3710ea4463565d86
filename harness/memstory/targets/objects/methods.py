"""The methods of somebody's class -> operations: which method does what, and what goes into which parameter."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter
from textwrap import shorten
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from memstory.contract.errors import NotSupported
from memstory.targets.objects.names import ARGUMENTS, BY_PLACE, ENDINGS, GIVEN, METHODS, plain

_OPEN: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_WITHOUT_A_NAME: Final = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)
_USUAL: Final[Mapping[str, Any]] = {"limit": 10, "session": "memstory", "metadata": None, "where": None, "role": "user"}
"""What a parameter gets that has no default where a story says nothing."""
_SHOWN: Final = 60
_TEXTS: Final[Mapping[str, type]] = {"text": str, "query": str, "texts": list}


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method that does an operation; `roles` says for each of its parameters what goes into it.

    `names` are the parameters that a person reads; the method cannot be called where there is a reason in `unfit`.
    """

    name: str
    roles: Sequence[tuple[Parameter, str]] = ()
    names: Sequence[str] = ()
    unfit: Sequence[str] = ()

    def takes(self, role: str) -> bool:
        """Whether something can be given to it."""
        return any(known == role for _, known in self.roles)

    def parameter(self, role: str) -> Parameter | None:
        """Return the parameter that takes it."""
        return next((one for one, known in self.roles if known == role), None)

    def arguments(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return what to call it with: by name where that goes, and nothing for what has a default and no value."""
        placed: list[Any] = []
        named: dict[str, Any] = {}
        for one, role in self.roles:
            value = values.get(role)
            if value is None and one.default is not Parameter.empty:
                if one.kind is Parameter.POSITIONAL_ONLY:
                    break  # what comes behind it could not be placed
                continue
            value = _USUAL.get(role) if value is None else value
            if one.kind in _WITHOUT_A_NAME:
                placed.append(value)
            else:
                named[one.name] = value
        return placed, named

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.names)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Methods:
    """What an object can be asked: by operation its method; `others` are the methods that match none, with why."""

    known: Mapping[str, Method]
    others: Sequence[str] = ()

    def of(self, operation: str) -> Method:
        """Return the method of an operation; NotSupported if there is none."""
        if operation not in self.known:
            raise NotSupported(operation)
        return self.known[operation]

    @property
    def have_users(self) -> bool:
        """Whether a user can be given to what adds and to what searches."""
        return self.takes("add", "user") and self.takes("search", "user")

    def takes(self, operation: str, *roles: str) -> bool:
        """Whether there is the operation and one of these can be given to it."""
        return operation in self.known and any(self.known[operation].takes(role) for role in roles)


def methods_of(kind: type, own: Mapping[str, Any] = {}) -> Methods:
    """Return what the methods of a class are for; `own` are callables that an object has beside them."""
    public = dict(_public(kind, own))
    found: dict[str, Method] = {}
    why: dict[str, str] = {}
    for operation in METHODS:
        for name in _candidates(operation, public):
            if any(one.name == name for one in found.values()):
                continue
            method = _method(operation, name, *public[name])
            if not method.unfit:
                found[operation] = method
                break
            why.setdefault(name, f"{method}: {method.unfit[0]}")
    found = dict(_with_open_users(found, public))
    if "add" in found and not found["add"].takes("user"):
        found = {operation: _without_user(method) for operation, method in found.items()}
    # `forget(user_id)`, which names no memory, is a deletion of all.
    lone = found.get("delete")
    if lone is not None and not (lone.takes("id") or lone.takes("ids")):
        del found["delete"]
        if lone.takes("user") and "delete_all" not in found:
            found["delete_all"] = lone
    if Methods(known=found).have_users and "list" in found and not found["list"].takes("user"):
        whole = found.pop("list")
        why[whole.name] = f"{whole}: it takes no user"
    return Methods(known=found, others=_others(public, found, why))


def _without_user(method: Method) -> Method:
    """Return the method with its user left open: what was added by nobody is not found under somebody's name."""
    kept = [(one, role) for one, role in method.roles if role != "user" or one.default is Parameter.empty]
    return replace(method, roles=kept)


def _with_open_users(
    found: Mapping[str, Method], public: Mapping[str, tuple[Callable[..., Any], bool]]
) -> Iterator[tuple[str, Method]]:
    """Yield the methods; one with `**kwargs` takes the user by the name that another method gives it."""
    named = next((one for method in found.values() if (one := method.parameter("user"))), None)
    for operation, method in found.items():
        every = parameters_of(public[method.name][0]) or ()
        is_open = any(one.kind is Parameter.VAR_KEYWORD for one in every)
        if named is None or not is_open or method.takes("user") or "user" not in GIVEN[operation]:
            yield operation, method
        else:
            more = Parameter(named.name, Parameter.KEYWORD_ONLY, default=None)
            yield operation, replace(method, roles=[*method.roles, (more, "user")])


def parameters_of(made: Callable[..., Any]) -> Sequence[Parameter] | None:
    """Return the parameters of a callable; None where it does not tell, as some that are written in C."""
    try:
        return tuple(inspect.signature(made).parameters.values())
    except (ValueError, TypeError):
        return None


def role_of(name: str, roles: Sequence[str]) -> str | None:
    """Return the first of `roles` that has this name.

    >>> role_of("userId", ["id", "user"]), role_of("colour", ["id"])
    ('user', None)
    """
    return next((role for role in roles if plain(name) in map(plain, ARGUMENTS[role])), None)


def _public(kind: type, own: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Callable[..., Any], bool]]]:
    """Yield each public method with itself, and whether its first parameter is the object."""
    for name in dir(kind):
        raw = inspect.getattr_static(kind, name)
        if name.startswith("_") or isinstance(raw, (type, property)) or not callable(getattr(kind, name, None)):
            continue
        yield name, (getattr(kind, name), not isinstance(raw, (staticmethod, classmethod)))
    for name, made in own.items():
        if not name.startswith("_") and callable(made) and not isinstance(made, type):
            yield name, (made, False)


def _candidates(operation: str, public: Mapping[str, Any]) -> Iterator[str]:
    plains = {plain(name): name for name in public}
    names = METHODS[operation]
    taken = {plain(name) for others in METHODS.values() for name in others} - set(map(plain, names))
    yield from (plains[plain(name)] for name in names if plain(name) in plains)
    for name in names:
        for ending in ENDINGS:
            long = plain(name + ending)
            if long in plains and long not in taken and long not in map(plain, names):
                yield plains[long]


def _method(operation: str, name: str, made: Callable[..., Any], is_bound: bool) -> Method:  # noqa: FBT001  (one of a pair)
    every = parameters_of(made)
    if every is None:
        alone = [(Parameter(role, Parameter.POSITIONAL_ONLY), role) for role in BY_PLACE.get(operation, ())]
        return Method(name=name, roles=alone, names=["…"])
    if is_bound and every and every[0].kind is not Parameter.VAR_POSITIONAL:
        every = every[1:]
    fixed = [one for one in every if one.kind not in _OPEN]
    types = _ParameterTypes(made)
    roles: dict[str, str] = {}
    for role in GIVEN[operation]:
        for one in fixed:
            is_free = one.name not in roles and role not in roles.values()
            if is_free and role_of(one.name, [role]) and types.take(one, role):
                roles[one.name] = role
    wanted = [role for role in BY_PLACE.get(operation, ()) if role not in _same(roles.values())]
    unknown = [one for one in fixed if one.name not in roles and one.default is Parameter.empty]
    for one in list(unknown):
        if wanted and role_of(one.name, list(ARGUMENTS)) in (None, *wanted) and types.take(one, wanted[0]):
            roles[one.name] = wanted.pop(0)
            unknown.remove(one)
    pairs = [(one, roles[one.name]) for one in fixed if one.name in roles]
    if any(one.kind is Parameter.VAR_POSITIONAL for one in every):
        pairs += [(Parameter(role, Parameter.POSITIONAL_ONLY), role) for role in wanted]
        wanted = []
    lacking = [f"it takes no {role}" for role in wanted if not _is_deletion_of_all(operation, roles)]
    return Method(
        name=name,
        roles=pairs,
        names=[str(one).partition(":")[0].partition("=")[0].strip() for one in every],
        unfit=[types.why_not.get(one.name, f"'{one.name}' is not known") for one in unknown] or lacking,
    )


class _ParameterTypes:
    """The types of the parameters of `made`; `why_not` has the reason of each parameter that did not take its role."""

    def __init__(self, made: Callable[..., Any]) -> None:
        self.why_not: dict[str, str] = {}
        try:
            self._types = inspect.get_annotations(made, eval_str=True)
        except Exception:  # noqa: BLE001  (they are anybody's code, read as it is run)
            self._types = {}  # a name in them is known only to a type checker, or its package is not here

    def take(self, one: Parameter, role: str) -> bool:
        kind = self._types.get(one.name, Any)
        if role not in _TEXTS or _can_be(kind, _TEXTS[role]):
            return True
        said = "texts" if role == "texts" else "a text"
        shown = shorten(re.sub(r"\b(\w+\.)+", "", inspect.formatannotation(kind)), _SHOWN, placeholder="…")
        self.why_not.setdefault(one.name, f"'{one.name}' takes {shown}, not {said}")
        return False


def _can_be(kind: Any, given: type) -> bool:
    """Whether a parameter of this type takes a text, or a list of texts; yes where its type does not tell.

    >>> _can_be(str | None, str), _can_be(dict, str), _can_be(list[str], list), _can_be(list[int], list)
    (True, False, True, False)
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_can_be(one, given) for one in inner)
    if origin is Annotated:
        return _can_be(inner[0], given)
    # What goes over a tuple of texts goes over a list of them.
    plain_kind = list if given is list and (origin or kind) is tuple else origin or kind
    if kind is Any or not isinstance(plain_kind, type) or getattr(plain_kind, "_is_protocol", False):
        return True
    # A typed mapping refuses the question, by the class of its class.
    if hasattr(plain_kind, "__total__") or not issubclass(given, plain_kind):
        return False
    return given is str or not inner or _can_be(inner[0], str)


def _same(roles: Any) -> set[str]:
    """Return the roles that are filled, with those for which they stand."""
    found = set(roles)
    if found & {"texts", "messages"}:
        found.add("text")
    if "ids" in found:
        found.add("id")
    if "text" in found:
        found.add("query")
    return found


def _is_deletion_of_all(operation: str, roles: Mapping[str, str]) -> bool:
    return operation == "delete" and "user" in roles.values()


def _others(public: Mapping[str, Any], found: Mapping[str, Method], why: Mapping[str, str]) -> Sequence[str]:
    used = {one.name for one in found.values()}
    return [why.get(name, f"{name}()") for name in public if name not in used]
