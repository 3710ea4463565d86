"""The one interface of all six memories: what the harness, the commands, MCP, HTTP and programs use them by."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from inspect import Parameter, signature
from typing import Any, ClassVar, Final, Generic, TypeVar

from memstory.contract.errors import NotSupported, Refused, StoryError
from memstory.contract.target import Capability, Hit, Item, Memory, Query, Receipt, Ref, Scope, Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import plain_text
from memstory_reference.setting_rules import CHROMA, SQLITE
from memstory_reference.text.words import is_about

R = TypeVar("R")
JOB: Final = "_job_"
LOOK: Final = "_look_"
OPERATION_WORDS: Final[Mapping[str, str]] = {JOB: "job", LOOK: "inspect"}
"""How stories call what methods of these names do."""
KEPT_CONVERSATIONS = 1_000
SYSTEM_NAMES: Final = ("topics", "observations", "pipeline", "layers", "manager", "turns")
"""The six, for what lists them without importing any: `composition.systems` has what each is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetResult:
    """What was deleted, and what was kept though it mentions the same."""

    gone: Sequence[Hit]
    mentions: Sequence[Hit] = ()


class SystemMemory(Memory):
    """One open memory of this package, for many owners: a `Scope` says whose.

    Its methods `_job_NAME` are its jobs and `_look_NAME` what can be looked at: each takes the scope, then its own
    arguments by keyword. What it cannot take it refuses with `InputError`, and nothing is changed.
    """

    operations: ClassVar[frozenset[Capability]]
    """What it can do beside its jobs and looks."""

    search_options: ClassVar[Sequence[str]] = ()
    counted: ClassVar[Sequence[str]] = ()
    """The counts of its status that people read."""

    @classmethod
    def capabilities(cls) -> frozenset[Capability]:
        """Return all that it can do, in the words of stories."""
        return cls.operations | own_operations(cls)

    @property
    @abstractmethod
    def store_name(self) -> str:
        """Return what its memories are stored in."""

    async def shut_down(self) -> None:
        """End what must not stay open when a service ends for good, such as sessions."""

    @abstractmethod
    async def close(self) -> None:
        """Release everything; what was acknowledged stays."""

    @property
    def is_forgetful(self) -> bool:
        """Whether nothing is written, and all of it goes when the memory is closed."""
        return False

    def status_line(self, status: Mapping[str, Tree]) -> str:
        """Return what people read of a status."""
        counts = ", ".join(f"{name} {status[name]}" for name in self.counted if name in status)
        unreadable = f", unreadable {status['unreadable']}" if status.get("unreadable") else ""
        waiting = f", waiting for the model {status['waiting']}" if status.get("waiting") else ""
        return f"{counts}{waiting}{unreadable}"

    async def count_lost(self) -> int:
        """Return how many rows cannot be read since a file was damaged, where that is known."""
        return 0

    async def owners(self) -> Sequence[str]:
        """Return whose memories are stored here."""
        raise NotSupported("owners", "this memory does not list its owners; name one")

    async def list_archived(self, scope: Scope) -> Sequence[Hit]:
        """Return what is kept and no longer found: archived, replaced, or part of a summary."""
        return ()

    async def repeats(self, memory_id: str, scope: Scope) -> Sequence[Hit]:
        """Return a memory with those that repeat what it says: what has to go for it to be forgotten."""
        found = await self.get(Ref(id=memory_id), scope)
        return [] if found is None else [found]

    async def forget(self, memory_id: str, scope: Scope) -> ForgetResult:
        """Delete a memory with those that repeat it, out of the sight of running talks too."""
        gone = await self.repeats(memory_id, scope)
        return ForgetResult(gone=[one for one in gone if await self.delete(Ref(id=one.id), scope)])

    async def ids_about(self, things: Sequence[str], scope: Scope) -> Sequence[str]:
        """Return the ids of all of a user's memories, of whatever session, that are about any of these things."""
        every = replace(scope, session=None)
        found = [*await self.list(every), *await self.list_archived(every)]
        return list(dict.fromkeys(str(one.id) for one in found if is_about(self.full_text(one), things)))

    def full_text(self, hit: Hit) -> str:
        """Return all that a memory tells."""
        return hit.text

    async def delete_about(self, about: Sequence[str], scope: Scope, *, durable: bool = False) -> int:
        ids = await self.ids_about(about, scope)
        return sum([await self.delete(Ref(id=one, durable=durable), scope) for one in ids])

    async def update_about(self, about: Sequence[str], item: Item, scope: Scope) -> Receipt:
        """Replace the first of them, and delete the others."""
        if "update.about" not in self.operations:
            raise NotSupported("update.about")
        ids = await self.ids_about(about, scope)
        if not ids:
            raise Refused(f"update: nothing is remembered about {', '.join(about)}")
        receipt = await self.update(Ref(id=ids[0]), item, scope)
        for one in ids[1:]:
            await self.delete(Ref(id=one), scope)
        return receipt

    def view(self, hit: Hit) -> dict[str, Tree]:
        """Return a memory for a page: its words, and under `content` the fields of which `editable` may be changed."""
        return {
            "id": hit.id,
            "type": hit.kind,
            "label": hit.kind or "memory",
            "words": hit.text,
            "line": hit.text,
            "key": hit.key,
            "created_at": hit.created_at,
            "standing": hit.metadata.get("standing", "active"),
            "content": {"text": hit.text},
            "editable": ["text"] if "update" in self.operations else [],
            **({} if hit.score is None else {"score": round(hit.score, 6)}),
        }

    async def edit(self, hit: Hit, changes: Mapping[str, Tree], scope: Scope) -> Hit:
        """Change fields of a memory that `view` calls editable; return it as it is now."""
        receipt = await self.update(Ref(id=hit.id), Item(text=plain_text(changes["text"], "text")), scope)
        return await self.get(Ref(id=receipt.items[0].id), scope) or hit

    async def export_rows(self, scope: Scope) -> Sequence[Mapping[str, Tree]]:
        """Return every memory as JSON, archived ones too, as `import_rows` takes them."""
        every = (*await self.list(scope), *await self.list_archived(scope))
        rows = [
            {
                "id": one.id,
                "kind": one.kind,
                "key": one.key,
                "text": one.text,
                "created_at": one.created_at,
                "metadata": dict(one.metadata) or None,
            }
            for one in every
        ]
        return [{name: value for name, value in row.items() if value is not None} for row in rows]

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        """Add what `export_rows` returned, all of it or nothing; return for each row that is left out why."""
        raise NotSupported("import")

    async def run(self, job: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        return await self._call(JOB, job, args, scope)

    async def inspect(self, what: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        return await self._call(LOOK, what, args, scope)

    async def _call(self, prefix: str, name: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        method = getattr(self, f"{prefix}{name}", None)
        if method is None:
            own = ", ".join(sorted(one.removeprefix(prefix) for one in dir(self) if one.startswith(prefix)))
            kind = "job" if prefix == JOB else "look"
            reason = f"this memory has no {kind} {name!r:.40}; it has: {own or 'none'}"
            raise NotSupported(f"{OPERATION_WORDS[prefix]}.{name}", reason)
        check_arguments(name, method, args)
        return await method(scope, **args)

    def _check_query(self, query: Query) -> None:
        """Raise NotSupported or StoryError for what a search of this memory does not know."""
        asked = {
            "search.min_score": query.min_score is not None,
            "search.where": bool(query.where),
            "search.where.any": bool(query.where_any),
            "search.budget": query.token_budget is not None,
            "search.as_of": query.as_of is not None,
        }
        for capability in (name for name, is_asked in asked.items() if is_asked and name not in self.operations):
            raise NotSupported(capability)
        check_names("search", query.options, self.search_options)


class CurrentSessions:
    """The session in which each user acts, for calls that name none."""

    def __init__(self, usual: str) -> None:
        self._usual = usual
        self._of_user: dict[str, str] = {}

    def of(self, scope: Scope) -> str | None:
        """Return the session that `scope` names, else the user's current one; None if there was none yet."""
        return scope.session or self._of_user.get(scope.user)

    def note(self, scope: Scope) -> str:
        """Return the session in which something happens, and remember it as the user's current one."""
        self._of_user[scope.user] = self.of(scope) or self._usual
        return self._of_user[scope.user]


class Conversations(Generic[R]):
    """An agent for each owner and session, as `make` makes it; the one that was silent longest goes first."""

    def __init__(self, make: Callable[[str, str], R]) -> None:
        self._make = make
        self._kept: dict[tuple[str, str], R] = {}

    def of(self, owner: str, session: str) -> R:
        """Return who talks in a session."""
        # The latest stands last.
        self._kept[owner, session] = self._kept.pop((owner, session), None) or self._make(owner, session)
        if len(self._kept) > KEPT_CONVERSATIONS:
            del self._kept[next(iter(self._kept))]
        return self._kept[owner, session]

    def of_owner(self, owner: str) -> Mapping[str, R]:
        """Return who talks with an owner, by session."""
        return {session: one for (whose, session), one in self._kept.items() if whose == owner}


def engine_name(engine: str) -> str:
    """Return what a report says of the engine of a memory that was specified on Chroma."""
    chroma = f"chromadb {version('chromadb')}"
    return {CHROMA: chroma, SQLITE: f"sqlite + {chroma}"}.get(engine, engine)


def read_rows(rows: Sequence[Mapping[str, Tree]], make: Callable[[Mapping[str, Tree]], R]) -> list[R]:
    """Return what `make` makes of each row; InputError says which row is wrong, and why."""
    if isinstance(rows, str) or not isinstance(rows, Sequence):
        raise InputError(f"rows must be a list of objects, not {type(rows).__name__}")
    made = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise InputError(f"row {number}: it must be an object, not {type(row).__name__}")
        try:
            made.append(make(row))
        except KeyError as error:
            raise InputError(f"row {number}: the field {error} is missing") from error
        except (InputError, AttributeError, TypeError, ValueError) as error:
            raise InputError(f"row {number}: {error}") from error
    return made


def own_operations(kind: type) -> frozenset[Capability]:
    """Return the jobs of a class, and what can be looked at."""
    return frozenset(
        f"{word}.{name.removeprefix(prefix)}"
        for prefix, word in OPERATION_WORDS.items()
        for name in dir(kind)
        if name.startswith(prefix)
    )


def own_arguments(kind: type[SystemMemory], job: str) -> Sequence[str]:
    """Return what a job of a class takes; nothing of one that it does not have."""
    method = getattr(kind, f"{JOB}{job}", None)
    return () if method is None else tuple(signature(method).parameters)


def check_names(what: str, args: Mapping[str, Tree], known: Sequence[str]) -> None:
    """Raise StoryError for an argument that `what` does not have."""
    for name in args:
        if name not in known:
            raise StoryError(f"{what}: unknown argument {name!r:.80}; allowed: {', '.join(known) or 'none'}")


def check_arguments(what: str, method: Callable[..., Any], args: Mapping[str, Tree]) -> None:
    """Raise StoryError for arguments that the keywords of `method` do not take, or lack; `**more` takes any."""
    parameters = signature(method).parameters.values()
    keywords = [one for one in parameters if one.kind is Parameter.KEYWORD_ONLY]
    if not any(one.kind is Parameter.VAR_KEYWORD for one in parameters):
        check_names(what, args, [one.name for one in keywords])
    for one in keywords:
        if one.default is Parameter.empty and one.name not in args:
            raise StoryError(f"{what}: the argument {one.name!r} is missing")
