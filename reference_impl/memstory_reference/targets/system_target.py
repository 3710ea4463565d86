"""A memory of this package as a target: opening, options, faults, looks at its ports, and errors in words."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.errors import (
    MemstoryError,
    NotSupported,
    Refused,
    SetupError,
    StoryError,
    TargetError,
    UnavailableError,
)
from memstory.contract.models import ChatModelUnavailableError
from memstory.contract.target import (
    Capability,
    Environment,
    Item,
    Memory,
    ModelUse,
    Receipt,
    Scope,
    Target,
    TargetFactory,
    Tree,
)
from memstory.contract.texts import did_you_mean
from memstory.contract.values import MADE_BY
from memstory_reference.adapters.store_folder import copy_folder
from memstory_reference.composition.chat_models import OFFLINE
from memstory_reference.composition.declaration import MemoryPorts, MemorySystem
from memstory_reference.composition.embedders import make_embedder
from memstory_reference.errors import InputError, StoreConflictError, UnknownTextError
from memstory_reference.setting_rules import EMBEDDING_MODEL, POSTGRES, SQL_ENGINE, SQLITE, check_settings
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.system_memory import JOB, SystemMemory, check_arguments, check_names, own_operations
from memstory_reference.targets.environment_ports import EnvironmentPorts, FaultyPort, FaultyVectorStore, MakeEmbedder
from memstory_reference.targets.shared_postgres import CasesPostgres

if TYPE_CHECKING:
    from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder


ROOT = "memstory_reference"
KEPT_LINES = 1_000
EMBEDDER: Final = "embedder"
"""How stories call the embedding model."""


COMMON: Final[frozenset[Capability]] = frozenset(
    {
        *("restart", "restart.embedder", "crash", "clock", "persistent", "scope.user", "scope.required"),
        *("embedder.fixed", "llm.scripted"),
        *("inspect.embedder", "inspect.model", "inspect.log", "fault.embedder", "fault.model", "fault.store"),
        "fault.replies",
    }
)
_OWN: Final = frozenset({"about", "run", "inspect"})
FORWARDED: Final = tuple(name for name, one in vars(Memory).items() if iscoroutinefunction(one) and name not in _OWN)


class SystemTarget(Target):
    """A memory on the ports of its case. A subclass says which.

    The operations that the memory has are the target's; its errors are put into the harness's words on the way.
    """

    system: ClassVar[MemorySystem]
    folder: ClassVar[str] = "."
    """Where in its workspace the memory is."""
    decided: ClassVar[Sequence[str]] = ()
    """Settings that a case decides, beside place and embedding model; a story may choose all others."""
    own_options: ClassVar[Sequence[str]] = ()
    """Options that are no settings."""
    options: ClassVar[Sequence[str]]
    usual_options: Mapping[str, Tree] = {}
    faulty_store: ClassVar[type[FaultyPort]] = FaultyVectorStore
    """What makes its store fail on demand."""
    _memory: SystemMemory

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "system"):
            return
        for name in FORWARDED:
            if name not in vars(cls) and getattr(cls.system.memory, name) is not getattr(Memory, name):
                setattr(cls, name, _forward(name))
        cls.options = tuple(dict.fromkeys([*cls._chosen(), "store", EMBEDDER, *cls.own_options]))

    def __init__(self, make_embedder: MakeEmbedder, postgres: CasesPostgres) -> None:
        self._make_embedder = make_embedder
        self._postgres = postgres
        self._log = WarningLog()
        self._is_open = False
        self._env: Environment
        self._clock: Clock
        self._ports: EnvironmentPorts
        self._settings: Any

    @classmethod
    def _chosen(cls) -> list[str]:
        """Return the settings that a story may choose."""
        but = (cls.system.place, "embedding_model", *cls.decided)
        return [name for name in cls.system.kind.rules() if name not in but]

    @classmethod
    def capabilities(cls) -> frozenset[Capability]:
        """Return all that it can do."""
        found = COMMON | cls.system.memory.capabilities() | own_operations(cls)
        return found | {f"option.{name}" for name in cls.options}

    def _settings_of(self, env: Environment) -> Any:
        """Return the settings that `env` chooses; InputError is the story's mistake."""
        if self.system.place == "store":
            # What a story calls the store is its engine here.
            check_settings({"store": env.options.get("store", SQLITE)}, {"store": SQL_ENGINE}, "options")
        chosen = {name: env.options[name] for name in self._chosen() if name in env.options}
        if EMBEDDER in env.options:
            chosen["embedding_model"] = env.options[EMBEDDER]
            check_settings({EMBEDDER: env.options[EMBEDDER]}, {EMBEDDER: EMBEDDING_MODEL}, "options")
        return self.system.kind.default().merge(chosen, "options")

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        """Return the ports that `env` asks for; InputError is the story's mistake."""
        return EnvironmentPorts(env, self._settings, self._make_embedder)

    async def _open_memory(self, folder: Path) -> SystemMemory:
        """Return the memory in `folder`, or in its database, open on the ports of the case."""
        settings = replace(self._settings, **{self.system.place: str(folder)})
        ports = MemoryPorts(
            embedder=self._ports.embedder,
            chat=self._ports.chat,
            has_model=bool(self._env.model_rules) or settings.chat != OFFLINE,
            clock=self._clock,
            new_id=self._ports.new_id,
            wrap=lambda store: self.faulty_store(store, self._ports.switches["store"]),
            place=await self._place(),
        )
        return await self._open_on(settings, ports)

    async def _open_on(self, settings: Any, ports: MemoryPorts) -> SystemMemory:
        return await self.system.opener(settings, ports)

    @property
    def _is_in_postgres(self) -> bool:
        """Whether the memory of the case is in Postgres."""
        return self._env.options.get("store") == POSTGRES

    async def _place(self) -> PostgresPlace | None:
        """Return where the memory of the case is in Postgres; None where it is in the workspace."""
        return await self._postgres.place(Path(self._env.workspace)) if self._is_in_postgres else None

    async def open(self, env: Environment, clock: Clock) -> None:
        self._env, self._clock = replace(env, options={**self.usual_options, **env.options}), clock
        env = self._env
        with harness_errors():
            try:
                check_options(env.options, self.options)
                self._settings = self._settings_of(env)
                self._ports = self._ports_of(env)
            except InputError as error:
                # Options and vectors are written by the story's author.
                raise StoryError(str(error)) from error
            self.embedding = self._ports.embedding
            self._log.attach()
            try:
                self._memory = await self._open_memory(Path(env.workspace) / self.folder)
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
            await self._memory.close()

    async def about(self) -> Mapping[str, str]:
        return {
            "embedder": self._ports.embedder.model,
            "chat": self.system.talker(self._ports.chat.name),
            "store": self._memory.store_name,
            MADE_BY: "memstory",
            **({"unreadable": f"{lost} rows of a damaged file"} if (lost := await self._memory.count_lost()) else {}),
        }

    async def fault(self, part: str, mode: str) -> None:
        self._ports.set_fault(part, mode)

    async def fault_counts(self) -> Mapping[str, int]:
        return {part: switch.landed for part, switch in self._ports.switches.items()}

    async def run(self, job: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
        own = getattr(self, f"{JOB}{job}", None)
        with self._in_harness_words():
            if own is None:
                return await self._memory.run(job, args, scope)
            check_arguments(job, own, args)
            return await own(scope, **args)

    async def inspect(self, what: str, args: Mapping[str, Tree], scope: Scope) -> Tree:
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
        with self._in_harness_words():
            return await self._memory.inspect(what, args, scope)

    async def load(self, items: Iterator[Item], scope: Scope) -> AsyncIterator[Receipt]:
        with self._in_harness_words():
            async for receipt in self._memory.load(items, scope):
                yield receipt

    def _in_harness_words(self) -> AbstractContextManager[None]:
        if not self._is_open:
            raise TargetError("the target is not open")
        return harness_errors(is_fault_injected=self._ports.is_fault_injected, failures=self._ports.embedder.failures)


class FolderTarget(SystemTarget):
    """A memory that lies in one folder of its case, and can be copied while it is closed."""

    async def _job_backup(self, scope: Scope, *, folder: Tree = "backup") -> Tree:
        """Close, copy, open the copy and see that it holds the same, go on with the original."""
        if self._is_in_postgres:
            raise InputError("backup: the memory is in Postgres; back it up with pg_dump")
        workspace = Path(self._env.workspace)
        original = await self._memory.list(scope)
        await self._memory.close()
        try:
            copy_folder(workspace / self.folder, workspace / str(folder))
            opened = await self._open_memory(workspace / str(folder))
            copied = await opened.list(scope)
            await opened.close()
        finally:
            self._memory = await self._open_memory(workspace / self.folder)
        return {"memories": len(copied), "equal": copied == original}


class SystemFactory(TargetFactory):
    """Makes targets of one system, which share a Postgres and loaded embedding models: weights never change."""

    target_class: ClassVar[type[SystemTarget]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.spec = f"{cls.__module__}:{cls.__name__}"

    usual_options: ClassVar[Mapping[str, Tree]] = {}
    """Options that a case of this target has unless it names them."""

    # Not onnxruntime: its import starts a thread and opens a database.
    preload: ClassVar[Sequence[str]] = (
        "memstory_reference.adapters.vectors.exact_store",
        "memstory_reference.adapters.embedding.embedding_cache",
        "memstory_reference.adapters.offline_chat",
        "tokenizers",
    )

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], CachedEmbedder] = {}
        self._postgres = CasesPostgres()

    async def start(self, folder: Path) -> None:
        self._postgres.belong_to(folder)

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        # What is kept away by a file of one process, others that write to the server would let in.
        in_postgres = options.get("store") == POSTGRES
        lacks = frozenset({"delete.durable", "job.backup"}) if in_postgres else frozenset[Capability]()
        return self.target_class.capabilities() - lacks

    def target(self) -> Target:
        target = self.target_class(self._embedder, self._postgres)
        target.usual_options = self.usual_options
        return target

    async def stop(self) -> None:
        await self._postgres.stop()
        for embedder in self._made.values():
            await embedder.close()

    def _embedder(self, name: str, ollama_host: str) -> CachedEmbedder:
        key = (name, ollama_host)
        if key not in self._made:
            self._made[key] = make_embedder(name, ollama_host=ollama_host)
        return self._made[key]


