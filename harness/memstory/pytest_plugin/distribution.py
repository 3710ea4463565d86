"""`--on dask://…`: the stories of a session run in batches on the workers of a cluster, and are reported as if here.

The driver's pytest has a `Distribution`; pytest on a worker, where this module is a plugin, runs the cases of one batch
and writes down what the driver shows.
"""

from __future__ import annotations

import json
import os
import platform
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import uuid4

import pytest

from memstory.bundled import named_path, shown_path
from memstory.contract.errors import SetupError, TargetError
from memstory.pytest_plugin.items import StoryItem, select_once
from memstory.pytest_plugin.options import judge_file
from memstory.pytest_plugin.session import LEFT, REMARKS, SessionState, state_of
from memstory.results.folder.spool import Spool
from memstory.results.runs import quantity, some
from memstory.running.dask_pool import DaskPool
from memstory.running.dask_task import BATCH_FOLDER, JOB_NAME, Job, WorkerNeeds

_BATCHES_A_THREAD: Final = 2
"""So many where there are few cases: each batch is the start of a process, and none should have to wait for one."""

_MOST_CASES: Final = 200
"""In a batch: these are to run again if its worker dies, and they share the one start of a process."""

_SHOWN: Final = 5

_REPORTS_NAME: Final = "reports.jsonl"
_END_NAME: Final = "end.json"
_OF_THE_DRIVER: Final = ("lf", "failedfirst", "newfirst", "stepwise", "usepdb", "trace")
"""Options of pytest that choose or show something where the run was typed."""


@dataclass(frozen=True, slots=True)
class _Batch:
    items: Sequence[StoryItem]
    first: str = ""
    """What ended the first run of these cases, where this is their second."""


