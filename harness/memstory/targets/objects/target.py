"""Somebody's object as a target: where it lives, what its signatures promise, and how it is called."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from inspect import Parameter
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from memstory.contract.clock import Clock
from memstory.contract.errors import MemstoryError, NotSupported, Refused, SetupError
from memstory.contract.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    Target,
    TargetFactory,
    Tree,
)
from memstory.language.capabilities import is_known
from memstory.targets.adapter import IdSequence, delete_listed, refuse_keys, refuse_undeclared, unknown_refusal
from memstory.targets.objects.methods import Method, methods_of, parameters_of, role_of
from memstory.targets.objects.names import METHODS, PLACES, plain
from memstory.targets.objects.results import ParsedHit, found_in, ids_in, one_in, truth_of
from memstory.targets.one_thread import OneThread
from memstory.targets.promises import PromisingFactory

Result = TypeVar("Result")
DECLARATION: Final = "memstory_capabilities"
"""The attribute of a class that says what it can do, in place of its signatures."""
PRELOAD: Final = "memstory_preload"
"""The attribute of a class's module that names the packages that are imported once for all of its processes."""
_SLOW_IMPORT: Final = 0.2
"""Seconds from which the import of a module is worth a word, as each case's process imports it again."""

_NO_NUMBER: Final = 2_147_483_629
"""What stands for an id that is no number, where ids are numbers."""

_ALL: Final = (10_000, 1_000, 100, None)
"""How many a list is asked for where a story wants all and the object would give a page: fewer, or its own number, if
it takes no such."""

_MOST_LOOKED_UP: Final = 20
_UNKNOWN: Final = ("NotFound", "NotFoundError", "DoesNotExist")


class Constructor:
    """What makes the objects: where they live follows from what it takes; `options` are those of the run."""

    def __init__(self, made: Callable[..., Any]) -> None:
        self._every = [
            one for one in parameters_of(made) or () if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]

    @property
    def names(self) -> Sequence[str]:
        """Every parameter of the constructor."""
        return [one.name for one in self._every]

    @property
    def user(self) -> str | None:
        """The parameter that takes a user: then each has an object of their own."""
        return next((one.name for one in self._every if role_of(one.name, ["user"])), None)

    def own(self, options: Mapping[str, Tree]) -> Sequence[Parameter]:
        """Return the parameters that get a place of the case's own."""
        return (
            [] if self.is_shared(options) else [one for one in self._every if _kind(one) in ("file", "folder", "url")]
        )

    def is_shared(self, options: Mapping[str, Tree]) -> bool:
        """Whether other cases write to the same memory: behind a server, or in the place that the run names."""
        said = options.get("shared")
        if said is not None:
            return str(said).lower() in ("true", "yes", "1")
        named = any(one.name in options and _kind(one) is not None for one in self._every)
        return named or any(_kind(one) == "server" for one in self._every)

    def is_apart(self, options: Mapping[str, Tree]) -> bool:
        """Whether the object needs a process with an empty folder, since its constructor takes no place."""
        return not self.own(options) and not self.is_shared(options)

    def arguments(self, folder: Path, options: Mapping[str, Tree], user: str) -> dict[str, Any]:
        """Return what to construct with, by name."""
        own = {one.name: _place(one, folder) for one in self.own(options)}
        given = {name: value for name, value in options.items() if name in self.names}
        return {**own, **given, **({self.user: user} if self.user and self.user not in given else {})}

    def missing(self, options: Mapping[str, Tree]) -> Sequence[str]:
        """Return the parameters that have no default and that nothing fills."""
        filled = {*(one.name for one in self.own(options)), *options, self.user}
        return [one.name for one in self._every if one.default is Parameter.empty and one.name not in filled]

    def description(self, options: Mapping[str, Tree]) -> str:
        """Say in one sentence where the objects live."""
        own = [one.name for one in self.own(options)]
        if self.is_shared(options):
            return "one memory is shared by all cases, each with throw-away users"
        if own:
            return f"each case has a place of its own ({', '.join(own)})"
        return "each case has a process of its own, with an empty working folder and HOME"