class WarningLog(logging.Handler):
    """Keeps warnings and worse of the whole package while it is attached."""

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)
        self._lines: deque[dict[str, Tree]] = deque(maxlen=KEPT_LINES)
        self._number = 0

    def emit(self, record: logging.LogRecord) -> None:
        self._number += 1
        line = {"level": record.levelname, "logger": record.name, "message": record.getMessage()}
        self._lines.append({"number": self._number, **line})

    def attach(self) -> None:
        """Begin to listen."""
        logging.getLogger(ROOT).addHandler(self)

    def detach(self) -> None:
        """Listen no more."""
        logging.getLogger(ROOT).removeHandler(self)

    def data(self, since: int = 0) -> list[dict[str, Tree]]:
        """Return the lines after line number `since`, oldest first."""
        return [line for line in self._lines if line["number"] > since]


@contextmanager
def harness_errors(*, is_fault_injected: bool = False, failures: Sequence[UnavailableError] = ()) -> Iterator[None]:
    """Turn what the reference raises inside into what the harness knows.

    A part that is down because the story made it so is an answer that the story judges; otherwise it is an error, also
    where a system already put it into words: `failures` holds what really failed so far.
    """
    unavailable = Refused if is_fault_injected else TargetError
    try:
        yield
        if failures:
            raise TargetError(f"Memory unavailable: {failures[0]}") from failures[0]  # noqa: TRY301  (no error of the reference)
    except (NotSupported, Refused, SetupError, StoryError, TargetError):
        raise
    except UnknownTextError as error:
        raise StoryError(str(error)) from error
    except InputError as error:
        raise Refused(str(error)) from error
    except ChatModelUnavailableError as error:
        raise unavailable(f"Model unavailable: {error}") from error
    except UnavailableError as error:
        raise unavailable(f"Memory unavailable: {error}") from error
    except MemstoryError as error:
        raise TargetError(str(error)) from error


def check_options(options: Mapping[str, Tree], known: Sequence[str]) -> None:
    """Raise InputError for an option that the system does not have."""
    for name in options:
        if name not in known:
            raise InputError(
                f"options: unknown option {name!r:.80}.{did_you_mean(name, known)} Known: {', '.join(sorted(known))}"
            )


def _forward(name: str) -> Callable[..., Any]:
    """Return the operation `name` of the memory behind a target."""

    @wraps(getattr(Memory, name))
    async def operation(self: SystemTarget, *args: Any, **more: Any) -> Any:
        with self._in_harness_words():
            return await getattr(self._memory, name)(*args, **more)

    return operation
