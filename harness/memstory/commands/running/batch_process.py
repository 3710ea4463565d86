"""The process of a batch on a worker: pytest as `memstory run` has it, for as long as the worker lives."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Final

from memstory.commands.running.supervising import end_with_parent, supervise
from memstory.running.dask_task import JOB_NAME

PLUGIN: Final = "memstory.pytest_plugin.batch"
FOLDER: Final = "MEMSTORY_BATCH"
"""The variable with the folder of the batch."""


def main() -> int:
    """Run the batch in the folder that was typed, if the worker that was typed lives."""
    parent, folder = int(sys.argv[1]), Path(sys.argv[2])
    end_with_parent()
    if os.getppid() != parent:
        return 1  # it has ended since
    os.environ[FOLDER] = str(folder)
    words = json.loads((folder / JOB_NAME).read_text("utf-8"))["words"]
    return supervise([*words, "-p", PLUGIN])


if __name__ == "__main__":
    sys.exit(main())