class Distribution:
    """Takes the place of pytest's loop over the cases."""

    def __init__(self, config: pytest.Config) -> None:
        """Look whether the other options go with it; UsageError where they do not."""
        self._config = config
        self._address: str = config.getoption("memstory_on")
        self._pool: DaskPool | None = None
        self._run = f"memstory-{uuid4().hex[:12]}"
        self._digests: dict[Path, str] = {}
        for option, why in {
            "numprocesses": "-n spreads the cases over processes of this machine",
            "memstory_shard": "--shard is for machines that know nothing of each other",
            "memstory_resume": "--resume needs what each history gave, which workers do not send",
            "usepdb": "--pdb needs the case in this process",
        }.items():
            if config.getoption(option, None):
                raise pytest.UsageError(
                    f"{why}, and --on gives them to the workers of a cluster: leave one of them out"
                )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Connect, and refuse workers that cannot run the cases, before anything that another run left is touched."""
        items = [item for item in session.items if isinstance(item, StoryItem)]
        if not items or self._config.option.collectonly or session.testsfailed:
            return
        try:
            self._pool = DaskPool(self._address, self._say)
        except SetupError as error:
            raise pytest.UsageError(str(error)) from error
        self._config.add_cleanup(self._pool.close)
        missing = self._pool.missing(self._place(items))
        if missing:
            lines = [f"  {worker}: {why}" for worker, why in list(missing.items())[:_SHOWN]]
            more = [f"  and {len(missing) - _SHOWN} more"] if len(missing) > _SHOWN else []
            count = quantity(len(missing), "worker")
            raise pytest.UsageError("\n".join([f"{self._address}: {count} cannot run these stories:", *lines, *more]))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run what is not a story here, and the stories on the cluster."""
        pool = self._pool
        if pool is None:
            return None
        state = state_of(self._config)
        select_once(session, state)
        _stop_if_asked(session)
        stories = [item for item in session.items if isinstance(item, StoryItem)]
        own = [item for item in session.items if not isinstance(item, StoryItem)]
        for item, following in zip(own, [*own[1:], None], strict=False):
            self._run_here(session, item, following)
        try:
            self._run_there(session, state, pool, stories)
        except SetupError as error:
            session.shouldstop = str(error)
        finally:
            pool.close()
        _stop_if_asked(session)
        return True

    def _run_here(self, session: pytest.Session, item: pytest.Item, following: pytest.Item | None = None) -> None:
        self._config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        _stop_if_asked(session)

    def _run_there(
        self, session: pytest.Session, state: SessionState, pool: DaskPool, stories: Sequence[StoryItem]
    ) -> None:
        threads = pool.threads
        waiting = deque(_batches(stories, threads))
        workers = f"{quantity(pool.workers, 'worker')} with {quantity(threads, 'thread')}"
        part_count = "1 batch" if len(waiting) == 1 else f"{len(waiting):,} batches"
        self._say(f"{self._address}: {workers}; {quantity(len(stories), 'case')} in {part_count}")
        flying: dict[str, _Batch] = {}
        number = 0
        while waiting or flying:
            while waiting and pool.has_room():
                batch = waiting.popleft()
                if state.budget.reason_to_stop() is not None:
                    for item in batch.items:  # which says so, and runs nothing
                        self._run_here(session, item)
                    continue
                number += 1
                flying[str(number)] = batch
                pool.submit(self._job(str(number), batch))
            if not flying:
                continue
            name, part = pool.wait(self._run)
            batch = flying.pop(name)
            if part["refusal"]:
                raise SetupError(f"the worker {part['worker']} cannot run these stories: {part['refusal']}")
            lost = self._take(session, state, batch.items, part["files"])
            why = f"{part['lost']}, on {part['worker']}"
            if not batch.first:
                waiting.extend(_second_tries(lost, why, is_known=bool(part["files"])))
                continue
            for item in lost:
                item.lost = TargetError(f"it has no result after two tries: {batch.first}; then {why}")
                self._run_here(session, item)

    def _take(
        self, session: pytest.Session, state: SessionState, items: Sequence[StoryItem], files: Mapping[str, bytes]
    ) -> list[StoryItem]:
        """Record and report what a worker has found, as if it had run here; return the cases that it did not end."""
        with TemporaryDirectory(prefix="memstory-") as folder:
            for name, content in files.items():
                Path(folder, name).write_bytes(content)
            results = {result.id: result for result in Spool(Path(folder)).read()}
        reports = _reports(self._config, files.get(_REPORTS_NAME, b""))
        lost = []
        for item in items:
            result, said = results.get(item.case.id), reports.get(item.case.id, [])
            if result is None or not said or said[-1].when != "teardown":
                lost.append(item)
                continue
            state.spool.append(result)
            state.budget.note(result)
            self._config.hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            for report in said:
                self._config.hook.pytest_runtest_logreport(report=report)
            self._config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            _stop_if_asked(session)
        state.hear(json.loads(files.get(_END_NAME, b"{}")))
        return lost

    def _job(self, name: str, batch: _Batch) -> Job:
        return Job(
            run=self._run,
            batch=name,
            place=self._place(batch.items),
            words=[str(word) for word in self._config.invocation_params.args],
            cases={item.case.id: item.case.story.digest for item in batch.items},
            judge_file=str(judge_file(self._config).absolute()),
            report=_REPORTS_NAME,
            environment={"PYTEST_ADDOPTS": os.environ.get("PYTEST_ADDOPTS", "")},
        )

    def _place(self, items: Sequence[StoryItem]) -> WorkerNeeds:
        root = self._config.rootpath
        return WorkerNeeds(
            memstory=version("memstory"),
            python=platform.python_version(),
            folder=str(self._config.invocation_params.dir),
            root=str(root),
            files={shown_path(item.path, root): self._digest(item.path) for item in items},
        )

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = sha256(path.read_bytes()).hexdigest()
        return self._digests[path]

    def _say(self, line: str) -> None:
        terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(line)


