"""What the proxy records: JSON Lines, a call each, appended as they come, so that a killed run leaves what it had.

Prompts of memories hold random ids and the present time, so a recording that is looked up by the exact text is never
found again: two requests are the same without ids, dates and times. An answer may quote an id of its prompt; it is kept
by its number, and filled in from the new request.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from memstory.contract.errors import SetupError
from memstory.contract.values import Tree
from memstory.models.cassette import canonical
from memstory.results.secret_values import Secrets

SCHEMA: Final = "memstory.proxy/1"
_VARYING: Final = re.compile(
    r"""
      (?<![0-9A-Za-z])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Za-z])  # a UUID
    | (?<![0-9A-Za-z])[0-9a-f]{32}(?![0-9A-Za-z])                                          # the same without dashes
    | (?<![0-9A-Za-z])(?:call|chatcmpl|toolu|msg|run|step|thread)[-_][0-9A-Za-z]{6,}       # ids of OpenAI's kind
    | (?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\ ?Z|\ ?[+-]\d\d:?\d\d)?)?(?!\d)
    | (?<!\d)\d\d:\d\d:\d\d(?:[.,]\d+)?(?!\d)
    | (?:January|February|March|April|May|June|July|August|September|October|November|December)\ \d{1,2},\ \d{4}
    | ⟦\d+⟧                                                                                # our own marks
    """,
    re.VERBOSE,
)
_MARK: Final = re.compile(r"⟦(\d+)⟧")
_NOT_ASKED: Final = frozenset({"stream", "stream_options", "user", "safety_identifier", "metadata"})
"""Fields that say how an answer is sent, or who asks; what is asked is the same without them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlankRequest:
    """A request without what varies; `found` are the varying texts, the nth of which is in `body` as ⟦n⟧."""

    path: str
    body: Tree
    found: Sequence[str]

    @property
    def key(self) -> str:
        """Return what tells the request from others."""
        # Half of a character, which is not UTF-8, as its escape.
        text = canonical([self.path, self.body]).encode(errors="backslashreplace")
        return hashlib.sha256(text).hexdigest()[:24]

    def blank(self, answer: Tree) -> Tree:
        """Return an answer with a mark for every varying text that the request has too."""
        marks = {text: f"⟦{number}⟧" for number, text in enumerate(self.found)}
        if not marks:
            return answer
        known = re.compile("|".join(re.escape(text) for text in sorted(marks, key=len, reverse=True)))
        return _map_texts(answer, lambda text: known.sub(lambda hit: marks[hit[0]], text))

    def fill(self, answer: Tree) -> Tree:
        """Return a recorded answer with the varying texts of this request in place of the marks."""

        def text_of(hit: re.Match[str]) -> str:
            number = int(hit[1])
            return self.found[number] if number < len(self.found) else hit[0]

        return _map_texts(answer, lambda text: _MARK.sub(text_of, text))


def blank_request(path: str, body: Mapping[str, Tree]) -> BlankRequest:
    """Return a request without what varies, which is numbered by first appearance, keys in their order.

    >>> one = blank_request("chat/completions", {"messages": ["Today is 2026-01-02.", "2026-01-02"], "stream": True})
    >>> one.body, one.found
    ({'messages': ['Today is ⟦0⟧.', '⟦0⟧']}, ['2026-01-02'])
    """
    numbers: dict[str, int] = {}

    def mark(hit: re.Match[str]) -> str:
        return f"⟦{numbers.setdefault(hit[0], len(numbers))}⟧"

    told = {name: body[name] for name in sorted(body) if name not in _NOT_ASKED}
    blank = _map_texts(told, lambda text: _VARYING.sub(mark, text))
    return BlankRequest(path=path, body=blank, found=list(numbers))


def _map_texts(value: Tree, change: Callable[[str], str]) -> Tree:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _map_texts(value[key], change) for key in sorted(value)}
    if isinstance(value, list):
        return [_map_texts(one, change) for one in value]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
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

    def write(self, request: BlankRequest, answer: Tree) -> None:
        """Add a call."""
        call = {"key": request.key, "path": request.path, "request": request.body, "answer": request.blank(answer)}
        # A key in a prompt is still a key; headers, which have the server's, never come here.
        line = json.dumps(self._secrets.tree_without(call)[0], ensure_ascii=False)
        # Half of a character, which is not UTF-8, is replaced by what is its escape in JSON.
        with self._lock, self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{line}\n")


def read_calls(path: Path) -> Sequence[RecordedCall]:
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


def _calls(path: Path, lines: Sequence[str]) -> Iterator[RecordedCall]:
    if _parse(lines[0]) != {"schema": SCHEMA}:
        raise SetupError(f"{path} is not a recording of a proxy ({SCHEMA} in its first line). Record it again.")
    for number, line in enumerate(lines[1:], start=2):
        tree = _parse(line)
        if isinstance(tree, dict) and tree.keys() == {"key", "path", "request", "answer"}:
            yield RecordedCall(
                key=str(tree["key"]), path=str(tree["path"]), request=tree["request"], answer=tree["answer"]
            )
        elif line and number < len(lines):
            raise SetupError(f"{path}:{number}: this line is not a call. Delete the line, or record the run again.")


def _parse(line: str) -> Tree:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
