"""pytest as a child: whatever a target does to it, its report is complete, and 0 means that all ran.

`python -m memstory.commands.running.supervising PID FOLDER` does the same for the batch in FOLDER, on a worker of a
cluster: for as long as that, PID, lives.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from memstory.commands.output import complain
from memstory.commands.running.option_names import BUNDLED, PREFIX, SHORT
from memstory.contract.errors import SetupError
from memstory.contract.texts import did_you_mean
from memstory.results.folder.spool import HISTORIES_NAME, ISOLATE, SELECTED_NAME, SPOOL_NAME
from memstory.running.dask_task import BATCH_FOLDER, JOB_NAME
from memstory.running.supervision import (
    ENDED,
    REPORT,
    SUPERVISOR,
    OwnFolder,
    clear_dead_folders,
    end_marked,
    messages_of,
)

_HANDED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_LOST: Final = 3
_USAGE: Final = 4
_PYTEST: Final = """\
import os, runpy, sys
sys.path[:1] = [os.getcwd()] if sys.path[:1] == [""] else sys.path[:1]
try:
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)
except KeyboardInterrupt:
    sys.stderr.write("memstory run: interrupted\\n")
    sys.exit(2)
"""
"""As `python -m pytest`, but with no traceback of Ctrl-C before and after its session, where pytest catches none."""
_PATIENCE_SECONDS: Final = 10.0
"""A fork of pytest that dies with it keeps the lock of the reports until the system has cleared it away."""

_PARENT_DIED: Final = 1
"""PR_SET_PDEATHSIG of Linux."""

_BATCH_PLUGIN: Final = "memstory.pytest_plugin.distribution"


def supervise(words: Sequence[str], typed: Sequence[str] = ()) -> int:
    """Run pytest with these words, this terminal and input; return its exit code, never 0 if a case was lost.

    `typed` are those of a person, among which a misspelt option may be.
    """
    clear_dead_folders()
    own = OwnFolder()
    environ = {**os.environ, SUPERVISOR: str(own.path)}
    try:
        child, code = _waited_for([sys.executable, "-c", _PYTEST, *words], environ)
        for one in end_marked(f"{SUPERVISOR}={own.path}"):
            complain(f"ended what a target left running: {one}")
        told = messages_of(child, own.path)
        return _exit_code(code, told, typed)
    finally:
        own.remove()


def _exit_code(code: int, told: Mapping[str, str], typed: Sequence[str]) -> int:
    shown = code if code >= 0 else 128 - code
    folder = Path(told.get(REPORT, os.devnull))
    is_left = any((folder / name).exists() for name in (SPOOL_NAME, SELECTED_NAME))
    if ENDED in told and not is_left:
        return shown
    if code == _USAGE and not is_left:
        options = [word.partition("=")[0] for word in typed if word.startswith("--")]
        known = (*SHORT, BUNDLED)
        near = "".join(
            did_you_mean(name, known) for name in options if name not in known and not name.startswith(PREFIX)
        )
        complain(
            f"pytest does not take this command line, for the reason above.{near} All options: memstory run --help; "
            "pytest --help"
        )
        return shown
    how = f"exit code {code}" if code >= 0 else f"signal {-code} ({signal.strsignal(-code)})"
    complain(f"pytest did not come to its end: it left with {how}")
    if is_left:
        # Nearly half of what a start costs, and only a run that was killed needs it.
        from memstory.reporting.writing import report_from_spool  # noqa: PLC0415

        try:
            complain(report_from_spool(folder, f"pytest ended with {how} before it; {ISOLATE}", _PATIENCE_SECONDS))
            complain(ISOLATE)
            if (folder / HISTORIES_NAME).exists():
                complain("what each history gave is kept: the same command with --resume goes on from there")
        except SetupError as error:
            complain(str(error))
    return shown or _LOST


def _waited_for(command: Sequence[str], environ: Mapping[str, str]) -> tuple[int, int]:
    """Return the child's number and how it ended; signals to this process are handed on to it."""
    wait = _Waiting()
    before = {number: signal.signal(number, wait.hand_on) for number in _HANDED_ON}
    try:
        child = wait.child = subprocess.Popen(command, env=environ, preexec_fn=_begin_child)  # noqa: S603, PLW1509  (what the user typed; no thread runs here)
        return child.pid, child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Waiting:
    """What a signal finds: the child, once there is one."""

    child: subprocess.Popen[bytes] | None = None

    def hand_on(self, number: int, _frame: FrameType | None) -> None:
        # Ctrl-C goes to all of the terminal's group, the child among them: twice would be a second Ctrl-C.
        is_typed = number in (signal.SIGINT, signal.SIGQUIT) and _group_of_the_terminal() == os.getpgrp()
        if self.child is not None and not is_typed:
            self.child.send_signal(number)


def _group_of_the_terminal() -> int | None:
    """Return the group of processes that a terminal speaks to; None where there is no terminal."""
    try:
        with Path("/dev/tty").open("rb") as terminal:
            return os.tcgetpgrp(terminal.fileno())
    except OSError:
        return None


def _begin_child() -> None:
    """Ask the system to end this process, with a report, when the one that waits for it is killed."""
    for number in _HANDED_ON:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if _group_of_the_terminal() is None:
        os.setpgrp()  # a target that kills its group does not kill the one that waits
    _end_with_parent()


def _end_with_parent() -> None:
    """Ask the system to end this process by SIGTERM when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGTERM)


def _run_batch(parent: int, folder: Path) -> int:
    _end_with_parent()
    if os.getppid() != parent:
        return 1  # it has ended since
    os.environ[BATCH_FOLDER] = str(folder)
    words = json.loads((folder / JOB_NAME).read_text("utf-8"))["words"]
    return supervise([*words, "-p", _BATCH_PLUGIN])


if __name__ == "__main__":
    sys.exit(_run_batch(int(sys.argv[1]), Path(sys.argv[2])))