def _batches(stories: Sequence[StoryItem], threads: int) -> Iterator[_Batch]:
    """Deal out the cases in their order, so that those of one file are together; what may take long goes alone."""
    size = min(_MOST_CASES, ceil(len(stories) / (max(threads, 1) * _BATCHES_A_THREAD)))
    batch: list[StoryItem] = []
    for item in stories:
        if item.case.story.retrieval is not None or item.case.story.measure:
            yield _Batch([item])
            continue
        batch.append(item)
        if len(batch) == size:
            yield _Batch(batch)
            batch = []
    if batch:
        yield _Batch(batch)


def _second_tries(lost: Sequence[StoryItem], why: str, *, is_known: bool) -> Iterator[_Batch]:
    """Return what runs the cases of a batch that have no result, so that the one that ended it harms no other.

    Of a process that ended it `is_known` how far it came: the next case ended it, and those after it did not begin.
    Of a worker nothing is known, so each case runs by itself.
    """
    alone = min(len(lost), 1) if is_known else len(lost)
    yield from (_Batch([item], why) for item in lost[:alone])
    if lost[alone:]:
        yield _Batch(lost[alone:])


def _reports(config: pytest.Config, content: bytes) -> dict[str, list[pytest.TestReport]]:
    """Return the reports of each case; a line that its writer did not finish is none."""
    found: dict[str, list[pytest.TestReport]] = {}
    for line in content.split(b"\n")[:-1]:
        case, data = json.loads(line)
        if isinstance(data["longrepr"], list):  # of a skip: plugins look for what JSON does not know
            data["longrepr"] = tuple(data["longrepr"])
        found.setdefault(case, []).append(config.hook.pytest_report_from_serializable(config=config, data=data))
    return found


def _stop_if_asked(session: pytest.Session) -> None:
    """Raise what pytest's own loop raises between two cases."""
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make this session one of a batch, on a worker that names this module to pytest as a plugin.

    It comes before other plugins look at their options. To them this is a worker of pytest-xdist, so that they leave
    reports and caches to the driver.
    """
    folder = Path(os.environ[BATCH_FOLDER])
    job: Job = json.loads((folder / JOB_NAME).read_text("utf-8"))
    for name in _OF_THE_DRIVER:
        if hasattr(config.option, name):
            setattr(config.option, name, False)
    config.option.memstory_on = None
    config.option.memstory_report = str(folder)
    config.option.memstory_judge_file = job["judge_file"]
    config.args = [str(path if path.exists() else named_path(shown)) for shown in job["place"]["files"]
                   for path in [Path(job["place"]["root"], shown)]]  # fmt: skip
    name = f"batch{job['batch']}"
    config.workerinput = {"workerid": name, "workercount": 1, "testrunuid": job["run"]}  # type: ignore[attr-defined]  # of xdist
    config.workeroutput = {}  # type: ignore[attr-defined]  # of xdist
    config.pluginmanager.register(BatchHooks(config, job, folder), "memstory-batch")


class BatchHooks:
    """The other hooks of pytest on a worker."""

    def __init__(self, config: pytest.Config, job: Job, folder: Path) -> None:
        self._config = config
        self._job = job
        self._folder = folder
        self._cases: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the cases of the batch among `items`, each of the very story that the driver has."""
        found = {item.case.id: item for item in items if isinstance(item, StoryItem)}
        others = [
            case
            for case, digest in self._job["cases"].items()
            if case not in found or found[case].case.story.digest != digest
        ]
        if others:
            raise pytest.UsageError(f"these cases are not here as they are where the run was typed: {some(others)}")
        items[:] = [found[case] for case in self._job["cases"]]
        self._cases = {item.nodeid: item.case.id for item in items if isinstance(item, StoryItem)}
        (self._folder / _REPORTS_NAME).touch()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write down a report as pytest itself sends it between processes."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with (self._folder / _REPORTS_NAME).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{json.dumps([self._cases[report.nodeid], data], default=str)}\n")

    def pytest_unconfigure(self) -> None:
        """Write down what only this process knows of its targets."""
        output = self._config.workeroutput  # type: ignore[attr-defined]  # of xdist
        text = json.dumps({name: output[name] for name in (LEFT, REMARKS) if name in output})
        (self._folder / _END_NAME).write_text(text, "utf-8")
