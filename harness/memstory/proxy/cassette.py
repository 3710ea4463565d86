"""The file of a recording: JSON Lines, a call each, appended as they come, so that a killed run leaves what it had."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from memstory.contract.errors import SetupError
from memstory.contract.values import Tree
from memstory.proxy.blanking import Asked
from memstory.results.secrecy.secret_values import Secrets

SCHEMA: Final = "memstory.proxy/1"
AGAIN: Final = "Record the run again."
"""In the answer to a request that a recording does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A recorded call; request and answer have marks in place of what varies, and no secrets.

    `key` is that of the request as it was, so that one with a secret is found again.
    """

    key: str
    path: str
    request: Tree
    answer: Tree


class Recorder:
    """Appends calls to a new file, without secrets; calls may come from several threads."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        self._path = path
        self._secrets = secrets
        self._lock = Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(f"{json.dumps({'schema': SCHEMA})}\n")
        except FileExistsError as error:
            raise SetupError(
                f"{path} exists already. Replay it (--replay {path}), or delete it to record it again."
            ) from error
        except OSError as error:
            raise SetupError(f"{path} cannot be written: {error.strerror}.") from error

    def write(self, request: Asked, answer: Tree) -> None:
        """Add a call."""
        call = {"key": request.key, "path": request.path, "request": request.body, "answer": request.blanked(answer)}
        # A key in a prompt is still a key; headers, which have the server's, never come here.
        line = json.dumps(self._secrets.tree_without(call)[0], ensure_ascii=False)
        # Half of a character, which is not UTF-8, is replaced by what is its escape in JSON.
        with self._lock, self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{line}\n")


def read_calls(path: Path) -> Sequence[Call]:
    """Return the calls of a recording in their order; the last line may be torn, where the run was killed.

    Raises:
        SetupError: the file cannot be read, or is something else.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        return list(_calls(path, lines))
    except FileNotFoundError as error:
        raise SetupError(
            f"there is no recording at {path}. Make it: memstory proxy --forward URL --record {path}"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{path} cannot be read as a recording: {error}.") from error


def _calls(path: Path, lines: Sequence[str]) -> Iterator[Call]:
    if _parsed(lines[0]) != {"schema": SCHEMA}:
        raise SetupError(f"{path} is not a recording of a proxy ({SCHEMA} in its first line). Record it again.")
    for number, line in enumerate(lines[1:], start=2):
        tree = _parsed(line)
        if isinstance(tree, dict) and tree.keys() == {"key", "path", "request", "answer"}:
            yield Call(key=str(tree["key"]), path=str(tree["path"]), request=tree["request"], answer=tree["answer"])
        elif line and number < len(lines):
            raise SetupError(f"{path}:{number}: this line is not a call. Delete the line, or record the run again.")


def _parsed(line: str) -> Tree:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