def _kind(parameter: Parameter) -> str | None:
    kind = next((kind for kind, names in PLACES.items() if plain(parameter.name) in map(plain, names)), None)
    if kind == "url" and isinstance(parameter.default, str) and "://" in parameter.default:
        return "url" if parameter.default.startswith(("sqlite", "file")) else "server"
    return kind


def _place(parameter: Parameter, folder: Path) -> Any:
    usual = parameter.default
    kind = _kind(parameter)
    if kind == "folder":
        path = folder / parameter.name
        path.mkdir(exist_ok=True)
    else:
        ending = Path(usual).suffix if isinstance(usual, (str, Path)) and kind == "file" else ""
        path = folder / f"{parameter.name}{ending or '.db'}"
    if kind == "url":
        return f"sqlite:///{path}"
    wants_path = isinstance(usual, Path) or "Path" in str(parameter.annotation)
    return path if wants_path else str(path)


class ObjectFactory(PromisingFactory):
    """Makes targets of a class, of a function that returns an object, or of one object.

    `name` is `module:Name`, or what an object is called that was offered; `kind` is the class of what is made, where
    the maker does not say it. What the signatures promise is declared, unless the object has the attribute
    `memstory_capabilities`.
    """

    name: ClassVar[str] = "object"

    def __init__(self, name: str, found: Any, kind: type | None = None) -> None:
        # Each object is a separate target, though all share this class.
        self.name = name  # type: ignore[misc]
        self.spec = name if ":" in name else _spec_of(found)  # type: ignore[misc]
        self.has_numbers = False
        self.is_made = not (isinstance(found, type) or inspect.isroutine(found))
        kind = kind or (type(found) if self.is_made else _return_class(name, found))
        self.methods = methods_of(kind, vars(found) if self.is_made and hasattr(found, "__dict__") else {})
        self.place = Constructor((lambda: found) if self.is_made else found)
        self._found = found
        self.declared = _declared_capabilities(name, kind)
        self.is_declared = self.declared is not None
        asynchronous = [kind, found, *(getattr(kind, one.name, None) for one in self.methods.known.values())]
        self.is_async = any(inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one) for one in asynchronous)
        self.import_seconds = 0.0
        module = (self.spec or "").partition(":")[0]
        if self.isolates({}):
            # Not the object's own module, which may look at the folder when it is imported.
            self.preload = ("memstory.targets.objects.target", *_declared_preload(module))  # type: ignore[misc]
        lacking = [operation for operation in ("add", "search") if operation not in self.methods.known]
        if lacking:
            raise SetupError(self._missing_methods(kind, lacking))

    @property
    def has_users(self) -> bool:
        """Whether what is added and what is found carries a user."""
        return self.place.user is not None or self.methods.have_users

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        words = frozenset(self._promises(options)) if self.declared is None else self.declared
        return words.union(self.found, (f"option.{name}" for name in ("shared", *self.place.names)))

    def shares(self, options: Mapping[str, Tree]) -> bool:
        return self.place.is_shared(options)

    def isolates(self, options: Mapping[str, Tree]) -> bool:
        return self.place.is_apart(options)

    def target(self) -> Target:
        return ObjectTarget(self)

    def use(self, options: Mapping[str, Tree]) -> str:
        """Say where the object lives, and which of its methods are used."""
        known = self.methods.known
        used = ", ".join(str(one) for one in known.values())
        not_there = [name for name in ("get", "list", "update", "delete") if name not in known]
        lacks = f"; it has nothing for {', '.join(not_there)}" if not_there else ""
        others = f"; not used: {', '.join(self.methods.others)}" if self.methods.others else ""
        return f"{self.name}: {self.place.description(options)}. Used: {used}{lacks}{others}."

    def remark(self, options: Mapping[str, Tree]) -> str:
        if self.declared is not None:
            found = f"What it can do is declared ({DECLARATION})."
        else:
            nothing = "Its signatures promise what these stories need; nothing was probed."
            found = self.findings_remark("its signatures promise", self.name) or nothing
        return f"{self.use(options)} {found}{self._slow_import() if self.isolates(options) else ''}"

    def _slow_import(self) -> str:
        module = (self.spec or "").partition(":")[0]
        if self.import_seconds < _SLOW_IMPORT or _declared_preload(module):
            return ""
        return (
            f" Importing {module} took {self.import_seconds:.1f} s, which each case's process does again: name in it "
            f'the packages that may be imported once, as in {PRELOAD} = ["PACKAGE"].'
        )

    def make(self, folder: Path, options: Mapping[str, Tree], user: str) -> Any:
        """Return an object that lives in `folder`, or what is awaited for it.

        Raises:
            SetupError: its constructor needs what nobody gave.
        """
        if self.is_made:
            return self._found
        missing = self.place.missing(options)
        if missing:
            raise SetupError(
                f"{self.name} cannot be made: nothing is known for {', '.join(map(repr, missing))}. Say it: "
                f"--target-option {missing[0]}=VALUE, or name a function that needs none and returns the object"
            )
        return self._found(**self.place.arguments(folder, options, user))

    def _promises(self, options: Mapping[str, Tree]) -> Iterator[Capability]:
        methods = self.methods
        yield from (name for name in ("add", "search", "list", "update", "delete", "context") if name in methods.known)
        yield "restart"
        if not methods.takes("add", "messages"):
            yield "add.verbatim"
        if "get" in methods.known:
            yield "get.id"
        if {"list", "delete"} <= methods.known.keys() or "delete_all" in methods.known:
            yield "delete.scope"
        if self.has_users:
            yield "scope.user"
        if all(methods.takes(name, "session") and _is_optional(methods.of(name)) for name in ("add", "search")):
            yield "scope.session"
        if methods.takes("add", "metadata"):
            yield "add.metadata"
            yield from ["search.where"] if methods.takes("search", "where") else []
        if methods.takes("add", "ttl"):
            yield "add.ttl"
        if self.place.own(options):
            yield "persistent"

    def _missing_methods(self, kind: type, lacking: Sequence[str]) -> str:
        said = " and ".join(f"{name} ({', '.join(METHODS[name][:4])} …)" for name in lacking)
        seen = ", ".join([*map(str, self.methods.known.values()), *self.methods.others]) or "none"
        return (
            f"the target '{self.name}' cannot be used as it is: {kind.__name__} is no memstory.TargetFactory, and has "
            f"no method for {said}. Write a class around it with add(text) and search(query), or an adapter: "
            f"`memstory new target`. Its methods: {seen}"
        )


