"""What the systems have in common as targets: opening, options, jobs, looks inside, faults, and errors in words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused, StoryError, TargetError
from memstory.contract.target import (
    Capability,
    Environment,
    ModelUse,
    Query,
    Scope,
    Target,
    TargetFactory,
    Tree,
)
from memstory.contract.texts import did_you_mean
from memstory.contract.values import MADE_BY
from memstory_reference.composition.chat_models import OFFLINE
from memstory_reference.composition.embedders import make_embedder
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.ports import BY_RULES
from memstory_reference.targets.environment_ports import PORT_OPTIONS, EnvironmentPorts, MakeEmbedder, environment_ports
from memstory_reference.targets.refusals import harness_errors, story_errors
from memstory_reference.targets.warning_log import WarningLog

if TYPE_CHECKING:
    from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder

COMMON: frozenset[Capability] = frozenset(
    {
        *("restart", "restart.embedder", "crash", "clock", "persistent", "scope.user", "scope.required"),
        *("embedder.fixed", "llm.scripted"),
        *("inspect.embedder", "inspect.model", "inspect.log", "fault.embedder", "fault.model", "fault.store"),
    }
)
_JOB, _LOOK = "_job_", "_look_"


class Closable(Protocol):
    """A system that is open."""

    async def close(self) -> None:
        """Release everything."""
        ...


S = TypeVar("S", bound=Closable)


class SystemTarget(Target, Generic[S]):
    """A memory system on the ports of its case.

    A subclass opens the system and translates the operations. Its methods `_job_NAME` are its jobs and `_look_NAME`
    what can be looked at: `scope` first, then the story's arguments by keyword.
    """

    operations: ClassVar[frozenset[Capability]]
    """What it can do beside what all systems can, and beside its jobs, looks and options."""

    options: ClassVar[Sequence[str]] = PORT_OPTIONS
    search_options: ClassVar[Sequence[str]] = ()
    _system: S

    def __init__(self, make_embedder: MakeEmbedder) -> None:
        self._make_embedder = make_embedder
        self._log = WarningLog()
        self._is_open = False
        self._env: Environment
        self._clock: Clock
        self._ports: EnvironmentPorts

    @classmethod
    def capabilities(cls) -> frozenset[Capability]:
        """Return all that it can do."""
        found = set(COMMON | cls.operations)
        found |= {f"option.{name}" for name in cls.options}
        for prefix, kind in ((_JOB, "job"), (_LOOK, "inspect")):
            found |= {f"{kind}.{name.removeprefix(prefix)}" for name in dir(cls) if name.startswith(prefix)}
        if cls._formula is not SystemTarget._formula:
            found.add("inspect.formula")
        return frozenset(found)

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        """Read the options of `env`, and return the ports that they ask for; InputError is the story's mistake."""
        return environment_ports(env, self._make_embedder)

    @abstractmethod
    async def _open_system(self, workspace: Path) -> S:
        """Return the system, open on `self._ports`."""

    @abstractmethod
    def _store_name(self) -> str:
        """Return where the memory is stored."""

    @property
    def _has_model(self) -> bool:
        """Whether a language model answers; without one some systems go by rules."""
        return bool(self._env.model_rules) or self._env.options.get("chat", OFFLINE) != OFFLINE

    async def open(self, env: Environment, clock: Clock) -> None:
        self._env, self._clock = env, clock
        with harness_errors():
            with story_errors():
                check_options(env.options, self.options)
                self._ports = self._ports_of(env)
            self.embedding = self._ports.embedding
            self._log.attach()
            try:
                self._system = await self._open_system(Path(env.workspace))
                self._is_open = True
            except BaseException as error:
                self._log.detach()
                if env.other_embedder and isinstance(error, StoreConflictError):
                    raise Refused(str(error)) from error
                raise
        for part, mode in env.faults.items():
            self._ports.set_fault(part, mode)

    @property
    def model_use(self) -> ModelUse | None:
        return self._ports.counted.use if self._is_open else None

    async def close(self) -> None:
        self._log.detach()
        if self._is_open:
            self._is_open = False
            await self._system.close()

    async def about(self) -> Mapping[str, str]:
        return {
            "embedder": self._ports.embedder.model,
            "chat": self._ports.chat.name if self._has_model else BY_RULES,
            "store": self._store_name(),
            MADE_BY: "memstory",
            **({"unreadable": f"{lost} rows of a damaged file"} if (lost := await self._lost()) else {}),
        }

    async def _lost(self) -> int:
        """Return how many rows cannot be read since a file was damaged, where that is known at the opening."""
        return 0

    async def fault(self, part: str, mode: str) -> None:
        self._ports.set_fault(part, mode)

    async def faults_landed(self) -> Mapping[str, int]:
        return {part: switch.landed for part, switch in self._ports.switches.items()}

    async def run(self, job: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        return await self._call(_JOB, job, f"job.{job}", args, scope)

    async def inspect(self, what: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        if what == "formula":
            return self._formula(args)
        since = args.get("since", 0)
        if not isinstance(since, int) or isinstance(since, bool):
            raise StoryError(f"inspect: since is {since!r}; allowed: the number of a call or message")
        own: Mapping[str, Callable[[int], Tree]] = {
            "embedder": self._ports.embedder.data,
            "model": self._ports.chat.data,
            "log": self._log.data,
        }
        if what in own:
            check_names(f"inspect {what}", args, ("since",))
            return own[what](since)
        return await self._call(_LOOK, what, f"inspect.{what}", args, scope)

    def _formula(self, args: Mapping[str, Tree]) -> Tree:
        raise NotSupported("inspect.formula")

    async def _call(
        self, prefix: str, name: str, capability: Capability, args: Mapping[str, Tree], scope: Scope
    ) -> Tree:
        method = getattr(self, f"{prefix}{name}", None)
        if method is None:
            raise NotSupported(capability)
        check_arguments(name, method, args)
        with self._in_harness_words():
            return await method(scope, **args)

    def _check_query(self, query: Query) -> None:
        """Raise NotSupported or StoryError for what a search of this system does not know."""
        asked = {
            "search.min_score": query.min_score is not None,
            "search.where": bool(query.where),
            "search.where.any": bool(query.where_any),
            "search.budget": query.token_budget is not None,
            "search.as_of": query.as_of is not None,
        }
        known = self.capabilities()
        for capability in (name for name, is_asked in asked.items() if is_asked and name not in known):
            raise NotSupported(capability)
        check_names("search", query.options, self.search_options)

    def _in_harness_words(self) -> AbstractContextManager[None]:
        if not self._is_open:
            raise TargetError("the target is not open")
        return harness_errors(is_fault_injected=self._ports.is_fault_injected, failures=self._ports.embedder.failures)


class CurrentSessions:
    """The session in which each user acts, for the steps of a story that name none."""

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


class SystemFactory(TargetFactory):
    """Makes targets of one system, which share loaded embedding models: weights are expensive, and never change."""

    target_class: ClassVar[type[SystemTarget[Any]]]
    # Not onnxruntime: its import starts a thread and opens a database.
    preload: ClassVar[Sequence[str]] = (
        "memstory_reference.adapters.vectors.chroma",
        "memstory_reference.adapters.embedding.embedding_cache",
        "memstory_reference.adapters.offline_chat",
        "tokenizers",
    )

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], CachedEmbedder] = {}

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        return self.target_class.capabilities()

    def target(self) -> Target:
        return self.target_class(self._embedder)

    async def stop(self) -> None:
        for embedder in self._made.values():
            await embedder.close()

    def _embedder(self, name: str, ollama_host: str) -> CachedEmbedder:
        key = (name, ollama_host)
        if key not in self._made:
            self._made[key] = make_embedder(name, ollama_host=ollama_host)
        return self._made[key]


def check_options(options: Mapping[str, Tree], known: Sequence[str]) -> None:
    """Raise InputError for an option that the system does not have."""
    for name in options:
        if name not in known:
            raise InputError(
                f"options: unknown option {name!r:.80}.{did_you_mean(name, known)} Known: {', '.join(sorted(known))}"
            )


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
