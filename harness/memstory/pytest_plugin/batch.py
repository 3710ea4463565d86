"""pytest on a worker of a cluster: it runs the cases of one batch, and writes down what the driver's pytest shows.

To other plugins this is a worker of pytest-xdist, so that those leave reports and caches to the driver.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest

from memstory.bundled import named_path
from memstory.pytest_plugin.items import StoryItem
from memstory.pytest_plugin.session import LEFT, REMARKS
from memstory.results.runs import some
from memstory.running.dask_task import BATCH_FOLDER, JOB_NAME, Job

REPORTS_NAME: Final = "reports.jsonl"
END_NAME: Final = "end.json"
_OF_THE_DRIVER: Final = ("lf", "failedfirst", "newfirst", "stepwise", "usepdb", "trace")
"""Options of pytest that choose or show something where the run was typed."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make this session one of the batch, before other plugins look at their options."""
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
    config.pluginmanager.register(Batch(config, job, folder), "memstory-batch")


class Batch:
    """The hooks of a batch."""

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
        (self._folder / REPORTS_NAME).touch()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write down a report as pytest itself sends it between processes."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with (self._folder / REPORTS_NAME).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{json.dumps([self._cases[report.nodeid], data], default=str)}\n")

    def pytest_unconfigure(self) -> None:
        """Write down what only this process knows of its targets."""
        output = self._config.workeroutput  # type: ignore[attr-defined]  # of xdist
        text = json.dumps({name: output[name] for name in (LEFT, REMARKS) if name in output})
        (self._folder / END_NAME).write_text(text, "utf-8")