def _spec_of(found: Any) -> str | None:
    name = getattr(found, "__qualname__", "<")
    return None if "<" in name else f"{found.__module__}:{name}"


def says_what_it_makes(found: Any) -> bool:
    """Whether an object's class is known, or can only be asked for, without making one.

    A function without parameters may as well return a factory of targets.
    """
    if isinstance(found, type):
        return not issubclass(found, TargetFactory)
    if not inspect.isroutine(found):
        return True
    made = _annotated_class(found)
    place = Constructor(found)
    return not issubclass(made, TargetFactory) if made else bool(place.own({}) or place.missing({}))


def _annotated_class(found: Callable[..., Any]) -> type | None:
    try:
        made = inspect.get_annotations(found, eval_str=True).get("return")
    except (NameError, SyntaxError, TypeError):
        return None
    return made if isinstance(made, type) else None


def _return_class(name: str, found: Callable[..., Any]) -> type:
    """Return the class of the objects that `found` makes."""
    made = found if isinstance(found, type) else _annotated_class(found)
    if made is None:
        raise SetupError(
            f"the target '{name}' is a function that does not say what it returns; if it makes a memory, write the "
            f"class of the object, as in def {found.__name__}(path) -> Memory"
        )
    return made


def _declared_capabilities(name: str, kind: type) -> frozenset[Capability] | None:
    declared = getattr(kind, DECLARATION, None)
    if declared is None:
        return None
    unknown = sorted(word for word in declared if not is_known(word))
    if unknown:
        raise SetupError(f"{name}.{DECLARATION} has words that no story can ask for: {', '.join(unknown)}")
    return frozenset(declared)


