"""The end of a process in which a target has left a thread that never ends, for which Python would wait for ever."""

from __future__ import annotations

import os
import sys
import threading
import time

_GRACE_SECONDS = 10.0
_PAUSE_SECONDS = 0.5


def leave_in_time(exit_code: int) -> None:
    """End this process with `exit_code` where its interpreter shuts down and does not come to an end."""
    threading.Thread(target=_watch, args=(exit_code,), daemon=True).start()


def _watch(exit_code: int) -> None:
    waited = 0.0
    while waited < _GRACE_SECONDS:
        time.sleep(_PAUSE_SECONDS)
        if _is_shutting_down():
            waited += _PAUSE_SECONDS
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


def _is_shutting_down() -> bool:
    """Whether the main thread waits for the others, which is the last thing that it does."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001  (documented, for such cases)
    while frame is not None:
        if frame.f_code.co_name == "_shutdown" and frame.f_code.co_filename == threading.__file__:
            return True
        frame = frame.f_back
    return False
