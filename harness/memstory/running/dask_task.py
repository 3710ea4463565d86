"""What a worker of Dask is given: one batch of cases, which it runs in a process of its own and sends back as files.

The functions travel by value and need nothing but Python until they have looked what is there, so that a scheduler
needs no memstory, and a worker without it can say so.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, TypedDict

JOB_NAME: Final = "job.json"
OUTPUT_NAME: Final = "output.txt"
BATCH_FOLDER: Final = "MEMSTORY_BATCH"
"""The variable with the folder of a batch, in its process."""

BATCH_PROCESS: Final = "memstory.commands.running.supervising"

_LOOK_SECONDS: Final = 0.05
_END_SECONDS: Final = 20.0
_TAIL: Final = 12
"""Lines of what a process has printed that are sent back."""


class WorkerNeeds(TypedDict):
    """What a worker must have to run cases of a run; `files` are the digests of story files by the names they show."""

    memstory: str
    python: str
    folder: str
    root: str
    files: Mapping[str, str]


class Job(TypedDict):
    """A batch of a run; `cases` are the digests of the stories by the ids of the cases, `words` those for pytest."""

    run: str
    batch: str
    place: WorkerNeeds
    words: list[str]
    cases: Mapping[str, str]
    judge_file: str
    report: str
    environment: Mapping[str, str]


class BatchResult(TypedDict):
    """What came of a batch on a worker: why it does not belong there, or why cases without a result have none."""

    worker: str
    refusal: str
    lost: str
    files: Mapping[str, bytes]


def missing_for(place: WorkerNeeds) -> str:
    """Return why this machine cannot run cases of a run; nothing if it can."""
    try:
        here = f"memstory {version('memstory')} on Python {platform.python_version()}"
    except PackageNotFoundError:
        return f"memstory is not installed for its Python, {sys.executable}"
    wanted = f"memstory {place['memstory']} on Python {place['python']}"
    if here != wanted:
        return f"it has {here}, and this run is of {wanted}"
    if not Path(place["folder"]).is_dir():
        return f"it has no folder {place['folder']}: stories and targets must be at the same path on every worker"
    from memstory.bundled import named_path  # noqa: PLC0415  (see the module's docstring)

    for shown, digest in place["files"].items():
        inside = Path(place["root"], shown)
        path = inside if inside.exists() else named_path(shown)
        if not path.is_file():
            return f"it has no file {shown} in {place['root']}"
        if sha256(path.read_bytes()).hexdigest() != digest:
            return f"its file {path} is another than the one here"
    return ""


def run_batch(job: Job) -> BatchResult:
    """Run the cases of a batch on this worker, if none has begun it before; it is ended when its task is cancelled.

    Dask gives a task whose worker died to the next one, several times; which of its cases are to run again, and how, is
    for the one to decide who knows them.
    """
    from distributed import get_client, get_worker  # noqa: PLC0415  (an extra; it is there where a task runs)

    worker, client = get_worker(), get_client()
    here = str(worker.address) if worker.name in (None, worker.address) else f"{worker.address} ({worker.name})"
    if missing := missing_for(job["place"]):
        return BatchResult(worker=here, refusal=missing, lost="", files={})
    place = [job["run"], job["batch"]]
    if before := client.get_metadata(place, default=""):
        return BatchResult(worker=before, refusal="", lost="the worker ended while it ran", files={})
    client.set_metadata(place, here)
    from memstory.running.supervision import OwnFolder  # noqa: PLC0415  (see the module's docstring)

    own = OwnFolder()
    try:
        code = _run_in(own.path, job, worker)
        files = {path.name: path.read_bytes() for path in own.path.iterdir() if path.is_file()}
    finally:
        own.remove()
    output = [line for line in files.pop(OUTPUT_NAME).decode("utf-8", "replace").splitlines() if line.strip()]
    files.pop(JOB_NAME)
    refusal = "" if job["report"] in files else "\n".join(["it could not begin:", *output[-_TAIL:]])
    return BatchResult(worker=here, refusal=refusal, lost=_end(code), files=files)


def _run_in(folder: Path, job: Job, worker: Any) -> int:
    """Run the process of a batch and return its exit code."""
    (folder / JOB_NAME).write_text(json.dumps(job), "utf-8")
    task = worker.get_current_task()
    with (folder / OUTPUT_NAME).open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  (our own module)
            [sys.executable, "-m", BATCH_PROCESS, str(os.getpid()), str(folder)],
            cwd=job["place"]["folder"],
            env={**os.environ, **job["environment"]},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        while process.poll() is None:
            state = worker.state.tasks.get(task)
            if state is None or state.state == "cancelled":
                process.terminate()
                try:
                    process.wait(_END_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
            time.sleep(_LOOK_SECONDS)
    return process.returncode


def _end(code: int) -> str:
    return f"the process that ran it ended with {f'exit code {code}' if code >= 0 else f'signal {-code}'}"