def _declared_preload(module: str) -> Sequence[str]:
    """Return the modules of the packages that `module` names: those that its own import brought here."""
    declared = getattr(sys.modules.get(module), PRELOAD, ())
    if not isinstance(declared, (list, tuple)) or not all(isinstance(name, str) for name in declared):
        raise SetupError(f"{module}.{PRELOAD} is {declared!r}: write a list of names of packages")
    if strange := [name for name in declared if name not in sys.modules]:
        raise SetupError(f"{module}.{PRELOAD} names what {module} does not import: {', '.join(strange)}")
    return [name for name in list(sys.modules) if any(f"{name}.".startswith(f"{package}.") for package in declared)]


def _is_optional(method: Method) -> bool:
    session = method.parameter("session")
    return session is not None and session.default is not Parameter.empty


class ObjectTarget(Target):
    """One open object, or one for each user; what blocks runs in a thread, one call after the other."""

    _env: Environment
    _ids: IdSequence | None = None

    def __init__(self, factory: ObjectFactory) -> None:
        self._factory = factory
        self._methods = factory.methods
        self._thread = OneThread("object")
        self._made: dict[str, Any] = {}
        self._known: dict[str, Any] = {}
        self._most: Sequence[int | None] = _ALL

    async def open(self, env: Environment, clock: Clock) -> None:
        self._env = env
        if self._methods.takes("add", "id", "ids"):
            self._ids = IdSequence(env)
        if self._factory.shares(env.options) and not self._factory.has_users:
            raise SetupError(
                f"{self._factory.name} is shared by all cases, and takes no user by which they could be kept apart: "
                "add(text, user_id), search(query, user_id)"
            )
        if self._factory.place.user is None:
            await self._object("")

    async def close(self) -> None:
        made, self._made = self._made, {}
        for one in made.values():
            if "close" in self._methods.known:
                await self._call(one, self._methods.of("close"), {}, _as_it_is)
        self._thread.close()

    async def about(self) -> Mapping[str, str]:
        return {"object": self._factory.name, "place": self._factory.place.description(self._env.options)}

    async def settle(self) -> None:
        if "settle" in self._methods.known:
            for one in list(self._made.values()):
                await self._call(one, self._methods.of("settle"), {}, _as_it_is)

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        refuse_keys(items)
        if any(item.ttl is not None for item in items) and not self._methods.takes("add", "ttl"):
            raise NotSupported("add.ttl")
        done: list[ReceiptItem] = []
        for item in items:
            own = self._ids.next() if self._ids else None
            values = {
                "text": item.text,
                "texts": [item.text],
                "messages": [{"role": item.role or "user", "content": item.text}],
                "metadata": dict(item.metadata) or None,
                "ttl": item.ttl,
                "role": item.role,
                "id": own,
                "ids": None if own is None else [own],
            }
            ids = await self._ask("add", values, scope, ids_in)
            given = own if own is not None and self._is_needed("add", "id", "ids") else None
            done += [ReceiptItem(id=self._text_id(id_), text=item.text) for id_ in ids or [given]]
        lacking = [number for number, one in enumerate(done) if one.id is None]
        if lacking and len(done) <= _MOST_LOOKED_UP:
            found = await self._looked_up([done[number].text for number in lacking], scope)
            for number in lacking:
                done[number] = ReceiptItem(id=found.get(done[number].text), text=done[number].text)
        return Receipt(items=done)

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        try:
            found = await self._ask("get", self._of(ref), scope, lambda value: one_in(value, self._where("get")))
        except LookupError:
            return None
        if found is None:
            return None
        (hit,) = self._hits([found])
        return hit if hit.id is not None else replace(hit, id=ref.id)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, self._able())
        values = {"query": query.text, "text": query.text, "limit": query.top_k, "where": dict(query.where) or None}
        found = await self._ask("search", values, scope, lambda value: found_in(value, self._where("search")))
        hits = self._hits(found)
        return hits if self._methods.takes("search", "limit") else hits[: query.top_k]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        if kinds:
            raise NotSupported("search.where")
        if limit is not None or not self._has_pages():
            return await self._page(scope, limit)
        *larger, least = self._most
        for most in larger:
            try:
                found = await self._page(scope, most)
            except Exception:  # noqa: BLE001, S112  (however it says that this is too many; else it is wrong again, with fewer)
                continue
            # From now on an error is no matter of the number, and is told.
            self._most = (most,)
            return found
        found = await self._page(scope, least)
        self._most = (least,)
        return found

    async def _page(self, scope: Scope, limit: int | None) -> Sequence[Hit]:
        found = await self._ask("list", {"limit": limit}, scope, lambda value: found_in(value, self._where("list")))
        return self._hits(found)[:limit]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        values = {**self._of(ref), "text": item.text, "metadata": dict(item.metadata) or None}
        try:
            done = await self._ask("update", values, scope, _as_it_is)
        except LookupError as error:
            raise unknown_refusal(ref) from error
        if done is False or (done is None and "get" in self._methods.known and await self.get(ref, scope) is None):
            raise unknown_refusal(ref)
        return Receipt(items=[ReceiptItem(id=ref.id, text=item.text, outcome="updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            return await self._delete_all(scope)
        try:
            return await self._ask("delete", self._of(ref), scope, truth_of)
        except LookupError:
            return False

    async def context(self, query: Query, scope: Scope) -> str:
        refuse_undeclared(query, scope, self._able())
        values = {"query": query.text, "text": query.text, "limit": query.top_k}
        return await self._ask("context", values, scope, str)

    async def _delete_all(self, scope: Scope) -> bool:
        """Delete all of a user, by the method that does it for a user; else one after the other, as they are listed."""
        is_alone = not self._factory.has_users or self._factory.place.user is not None
        is_own = is_alone and not self._factory.shares(self._env.options)
        is_of_user = self._methods.takes("delete_all", "user") or ("delete_all" in self._methods.known and is_own)
        # Asked to delete a session, a method that knows none would take the whole user.
        if is_of_user and (scope.session is None or self._methods.takes("delete_all", "session")):
            return await self._ask("delete_all", {}, scope, truth_of)
        if scope.session is not None and not self._methods.takes("list", "session"):
            raise NotSupported("delete.scope", "neither delete_all nor list of the object takes a session")
        return await delete_listed(self, scope)

    async def _looked_up(self, texts: Sequence[str], scope: Scope) -> Mapping[str, str | None]:
        """Return the ids of texts that were just added, where the object gives ids only when it lists or finds."""
        found: dict[str, str | None] = {}
        if "list" in self._methods.known:
            found = {hit.text: hit.id for hit in await self.list(Scope(user=scope.user))}
        for text in texts:
            if found.get(text) is None:
                near = await self.search(Query(text=text, top_k=5), Scope(user=scope.user)) if text.strip() else ()
                found |= {hit.text: hit.id for hit in near if hit.text == text}
        return found

    async def _ask(
        self, operation: str, values: Mapping[str, Any], scope: Scope, read: Callable[[Any], Result]
    ) -> Result:
        method = self._methods.of(operation)
        user = self._user(scope)
        given = {**values, "user": user, "session": scope.session if self._keeps_sessions() else None}
        one = await self._object(user if self._factory.place.user else "")
        with _translate_errors(operation, method):
            return await self._call(one, method, given, read)

    async def _call(self, one: Any, method: Method, values: Mapping[str, Any], read: Callable[[Any], Result]) -> Result:
        """Call a method and read what it returns: what is made while it is read is made where the method ran."""
        placed, named = method.arguments(values)

        def work() -> Any:
            found = getattr(one, method.name)(*placed, **named)
            return found if _comes_later(found) else (read(found),)

        # Where one of its methods is `async`, all run in the event loop: an object belongs to one place.
        done = work() if self._factory.is_async else await self._thread.run(work)
        if not _comes_later(done):
            (answer,) = done
            return answer  # type: ignore[no-any-return]
        if hasattr(done, "__await__"):
            done = await done
        return read([part async for part in done] if hasattr(done, "__aiter__") else done)

    async def _object(self, user: str) -> Any:
        if user not in self._made:
            folder, options = Path(self._env.workspace), self._env.options
            if self._factory.is_async:
                made = self._factory.make(folder, options, user)
            else:
                made = await self._thread.run(self._factory.make, folder, options, user)
            self._made[user] = made = await made if hasattr(made, "__await__") else made
            if "begin" in self._methods.known:
                await self._call(made, self._methods.of("begin"), {}, _as_it_is)
        return self._made[user]

    def _user(self, scope: Scope) -> str:
        if not self._factory.shares(self._env.options):
            return scope.user
        return f"{scope.user}-{blake2b(self._env.workspace.encode(), digest_size=4).hexdigest()}"

    def _able(self) -> frozenset[Capability]:
        return self._factory.capabilities(self._env.options)

    def _keeps_sessions(self) -> bool:
        return "scope.session" in self._able()

    def _is_needed(self, operation: str, *roles: str) -> bool:
        found = [self._methods.of(operation).parameter(role) for role in roles]
        return any(one is not None and one.default is Parameter.empty for one in found)

    def _has_pages(self) -> bool:
        """Whether its list ends at a number of its own where none is given, or has to be given one."""
        limit = self._methods.of("list").parameter("limit")
        return limit is not None and limit.default is not None

    def _where(self, operation: str) -> str:
        return f"{self._factory.name}.{self._methods.of(operation).name}"

    def _of(self, ref: Ref) -> Mapping[str, Any]:
        """Return the id as the object has given it."""
        if ref.id is None:
            raise NotSupported("get.key")
        id_: Any = self._known.get(ref.id, ref.id)
        if isinstance(id_, str) and self._factory.has_numbers:
            id_ = int(id_) if id_.isdecimal() else _NO_NUMBER
        return {"id": id_, "ids": [id_]}

    def _text_id(self, id_: Any) -> str | None:
        """Return an id as a text, and remember what it was."""
        if id_ is None:
            return None
        self._known[str(id_)] = id_
        self._factory.has_numbers = isinstance(id_, int)
        return str(id_)

    def _hits(self, found: Sequence[ParsedHit]) -> Sequence[Hit]:
        for one in found:
            self._text_id(one.id)
        return [one.hit for one in found]


@contextmanager
def _translate_errors(operation: str, method: Method) -> Iterator[None]:
    """Tell a refusal and an unknown id from all else that a method raises."""
    try:
        yield
    except ValueError as error:
        raise Refused(f"{operation}: {error}") from error
    except (MemstoryError, LookupError):
        raise
    except Exception as error:
        if type(error).__name__.endswith(_UNKNOWN) and operation in ("get", "update", "delete"):
            raise LookupError(f"{method.name}: {error}") from error
        raise


def _comes_later(value: Any) -> bool:
    return hasattr(value, "__await__") or hasattr(value, "__aiter__")


def _as_it_is(value: Any) -> Any:
    return value
