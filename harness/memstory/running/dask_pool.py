"""A scheduler of Dask as the driver of a run sees it: batches go in, what came of them comes out as it ends."""

from __future__ import annotations

import queue
import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from memstory.contract.errors import SetupError
from memstory.contract.installation import install_command
from memstory.running import dask_task
from memstory.running.dask_task import BatchResult, Job, WorkerNeeds, missing_for, run_batch

SCHEME: Final = "dask://"
CONNECT_SECONDS: Final = 10.0

_LOOK_SECONDS: Final = 1.0
_LEAST_WAITING: Final = 64
"""So many batches wait at the scheduler at least, so that a cluster that grows with its work sees some."""


class BatchEnd(NamedTuple):
    """What came of the batch of this name."""

    batch: str
    part: BatchResult


class DaskPool:
    """The workers behind `address`; `tell` is given a line where there is nobody to run what waits."""

    def __init__(self, address: str, tell: Callable[[str], None]) -> None:
        """Connect to the scheduler.

        Raises:
            SetupError: the library is not installed, or nobody answers there in time.
        """
        try:
            import cloudpickle  # noqa: PLC0415  (an extra)
            from distributed import Client  # noqa: PLC0415  (an extra)
        except ImportError as error:
            raise SetupError(
                f"--on {address} needs the package '{error.name}', which is not installed. Type: "
                f"{install_command('dask')}"
            ) from error
        cloudpickle.register_pickle_by_value(dask_task)
        self._address = address
        self._tell = tell
        self._ended: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._flying: dict[str, Any] = {}
        try:
            with warnings.catch_warnings():
                # What Dask has to say of versions is no error, whatever the project makes of warnings.
                warnings.simplefilter("default")
                self._client = Client(address.replace(SCHEME, "tcp://"), timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise SetupError(
                f"--on {address}: no scheduler of Dask answers there within {CONNECT_SECONDS:g} s: {error}. Is it "
                "running, and can this machine reach it?"
            ) from error

    @property
    def threads(self) -> int:
        """How many batches can run at once now."""
        return sum(self._client.nthreads().values())

    @property
    def workers(self) -> int:
        """How many workers there are now."""
        return len(self._client.nthreads())

    def missing(self, place: WorkerNeeds) -> dict[str, str]:
        """Return of each worker that cannot run cases of this run why not."""
        said = self._client.run(missing_for, place, on_error="return")
        return {worker: str(one) for worker, one in said.items() if one}

    def has_room(self) -> bool:
        """Whether another batch may be given: only so many wait at the scheduler, and their results at the workers."""
        return len(self._flying) < max(_LEAST_WAITING, 4 * self.threads)

    def submit(self, job: Job) -> None:
        """Give a batch to the next worker that is free."""
        name = job["batch"]
        future = self._client.submit(run_batch, job, key=f"memstory-{job['run']}-{name}", pure=False)
        self._flying[name] = future
        future.add_done_callback(lambda ended: self._ended.put((name, ended)))

    def wait(self, run: str) -> BatchEnd:
        """Return what came of the next batch that ends.

        Raises:
            SetupError: the scheduler is gone, or it could not hand the batch to a worker.
        """
        name, future = self._next()
        del self._flying[name]
        if future.status == "finished":
            return BatchEnd(name, future.result())
        if future.status != "error":
            raise SetupError(f"--on {self._address}: the connection to the scheduler is lost")
        error = future.exception()
        if type(error).__name__ != "KilledWorker":
            raise SetupError(f"--on {self._address}: a batch could not be given to a worker: {error!r}")
        worker = self._client.get_metadata([run, name], default="") or str(error)
        return BatchEnd(name, BatchResult(worker=worker, refusal="", lost="the worker ended while it ran", files={}))

    def close(self) -> None:
        """Cancel what is under way, which ends its processes, and let go of the scheduler."""
        if self._client.status == "running":
            self._client.cancel(list(self._flying.values()), force=True)
        self._client.close()

    def _next(self) -> tuple[str, Any]:
        told = False
        while True:
            try:
                return self._ended.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                if self._client.status != "running":
                    raise SetupError(f"--on {self._address}: the connection to the scheduler is lost") from None
                if not told and not self.workers:
                    self._tell(f"{self._address} has no worker: batches wait for one, {len(self._flying)} by now")
                    told = True
